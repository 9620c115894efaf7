//! Who waits for whom, on real servers.

use super::{PRODUCTS, Target, number, run, started, until};
use collectors::api::{Reading, Wait};
use sqlx::Executor;
use std::collections::HashSet;

const UPDATE_17: &str = "UPDATE shop.slot SET taken = taken + 1 WHERE id = 17";

#[tokio::test]
async fn two_hundred_sessions_waiting_for_one_row_are_two_hundred_rows_behind_one_idle_transaction() {
    for name in PRODUCTS {
        // InnoDB tells times in the machine's zone, whatever the sessions' is.
        let Some(target) = Target::with(name, "--default-time-zone=+05:00") else { return };
        let (mut collector, _) = started(target.url("PROBE_")).await;
        let mut holder = target.session().await;
        run(&mut holder, "BEGIN").await;
        run(&mut holder, "SELECT * FROM shop.slot WHERE id = 17 FOR UPDATE").await;
        let me = number(&mut holder, "SELECT CONNECTION_ID()").await.to_string();
        let mut tasks = Vec::new();
        for _ in 0..200 {
            tasks.push(target.waiting(UPDATE_17).await);
        }
        until(collector.as_mut(), "200 waiters", |reading| reading.get("row_lock_waiting") == Some(200.0)).await;
        tokio::time::sleep(std::time::Duration::from_millis(2300)).await;
        let reading = until(collector.as_mut(), "their waits", |reading| !reading.waits.is_empty()).await;
        assert!((199..=200).contains(&reading.waits.len()), "{name}: {} rows, {:?}", reading.waits.len(), reading.notes);
        let waiters: HashSet<&str> = reading.waits.iter().map(|wait| wait.waiter.as_str()).collect();
        assert_eq!(waiters.len(), reading.waits.len(), "{name}: one row a waiter");
        for wait in &reading.waits {
            assert_eq!(
                (wait.kind, wait.object.as_deref(), wait.index.as_deref(), wait.row.as_deref()),
                ("row", Some("shop.slot"), Some("PRIMARY"), Some("17")),
                "{name}"
            );
            assert_eq!(wait.blocker.as_deref(), Some(me.as_str()), "{name}: {wait:?}");
            assert_eq!(wait.blocker_state.as_deref(), Some("idle in transaction"), "{name}");
            let statement = wait.statement.as_deref().expect("the waiter's statement");
            assert!(
                statement.starts_with("UPDATE") && statement.ends_with('?') && !statement.contains("17"),
                "{name}: {statement}"
            );
            assert!(wait.waited_ms.is_some_and(|ms| (2_200.0..120_000.0).contains(&ms)), "{name}: {wait:?}");
        }
        if target.is_mysql() {
            assert!(reading.waits[0].blocker_statement.is_some(), "{:?}", reading.waits[0]);
        }
        run(&mut holder, "ROLLBACK").await;
        for task in tasks {
            task.await.expect("the waiter ends").expect("and updates");
        }
        let reading = until(collector.as_mut(), "no waiters", |reading| reading.get("row_lock_waiting") == Some(0.0)).await;
        assert!(reading.get("row_lock_time_ms_total").is_some_and(|ms| ms > 200.0 * 2_400.0), "{name}: {reading:?}");
        assert!(reading.get("row_lock_waits_total").is_some_and(|waits| waits >= 200.0), "{name}: {reading:?}");
    }
}

#[tokio::test]
async fn waits_that_begin_and_end_between_two_reads_are_counted_when_the_gauge_sees_none() {
    for name in PRODUCTS {
        let Some(target) = Target::start(name, &[]) else { return };
        let (mut collector, _) = started(target.url("PROBE_")).await;
        let before = collector.read().await.expect("the server answers");
        let (mut holder, mut root) = (target.session().await, target.session().await);
        run(&mut holder, "BEGIN").await;
        run(&mut holder, "SELECT * FROM shop.slot WHERE id = 17 FOR UPDATE").await;
        let mut tasks = Vec::new();
        for _ in 0..5 {
            tasks.push(target.waiting(UPDATE_17).await);
        }
        let waiting = "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'";
        while number(&mut root, waiting).await < 5 {
            tokio::time::sleep(std::time::Duration::from_millis(120)).await;
        }
        run(&mut holder, "ROLLBACK").await;
        for task in tasks {
            task.await.expect("the waiter ends").expect("and updates");
        }
        // The list of transactions is renewed only where nobody has read it for a tenth of a second.
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        let after = collector.read().await.expect("the server answers");
        assert_eq!((before.get("row_lock_waiting"), after.get("row_lock_waiting")), (Some(0.0), Some(0.0)), "{name}");
        let waits = |reading: &Reading| reading.get("row_lock_waits_total").expect("a counter");
        assert!(waits(&after) - waits(&before) >= 5.0, "{name}: {} and {}", waits(&before), waits(&after));
        assert!(after.waits.is_empty(), "{name}: {:?}", after.waits);
    }
}

