//! A server that is full, stopped, killed, restarted or reset costs its own cells, with a reason, and the reads go on.

use super::{PRODUCTS, Target, collector_with, number, refused, run, started, until};
use crate::support::collector::SOON;
use collectors::api::FaultKind;
use std::time::Duration;

#[tokio::test]
async fn with_every_connection_taken_the_kept_one_goes_on_and_a_new_one_is_refused_with_a_hint() {
    for name in PRODUCTS {
        let Some(target) = Target::with(name, "--max-connections=20") else { return };
        let (mut collector, _) = started(target.url("PROBE_")).await;
        let gauge = if target.is_mysql() { "connections_refused_total" } else { "aborted_connects_total" };
        let rest = collector.read().await.expect("the server answers");
        assert_eq!((rest.get("threads_connected"), rest.get("max_connections")), (Some(1.0), Some(20.0)), "{name}");
        let before = rest.get(gauge).expect("a value");
        let mut sessions = Vec::new();
        for _ in 0..19 {
            sessions.push(target.session().await);
        }
        let fault = refused(target.url("PROBE_")).await;
        assert_eq!(fault.kind, FaultKind::Refused, "{name}: {fault:?}");
        assert!(fault.message.contains("Too many connections"), "{name}: {fault:?}");
        assert!(fault.hint.as_deref().is_some_and(|hint| hint.contains("before the load")), "{name}: {fault:?}");
        let reading = collector.read().await.expect("the kept connection goes on");
        assert_eq!((reading.get("threads_connected"), reading.get("max_connections")), (Some(20.0), Some(20.0)), "{name}");
        assert_eq!(reading.get(gauge), Some(before + 1.0), "{name}: {reading:?}");
        assert_eq!(reading.get("connections_refused_total").is_some(), target.is_mysql(), "{name}");
    }
}

#[tokio::test]
async fn a_stopped_server_answers_late_and_a_read_given_up_is_followed_by_a_new_connection() {
    for name in PRODUCTS {
        let Some(target) = Target::start(name, &[]) else { return };
        let (mut collector, _) = started(target.url("PROBE_")).await;
        collector.read().await.expect("the server answers");
        // As the sampler does it: the late read is left to end by itself.
        target.server.signal("STOP");
        // A process that runs on another processor stops a moment later.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let late = tokio::time::timeout(Duration::from_secs(8), async {
            let goes_on = async {
                tokio::time::sleep(Duration::from_secs(2)).await;
                target.server.signal("CONT");
            };
            tokio::join!(collector.read(), goes_on).0
        });
        let reading = late.await.expect("it ends").expect("the late answer is whole");
        assert!(reading.get("threads_connected") == Some(1.0) && reading.notes.is_empty(), "{name}: {reading:?}");
        // And given up in the middle.
        target.server.signal("STOP");
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(tokio::time::timeout(Duration::from_millis(700), collector.read()).await.is_err(), "{name}: nothing answers");
        target.server.signal("CONT");
        let reading = collector.read().await.expect("a new connection is made");
        assert_eq!(reading.notes, ["connected again"], "{name}");
        assert!(reading.get("threads_running").is_some(), "{name}");
    }
}

#[tokio::test]
async fn a_killed_server_is_a_fault_until_it_is_back_and_its_restart_is_noted_once() {
    for name in PRODUCTS {
        let Some(mut target) = Target::start(name, &[]) else { return };
        let (mut collector, _) = started(target.url("PROBE_")).await;
        // A restart shows as an uptime that is seconds short of what it should be.
        tokio::time::sleep(Duration::from_secs(6)).await;
        collector.read().await.expect("the server answers");
        target.server.signal("KILL");
        tokio::time::sleep(Duration::from_millis(300)).await;
        for _ in 0..3 {
            let fault = collector.read().await.expect_err("nobody answers");
            assert_eq!(fault.kind, FaultKind::Unreachable, "{name}: {fault:?}");
            assert!(fault.message.contains("mysql@127.0.0.1:"), "{name}: {fault:?}");
        }
        target.server.start_again();
        let reading = collector.read().await.expect("the server is back");
        assert_eq!(
            (&reading.notes[..], reading.restarted.as_deref()),
            (&["connected again".to_owned()][..], Some("server restarted")),
            "{name}"
        );
        assert!(reading.values.iter().all(|(_, value)| *value >= 0.0), "{name}: {reading:?}");
        let reading = collector.read().await.expect("the server answers");
        assert!(reading.notes.is_empty(), "{name}: {reading:?}");
    }
}

#[tokio::test]
async fn a_killed_session_comes_back_and_reads_the_capacities_anew() {
    for name in PRODUCTS {
        let Some(target) = Target::start(name, &[]) else { return };
        let (mut collector, _) = started(target.url("PROBE_")).await;
        collector.read().await.expect("the server answers");
        let mut root = target.session().await;
        let id = number(&mut root, "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'probe'").await;
        run(&mut root, "SET GLOBAL max_connections = 123").await;
        run(&mut root, &format!("KILL {id}")).await;
        let fault = collector.read().await.expect_err("the session was killed");
        assert_eq!(fault.kind, FaultKind::Unreachable, "{name}: {fault:?}");
        let reading = collector.read().await.expect("a new connection is made");
        assert_eq!(
            (reading.get("max_connections"), reading.notes.as_slice()),
            (Some(123.0), &["connected again".to_owned()][..]),
            "{name}"
        );
    }
}

