//! PostgreSQL's lock waits on real servers, 15 and 18: who waits for what, and behind whom.

use super::postgres::{Postgres, VERSIONS};
use crate::support::collector::{SOON, class, collector, read, started, until};
use crate::support::postgres::{answered, load, run, session, texts};
use collectors::api::{Class, Reading, Wait};
use sqlx::postgres::PgConnection;
use std::collections::HashMap;
use std::time::{Duration, Instant};

const HOT: &str = "UPDATE slot SET taken = taken + 1 WHERE id = 17";

fn waiting(reading: &Reading) -> Option<f64> {
    reading.get("lock_waiting")
}

/// A session that has done this inside a transaction and now does nothing.
async fn idle_after(postgres: &Postgres, sql: &str) -> (PgConnection, String) {
    let mut holder = session(postgres.get("URL")).await;
    run(&mut holder, "BEGIN").await;
    run(&mut holder, sql).await;
    let pid = texts(&mut holder, "SELECT pg_backend_pid()::text").await.remove(0);
    // So that its last statement is the one that locked.
    run(&mut holder, sql).await;
    (holder, pid)
}

/// The heads of the chain by the server's own function, followed until a session that waits for nothing.
async fn roots_by_the_server(postgres: &Postgres) -> HashMap<String, Vec<String>> {
    let mut admin = session(postgres.get("URL")).await;
    let sql =
        "SELECT pid || ':' || array_to_string(pg_blocking_pids(pid), ',') FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    let blockers: HashMap<String, Vec<String>> = texts(&mut admin, sql)
        .await
        .iter()
        .filter_map(|line| line.split_once(':'))
        .map(|(pid, list)| (pid.to_owned(), list.split(',').filter(|pid| !pid.is_empty()).map(str::to_owned).collect()))
        .collect();
    let mut roots = HashMap::new();
    for pid in blockers.keys() {
        let (mut open, mut seen, mut heads) = (vec![pid.clone()], vec![pid.clone()], Vec::new());
        while let Some(at) = open.pop() {
            match blockers.get(&at) {
                None => heads.push(at),
                Some(next) => {
                    for pid in next {
                        if !seen.contains(pid) {
                            seen.push(pid.clone());
                            open.push(pid.clone());
                        }
                    }
                }
            }
        }
        roots.insert(pid.clone(), heads);
    }
    roots
}

async fn agrees_with_the_server(postgres: &Postgres, waits: &[Wait]) {
    let roots = roots_by_the_server(postgres).await;
    assert_eq!(roots.len(), waits.len());
    for wait in waits {
        let heads = &roots[&wait.waiter];
        assert!(wait.blocker.as_ref().is_some_and(|root| heads.contains(root)), "{wait:?}: pg_blocking_pids says {heads:?}");
    }
}

