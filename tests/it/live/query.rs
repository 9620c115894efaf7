//! A query of one's own against real servers: MySQL 9, MariaDB 10.11, PostgreSQL 15 and 18.

use super::mysql;
use crate::support::collector::open;
use crate::support::postgres;
use crate::support::server::Server;
use collectors::api::{Collector, FaultKind};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

const ALL: [(&str, &str); 4] =
    [("mysql", "MYSQL"), ("mariadb", "MARIADB"), ("postgres15", "POSTGRES15"), ("postgres18", "POSTGRES18")];

fn collector(url: &str, sql: &str) -> Box<dyn Collector> {
    open(&collectors::query::SPEC, "outbox", &format!("{url}::{sql}"), "")
}

#[tokio::test]
async fn numbers_of_every_type_are_read_null_is_missing_and_texts_are_left_out() {
    for (name, prefix) in ALL {
        let Some(server) = Server::start(name, &[]) else { continue };
        let url = server.get(&format!("{prefix}_URL"));
        let sql = "SELECT 7 AS depth, CAST(1.5 AS DECIMAL(9,2)) AS oldest_age_seconds, CAST(NULL AS DECIMAL) AS gone, 'ann' AS who, 2e3 AS big";
        let mut query = collector(url, sql);
        let support = query.start().await.unwrap_or_else(|fault| panic!("{name}: {fault}"));
        let columns: Vec<&str> = support.columns.iter().map(|gauge| gauge.name).collect();
        assert_eq!(columns, ["depth", "oldest_age_seconds", "gone", "big"], "{name}");
        assert_eq!(support.lacks.len(), 1, "{name}: {:?}", support.lacks);
        let reading = query.read().await.expect("it answers");
        assert_eq!((reading.get("depth"), reading.get("oldest_age_seconds")), (Some(7.0), Some(1.5)), "{name}");
        assert_eq!((reading.get("gone"), reading.get("big")), (None, Some(2000.0)), "{name}");

        let none = collector(url, "SELECT 1 AS depth FROM (SELECT 1 AS a) t WHERE a = 2").start().await.expect_err("no row");
        assert!(none.message.contains("no row"), "{name}: {none}");
        let schema = if name.starts_with("postgres") { "public" } else { "mysql" };
        let wrong =
            collector(url, &format!("SELECT count(*) FROM {schema}.nothing_of_this_name")).start().await.expect_err("no table");
        assert!(wrong.message.contains("nothing_of_this_name"), "{name}: {wrong}");

        kept_within_its_limits(name, url).await;
    }
}

/// A query that takes too long is ended by the server, in time and without a trace, and the connection goes on.
async fn kept_within_its_limits(name: &str, url: &str) {
    let columns = "information_schema.columns";
    let dear = format!("SELECT count(*) FROM {columns} a, {columns} b, {columns} c");
    let sql = if name.starts_with("postgres") { "SELECT pg_sleep(20) IS NULL AS x" } else { &dear };
    let began = Instant::now();
    let fault = collector(url, sql).start().await.expect_err("too long");
    assert!(began.elapsed() < Duration::from_secs(10), "{name}: {:?}", began.elapsed());
    assert!(matches!(fault.kind, FaultKind::Unreachable | FaultKind::Nonsense), "{name}: {fault}");
    let text = fault.message.to_lowercase();
    assert!(text.contains("time"), "{name}: {fault}");
}

/// What the lock of an ALTER that waits does to one's own query: it gives up by itself, each time, and leaves nothing behind.
async fn held_up(name: &str, query: &mut dyn Collector, sessions: impl AsyncFn() -> u64) {
    for _ in 0..4 {
        let began = Instant::now();
        let fault = query.read().await.expect_err("the table is locked");
        assert!(began.elapsed() < Duration::from_secs(3), "{name}: {:?}", began.elapsed());
        assert_eq!(fault.kind, FaultKind::Unreachable, "{name}: {fault}");
        assert_eq!(sessions().await, 1, "{name}: one connection, however many reads gave up");
    }
}

const ALTER: &str = "ALTER TABLE slot ADD COLUMN more INT";

