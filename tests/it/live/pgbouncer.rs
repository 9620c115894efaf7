//! The PgBouncer collector against a real PgBouncer before a real PostgreSQL.

use crate::support::collector::{DEADLINE, class, collector, read, started, until};
use crate::support::postgres::{answered, load, run, session, try_session};
use crate::support::server::Server;
use collectors::api::{Capacity, Class, FaultKind};
use std::time::Duration;

/// PostgreSQL and PgBouncer before it; dropped in this order.
pub(super) struct Pool {
    bouncer: Server,
    postgres: Server,
}

impl Pool {
    pub(super) fn start(options: &[(&str, &str)]) -> Option<Self> {
        let postgres = Server::start("postgres15", &[])?;
        let backend = format!("127.0.0.1:{}", postgres.get("POSTGRES15_PORT"));
        let mut all = vec![("PGBOUNCER_BACKEND", backend.as_str())];
        all.extend_from_slice(options);
        let bouncer = Server::start("pgbouncer", &all)?;
        Some(Self { bouncer, postgres })
    }

    pub(super) fn url(&self) -> &str {
        self.bouncer.get("PGBOUNCER_URL")
    }

    pub(super) fn console(&self) -> &str {
        self.bouncer.get("PGBOUNCER_ADMIN_URL")
    }
}

#[tokio::test]
async fn an_idle_pgbouncer_rests_with_our_own_client_alone_and_no_pool_of_its_own() {
    let Some(pool) = Pool::start(&[]) else { return };
    let (mut collector, support) = started("pgbouncer", pool.console()).await;
    assert_eq!((support.product.as_str(), support.version.starts_with("1.")), ("PgBouncer", true), "{}", support.version);
    let reading = read(&mut *collector).await;
    for name in ["clients_waiting", "maxwait_seconds", "servers_active", "clients_login", "queries_total", "wait_us_total"] {
        assert_eq!(reading.get(name), Some(0.0), "{name}");
    }
    assert_eq!((reading.get("clients_used"), reading.get("max_client_conn")), (Some(1.0), Some(400.0)));
    assert_eq!(reading.get("servers_max"), None, "there is no pool yet");
    assert_eq!(reading.notes, Vec::<String>::new());
    assert_eq!((class(&support, "clients_waiting"), class(&support, "maxwait_seconds")), (Class::Queue, Class::Age));
    let columns: Vec<_> = support.columns.iter().map(|gauge| gauge.name).collect();
    assert!(reading.values.iter().all(|(name, _)| columns.contains(name)));
    for gauge in &support.columns {
        if let Capacity::Column(column) = gauge.capacity {
            assert!(columns.contains(&column), "{column}");
        }
    }
}

#[tokio::test]
async fn a_pool_of_10_with_30_clients_has_20_waiting_while_the_servers_behind_are_10() {
    let Some(pool) = Pool::start(&[("PGBOUNCER_POOL", "10")]) else { return };
    let mut bouncer = collector("pgbouncer", pool.console(), "pools = [\"shop/postgres\"]");
    let support = bouncer.start().await.expect("it starts");
    assert_eq!(class(&support, "pool_shop_postgres_clients_waiting"), Class::Queue);
    let (mut postgres, _) = started("postgres", pool.postgres.get("POSTGRES15_PROBE_URL")).await;
    let rest = read(&mut *bouncer).await;
    assert_eq!(rest.get("clients_waiting"), Some(0.0));
    let tasks = load(pool.url(), vec!["SELECT pg_sleep(1.5)".to_owned(); 30]).await;
    let reading = until(&mut *bouncer, "20 clients waiting", |reading| reading.get("clients_waiting") == Some(20.0)).await;
    for name in ["servers_active", "servers_max", "pool_shop_postgres_servers_active", "pool_shop_postgres_servers_max"] {
        assert_eq!(reading.get(name), Some(10.0), "{name}");
    }
    assert_eq!(reading.get("pool_shop_postgres_clients_waiting"), Some(20.0));
    assert_eq!(reading.get("clients_used"), Some(31.0), "30 and our own");
    let first = reading.get("maxwait_seconds").expect("an age");
    tokio::time::sleep(Duration::from_millis(300)).await;
    let later = read(&mut *bouncer).await;
    let grown = later.get("maxwait_seconds").expect("an age");
    assert!(grown > first + 0.2 && grown < 60.0, "{first} {grown}");
    assert_eq!(later.get("wait_us_total"), reading.get("wait_us_total"), "counted when a wait ends");
    let behind = read(&mut *postgres).await;
    assert_eq!((behind.get("sessions_active"), behind.get("lock_waiting")), (Some(10.0), Some(0.0)));
    answered(tasks).await;
    let rest = until(&mut *bouncer, "nobody waiting", |reading| {
        reading.get("clients_waiting") == Some(0.0) && reading.get("servers_active") == Some(0.0)
    })
    .await;
    // 10 of them waited about 1.5 s, 10 about 3 s.
    assert!(rest.get("wait_us_total") > Some(20e6), "{:?}", rest.get("wait_us_total"));
    assert_eq!((rest.get("queries_total"), rest.get("maxwait_seconds")), (Some(30.0), Some(0.0)));
}

