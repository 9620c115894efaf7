//! What an account that may not see everything sees, and what it is told.

use super::{PRODUCTS, Target, column, number, refused, run, started, until};
use crate::support::collector::SOON;
use collectors::api::{FaultKind, Support};

fn mends(support: &Support) -> String {
    let lacks = support.lacks.iter().map(|lack| format!("{} => {}", lack.what, lack.mend.as_deref().unwrap_or("-")));
    lacks.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn without_any_privilege_the_counters_are_right_and_the_rest_is_left_out_with_its_grants() {
    for name in PRODUCTS {
        let Some(target) = Target::start(name, &[]) else { return };
        let (mut collector, support) = started(target.url("BLIND_")).await;
        let mends = mends(&support);
        assert!(mends.contains("GRANT PROCESS ON *.* TO 'blind'@'%';"), "{name}: {mends}");
        if target.is_mysql() {
            assert!(mends.contains("GRANT SELECT ON performance_schema.* TO 'blind'@'%';"), "{mends}");
        }
        for absent in ["metadata_lock_waiting", "lock_timeouts_total"] {
            assert!(column(&support, absent).is_none(), "{name}: {absent} cannot be read and must not be a column");
        }
        let mut holder = target.session().await;
        run(&mut holder, "BEGIN").await;
        run(&mut holder, "SELECT * FROM shop.slot WHERE id = 17 FOR UPDATE").await;
        let waiting = target.waiting("UPDATE shop.slot SET taken = 1 WHERE id = 17").await;
        let reading = until(collector.as_mut(), "the waiter", |reading| reading.get("row_lock_waiting") == Some(1.0)).await;
        assert!(reading.waits.is_empty() && reading.notes.is_empty(), "{name}: {reading:?}");
        assert_eq!(reading.get("metadata_lock_waiting"), None, "{name}");
        run(&mut holder, "ROLLBACK").await;
        waiting.await.expect("the waiter ends").expect("and updates");
    }
}

#[tokio::test]
async fn the_grants_that_are_named_are_the_ones_that_help() {
    for name in PRODUCTS {
        let Some(target) = Target::start(name, &[]) else { return };
        let mut root = target.session().await;
        run(&mut root, "GRANT PROCESS ON *.* TO blind@'%'").await;
        let (_, support) = started(target.url("BLIND_")).await;
        let told = mends(&support);
        assert!(!told.contains("GRANT PROCESS"), "{name}: {told}");
        assert!(column(&support, "lock_timeouts_total").is_some(), "{name}");
        assert_eq!(column(&support, "metadata_lock_waiting").is_some(), !target.is_mysql(), "{name}");
        for lack in support.lacks.iter().filter_map(|lack| lack.mend.as_deref()).filter(|mend| mend.starts_with("GRANT")) {
            run(&mut root, lack).await;
        }
        let (_, support) = started(target.url("BLIND_")).await;
        let told = mends(&support);
        assert!(!told.contains("GRANT"), "{name}: {told}");
        assert!(support.sees.iter().any(|seen| seen.contains("row-lock waits")), "{name}: {:?}", support.sees);
        assert!(column(&support, "metadata_lock_waiting").is_some(), "{name}");
    }
}

#[tokio::test]
async fn a_performance_schema_that_is_off_is_said_and_costs_only_its_own() {
    let Some(target) = Target::with("mysql", "--performance-schema=OFF") else { return };
    let (mut collector, support) = started(target.url("PROBE_")).await;
    let told = mends(&support);
    assert!(told.contains("performance_schema is OFF") && told.contains("performance_schema = ON"), "{told}");
    let reading = collector.read().await.expect("the server answers");
    assert_eq!((reading.get("row_lock_waiting"), reading.get("metadata_lock_waiting")), (Some(0.0), None));
    assert!(reading.notes.is_empty(), "{reading:?}");
}

#[tokio::test]
async fn on_mariadb_with_a_performance_schema_the_idle_holder_s_statement_is_told() {
    let Some(target) = Target::with(
        "mariadb",
        "--performance-schema=ON --performance-schema-consumer-events-statements-current=ON --performance-schema-instrument=statement/%=ON",
    ) else {
        return;
    };
    let (mut collector, support) = started(target.url("PROBE_")).await;
    assert!(!mends(&support).contains("performance_schema"), "{}", mends(&support));
    let mut holder = target.session().await;
    run(&mut holder, "BEGIN").await;
    run(&mut holder, "SELECT * FROM shop.slot WHERE id = 17 FOR UPDATE").await;
    let waiting = target.waiting("UPDATE shop.slot SET taken = 1 WHERE id = 17").await;
    let reading = until(collector.as_mut(), "the waiter", |reading| reading.waits.len() == 1).await;
    let statement = reading.waits[0].blocker_statement.as_deref().expect("the holder's statement");
    assert!(statement.starts_with("SELECT * FROM") && statement.contains("FOR UPDATE") && !statement.contains("17"), "{statement}");
    run(&mut holder, "ROLLBACK").await;
    waiting.await.expect("the waiter ends").expect("and updates");
}

#[tokio::test]
async fn a_wrong_password_is_refused_with_the_statements_that_make_an_account() {
    for name in PRODUCTS {
        let Some(target) = Target::start(name, &[]) else { return };
        let wrong = target.url("PROBE_").replace("probe:probe@", "probe:S3cretWord@");
        let fault = refused(&wrong).await;
        assert_eq!(fault.kind, FaultKind::Refused, "{name}: {fault:?}");
        assert!(fault.message.contains("Access denied") && fault.message.contains("127.0.0.1"), "{name}: {fault:?}");
        let hint = fault.hint.as_deref().expect("a hint");
        for part in ["CREATE USER 'probe'", "GRANT PROCESS ON *.*", "GRANT SELECT ON performance_schema.*"] {
            assert!(hint.contains(part), "{name}: {hint}");
        }
        assert!(!format!("{fault:?}").contains("S3cretWord"), "{fault:?}");
        let fault = refused(&target.url("PROBE_").replace("probe:probe@", "probe@")).await;
        assert_eq!(fault.kind, FaultKind::Refused, "{name}: {fault:?}");
        assert!(fault.hint.as_deref().is_some_and(|hint| hint.contains("no password was given")), "{name}: {fault:?}");
    }
}

#[tokio::test]
async fn a_socket_leads_to_the_same_server_and_our_session_only_reads_within_its_limits() {
    for name in PRODUCTS {
        let Some(target) = Target::with(name, "--general-log=ON --log-output=TABLE") else { return };
        let socket = target.server.get(&format!("{}_SOCKET", name.to_uppercase())).to_owned();
        let (mut collector, support) = started(&format!("mysql://probe:probe@localhost?socket={socket}")).await;
        assert_eq!(support.endpoint, socket, "{name}");
        let reading = collector.read().await.expect("the server answers");
        assert_eq!(reading.get("threads_connected"), Some(1.0), "{name}");
        let mut root = target.session().await;
        // What was said in our session, as the server heard it: a read of ours ends by itself after half the time that the
        // caller waits for it.
        let limit = (SOON / 2).as_millis();
        let most = if target.is_mysql() {
            format!("max_execution_time = {limit}")
        } else {
            format!("max_statement_time = {:.3}", limit as f64 / 1e3)
        };
        for limit in ["TRANSACTION READ ONLY", "lock_wait_timeout = 1", "innodb_lock_wait_timeout = 1", &most] {
            let heard = format!(
                "SELECT COUNT(*) FROM mysql.general_log WHERE user_host LIKE 'probe[%' AND argument = 'SET SESSION {limit}'"
            );
            assert_eq!(number(&mut root, &heard).await, 1, "{name}: {limit}");
        }
        let variable = "SELECT VARIABLE_VALUE = 'ON' FROM performance_schema.variables_by_thread v \
                        JOIN performance_schema.threads t USING (THREAD_ID) \
                        WHERE t.PROCESSLIST_USER = 'probe' AND v.VARIABLE_NAME = 'transaction_read_only'";
        if target.is_mysql() {
            assert_eq!(number(&mut root, variable).await, 1, "{name}: the session is read only");
        }
    }
}