#[tokio::test]
async fn one_hot_row_with_1_and_then_40_waiters_names_the_row_and_the_idle_root_for_each() {
    for version in VERSIONS {
        let Some(postgres) = Postgres::start(version, "") else { return };
        let (mut collector, support) = started("postgres", postgres.get("PROBE_URL")).await;
        let rest = read(&mut *collector).await;
        assert_eq!(
            (waiting(&rest), rest.get("row_lock_waiting"), rest.get("lock_wait_age_seconds")),
            (Some(0.0), Some(0.0), Some(0.0))
        );
        assert_eq!((class(&support, "lock_waiting"), class(&support, "lock_wait_age_seconds")), (Class::Queue, Class::Age));
        let (mut holder, root) = idle_after(&postgres, HOT).await;
        let mut tasks = Vec::new();
        let mut place = String::new();
        for (more, total) in [(1, 1), (39, 40)] {
            tasks.extend(load(postgres.get("URL"), vec![HOT.to_owned(); more]).await);
            let reading = until(&mut *collector, "all of them waiting", |reading| {
                waiting(reading) == Some(total as f64) && reading.waits.len() == total
            })
            .await;
            assert_eq!(reading.get("row_lock_waiting"), Some(total as f64));
            assert_eq!(reading.get("sessions_idle_in_transaction"), Some(1.0));
            assert!(reading.get("lock_wait_age_seconds").is_some_and(|age| age > 0.0 && age < 60.0));
            for wait in &reading.waits {
                assert_eq!((wait.kind, wait.object.as_deref(), &wait.index), ("row", Some("public.slot"), &None), "{wait:?}");
                assert_eq!(wait.blocker.as_deref(), Some(root.as_str()), "{wait:?}");
                assert_eq!(wait.blocker_state.as_deref(), Some("idle in transaction"));
                assert_eq!(wait.statement.as_deref(), Some("UPDATE slot SET taken = taken + ? WHERE id = ?"));
                assert_eq!(wait.blocker_statement, wait.statement);
                assert!(wait.waited_ms.is_some_and(|ms| (0.0..60_000.0).contains(&ms)));
                let row = wait.row.clone().expect("the place of the row, for the first waiter too");
                assert!(place.is_empty() || place == row, "{place} {row}");
                place = row;
            }
            agrees_with_the_server(&postgres, &reading.waits).await;
        }
        assert!(place.starts_with('(') && place.ends_with(')') && place.contains(','), "{place}");
        run(&mut holder, "COMMIT").await;
        answered(tasks).await;
        let rest = until(&mut *collector, "nobody waiting", |reading| waiting(reading) == Some(0.0)).await;
        assert_eq!((rest.waits.len(), rest.get("lock_wait_age_seconds")), (0, Some(0.0)));
    }
}

#[tokio::test]
async fn with_200_waiters_each_is_told_with_its_row_and_the_root() {
    for version in VERSIONS {
        let Some(postgres) = Postgres::start(version, "-c max_connections=260") else { return };
        let (mut collector, _) = started("postgres", postgres.get("PROBE_URL")).await;
        let (mut holder, root) = idle_after(&postgres, HOT).await;
        let tasks = load(postgres.get("URL"), vec![HOT.to_owned(); 200]).await;
        until(&mut *collector, "200 waiters", |reading| waiting(reading) == Some(200.0)).await;
        // After a dear read the next ones are without waits for a while.
        for _ in 0..5 {
            let reading = until(&mut *collector, "their waits", |reading| !reading.waits.is_empty()).await;
            // A waiter that has just looked for a deadlock is awake for a moment.
            assert!(waiting(&reading).is_some_and(|count| count > 190.0), "{reading:?}");
            assert_eq!(reading.waits.len(), 200, "{:?}", reading.notes);
            assert!(reading.waits.iter().all(|wait| wait.row.is_some() && wait.blocker.as_ref() == Some(&root)));
        }
        run(&mut holder, "COMMIT").await;
        answered(tasks).await;
    }
}

#[tokio::test]
async fn advisory_locks_of_both_forms_are_named_by_their_keys() {
    for version in VERSIONS {
        let Some(postgres) = Postgres::start(version, "") else { return };
        let (mut collector, support) = started("postgres", postgres.get("PROBE_URL")).await;
        assert_eq!(class(&support, "advisory_lock_waiting"), Class::Queue);
        assert_eq!(read(&mut *collector).await.get("advisory_lock_waiting"), Some(0.0));
        let (mut holder, root) =
            idle_after(&postgres, "SELECT pg_advisory_xact_lock(-7000000000), pg_advisory_xact_lock(7, -8)").await;
        let statements = ["SELECT pg_advisory_xact_lock(-7000000000)", "SELECT pg_advisory_xact_lock(7, -8)"];
        let tasks = load(postgres.get("URL"), statements.map(str::to_owned).to_vec()).await;
        let reading = until(&mut *collector, "two that wait", |reading| {
            reading.get("advisory_lock_waiting") == Some(2.0) && reading.waits.len() == 2
        })
        .await;
        assert_eq!((waiting(&reading), reading.get("row_lock_waiting")), (Some(2.0), Some(0.0)));
        let mut rows: Vec<_> = reading.waits.iter().map(|wait| wait.row.clone().expect("a key")).collect();
        rows.sort();
        assert_eq!(rows, ["(7,-8)", "-7000000000"]);
        assert!(
            reading.waits.iter().all(|wait| wait.kind == "advisory" && wait.blocker.as_ref() == Some(&root)),
            "{:?}",
            reading.waits
        );
        agrees_with_the_server(&postgres, &reading.waits).await;
        run(&mut holder, "ROLLBACK").await;
        answered(tasks).await;
    }
}

