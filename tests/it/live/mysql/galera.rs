//! A cluster of two nodes of MariaDB: a node that cannot apply what the other one writes.

use super::{Target, column, number, run, started, until};
use collectors::api::{Class, Reading};
use std::time::{Duration, Instant};

async fn in_step(node: &Target) {
    let mut root = node.session().await;
    let state = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'WSREP_LOCAL_STATE'";
    let began = Instant::now();
    while number(&mut root, state).await != 4 {
        assert!(began.elapsed() < Duration::from_secs(30), "the node never came in step with the cluster");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_node_held_up_by_a_lock_queues_what_it_receives_and_pauses_the_whole_cluster() {
    let Some(first) = Target::start("mariadb", &[("MARIADB_GALERA", "new")]) else { return };
    let group = first.server.get("MARIADB_GALERA_PORT");
    let Some(second) = Target::start("mariadb", &[("MARIADB_GALERA", group)]) else { return };
    in_step(&first).await;
    in_step(&second).await;
    let (mut here, support) = started(first.url("PROBE_")).await;
    let (mut there, _) = started(second.url("PROBE_")).await;
    for (name, class) in
        [("galera_receive_queue", Class::Queue), ("galera_send_queue", Class::Queue), ("galera_paused_ns_total", Class::Pressure)]
    {
        assert_eq!(column(&support, name).unwrap_or_else(|| panic!("no column {name}")).class, class);
    }
    let rest = there.read().await.expect("the node answers");
    assert_eq!((rest.get("galera_receive_queue"), rest.get("galera_send_queue")), (Some(0.0), Some(0.0)));
    let paused = |reading: &Reading| reading.get("galera_paused_ns_total").expect("a counter");
    let before = paused(&here.read().await.expect("the node answers"));

    let mut holder = second.session().await;
    run(&mut holder, "LOCK TABLES shop.slot READ").await;
    let mut writer = first.session().await;
    let writes = tokio::spawn(async move {
        for id in 1..=100 {
            run(&mut writer, &format!("UPDATE shop.slot SET taken = taken + 1 WHERE id = {id}")).await;
        }
    });
    let full = until(there.as_mut(), "a queue of write sets", |reading| {
        reading.get("galera_receive_queue").is_some_and(|queue| queue >= 10.0)
    })
    .await;
    assert!(full.get("galera_receive_queue").is_some_and(|queue| queue <= 100.0), "{full:?}");
    // The other node has nothing to wait for itself: it is told to pause, and says so while it lasts.
    let held = until(here.as_mut(), "the pause", |reading| paused(reading) > before + 0.2e9).await;
    assert_eq!(held.get("galera_receive_queue"), Some(0.0), "{held:?}");
    assert!(!writes.is_finished(), "the writer waits");

    run(&mut holder, "UNLOCK TABLES").await;
    writes.await.expect("every write is done");
    until(there.as_mut(), "an empty queue", |reading| reading.get("galera_receive_queue") == Some(0.0)).await;
}
