//! A replica that is held up, a thread pool that is full, and the port that answers when every connection is taken.

use super::{PRODUCTS, Target, collector_with, column, connect, run, started, until};
use collectors::api::{Class, FaultKind};
use sqlx::mysql::MySqlConnection;
use std::time::Duration;

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its address").port()
}

#[tokio::test]
async fn a_server_that_replicates_from_nobody_has_no_column_of_it_and_nothing_is_missing() {
    for name in PRODUCTS {
        let Some(target) = Target::start(name, &[]) else { return };
        let (_, support) = started(target.url("BLIND_")).await;
        assert!(column(&support, "replication_lag_seconds").is_none() && column(&support, "replica_threads").is_none(), "{name}");
        assert!(!support.lacks.iter().any(|lack| lack.what.contains("replica")), "{name}: {:?}", support.lacks);
    }
}

#[tokio::test]
async fn a_replica_held_up_by_a_lock_falls_behind_and_a_stopped_one_says_so_in_its_threads() {
    for name in PRODUCTS {
        let Some(source) = Target::with(name, "--log-bin=bin --server-id=1") else { return };
        let Some(replica) = Target::with(name, "--server-id=2") else { return };
        let port = source.server.get(&format!("{}_PORT", name.to_uppercase()));
        let mut root = replica.session().await;
        let (point, start, stop, privilege) = if replica.is_mysql() {
            (
                format!(
                    "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port}, SOURCE_USER='root', GET_SOURCE_PUBLIC_KEY=1"
                ),
                "START REPLICA",
                "STOP REPLICA SQL_THREAD",
                "REPLICATION CLIENT",
            )
        } else {
            let point = format!("CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='root'");
            (point, "START SLAVE", "STOP SLAVE SQL_THREAD", "SLAVE MONITOR")
        };
        run(&mut root, &point).await;
        run(&mut root, start).await;
        // An account that may not see it is told so, with the statement that mends it.
        let told =
            |support: &collectors::api::Support| support.lacks.iter().filter_map(|lack| lack.mend.clone()).collect::<String>();
        run(&mut root, "GRANT SELECT ON performance_schema.* TO blind@'%'").await;
        let mend = format!("GRANT {privilege} ON *.* TO 'blind'@'%';");
        tokio::time::sleep(Duration::from_millis(500)).await;
        let (_, support) = started(replica.url("BLIND_")).await;
        assert!(told(&support).contains(&mend), "{name}: {:?}", support.lacks);
        run(&mut root, &mend).await;
        let (mut collector, support) = started(replica.url("BLIND_")).await;
        assert!(!told(&support).contains(&mend), "{name}: {:?}", support.lacks);
        let lag = column(&support, "replication_lag_seconds").expect("a column");
        assert_eq!((lag.class, column(&support, "replica_threads").is_some()), (Class::Age, true), "{name}");
        let rest = until(collector.as_mut(), "the replica runs", |reading| {
            reading.get("replica_threads_running") == Some(2.0) && reading.get("replication_lag_seconds") == Some(0.0)
        })
        .await;
        assert_eq!(rest.get("replica_threads"), Some(2.0), "{name}");

        let mut holder = replica.session().await;
        run(&mut holder, "LOCK TABLES shop.slot WRITE").await;
        run(&mut source.session().await, "UPDATE shop.slot SET taken = 5 WHERE id = 1").await;
        until(collector.as_mut(), "it falls behind", |reading| {
            reading.get("replication_lag_seconds").is_some_and(|lag| lag >= 2.0)
        })
        .await;
        run(&mut holder, "UNLOCK TABLES").await;
        until(collector.as_mut(), "it catches up", |reading| reading.get("replication_lag_seconds") == Some(0.0)).await;
        run(&mut root, stop).await;
        let stopped =
            until(collector.as_mut(), "a thread stops", |reading| reading.get("replica_threads_running") == Some(1.0)).await;
        assert_eq!(stopped.get("replication_lag_seconds"), None, "{name}: not replicating is no lag of 0");
    }
}