#[tokio::test]
async fn four_hundred_thousand_row_locks_that_nobody_waits_for_are_not_asked_for() {
    for name in PRODUCTS {
        let Some(target) = Target::with(name, "--innodb-buffer-pool-size=192M --performance-schema=ON") else { return };
        let mut holder = target.session().await;
        run(&mut holder, "CREATE TABLE shop.big (id INT PRIMARY KEY, x INT)").await;
        if target.is_mysql() {
            run(&mut holder, "SET SESSION cte_max_recursion_depth = 500000").await;
        } else {
            run(&mut holder, "SET SESSION max_recursive_iterations = 500000").await;
        }
        let insert = if target.is_mysql() {
            "INSERT INTO shop.big WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000) SELECT i, 0 FROM n"
        } else {
            "INSERT INTO shop.big SELECT seq, 0 FROM seq_1_to_400000"
        };
        run(&mut holder, &format!("USE shop; {insert}")).await;
        let (mut collector, _) = started(target.url("PROBE_")).await;
        run(&mut holder, "BEGIN").await;
        run(&mut holder, "SELECT COUNT(*) FROM (SELECT id FROM shop.big FOR UPDATE) AS locked").await;
        run(&mut holder, "UPDATE shop.big SET x = 1 WHERE id > 0").await;
        let locks = number(&mut holder, "SELECT trx_rows_locked FROM information_schema.INNODB_TRX ORDER BY 1 DESC LIMIT 1").await;
        assert!(locks >= 400_000, "{name}: only {locks} locks");
        let asked = "SELECT COALESCE(SUM(COUNT_STAR), 0) FROM performance_schema.events_statements_summary_by_digest \
                     WHERE DIGEST_TEXT LIKE '%data\\_lock%' OR DIGEST_TEXT LIKE '%INNODB\\_TRX%' OR DIGEST_TEXT LIKE '%INNODB\\_LOCK%'";
        let before = number(&mut holder, asked).await;
        assert!(before > 0, "{name}: the collector's own probes at the start are counted");
        for _ in 0..10 {
            let reading = collector.read().await.expect("the server answers");
            assert!(reading.waits.is_empty() && reading.notes.is_empty(), "{name}: {reading:?}");
        }
        let after = number(&mut holder, asked).await;
        assert!(after - before <= 1, "{name}: {} statements asked for waits, this counting is one", after - before);
    }
}

#[tokio::test]
async fn the_root_of_a_chain_of_three_is_its_head() {
    for name in PRODUCTS {
        let Some(target) = Target::start(name, &[]) else { return };
        let (mut collector, _) = started(target.url("PROBE_")).await;
        let (mut first, mut second) = (target.session().await, target.session().await);
        let head = number(&mut first, "SELECT CONNECTION_ID()").await.to_string();
        for (session, id) in [(&mut first, 1), (&mut second, 2)] {
            run(session, "BEGIN").await;
            run(session, &format!("UPDATE shop.slot SET taken = 9 WHERE id = {id}")).await;
        }
        let middle = number(&mut second, "SELECT CONNECTION_ID()").await.to_string();
        let second = tokio::spawn(async move {
            run(&mut second, "UPDATE shop.slot SET taken = 9 WHERE id = 1").await;
            run(&mut second, "ROLLBACK").await;
        });
        let third = target.waiting("UPDATE shop.slot SET taken = 9 WHERE id = 2").await;
        let reading = until(collector.as_mut(), "two waiters", |reading| reading.waits.len() == 2).await;
        let by_row = |row: &str| reading.waits.iter().find(|wait| wait.row.as_deref() == Some(row)).expect("a wait for the row");
        assert_eq!(by_row("1").waiter, middle, "{name}");
        for row in ["1", "2"] {
            assert_eq!(by_row(row).blocker.as_deref(), Some(head.as_str()), "{name}: {reading:?}");
        }
        run(&mut first, "ROLLBACK").await;
        second.await.expect("the middle ends");
        third.await.expect("the last ends").expect("and updates");
    }
}