#[tokio::test]
async fn with_every_client_connection_taken_the_kept_one_goes_on() {
    let Some(pool) = Pool::start(&[("PGBOUNCER_EXTRA", "max_client_conn = 12")]) else { return };
    let (mut collector, _) = started("pgbouncer", pool.console()).await;
    let mut held = Vec::new();
    for _ in 0..11 {
        held.push(session(pool.url()).await);
    }
    let error = try_session(pool.url()).await.expect_err("no more are allowed");
    assert!(error.to_string().contains("max_client_conn"), "{error}");
    let reading = read(&mut *collector).await;
    assert_eq!((reading.get("clients_used"), reading.get("max_client_conn")), (Some(12.0), Some(12.0)));
    drop(held);
    until(&mut *collector, "our own again", |reading| reading.get("clients_used") == Some(1.0)).await;
}

#[tokio::test]
async fn a_paused_database_is_said_when_it_begins_and_when_it_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let users = folder.path().join("users");
    std::fs::write(&users, "\"probe\" \"\"\n").expect("written");
    let extra = format!("auth_type = trust\nauth_file = {}\nadmin_users = probe", users.display());
    let Some(pool) = Pool::start(&[("PGBOUNCER_EXTRA", &extra)]) else { return };
    let (mut collector, _) = started("pgbouncer", pool.console()).await;
    let mut admin = session(pool.console()).await;
    run(&mut admin, "PAUSE shop").await;
    assert_eq!(read(&mut *collector).await.notes, ["paused: shop"]);
    assert_eq!(read(&mut *collector).await.notes, Vec::<String>::new());
    run(&mut admin, "RESUME shop").await;
    assert_eq!(read(&mut *collector).await.notes, ["no database is paused any more"]);
}

#[tokio::test]
async fn a_pgbouncer_restarted_is_read_again_with_a_note() {
    let Some(mut pool) = Pool::start(&[]) else { return };
    let console = pool.console().to_owned();
    let (mut collector, _) = started("pgbouncer", &console).await;
    read(&mut *collector).await;
    pool.bouncer.signal("KILL");
    tokio::time::sleep(Duration::from_millis(200)).await;
    for _ in 0..2 {
        let fault = collector.read().await.expect_err("it is gone");
        assert_eq!(fault.kind, FaultKind::Unreachable, "{fault}");
    }
    pool.bouncer.start_again();
    let reading = read(&mut *collector).await;
    assert_eq!(reading.notes, ["connected again"]);
    assert_eq!((reading.get("clients_waiting"), reading.get("clients_used")), (Some(0.0), Some(1.0)));
    assert_eq!(read(&mut *collector).await.notes, Vec::<String>::new());
}

#[tokio::test]
async fn a_stopped_pgbouncer_gives_no_answer_and_goes_on_over_the_same_connection() {
    let Some(pool) = Pool::start(&[]) else { return };
    let (mut collector, _) = started("pgbouncer", pool.console()).await;
    pool.bouncer.signal("STOP");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(tokio::time::timeout(DEADLINE, collector.read()).await.is_err(), "stopped");
    pool.bouncer.signal("CONT");
    let reading = read(&mut *collector).await;
    assert_eq!((reading.get("clients_used"), reading.notes), (Some(1.0), vec![]));
}

#[tokio::test]
async fn a_user_that_may_not_see_the_console_is_told_the_line_that_lets_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let users = folder.path().join("users");
    std::fs::write(&users, "\"probe\" \"\"\n\"app\" \"\"\n").expect("written");
    let extra = format!("auth_type = trust\nauth_file = {}\nstats_users = probe", users.display());
    let Some(pool) = Pool::start(&[("PGBOUNCER_EXTRA", &extra)]) else { return };
    let (mut allowed, _) = started("pgbouncer", pool.console()).await;
    assert_eq!(read(&mut *allowed).await.get("clients_waiting"), Some(0.0));
    let fault = collector("pgbouncer", &pool.console().replace("probe@", "app@"), "").start().await.expect_err("not allowed");
    assert_eq!(fault.kind, FaultKind::Refused, "{fault}");
    assert!(fault.hint.as_deref().is_some_and(|hint| hint.contains("stats_users = app")), "{:?}", fault.hint);
}

#[tokio::test]
async fn the_two_collectors_tell_each_others_servers_apart() {
    for extra in ["", "ignore_startup_parameters = extra_float_digits, options"] {
        let Some(pool) = Pool::start(&[("PGBOUNCER_EXTRA", extra)]) else { return };
        let fault = collector("postgres", pool.url(), "").start().await.expect_err("a pooler stands between");
        assert_eq!(fault.kind, FaultKind::Nonsense);
        assert!(
            fault.message.contains("pooler") && fault.hint.as_deref().is_some_and(|hint| hint.contains("--pgbouncer")),
            "{fault}"
        );
        // Nothing of ours was set in the session that others use next.
        let mut next = session(pool.url()).await;
        let timeout = crate::support::postgres::texts(&mut next, "SHOW statement_timeout").await;
        assert_eq!(timeout, ["0"]);
        let fault = collector("pgbouncer", pool.postgres.get("POSTGRES15_URL"), "").start().await.expect_err("no PgBouncer");
        assert_eq!(fault.kind, FaultKind::Nonsense, "{fault}");
        assert!(fault.hint.as_deref().is_some_and(|hint| hint.contains("--postgres")), "{:?}", fault.hint);
    }
}
