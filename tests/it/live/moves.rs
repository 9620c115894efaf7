//! Whatever gives way, the tick file tells it while it lasts: one kind of saturation after the other beside the sampler as a
//! user runs it, and the column that rested before. Where the server then lets nobody in, the sampler that comes too late
//! has `up` 0 with the reason in every row. Pages that fall silent in the middle stand in `silent.rs`.

#[cfg(target_os = "linux")]
use super::haproxy;
use super::mysql::{PRODUCTS, Target, run as run_mysql};
use super::pgbouncer::Pool;
use super::postgres::{Postgres, VERSIONS};
use super::{memcached, redis};
use crate::support::postgres::{answered, load, run, session};
use crate::support::sampler::{Folder, Ran, notes, read_columns, signal, until};
use crate::support::server::Server;
use std::process::Child;
use std::time::{Duration, Instant};
use whatgives::waits::Waits;

/// A sampler beside a target, its instance called `t`.
struct Beside {
    folder: Folder,
    child: Child,
}

impl Beside {
    /// Begins, and waits until these columns rest.
    fn start(target: &str, rest: &[(&str, f64)]) -> Self {
        let folder = Folder::new();
        let child = folder.start(&[target, "--no-host", "--tick=200ms", "--seconds=120"]);
        folder.until_rows(4);
        until("every column rests", || {
            let ticks = folder.ticks();
            let rests = |(name, value): &(&str, f64)| ticks.column(&format!("t.{name}")).expect("a column").last() == Some(value);
            rest.iter().all(rests)
        });
        Self { folder, child }
    }

    /// Waits until the newest row has at least so much.
    async fn sees(&self, name: &str, least: f64) {
        self.fits(name, |cell| cell >= least).await;
    }