#[tokio::test]
async fn what_waits_behind_an_alter_waits_for_the_reader_before_it() {
    for name in PRODUCTS {
        let Some(target) = Target::start(name, &[]) else { return };
        let (mut collector, _) = started(target.url("PROBE_")).await;
        let mut reader = target.session().await;
        let head = number(&mut reader, "SELECT CONNECTION_ID()").await.to_string();
        run(&mut reader, "BEGIN").await;
        run(&mut reader, "SELECT COUNT(*) FROM shop.slot").await;
        let alter = target.waiting("ALTER TABLE shop.slot ADD COLUMN note INT").await;
        until(collector.as_mut(), "the ALTER", |reading| reading.get("metadata_lock_waiting") == Some(1.0)).await;
        let mut selects = Vec::new();
        for _ in 0..5 {
            selects.push(target.waiting("SELECT * FROM shop.slot WHERE id = 4711").await);
        }
        let reading = until(collector.as_mut(), "six waiters", |reading| reading.waits.len() == 6).await;
        assert_eq!(reading.get("metadata_lock_waiting"), Some(6.0), "{name}");
        assert_eq!(reading.get("row_lock_waiting"), Some(0.0), "{name}");
        for wait in &reading.waits {
            assert_eq!(wait.kind, "metadata", "{name}: {wait:?}");
            assert!(wait.statement.as_deref().is_some_and(|text| !text.contains("4711")), "{name}: {wait:?}");
            if target.is_mysql() {
                assert_eq!(wait.object.as_deref(), Some("shop.slot"), "{wait:?}");
                assert_eq!(wait.blocker.as_deref(), Some(head.as_str()), "{wait:?}");
                assert_eq!(wait.blocker_state.as_deref(), Some("idle in transaction"), "{wait:?}");
            } else {
                assert_eq!((&wait.object, &wait.blocker), (&None, &None), "{wait:?}");
            }
        }
        run(&mut reader, "ROLLBACK").await;
        alter.await.expect("the ALTER ends").expect("and succeeds");
        for select in selects {
            select.await.expect("the SELECT ends").expect("and succeeds");
        }
    }
}

#[tokio::test]
async fn table_locks_and_get_lock_are_counted_apart() {
    for name in PRODUCTS {
        let Some(target) = Target::start(name, &[]) else { return };
        let (mut collector, _) = started(target.url("PROBE_")).await;
        let rest = collector.read().await.expect("the server answers");
        for gauge in ["table_lock_waiting", "user_lock_waiting", "row_lock_waiting"] {
            assert_eq!(rest.get(gauge), Some(0.0), "{name} {gauge}");
        }
        let mut holder = target.session().await;
        run(&mut holder, "CREATE TABLE shop.old (id INT) ENGINE = MyISAM").await;
        run(&mut holder, "INSERT INTO shop.old VALUES (1), (2)").await;
        run(&mut holder, "SELECT GET_LOCK('one', 0)").await;
        let head = number(&mut holder, "SELECT CONNECTION_ID()").await.to_string();
        let user = target.waiting("SELECT GET_LOCK('one', 20)").await;
        let mut slow = target.session().await;
        let slow = tokio::spawn(async move { run(&mut slow, "SELECT SLEEP(3) FROM shop.old").await });
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        let table = target.waiting("UPDATE shop.old SET id = 2").await;
        let both = until(collector.as_mut(), "both", |reading| {
            reading.get("table_lock_waiting") == Some(1.0)
                && reading.get("user_lock_waiting") == Some(1.0)
                && reading.waits.len() == 2
        })
        .await;
        assert_eq!(both.get("metadata_lock_waiting"), Some(0.0), "{name}");
        let of = |kind: &str| -> &Wait { both.waits.iter().find(|wait| wait.kind == kind).expect("a wait of this kind") };
        assert!(of("table").statement.as_deref().is_some_and(|text| text.contains("old")), "{name}");
        if target.is_mysql() {
            assert_eq!(
                (of("advisory").object.as_deref(), of("advisory").blocker.as_deref()),
                (Some("one"), Some(head.as_str())),
                "{both:?}"
            );
            assert_eq!(of("advisory").blocker_state.as_deref(), Some("idle, holds the lock until it gives it back"));
        }
        slow.await.expect("the reader ends");
        table.await.expect("the writer ends").expect("and updates");
        run(&mut holder, "SELECT RELEASE_LOCK('one')").await;
        user.await.expect("the waiter ends").expect("and gets the lock");
    }
}