#[tokio::test]
async fn an_insert_of_a_key_that_is_not_yet_committed_names_its_table_as_likely() {
    for version in VERSIONS {
        let Some(postgres) = Postgres::start(version, "") else { return };
        let (mut collector, support) = started("postgres", postgres.get("PROBE_URL")).await;
        assert_eq!(class(&support, "row_lock_waiting"), Class::Queue);
        assert_eq!(read(&mut *collector).await.get("row_lock_waiting"), Some(0.0));
        let mut holder = session(postgres.get("URL")).await;
        run(&mut holder, "BEGIN").await;
        run(&mut holder, "INSERT INTO slot VALUES (5000, 1, 1)").await;
        let insert = "INSERT INTO slot VALUES (5000, 2, 2) ON CONFLICT DO NOTHING";
        let tasks = load(postgres.get("URL"), vec![insert.to_owned(); 3]).await;
        let reading =
            until(&mut *collector, "three that wait", |reading| waiting(reading) == Some(3.0) && reading.waits.len() == 3).await;
        assert_eq!(reading.get("row_lock_waiting"), Some(3.0));
        for wait in &reading.waits {
            assert_eq!((wait.kind, wait.object.as_deref()), ("transaction", Some("public.slot (likely: unique key)")), "{wait:?}");
            assert_eq!((&wait.row, wait.blocker_state.as_deref()), (&None, Some("idle in transaction")));
        }
        agrees_with_the_server(&postgres, &reading.waits).await;
        run(&mut holder, "COMMIT").await;
        answered(tasks).await;
    }
}

#[tokio::test]
async fn a_table_locked_in_access_exclusive_mode_is_named_while_the_lock_is_held() {
    for version in VERSIONS {
        let Some(postgres) = Postgres::start(version, "") else { return };
        let (mut holder, root) = idle_after(&postgres, "LOCK TABLE slot IN ACCESS EXCLUSIVE MODE").await;
        let tasks = load(postgres.get("URL"), vec!["SELECT count(*) FROM slot".to_owned(); 2]).await;
        // Started while the lock is held: no name is known yet.
        let (mut collector, _) = started("postgres", postgres.get("PROBE_URL")).await;
        let reading = until(&mut *collector, "two that wait", |reading| {
            reading.get("relation_lock_waiting") == Some(2.0) && reading.waits.len() == 2
        })
        .await;
        for wait in &reading.waits {
            assert_eq!(
                (wait.kind, wait.object.as_deref(), wait.mode.as_deref()),
                ("relation", Some("public.slot"), Some("AccessShareLock"))
            );
            assert_eq!(wait.blocker.as_deref(), Some(root.as_str()));
        }
        let mut took = Vec::new();
        for _ in 0..9 {
            let began = Instant::now();
            assert_eq!(waiting(&read(&mut *collector).await), Some(2.0));
            took.push(began.elapsed());
        }
        took.sort();
        assert!(took[4] < Duration::from_millis(200), "no read waits for the lock as long as it may: {took:?}");
        run(&mut holder, "COMMIT").await;
        answered(tasks).await;
    }
}

