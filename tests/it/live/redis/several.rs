//! A primary with a replica, and a node of a cluster.

use super::{BOTH, Client, of, read, started, value};
use crate::support::server::Server;
use collectors::api::{Class, Reading, Worse};
use std::time::Duration;

/// Reads until `seen`, for at most 20 s.
async fn until(collector: &mut Box<dyn collectors::api::Collector>, what: &str, seen: impl Fn(&Reading) -> bool) -> Reading {
    let mut last = Reading::default();
    for _ in 0..200 {
        last = read(collector.as_mut()).await;
        if seen(&last) {
            return last;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("never seen: {what}; the last reading: {last:?}");
}

#[tokio::test]
async fn a_replica_that_stands_still_is_behind_and_one_without_its_primary_says_so() {
    for name in BOTH {
        let Some(primary) = Server::start(name, &[]) else { return };
        let Some(replica) = Server::start(name, &[]) else { return };
        let mut client = Client::new(of(&primary, name, "PORT"));
        assert_eq!(Client::new(of(&replica, name, "PORT")).ask(&["REPLICAOF", "127.0.0.1", of(&primary, name, "PORT")]), "+OK");
        let (mut first, _) = started(of(&primary, name, "URL")).await;
        until(&mut first, "the replica is there", |reading| reading.get("replica_silence_seconds").is_some()).await;
        // Columns are settled at the start: this one knows of the replica.
        let (mut first, support) = started(of(&primary, name, "URL")).await;
        let silence = support.columns.iter().find(|gauge| gauge.name == "replica_silence_seconds").expect("a column");
        assert_eq!((silence.class, silence.worse), (Class::Age, Worse::Up), "{name}");
        let rest =
            until(&mut first, "the replica has everything", |reading| reading.get("replica_behind_bytes") == Some(0.0)).await;
        assert_eq!((value(&rest, "replicas"), value(&rest, "replica_silence_seconds") <= 1.0), (1.0, true), "{name}: {rest:?}");
        let (mut second, support) = started(of(&replica, name, "URL")).await;
        assert!(support.sees.contains(&"a replica".to_owned()), "{name}: {:?}", support.sees);
        until(&mut second, "it hears its primary", |reading| value(reading, "master_link_up") == 1.0).await;

        replica.signal("STOP");
        for _ in 0..100 {
            client.ask(&["SET", "key", "value"]);
        }
        let behind = until(&mut first, "it falls behind", |reading| value(reading, "replica_silence_seconds") >= 2.0).await;
        assert!(value(&behind, "replica_behind_bytes") >= 100.0 * 20.0, "{name}: {behind:?}");
        replica.signal("CONT");
        until(&mut first, "it catches up", |reading| reading.get("replica_behind_bytes") == Some(0.0)).await;
        drop(primary);
        until(&mut second, "the link breaks", |reading| value(reading, "master_link_up") == 0.0).await;
    }
}

#[tokio::test]
async fn a_node_of_a_cluster_tells_whether_every_slot_is_served() {
    for name in BOTH {
        let args = format!("{}_ARGS", name.to_uppercase());
        let Some(server) = Server::start(name, &[(&args, "--cluster-enabled yes --cluster-port 0")]) else { return };
        let (mut node, support) = started(of(&server, name, "URL")).await;
        let up = support.columns.iter().find(|gauge| gauge.name == "cluster_up").expect("a column");
        assert_eq!(up.worse, Worse::Down, "{name}");
        let rest = read(node.as_mut()).await;
        assert_eq!((value(&rest, "cluster_up"), value(&rest, "cluster_slots_failed")), (0.0, 0.0), "{name}: nobody serves a slot");
        assert_eq!(Client::new(of(&server, name, "PORT")).ask(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]), "+OK");
        until(&mut node, "every slot is served", |reading| value(reading, "cluster_up") == 1.0).await;

        let (_, support) = started(of(&server, name, "PROBE_URL")).await;
        let lack = support.lacks.iter().find(|lack| lack.what.contains("CLUSTER INFO")).expect("it says so");
        assert_eq!(lack.mend.as_deref(), Some("ACL SETUSER probe +cluster|info"), "{name}");
    }
}