#[tokio::test]
async fn a_query_queued_behind_an_alter_table_gives_up_and_leaves_one_connection_and_nothing_queued() {
    for (name, prefix) in &ALL[2..] {
        let Some(server) = Server::start(name, &[]) else { continue };
        let url = server.get(&format!("{prefix}_URL"));
        let mut query = collector(url, "SELECT count(*) AS slots FROM slot");
        query.start().await.unwrap_or_else(|fault| panic!("{name}: {fault}"));
        let mut reader = postgres::session(url).await;
        postgres::run(&mut reader, "BEGIN; SELECT count(*) FROM slot").await;
        let alter = postgres::load(url, vec![ALTER.to_owned()]).await;
        let admin = Mutex::new(postgres::session(url).await);
        let count = async |what: &str| -> u64 {
            let sql = format!("SELECT count(*)::text FROM pg_stat_activity WHERE {what}");
            postgres::texts(&mut *admin.lock().await, &sql).await.remove(0).parse().expect("a number")
        };
        while count("query LIKE 'ALTER%' AND wait_event_type = 'Lock'").await == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        held_up(name, query.as_mut(), async || count("application_name = 'whatgives-sampler'").await).await;
        assert_eq!(count("wait_event_type = 'Lock'").await, 1, "{name}: the ALTER alone is queued");
        postgres::run(&mut reader, "COMMIT").await;
        postgres::answered(alter).await;
        assert_eq!(query.read().await.expect("it answers").get("slots"), Some(1000.0), "{name}");
    }
    for (name, prefix) in &ALL[..2] {
        let Some(server) = Server::start(name, &[]) else { continue };
        let (url, root) = (server.get(&format!("{prefix}_PROBE_URL")), server.get(&format!("{prefix}_URL")));
        let mut admin = mysql::connect(root).await;
        mysql::run(&mut admin, "GRANT SELECT ON shop.* TO probe@'%'").await;
        let mut query = collector(url, "SELECT count(*) AS slots FROM shop.slot");
        query.start().await.unwrap_or_else(|fault| panic!("{name}: {fault}"));
        let mut reader = mysql::connect(root).await;
        mysql::run(&mut reader, "USE shop").await;
        mysql::run(&mut reader, "BEGIN").await;
        mysql::run(&mut reader, "SELECT count(*) FROM slot").await;
        let mut session = mysql::connect(root).await;
        mysql::run(&mut session, "USE shop").await;
        let alter = tokio::spawn(async move { mysql::run(&mut session, ALTER).await });
        let admin = Mutex::new(admin);
        let count = async |what: &str| -> u64 {
            let sql = format!("SELECT count(*) FROM information_schema.PROCESSLIST WHERE {what}");
            mysql::number(&mut *admin.lock().await, &sql).await
        };
        while count("STATE LIKE 'Waiting for table metadata%'").await == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        held_up(name, query.as_mut(), async || count("USER = 'probe'").await).await;
        assert_eq!(count("STATE LIKE 'Waiting for table metadata%'").await, 1, "{name}: the ALTER alone is queued");
        mysql::run(&mut reader, "COMMIT").await;
        alter.await.expect("it alters");
        assert_eq!(query.read().await.expect("it answers").get("slots"), Some(1000.0), "{name}");
    }
}

#[tokio::test]
async fn nothing_can_be_written_whatever_the_account_may_do() {
    for (name, prefix) in ALL {
        let Some(server) = Server::start(name, &[]) else { continue };
        let url = server.get(&format!("{prefix}_URL"));
        if name.starts_with("postgres") {
            let sql = "WITH gone AS (DELETE FROM pg_largeobject_metadata RETURNING 1) SELECT count(*) AS x FROM gone";
            let fault = collector(url, sql).start().await.expect_err("it writes");
            assert!(fault.message.contains("read-only"), "{name}: {fault}");
        } else {
            // The two name it differently.
            let variable = if name == "mariadb" { "tx_read_only" } else { "transaction_read_only" };
            let mut query = collector(url, &format!("SELECT @@session.{variable} AS x"));
            query.start().await.unwrap_or_else(|fault| panic!("{name}: {fault}"));
            assert_eq!(query.read().await.expect("it answers").get("x"), Some(1.0), "{name}");
        }
    }
}

#[tokio::test]
async fn a_killed_server_costs_its_reads_and_is_found_again() {
    let Some(mut server) = Server::start("postgres15", &[]) else { return };
    let url = server.get("POSTGRES15_URL").to_owned();
    let mut query = collector(&url, "SELECT 3 AS depth");
    query.start().await.expect("it answers");
    server.signal("KILL");
    let mut failed = false;
    for _ in 0..100 {
        if query.read().await.is_err() {
            failed = true;
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(failed, "it is gone");
    server.start_again();
    assert_eq!(query.read().await.expect("it answers").get("depth"), Some(3.0));
}