#[tokio::test]
async fn a_prepared_transaction_whose_session_is_gone_is_named_as_such() {
    for name in PRODUCTS {
        let Some(target) = Target::start(name, &[]) else { return };
        let (mut collector, _) = started(target.url("PROBE_")).await;
        let mut gone = target.session().await;
        for statement in ["XA START 'x'", "UPDATE shop.slot SET taken = 5 WHERE id = 3", "XA END 'x'", "XA PREPARE 'x'"] {
            run(&mut gone, statement).await;
        }
        drop(gone);
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        let waiting = target.waiting("UPDATE shop.slot SET taken = 6 WHERE id = 3").await;
        let reading = until(collector.as_mut(), "the waiter", |reading| reading.waits.len() == 1).await;
        let wait = &reading.waits[0];
        assert_eq!(wait.row.as_deref(), Some("3"), "{name}");
        assert_eq!(wait.blocker_state.as_deref(), Some("prepared transaction without a session"), "{name}: {wait:?}");
        let mut other = target.session().await;
        run(&mut other, "XA COMMIT 'x'").await;
        waiting.await.expect("the waiter ends").expect("and updates");
    }
}

#[tokio::test]
async fn a_text_key_and_a_statement_with_bound_values_are_told() {
    for name in PRODUCTS {
        let Some(target) = Target::start(name, &[]) else { return };
        let (mut collector, _) = started(target.url("PROBE_")).await;
        let mut holder = target.session().await;
        run(&mut holder, "CREATE TABLE shop.seat (code VARCHAR(20), day INT, PRIMARY KEY (code, day))").await;
        run(&mut holder, "INSERT INTO shop.seat VALUES ('row#7\ttab', 3)").await;
        run(&mut holder, "BEGIN").await;
        run(&mut holder, "SELECT * FROM shop.seat FOR UPDATE").await;
        let mut waiter = target.session().await;
        let waiting = tokio::spawn(async move {
            let query = sqlx::query("DELETE FROM shop.seat WHERE code = ? AND day = ?").bind("row#7\ttab").bind(3);
            waiter.execute(query).await.map(|_| ())
        });
        let reading = until(collector.as_mut(), "the waiter", |reading| reading.waits.len() == 1).await;
        let wait = &reading.waits[0];
        assert!(wait.row.as_deref().is_some_and(|row| row.contains("row#7") && row.contains('3')), "{name}: {wait:?}");
        let statement = wait.statement.as_deref().expect("the waiter's statement");
        assert!(statement.starts_with("DELETE FROM") && !statement.contains("row#7"), "{name}: {statement}");
        run(&mut holder, "ROLLBACK").await;
        waiting.await.expect("the waiter ends").expect("and deletes");
    }
}

#[tokio::test]
async fn a_list_of_transactions_kept_old_by_another_reader_is_noted() {
    for name in PRODUCTS {
        let Some(target) = Target::start(name, &[]) else { return };
        let (mut collector, _) = started(target.url("PROBE_")).await;
        let mut other = target.session().await;
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let stopped = std::sync::Arc::clone(&stop);
        let url = target.url("").to_owned();
        run(&mut other, "BEGIN").await;
        run(&mut other, "SELECT * FROM shop.slot WHERE id = 17 FOR UPDATE").await;
        // In a thread of its own, so that nothing else makes it pause for 100 ms.
        let reader = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let mut session = super::connect(&url).await;
                while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
                    run(&mut session, "SELECT COUNT(*) FROM information_schema.INNODB_TRX").await;
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                }
            });
        });
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        let mut waiting = Vec::new();
        for _ in 0..12 {
            waiting.push(target.waiting(UPDATE_17).await);
        }
        let noted =
            until(collector.as_mut(), "the note", |reading| reading.notes.iter().any(|note| note.contains("does not change")))
                .await;
        assert_eq!(noted.get("row_lock_waiting"), Some(12.0), "{name}: {noted:?}");
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        reader.join().expect("the other reader ends");
        until(collector.as_mut(), "the waiters", |reading| reading.waits.len() == 12).await;
        run(&mut other, "ROLLBACK").await;
        for task in waiting {
            task.await.expect("the waiter ends").expect("and updates");
        }
    }
}