/// Opens sessions until the server takes no more.
async fn fill(target: &Target) -> Vec<MySqlConnection> {
    let mut sessions = Vec::new();
    let url = target.url("PROBE_");
    for _ in 0..16 {
        let options: sqlx::mysql::MySqlConnectOptions = url.parse().expect("the server's URL");
        match sqlx::ConnectOptions::connect(&options).await {
            Ok(session) => sessions.push(session),
            Err(_) => break,
        }
    }
    assert!(sessions.len() < 16, "it never filled up");
    sessions
}

#[tokio::test]
async fn the_administration_port_answers_when_every_connection_is_taken() {
    for name in PRODUCTS {
        let port = free_port();
        let own =
            if name == "mysql" { format!("--admin-address=127.0.0.1 --admin-port={port}") } else { format!("--extra-port={port}") };
        let Some(target) = Target::with(name, &format!("{own} --max-connections=10")) else { return };
        let settings = format!("{} = {port}", if target.is_mysql() { "admin_port" } else { "extra_port" });
        let mut root = target.session().await;
        if target.is_mysql() {
            // Not allowed there, it goes on by the usual port and says so.
            let support = collector_with(target.url("PROBE_"), &settings).start().await.expect("it answers");
            let lack = support.lacks.iter().find(|lack| lack.what.contains("max_connections")).expect("it says so");
            assert!(lack.what.contains(&port.to_string()), "{lack:?}");
            let mend = lack.mend.as_deref().expect("a mend");
            let grant = "GRANT SERVICE_CONNECTION_ADMIN ON *.* TO 'probe'@'%'";
            assert!(mend.contains(grant), "{mend}");
            run(&mut root, grant).await;
        }
        let sessions = fill(&target).await;
        let fault = collector_with(target.url("PROBE_"), "").start().await.expect_err("it is full");
        assert_eq!(fault.kind, FaultKind::Refused, "{name}: {fault}");
        let mut collector = collector_with(target.url("PROBE_"), &settings);
        let support = collector.start().await.unwrap_or_else(|fault| panic!("{name}: {fault}"));
        assert!(support.endpoint.ends_with(&format!("by port {port}")), "{name}: {}", support.endpoint);
        let reading = collector.read().await.expect("it answers");
        assert!(reading.get("threads_connected").is_some_and(|open| open >= sessions.len() as f64), "{name}: {reading:?}");
    }
}

#[tokio::test]
async fn statements_that_wait_for_a_thread_of_mariadbs_pool_are_counted_while_it_is_full() {
    let port = free_port();
    let args = format!("--thread-handling=pool-of-threads --thread-pool-size=1 --thread-pool-max-threads=3 --extra-port={port}");
    let Some(target) = Target::with("mariadb", &args) else { return };
    let mut collector = collector_with(target.url("PROBE_"), &format!("extra_port = {port}"));
    let support = collector.start().await.expect("it answers");
    let waiting = column(&support, "pool_waiting").expect("a column");
    assert_eq!(waiting.class, Class::Queue);
    assert_eq!(collector.read().await.expect("it answers").get("pool_waiting"), Some(0.0));
    let mut sessions = Vec::new();
    for _ in 0..12 {
        sessions.push(connect(target.url("")).await);
    }
    let sleepers: Vec<_> =
        sessions.into_iter().map(|mut session| tokio::spawn(async move { run(&mut session, "SELECT SLEEP(2)").await })).collect();
    let full = until(collector.as_mut(), "statements wait for a thread", |reading| {
        reading.get("pool_waiting").is_some_and(|waiting| waiting >= 3.0)
    })
    .await;
    assert!(full.get("pool_threads").is_some_and(|threads| threads <= 4.0), "{full:?}");
    for sleeper in sleepers {
        sleeper.abort();
    }
}
