//! The PostgreSQL collector against real servers, 15 and 18: rest, slots, privileges, counters, restarts, silence. Locks are
//! beside this file.

use crate::support::collector::{DEADLINE, SOON, class, collector, read, started, until};
use crate::support::postgres::{answered, load, run, session, texts, try_run, try_session};
use crate::support::server::Server;
use collectors::api::{Capacity, Class, FaultKind};
use std::process::Command;
use std::time::Duration;

pub const VERSIONS: [&str; 2] = ["15", "18"];

/// A server of one version; its keys without the prefix.
pub struct Postgres {
    pub server: Server,
    version: &'static str,
}

impl Postgres {
    pub fn start(version: &'static str, args: &str) -> Option<Self> {
        let server = Server::start(&format!("postgres{version}"), &[(&format!("POSTGRES{version}_ARGS"), args)])?;
        Some(Self { server, version })
    }

    pub fn get(&self, key: &str) -> &str {
        self.server.get(&format!("POSTGRES{}_{key}", self.version))
    }

    /// All processes but the first: each backend leads a process group of its own.
    fn children(&self) -> Vec<String> {
        let parent = self.get("PID");
        let found = Command::new("ps").args(["-o", "pid=", "--ppid", parent]).output().expect("ps runs");
        String::from_utf8_lossy(&found.stdout).split_whitespace().map(str::to_owned).collect()
    }

    fn signal_children(&self, signal: &str) {
        let children = self.children();
        assert!(!children.is_empty());
        assert!(Command::new("kill").args(["-s", signal, "--"]).args(children).status().expect("kill runs").success());
    }
}

#[tokio::test]
async fn an_idle_server_rests_at_0_with_our_own_session_alone() {
    for version in VERSIONS {
        let Some(postgres) = Postgres::start(version, "") else { return };
        let (mut collector, support) = started("postgres", postgres.get("PROBE_URL")).await;
        assert_eq!(support.product, "PostgreSQL");
        assert!(support.version.starts_with(&format!("{version}.")), "{}", support.version);
        assert_eq!(support.endpoint, format!("127.0.0.1:{}", postgres.get("PORT")));
        let reading = read(&mut *collector).await;
        assert_eq!(reading.get("sessions_used"), Some(1.0), "ours");
        assert_eq!(reading.get("sessions_usable"), Some(197.0), "200 less 3 for superusers");
        let used = support.columns.iter().find(|gauge| gauge.name == "sessions_used").expect("a column");
        assert_eq!((used.class, used.capacity, used.own), (Class::Utilisation, Capacity::Column("sessions_usable"), 1.0));
        let mut queues = 0;
        for gauge in support.columns.iter().filter(|gauge| matches!(gauge.class, Class::Queue | Class::Occupancy)) {
            assert_eq!(reading.get(gauge.name), Some(0.0), "{} of {version}", gauge.name);
            queues += 1;
        }
        assert!(queues >= 15, "{queues}");
        for name in ["transaction_age_seconds", "idle_in_transaction_age_seconds", "lock_wait_age_seconds", "deadlocks_total"] {
            assert_eq!(reading.get(name), Some(0.0), "{name} of {version}");
        }
        let columns: Vec<_> = support.columns.iter().map(|gauge| gauge.name).collect();
        for (name, _) in &reading.values {
            assert!(columns.contains(name), "{name}");
        }
        for gauge in support.columns.iter().filter(|gauge| gauge.is_read()) {
            assert!(reading.get(gauge.name).is_some(), "{} of {version} has no value", gauge.name);
        }
        let again = read(&mut *collector).await;
        assert_eq!((reading.notes, again.notes, again.waits), (vec![], vec![], vec![]));
    }
}