    async fn fits(&self, name: &str, fits: impl Fn(f64) -> bool) {
        let began = Instant::now();
        loop {
            let ticks = self.folder.ticks();
            let cells = ticks.column(&format!("t.{name}")).expect("a column");
            if cells.last().is_some_and(|cell| fits(*cell)) {
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "{name} never came to it: {cells:?}\n{}", notes(&ticks));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn end(self) -> Waits {
        signal(self.child.id(), "TERM");
        let ran = Ran::end(self.child);
        assert_eq!(ran.code, 0, "{}", ran.err);
        self.folder.waits()
    }
}

/// A sampler that comes to a server which lets nobody in any more.
fn too_late(target: &str, reason: &str) {
    let folder = Folder::new();
    let ran = folder.run(&[target, "--no-host", "--allow-down", "--tick=200ms", "--seconds=1"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ticks = folder.ticks();
    let (up, took) = (ticks.column("t.up").expect("up"), ticks.column("t.poll_ms").expect("poll_ms"));
    assert!(up.len() >= 4 && up.iter().all(|up| *up == 0.0) && took.iter().all(|ms| *ms >= 0.0), "{up:?} {took:?}");
    assert!(ran.err.contains(reason) && notes(&ticks).starts_with("0 t: "), "{}\n{}", ran.err, notes(&ticks));
    for (column, cells) in read_columns(&ticks, "t") {
        assert!(cells.iter().all(|cell| cell.is_nan()), "{column}: {cells:?}");
    }
}

#[tokio::test]
async fn mysql_and_mariadb_move_for_row_table_and_metadata_locks_and_for_the_last_connection() {
    for name in PRODUCTS {
        let Some(target) = Target::with(name, "--max-connections=20") else { return };
        let flag = format!("--mysql=t={}", target.url("PROBE_"));
        let queues = ["row_lock_waiting", "metadata_lock_waiting", "table_lock_waiting"];
        let mut rest = queues.map(|queue| (queue, 0.0)).to_vec();
        rest.push(("threads_connected", 1.0));
        let beside = Beside::start(&flag, &rest);
        let mut holder = target.session().await;

        run_mysql(&mut holder, "BEGIN").await;
        run_mysql(&mut holder, "SELECT * FROM shop.slot WHERE id = 17 FOR UPDATE").await;
        let mut waiting = Vec::new();
        for _ in 0..3 {
            waiting.push(target.waiting("UPDATE shop.slot SET taken = 1 WHERE id = 17").await);
        }
        beside.sees("row_lock_waiting", 3.0).await;
        run_mysql(&mut holder, "ROLLBACK").await;

        run_mysql(&mut holder, "LOCK TABLES shop.slot WRITE").await;
        waiting.push(target.waiting("SELECT COUNT(*) FROM shop.slot").await);
        beside.sees("metadata_lock_waiting", 1.0).await;
        run_mysql(&mut holder, "UNLOCK TABLES").await;

        run_mysql(&mut holder, "CREATE TABLE shop.old (id INT) ENGINE = MyISAM").await;
        run_mysql(&mut holder, "INSERT INTO shop.old VALUES (1), (2)").await;
        waiting.push(target.waiting("SELECT SLEEP(3) FROM shop.old").await);
        tokio::time::sleep(Duration::from_millis(300)).await;
        waiting.push(target.waiting("UPDATE shop.old SET id = 2").await);
        beside.sees("table_lock_waiting", 1.0).await;
        for task in waiting {
            task.await.expect("the waiter ends").expect("and has its lock");
        }

        let mut sessions = Vec::new();
        for _ in 0..18 {
            sessions.push(target.session().await);
        }
        beside.sees("threads_connected", 20.0).await;
        too_late(&flag, "Too many connections");
        beside.end();
    }
}

#[tokio::test]
async fn postgres_moves_for_rows_tables_advisory_locks_unique_keys_and_the_last_slot() {
    for version in VERSIONS {
        let Some(postgres) = Postgres::start(version, "-c max_connections=20") else { return };
        let (flag, url) = (format!("--postgres=t={}", postgres.get("PROBE_URL")), postgres.get("URL"));
        let kinds = [
            ("row_lock_waiting", "SELECT * FROM slot WHERE id = 17 FOR UPDATE", "UPDATE slot SET taken = 1 WHERE id = 17"),
            ("relation_lock_waiting", "LOCK TABLE slot", "SELECT count(*) FROM slot"),
            ("advisory_lock_waiting", "SELECT pg_advisory_xact_lock(7)", "SELECT pg_advisory_xact_lock(7)"),
            ("lock_waiting", "INSERT INTO slot VALUES (5000, 1, 1)", "INSERT INTO slot VALUES (5000, 2, 2) ON CONFLICT DO NOTHING"),
        ];
        let mut rest = kinds.map(|(gauge, ..)| (gauge, 0.0)).to_vec();
        rest.push(("sessions_used", 1.0));
        let beside = Beside::start(&flag, &rest);
        let mut holder = session(url).await;
        for (gauge, holds, waits) in kinds {
            run(&mut holder, "BEGIN").await;
            run(&mut holder, holds).await;
            let tasks = load(url, vec![waits.to_owned(); 3]).await;
            beside.sees(gauge, 3.0).await;
            run(&mut holder, "COMMIT").await;
            answered(tasks).await;
            beside.fits("lock_waiting", |waiting| waiting == 0.0).await;
        }
        let mut held = Vec::new();
        for _ in 0..15 {
            held.push(session(postgres.get("PROBE_URL")).await);
        }
        beside.sees("sessions_used", 17.0).await;
        too_late(&flag, "reserved");
        let waits = beside.end();
        for kind in ["row", "relation", "advisory", "transaction"] {
            assert!(waits.rows.iter().any(|row| row.kind == kind), "no {kind} among {:?}", waits.rows);
        }
    }
}

#[tokio::test]
async fn memcached_moves_for_connections_that_it_refuses_and_for_a_full_memory() {
    let Some(server) = Server::start("memcached", &[("MEMCACHED_ARGS", "-m 8 -c 40 -t 2")]) else { return };
    let flag = format!("--memcached=t={}", server.get("MEMCACHED_ADDRESS"));
    let beside = Beside::start(&flag, &[("evictions_total", 0.0), ("rejected_connections_total", 0.0), ("curr_connections", 1.0)]);
    memcached::Client::new(&server).store(0..12_000, 1000);
    beside.sees("evictions_total", 1000.0).await;
    let mut clients = Vec::new();
    loop {
        let mut client = memcached::Client::new(&server);
        let answer = client.ask("version");
        clients.push(client);
        if answer.contains("Too many open connections") {
            break;
        }
        assert!(clients.len() < 40, "the limit was never reached");
    }
    beside.sees("rejected_connections_total", 1.0).await;
    too_late(&flag, "Too many open connections");
    beside.end();
}

#[tokio::test]
async fn redis_and_valkey_move_for_commands_refused_without_memory_and_clients_refused_at_the_limit() {
    for name in redis::BOTH {
        let args = [(&*format!("{}_ARGS", name.to_uppercase()), "--maxclients 20 --maxmemory 6mb --maxmemory-policy noeviction")];
        let Some(server) = Server::start(name, &args) else { return };
        let (flag, port) = (format!("--redis=t={}", redis::of(&server, name, "URL")), redis::of(&server, name, "PORT"));
        let beside = Beside::start(&flag, &[("oom_errors_total", 0.0), ("rejected_connections_total", 0.0)]);
        let mut client = redis::Client::new(port);
        let text = "x".repeat(10_000);
        let refused = (0..3000).find(|key| client.ask(&["SET", &format!("key{key}"), &text]).starts_with("-OOM"));
        assert!(refused.is_some(), "{name} was never full");
        beside.sees("oom_errors_total", 1.0).await;
        let mut clients = Vec::new();
        loop {
            let mut client = redis::Client::new(port);
            let answer = client.ask(&["PING"]);
            clients.push(client);
            if answer.contains("max number of clients") {
                break;
            }
            assert!(clients.len() < 20, "the limit was never reached");
        }
        beside.sees("rejected_connections_total", 1.0).await;
        too_late(&flag, "max number of clients");
        beside.end();
    }
}

#[tokio::test]
async fn pgbouncer_moves_for_clients_that_wait_for_a_server_and_for_the_last_client() {
    // Its console lets the sampler in however many clients there are.
    let options = [("PGBOUNCER_POOL", "4"), ("PGBOUNCER_EXTRA", "max_client_conn = 16")];
    let Some(pool) = Pool::start(&options) else { return };
    let flag = format!("--pgbouncer=t={}", pool.console());
    let rest = [("clients_waiting", 0.0), ("maxwait_seconds", 0.0), ("clients_used", 1.0)];
    let beside = Beside::start(&flag, &rest);
    let tasks = load(pool.url(), vec!["SELECT pg_sleep(2)".to_owned(); 15]).await;
    beside.sees("clients_waiting", 11.0).await;
    beside.sees("maxwait_seconds", 0.2).await;
    beside.sees("clients_used", 16.0).await;
    answered(tasks).await;
    beside.end();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn haproxy_moves_for_requests_that_wait_for_a_server() {
    let Some(pair) = haproxy::Pair::start(&[], "") else { return };
    let beside = Beside::start(&format!("--haproxy=t={}", pair.haproxy.get("HAPROXY_SOCKET")), &[("app_queue", 0.0)]);
    let all = haproxy::slow(pair.port(), 24, 3000, "");
    beside.sees("app_queue", 8.0).await;
    haproxy::all_served(all);
    beside.end();
}