#[tokio::test]
async fn flush_status_gives_lower_counters_and_never_a_wrong_one() {
    for name in PRODUCTS {
        let Some(target) = Target::start(name, &[]) else { return };
        let (mut collector, _) = started(target.url("PROBE_")).await;
        let mut root = target.session().await;
        for _ in 0..50 {
            run(&mut root, "SELECT 1").await;
            collector.read().await.expect("the server answers");
        }
        run(&mut root, "FLUSH STATUS").await;
        let reading = collector.read().await.expect("the server answers");
        assert!(reading.notes.is_empty(), "{name}: no restart: {reading:?}");
        assert!(reading.get("questions_total").is_some_and(|questions| (0.0..1e6).contains(&questions)), "{name}: {reading:?}");
    }
}

#[tokio::test]
async fn waits_that_are_switched_off_are_not_read_and_the_gauges_are() {
    for name in PRODUCTS {
        let Some(target) = Target::start(name, &[]) else { return };
        let mut collector = collector_with(target.url("PROBE_"), "waits = false");
        let support = collector.start().await.expect("the server answers");
        assert!(support.lacks.iter().any(|lack| lack.what.contains("switched off")), "{:?}", support.lacks);
        let mut holder = target.session().await;
        run(&mut holder, "BEGIN").await;
        run(&mut holder, "SELECT * FROM shop.slot WHERE id = 17 FOR UPDATE").await;
        let waiting = target.waiting("UPDATE shop.slot SET taken = 1 WHERE id = 17").await;
        let reading = until(collector.as_mut(), "the waiter", |reading| reading.get("row_lock_waiting") == Some(1.0)).await;
        assert!(reading.waits.is_empty(), "{name}: {reading:?}");
        run(&mut holder, "ROLLBACK").await;
        waiting.await.expect("the waiter ends").expect("and updates");
    }
}

#[tokio::test]
async fn an_account_that_may_have_one_connection_is_enough_and_the_server_counts_no_more_than_that() {
    for name in PRODUCTS {
        let Some(target) = Target::start(name, &[]) else { return };
        let mut root = target.session().await;
        run(&mut root, "CREATE USER one@'%' IDENTIFIED BY 'one' WITH MAX_USER_CONNECTIONS 1").await;
        run(&mut root, "GRANT PROCESS ON *.* TO one@'%'").await;
        run(&mut root, "GRANT SELECT ON performance_schema.* TO one@'%'").await;
        let url = target.url("PROBE_").replace("probe:probe@", "one:one@");
        let (mut collector, _) = started(&url).await;
        let made = "SELECT VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME = 'Connections'";
        let made = if target.is_mysql() { made.to_owned() } else { made.replace("performance_schema", "information_schema") };
        let before = number(&mut root, &made).await;
        for _ in 0..20 {
            let reading = collector.read().await.expect("the one connection goes on");
            assert_eq!(reading.get("threads_connected"), Some(2.0), "{name}: root's and ours");
        }
        assert_eq!(number(&mut root, &made).await, before, "{name}: a read opens no connection");
        let fault = refused(&url).await;
        assert_eq!(fault.kind, FaultKind::Refused, "{name}: {fault:?}");
        assert!(fault.hint.as_deref().is_some_and(|hint| hint.contains("limit of connections")), "{name}: {fault:?}");
        assert!(collector.read().await.is_ok(), "{name}: and costs the first one nothing");
    }
}

#[tokio::test]
async fn metadata_locks_on_every_table_of_the_users_hold_up_no_read_of_ours() {
    for name in PRODUCTS {
        let Some(target) = Target::with(name, "--performance-schema=ON") else { return };
        let (mut collector, _) = started(target.url("PROBE_")).await;
        let mut holder = target.session().await;
        run(&mut holder, "LOCK TABLES shop.slot WRITE").await;
        let mut flusher = target.session().await;
        let alter = target.waiting("ALTER TABLE shop.slot ADD COLUMN more INT").await;
        let reading = until(collector.as_mut(), "the waiting ALTER", |reading| {
            reading.get("metadata_lock_waiting").is_some_and(|waiting| waiting >= 1.0)
        })
        .await;
        assert!(reading.get("threads_running").is_some(), "{name}: {reading:?}");
        run(&mut holder, "UNLOCK TABLES").await;
        alter.await.expect("it ends").expect("it alters");
        run(&mut flusher, "FLUSH TABLES WITH READ LOCK").await;
        for _ in 0..5 {
            let reading = tokio::time::timeout(SOON, collector.read()).await;
            let reading = reading.unwrap_or_else(|_| panic!("{name}: a read is held up")).expect("the server answers");
            assert!(reading.get("threads_connected").is_some(), "{name}: {reading:?}");
        }
        run(&mut flusher, "UNLOCK TABLES").await;
    }
}