#[tokio::test]
async fn with_every_usable_slot_taken_the_kept_connection_goes_on_and_says_so() {
    for version in VERSIONS {
        let Some(postgres) = Postgres::start(version, "-c max_connections=20") else { return };
        let url = postgres.get("PROBE_URL");
        let (mut collector, _) = started("postgres", url).await;
        assert_eq!(read(&mut *collector).await.get("sessions_used"), Some(1.0));
        let mut held = Vec::new();
        for _ in 0..16 {
            held.push(session(url).await);
        }
        let error = try_session(url).await.expect_err("no slot is left");
        assert!(error.to_string().contains("reserved"), "{error}");
        let reading = until(&mut *collector, "every usable slot taken", |reading| reading.get("sessions_used") == Some(17.0)).await;
        assert_eq!(reading.get("sessions_usable"), Some(17.0));
        assert_eq!(reading.get("sessions_idle"), Some(16.0));
        let fault = self::collector("postgres", url, "").start().await.expect_err("no slot for a second one");
        assert_eq!(fault.kind, FaultKind::Refused);
        assert!(fault.hint.as_deref().is_some_and(|hint| hint.contains("before the load")), "{fault} {:?}", fault.hint);
        drop(held);
        until(&mut *collector, "our session alone again", |reading| reading.get("sessions_used") == Some(1.0)).await;
    }
}

#[tokio::test]
async fn busy_sessions_and_idle_transactions_are_told_apart_and_ours_is_none_of_them() {
    for version in VERSIONS {
        let Some(postgres) = Postgres::start(version, "") else { return };
        let (mut collector, support) = started("postgres", postgres.get("PROBE_URL")).await;
        let mut idle = session(postgres.get("URL")).await;
        run(&mut idle, "BEGIN").await;
        run(&mut idle, "SELECT 1").await;
        let spin = "DO $$ BEGIN WHILE clock_timestamp() < now() + interval '2 s' LOOP END LOOP; END $$";
        let busy = load(postgres.get("URL"), vec![spin.to_owned(); 3]).await;
        let reading = until(&mut *collector, "three that compute", |reading| reading.get("sessions_on_cpu") == Some(3.0)).await;
        assert_eq!(class(&support, "sessions_on_cpu"), Class::Occupancy);
        assert_eq!(reading.get("sessions_active"), Some(3.0));
        assert_eq!(reading.get("sessions_idle_in_transaction"), Some(1.0));
        assert_eq!(reading.get("lock_waiting"), Some(0.0));
        let age = reading.get("idle_in_transaction_age_seconds").expect("an age");
        let transaction = reading.get("transaction_age_seconds").expect("an age");
        assert!(age > 0.0 && transaction >= age && transaction < 60.0, "{age} {transaction}");
        answered(busy).await;
        run(&mut idle, "COMMIT").await;
        let rest = until(&mut *collector, "rest", |reading| reading.get("sessions_active") == Some(0.0)).await;
        assert_eq!(rest.get("idle_in_transaction_age_seconds"), Some(0.0));
    }
}