#[tokio::test]
async fn readers_queued_behind_an_alter_table_have_the_idle_reader_before_it_as_their_root() {
    for version in VERSIONS {
        let Some(postgres) = Postgres::start(version, "") else { return };
        let (mut collector, _) = started("postgres", postgres.get("PROBE_URL")).await;
        let (mut reader, root) = idle_after(&postgres, "SELECT count(*) FROM slot").await;
        let mut tasks = load(postgres.get("URL"), vec!["ALTER TABLE slot ADD COLUMN note text".to_owned()]).await;
        until(&mut *collector, "the ALTER waiting", |reading| waiting(reading) == Some(1.0)).await;
        tasks.extend(load(postgres.get("URL"), vec!["SELECT count(*) FROM slot".to_owned(); 5]).await);
        let reading =
            until(&mut *collector, "all behind it", |reading| waiting(reading) == Some(6.0) && reading.waits.len() == 6).await;
        assert_eq!(reading.get("relation_lock_waiting"), Some(6.0));
        for wait in &reading.waits {
            assert_eq!((wait.object.as_deref(), wait.blocker.as_deref()), (Some("public.slot"), Some(root.as_str())), "{wait:?}");
        }
        agrees_with_the_server(&postgres, &reading.waits).await;
        run(&mut reader, "COMMIT").await;
        answered(tasks).await;
    }
}

#[tokio::test]
async fn a_chain_over_two_rows_leads_to_its_head() {
    for version in VERSIONS {
        let Some(postgres) = Postgres::start(version, "") else { return };
        let (mut collector, _) = started("postgres", postgres.get("PROBE_URL")).await;
        let (mut head, root) = idle_after(&postgres, "UPDATE slot SET taken = 1 WHERE id = 1").await;
        let middle = "BEGIN; UPDATE slot SET taken = 2 WHERE id = 2; UPDATE slot SET taken = 2 WHERE id = 1; COMMIT";
        let mut tasks = load(postgres.get("URL"), vec![middle.to_owned()]).await;
        until(&mut *collector, "the middle waiting", |reading| waiting(reading) == Some(1.0)).await;
        tasks.extend(load(postgres.get("URL"), vec!["UPDATE slot SET taken = 3 WHERE id = 2".to_owned(); 3]).await);
        let reading =
            until(&mut *collector, "the chain", |reading| waiting(reading) == Some(4.0) && reading.waits.len() == 4).await;
        assert!(reading.waits.iter().all(|wait| wait.blocker.as_deref() == Some(root.as_str())), "{:?}", reading.waits);
        let rows: std::collections::BTreeSet<_> = reading.waits.iter().filter_map(|wait| wait.row.clone()).collect();
        assert_eq!(rows.len(), 2, "{rows:?}");
        agrees_with_the_server(&postgres, &reading.waits).await;
        run(&mut head, "COMMIT").await;
        answered(tasks).await;
    }
}

#[tokio::test]
async fn a_lock_in_another_database_is_named_by_its_number_and_said_once() {
    for version in VERSIONS {
        let Some(postgres) = Postgres::start(version, "") else { return };
        let (mut collector, _) = started("postgres", postgres.get("PROBE_URL")).await;
        let elsewhere = postgres.get("URL").replace("/shop", "/postgres");
        let mut holder = session(&elsewhere).await;
        run(&mut holder, "CREATE TABLE far (id int)").await;
        run(&mut holder, "BEGIN; LOCK TABLE far").await;
        let number = texts(&mut holder, "SELECT 'far'::regclass::oid::text").await.remove(0);
        let tasks = load(&elsewhere, vec!["SELECT * FROM far".to_owned()]).await;
        let reading = until(&mut *collector, "one that waits", |reading| reading.waits.len() == 1).await;
        assert_eq!(reading.waits[0].object.as_deref(), Some(format!("postgres.oid {number}").as_str()));
        assert!(reading.notes.iter().any(|note| note.contains("database postgres")), "{:?}", reading.notes);
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(read(&mut *collector).await.notes, Vec::<String>::new(), "once");
        run(&mut holder, "COMMIT").await;
        answered(tasks).await;
    }
}