#[tokio::test]
async fn commits_that_wait_for_a_replica_are_a_queue_of_their_own() {
    for version in VERSIONS {
        let Some(postgres) = Postgres::start(version, "") else { return };
        let (mut collector, support) = started("postgres", postgres.get("PROBE_URL")).await;
        assert_eq!(read(&mut *collector).await.get("sync_rep_waiting"), Some(0.0));
        assert_eq!(class(&support, "sync_rep_waiting"), Class::Queue);
        let mut admin = session(postgres.get("URL")).await;
        run(&mut admin, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'").await;
        run(&mut admin, "SELECT pg_reload_conf()").await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let updates = (1..=3).map(|row| format!("UPDATE slot SET taken = 1 WHERE id = {row}")).collect();
        let tasks = load(postgres.get("URL"), updates).await;
        let reading = until(&mut *collector, "three commits waiting", |reading| reading.get("sync_rep_waiting") == Some(3.0)).await;
        assert_eq!((reading.get("sessions_on_cpu"), reading.get("lock_waiting")), (Some(0.0), Some(0.0)));
        run(&mut admin, "ALTER SYSTEM RESET synchronous_standby_names").await;
        run(&mut admin, "SELECT pg_reload_conf()").await;
        answered(tasks).await;
        until(&mut *collector, "rest", |reading| reading.get("sync_rep_waiting") == Some(0.0)).await;
    }
}

#[tokio::test]
async fn deadlocks_temporary_files_and_checkpoints_are_counted_and_a_reset_is_noted_once() {
    for version in VERSIONS {
        let Some(postgres) = Postgres::start(version, "-c deadlock_timeout=50ms") else { return };
        let (mut collector, support) = started("postgres", postgres.get("PROBE_URL")).await;
        let before = read(&mut *collector).await;
        assert_eq!(before.get("deadlocks_total"), Some(0.0));
        assert_eq!(class(&support, "deadlocks_total"), Class::Event);
        let (mut one, mut two) = (session(postgres.get("URL")).await, session(postgres.get("URL")).await);
        run(&mut one, "BEGIN; UPDATE slot SET taken = 1 WHERE id = 1").await;
        run(&mut two, "BEGIN; UPDATE slot SET taken = 1 WHERE id = 2").await;
        let (a, b) = tokio::join!(
            try_run(&mut one, "UPDATE slot SET taken = 1 WHERE id = 2"),
            try_run(&mut two, "UPDATE slot SET taken = 1 WHERE id = 1"),
        );
        assert_eq!(usize::from(a.is_err()) + usize::from(b.is_err()), 1, "one of the two is ended");
        run(&mut one, "ROLLBACK").await;
        run(&mut two, "ROLLBACK").await;
        run(&mut one, "SET work_mem = '64kB'").await;
        run(&mut one, "SELECT * FROM generate_series(1, 50000) n ORDER BY n DESC LIMIT 1 OFFSET 49000").await;
        run(&mut one, "CHECKPOINT").await;
        let grown = |name: &'static str, least: f64| {
            let then = before.get(name).expect("a value");
            move |now: f64| now >= then + least
        };
        let conditions = [
            ("deadlocks_total", grown("deadlocks_total", 1.0)),
            ("temp_files_total", grown("temp_files_total", 1.0)),
            ("temp_bytes_total", grown("temp_bytes_total", 1000.0)),
            ("checkpoints_requested_total", grown("checkpoints_requested_total", 1.0)),
            ("rollbacks_total", grown("rollbacks_total", 2.0)),
        ];
        // Sessions hand their counts over when they end, or within seconds.
        drop((one, two));
        let reading = until(&mut *collector, "every counter grown", |reading| {
            conditions.iter().all(|(name, grown)| reading.get(name).is_some_and(grown))
        })
        .await;
        assert_eq!(reading.get("deadlocks_total"), Some(1.0));
        assert!(reading.get("commits_total") > before.get("commits_total"));
        let mut admin = session(postgres.get("URL")).await;
        run(&mut admin, "SELECT pg_stat_reset()").await;
        let mut notes = Vec::new();
        for _ in 0..5 {
            notes.extend(read(&mut *collector).await.notes);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(notes, ["statistics were reset: counters of the databases"], "{version}");
    }
}

#[tokio::test]
async fn a_role_without_pg_monitor_is_told_and_gets_no_plausible_wrong_number() {
    for version in VERSIONS {
        let Some(postgres) = Postgres::start(version, "") else { return };
        let mut other = session(postgres.get("URL")).await;
        run(&mut other, "BEGIN").await;
        let (mut collector, support) = started("postgres", postgres.get("BLIND_URL")).await;
        let lack = support.lacks.iter().find(|lack| lack.what.contains("pg_monitor")).expect("it is said");
        assert_eq!(lack.mend.as_deref(), Some("GRANT pg_monitor TO \"blind\";"));
        let reading = read(&mut *collector).await;
        for name in [
            "sessions_used",
            "sessions_active",
            "lock_waiting",
            "transaction_age_seconds",
            "autovacuum_workers",
            "lock_wait_age_seconds",
        ] {
            assert!(!support.columns.iter().any(|gauge| gauge.name == name), "{name}");
            assert_eq!(reading.get(name), None, "{name}");
        }
        assert!(reading.get("commits_total").is_some() && reading.get("sessions_usable").is_some());
        // The mend, as it was printed.
        run(&mut other, "ROLLBACK").await;
        run(&mut other, lack.mend.as_deref().expect("a mend")).await;
        drop(collector);
        let (mut collector, support) = started("postgres", postgres.get("BLIND_URL")).await;
        assert!(!support.lacks.iter().any(|lack| lack.what.contains("pg_monitor")), "{:?}", support.lacks);
        until(&mut *collector, "that session and ours", |reading| reading.get("sessions_used") == Some(2.0)).await;
    }
}

#[tokio::test]
async fn the_applications_own_role_sees_its_sessions_until_one_of_another_role_comes() {
    for version in VERSIONS {
        let Some(postgres) = Postgres::start(version, "") else { return };
        let blind = postgres.get("BLIND_URL");
        let _pool = (session(blind).await, session(blind).await);
        let (mut collector, support) = started("postgres", blind).await;
        assert!(support.lacks.iter().any(|lack| lack.what.contains("other roles")), "{:?}", support.lacks);
        let reading = read(&mut *collector).await;
        assert_eq!((reading.get("sessions_used"), reading.get("sessions_idle")), (Some(3.0), Some(2.0)));
        let other = session(postgres.get("URL")).await;
        let reading = read(&mut *collector).await;
        assert_eq!((reading.get("sessions_used"), reading.get("sessions_idle")), (None, None), "missing, not wrong");
        assert!(reading.notes.iter().any(|note| note.contains("GRANT pg_monitor")), "{:?}", reading.notes);
        drop(other);
        until(&mut *collector, "all sessions visible again", |reading| reading.get("sessions_used") == Some(3.0)).await;
    }
}

#[tokio::test]
async fn a_wrong_password_user_or_database_is_refused_with_a_way_out_and_without_the_password() {
    for version in VERSIONS {
        let Some(postgres) = Postgres::start(version, "") else { return };
        let port = postgres.get("PORT");
        for (url, found, way_out) in [
            (format!("postgres://probe:hush1234@127.0.0.1:{port}/shop"), "password", "the URL"),
            (format!("postgres://nobody:hush1234@127.0.0.1:{port}/shop"), "password", "pg_monitor"),
            (format!("postgres://probe:probe@127.0.0.1:{port}/nowhere"), "nowhere", "DATABASE"),
        ] {
            let fault = collector("postgres", &url, "").start().await.expect_err("refused");
            assert_eq!(fault.kind, FaultKind::Refused, "{fault}");
            let hint = fault.hint.clone().unwrap_or_default();
            assert!(fault.message.contains(found) && hint.contains(way_out), "{fault} {hint}");
            assert!(!format!("{fault:?}").contains("hush1234"));
        }
        let fault = collector("postgres", "postgres://probe@127.0.0.1:1/shop", "").start().await.expect_err("nobody is there");
        assert_eq!(fault.kind, FaultKind::Unreachable);
        let socket = postgres.get("SOCKET_DIR");
        let path = format!("{socket}/.s.PGSQL.{port}");
        let mut by_socket = collector("postgres", &path, "user = \"probe\"\ndatabase = \"shop\"");
        assert_eq!(by_socket.start().await.expect("by the socket").endpoint, path);
    }
}

#[tokio::test]
async fn a_server_killed_and_started_again_is_read_again_with_two_notes() {
    for version in VERSIONS {
        let Some(mut postgres) = Postgres::start(version, "") else { return };
        let url = postgres.get("PROBE_URL").to_owned();
        let (mut collector, support) = started("postgres", &url).await;
        read(&mut *collector).await;
        postgres.server.signal_all("KILL");
        tokio::time::sleep(Duration::from_millis(300)).await;
        for _ in 0..2 {
            let fault = collector.read().await.expect_err("it is gone");
            assert_eq!(fault.kind, FaultKind::Unreachable, "{fault}");
        }
        postgres.server.start_again();
        let reading = until(&mut *collector, "the server again", |_| true).await;
        assert!(reading.notes.contains(&"connected again".to_owned()), "{:?}", reading.notes);
        assert_eq!(reading.restarted.as_deref(), Some("the server was started anew"));
        for gauge in support.columns.iter().filter(|gauge| gauge.is_read()) {
            assert!(reading.get(gauge.name).is_some(), "{} is read again", gauge.name);
        }
        assert_eq!(read(&mut *collector).await.notes, Vec::<String>::new());
    }
}

#[tokio::test]
async fn our_session_ended_by_an_administrator_costs_one_read() {
    for version in VERSIONS {
        let Some(postgres) = Postgres::start(version, "") else { return };
        let (mut collector, _) = started("postgres", postgres.get("PROBE_URL")).await;
        let mut admin = session(postgres.get("URL")).await;
        let ended = texts(
            &mut admin,
            "SELECT count(pg_terminate_backend(pid))::text FROM pg_stat_activity WHERE application_name = 'whatgives'",
        )
        .await;
        assert_eq!(ended, ["1"], "one session, and it has our name");
        let fault = collector.read().await.expect_err("ended");
        assert_eq!(fault.kind, FaultKind::Unreachable, "{fault}");
        assert_eq!(read(&mut *collector).await.notes, ["connected again"]);
    }
}

#[tokio::test]
async fn a_stopped_server_gives_no_answer_and_goes_on_over_the_same_connection() {
    for version in VERSIONS {
        let Some(postgres) = Postgres::start(version, "") else { return };
        let (mut collector, _) = started("postgres", postgres.get("PROBE_URL")).await;
        read(&mut *collector).await;
        postgres.signal_children("STOP");
        tokio::time::sleep(Duration::from_millis(100)).await;
        // Given up at its deadline, as the caller does after 30 s.
        assert!(tokio::time::timeout(DEADLINE, collector.read()).await.is_err(), "stopped");
        {
            let mut late = collector.read();
            assert!(tokio::time::timeout(DEADLINE, &mut late).await.is_err(), "still stopped");
            postgres.signal_children("CONT");
            let reading = tokio::time::timeout(SOON, late).await.expect("goes on").expect("an answer");
            assert!(reading.get("sessions_used").is_some());
        }
        let reading = read(&mut *collector).await;
        assert_eq!((reading.get("sessions_used"), reading.notes), (Some(1.0), vec![]), "no second connection");
    }
}

#[tokio::test]
async fn we_never_stay_inside_a_transaction_and_ask_one_prepared_statement_a_tick() {
    for version in VERSIONS {
        let Some(postgres) = Postgres::start(version, "-c track_io_timing=on") else { return };
        let (mut collector, support) = started("postgres", postgres.get("PROBE_URL")).await;
        assert_eq!(class(&support, "block_read_ms_total"), Class::WaitSum);
        read(&mut *collector).await;
        let mut admin = session(postgres.get("URL")).await;
        let state = "SELECT state FROM pg_stat_activity WHERE application_name = 'whatgives'";
        for _ in 0..5 {
            assert_eq!(texts(&mut admin, state).await, ["idle"]);
            read(&mut *collector).await;
        }
        // What was asked last is what every tick asks: one prepared statement.
        let query = texts(&mut admin, "SELECT query FROM pg_stat_activity WHERE application_name = 'whatgives'").await;
        assert_eq!(query, ["EXECUTE whatgives_tick"]);
    }
}

#[tokio::test]
async fn a_replication_slot_that_nobody_reads_holds_wal_back() {
    for version in VERSIONS {
        let Some(postgres) = Postgres::start(version, "") else { return };
        let mut admin = session(postgres.get("URL")).await;
        run(&mut admin, "SELECT pg_create_physical_replication_slot('left_behind', true)").await;
        let (mut collector, support) = started("postgres", postgres.get("PROBE_URL")).await;
        assert_eq!(class(&support, "slot_retained_bytes"), Class::Level);
        let before = read(&mut *collector).await;
        assert_eq!(before.get("slots_inactive"), Some(1.0));
        run(&mut admin, "CREATE TABLE much AS SELECT repeat('x', 500) FROM generate_series(1, 4000)").await;
        let grown = before.get("slot_retained_bytes").expect("a value") + 1e6;
        let reading = until(&mut *collector, "WAL held back", |reading| reading.get("slot_retained_bytes") > Some(grown)).await;
        assert!(reading.get("wal_since_checkpoint_bytes") > Some(1e6));
        assert!(reading.get("wal_since_checkpoint_bytes") < reading.get("max_wal_size_bytes"));
    }
}