#[tokio::test]
async fn a_locked_catalogue_costs_the_names_and_not_the_tick() {
    for version in VERSIONS {
        let Some(postgres) = Postgres::start(version, "") else { return };
        let (mut collector, _) = started("postgres", postgres.get("PROBE_URL")).await;
        let (mut holder, root) = idle_after(&postgres, HOT).await;
        let tasks = load(postgres.get("URL"), vec![HOT.to_owned()]).await;
        let mut admin = session(postgres.get("URL")).await;
        // Else it would wait for the catalogue too.
        while texts(&mut admin, "SELECT count(*)::text FROM pg_locks WHERE NOT granted").await != ["1"] {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        run(&mut admin, "BEGIN; LOCK TABLE pg_catalog.pg_class IN ACCESS EXCLUSIVE MODE").await;
        let began = Instant::now();
        let reading = read(&mut *collector).await;
        assert!(began.elapsed() < SOON / 2, "our limit for locks ends it, not that for statements: {:?}", began.elapsed());
        assert_eq!(waiting(&reading), Some(1.0));
        let wait = reading.waits.first().expect("the waiter");
        assert!(wait.object.as_deref().is_some_and(|object| object.starts_with("oid ")) && wait.row.is_some(), "{wait:?}");
        assert_eq!(wait.blocker.as_deref(), Some(root.as_str()));
        assert!(reading.notes.iter().any(|note| note.contains("names of tables not read")), "{:?}", reading.notes);
        run(&mut admin, "COMMIT").await;
        until(&mut *collector, "the name again", |reading| {
            reading.waits.first().is_some_and(|wait| wait.object.as_deref() == Some("public.slot"))
        })
        .await;
        run(&mut holder, "COMMIT").await;
        answered(tasks).await;
    }
}

#[tokio::test]
async fn a_tick_that_waits_for_a_locked_catalogue_is_ended_by_the_server_within_its_limits() {
    for version in VERSIONS {
        let Some(postgres) = Postgres::start(version, "") else { return };
        let (mut collector, _) = started("postgres", postgres.get("PROBE_URL")).await;
        read(&mut *collector).await;
        let mut admin = session(postgres.get("URL")).await;
        run(&mut admin, "BEGIN; LOCK TABLE pg_catalog.pg_database IN ACCESS EXCLUSIVE MODE").await;
        let fault = collector.read().await.expect_err("it cannot be read");
        assert!(fault.message.contains("lock timeout"), "{version}: {fault}");
        let ours = |state: &str| {
            format!("SELECT count(*)::text FROM pg_stat_activity WHERE application_name = 'whatgives' AND state LIKE '{state}'")
        };
        // It is told a moment before the session rests; and a transaction keeps what it has seen of the sessions.
        let began = Instant::now();
        while texts(&mut admin, &ours("active")).await != ["0"] {
            run(&mut admin, "SELECT pg_stat_clear_snapshot()").await;
            assert!(began.elapsed() < Duration::from_secs(5), "{version}: a statement of ours goes on");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(texts(&mut admin, &ours("idle%")).await, ["1"], "one session is kept");
        run(&mut admin, "ROLLBACK").await;
        assert!(read(&mut *collector).await.get("sessions_used").is_some(), "{version}");
    }
}

#[tokio::test]
async fn without_waits_they_are_counted_and_not_asked_for() {
    for version in VERSIONS {
        let Some(postgres) = Postgres::start(version, "") else { return };
        let mut collector = collector("postgres", postgres.get("PROBE_URL"), "waits = false");
        let support = collector.start().await.expect("it starts");
        assert!(!support.columns.iter().any(|gauge| gauge.name == "lock_wait_age_seconds"));
        let (mut holder, _) = idle_after(&postgres, HOT).await;
        let tasks = load(postgres.get("URL"), vec![HOT.to_owned(); 2]).await;
        let reading = until(&mut *collector, "two that wait", |reading| waiting(reading) == Some(2.0)).await;
        assert_eq!(reading.waits, vec![]);
        run(&mut holder, "COMMIT").await;
        answered(tasks).await;
    }
}
