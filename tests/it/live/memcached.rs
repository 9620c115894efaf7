//! The memcached collector against a real memcached.

use crate::support::collector::{collector, read, started, value};
use crate::support::declared::declared;
use crate::support::server::Server;
use collectors::api::{Class, FaultKind, Reading};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// One client of the text protocol.
pub(super) struct Client(BufReader<TcpStream>);

impl Client {
    pub(super) fn new(server: &Server) -> Self {
        let stream = TcpStream::connect(server.get("MEMCACHED_ADDRESS")).expect("memcached listens");
        stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
        Self(BufReader::new(stream))
    }

    /// One line out, one line back.
    pub(super) fn ask(&mut self, line: &str) -> String {
        // A refusing server closes at once, and the question may then not reach it; its answer is there all the same.
        let _ = self.0.get_mut().write_all(format!("{line}\r\n").as_bytes());
        let mut answer = String::new();
        let _ = self.0.read_line(&mut answer);
        answer.trim_end().to_owned()
    }

    pub(super) fn store(&mut self, keys: std::ops::Range<u32>, bytes: usize) {
        let value = "x".repeat(bytes);
        for key in keys {
            assert_eq!(self.ask(&format!("set key{key} 0 0 {bytes}\r\n{value}")), "STORED");
        }
    }

    /// How many of the keys are there.
    fn fetch(&mut self, keys: std::ops::Range<u32>) -> u32 {
        keys.filter(|key| {
            let answer = self.ask(&format!("get key{key}"));
            if answer.starts_with("VALUE ") {
                let length: usize = answer.rsplit(' ').next().and_then(|length| length.parse().ok()).expect("a length");
                let mut rest = vec![0; length + 2 + "END\r\n".len()];
                self.0.read_exact(&mut rest).expect("the value");
                true
            } else {
                assert_eq!(answer, "END");
                false
            }
        })
        .count() as u32
    }
}

#[tokio::test]
async fn a_full_server_refuses_others_while_the_kept_connection_goes_on() {
    let Some(server) = Server::start("memcached", &[("MEMCACHED_ARGS", "-m 8 -c 40 -t 2")]) else { return };
    let (mut collector, support) = started("memcached", server.get("MEMCACHED_ADDRESS")).await;
    assert_eq!(support.lacks, []);
    let rest = read(collector.as_mut()).await;
    assert_eq!(value(&rest, "curr_connections"), 1.0, "at rest it is the sampler's own");
    assert_eq!((value(&rest, "rejected_connections_total"), value(&rest, "max_connections")), (0.0, 40.0));
    declared(
        &support,
        &[("curr_connections", Class::Utilisation, Some("max_connections")), ("rejected_connections_total", Class::Event, None)],
    );

    let mut clients: Vec<Client> = Vec::new();
    let mut refused = 0;
    while refused < 3 {
        let mut client = Client::new(&server);
        match client.ask("version") {
            answer if answer.starts_with("VERSION ") => clients.push(client),
            answer => {
                assert!(answer.contains("Too many open connections"), "{answer:?}");
                refused += 1;
            }
        }
        assert!(clients.len() < 40, "the limit was never reached");
    }
    let full = read(collector.as_mut()).await;
    assert_eq!(value(&full, "rejected_connections_total"), 3.0);
    assert_eq!(value(&full, "curr_connections"), clients.len() as f64 + 1.0);
    assert_eq!(value(&full, "listen_disabled_total"), 0.0, "only without maxconns_fast");
    let fault = self::collector("memcached", server.get("MEMCACHED_ADDRESS"), "").start().await.expect_err("full");
    assert_eq!(fault.kind, FaultKind::Refused, "{fault}");
    assert!(fault.hint.is_some_and(|hint| hint.contains("before the load")));

    drop(clients);
    for _ in 0..100 {
        if value(&read(collector.as_mut()).await, "curr_connections") == 1.0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the connections never ended");
}

#[tokio::test]
async fn a_full_memory_evicts_and_the_hit_ratio_falls_and_a_reset_sets_the_counters_back_while_time_goes_on() {
    let Some(server) = Server::start("memcached", &[("MEMCACHED_ARGS", "-m 8 -c 100 -t 2")]) else { return };
    let (mut collector, support) = started("memcached", server.get("MEMCACHED_ADDRESS")).await;
    assert!(support.columns.iter().any(|gauge| gauge.name == "hit_ratio"));
    declared(&support, &[("evictions_total", Class::Event, None), ("used_bytes", Class::Level, Some("limit_bytes"))]);
    let mut client = Client::new(&server);
    let empty = read(collector.as_mut()).await;

    client.store(0..500, 1000);
    assert_eq!(client.fetch(0..500), 500);
    let warm = read(collector.as_mut()).await;
    let grown = |name: &str, from: &Reading, to: &Reading| value(to, name) - value(from, name);
    assert_eq!((grown("get_hits_total", &empty, &warm), grown("get_misses_total", &empty, &warm)), (500.0, 0.0));
    assert_eq!(value(&warm, "evictions_total"), 0.0);
    assert!(value(&warm, "used_bytes") > 500_000.0);

    client.store(500..12_000, 1000);
    let kept = client.fetch(0..500);
    let full = read(collector.as_mut()).await;
    assert!(value(&full, "evictions_total") > 1000.0, "{}", value(&full, "evictions_total"));
    assert!(value(&full, "used_bytes") > 0.7 * value(&full, "limit_bytes"));
    let (hits, misses) = (grown("get_hits_total", &warm, &full), grown("get_misses_total", &warm, &full));
    assert_eq!((hits, misses), (f64::from(kept), f64::from(500 - kept)));
    assert!(hits / (hits + misses) < 0.5, "old keys were evicted: {kept} of 500 are left");

    assert_eq!(client.ask("stats reset"), "RESET");
    let reset = read(collector.as_mut()).await;
    assert_eq!((value(&reset, "get_hits_total"), value(&reset, "evictions_total")), (0.0, 0.0));
    assert_eq!(value(&reset, "used_bytes"), value(&full, "used_bytes"), "only counters are set back");
    assert_eq!(reset.restarted, None, "the server was not started anew");
}

#[tokio::test]
async fn a_killed_server_costs_its_reads_and_the_next_one_is_found_and_noted_once() {
    let Some(mut server) = Server::start("memcached", &[]) else { return };
    let (mut collector, _) = started("memcached", server.get("MEMCACHED_ADDRESS")).await;
    let mut client = Client::new(&server);
    client.store(0..10, 10);
    assert_eq!(value(&read(collector.as_mut()).await, "cmd_set_total"), 10.0);
    server.signal("KILL");
    let fault = loop {
        // The last answer may be under way.
        match collector.read().await {
            Ok(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            Err(fault) => break fault,
        }
    };
    assert_eq!(fault.kind, FaultKind::Unreachable, "{fault}");
    let fault = collector.read().await.expect_err("nobody there");
    assert!(fault.message.contains(server.get("MEMCACHED_ADDRESS")), "{fault}");
    server.start_again();
    let reading = read(collector.as_mut()).await;
    assert_eq!(value(&reading, "cmd_set_total"), 0.0);
    assert_eq!(reading.restarted.as_deref(), Some("the server was started anew"));
    assert_eq!(read(collector.as_mut()).await.notes, Vec::<String>::new());
}

#[tokio::test]
async fn a_stopped_server_is_silent_and_answers_again_when_it_goes_on() {
    let Some(server) = Server::start("memcached", &[]) else { return };
    let (mut collector, _) = started("memcached", server.get("MEMCACHED_ADDRESS")).await;
    server.signal("STOP");
    let silent = tokio::time::timeout(Duration::from_millis(300), collector.read()).await;
    server.signal("CONT");
    assert!(silent.is_err(), "{silent:?}");
    let reading = read(collector.as_mut()).await;
    assert!(value(&reading, "curr_connections") >= 1.0);
}

#[tokio::test]
async fn a_unix_socket_is_read_and_so_is_its_accept_queue() {
    let Some(server) = Server::start("memcached", &[("MEMCACHED_UNIX", "1")]) else { return };
    let (mut collector, support) = started("memcached", server.get("MEMCACHED_ADDRESS")).await;
    assert_eq!(support.endpoint, server.get("MEMCACHED_SOCKET"));
    assert_eq!(value(&read(collector.as_mut()).await, "curr_connections"), 1.0);
    #[cfg(target_os = "linux")]
    {
        let mut queue = self::collector("listen", server.get("MEMCACHED_SOCKET"), "");
        let support = queue.start().await.expect("it listens");
        assert_eq!(support.lacks, []);
        let reading = queue.read().await.expect("it listens");
        assert_eq!((value(&reading, "queue"), value(&reading, "sockets")), (0.0, 1.0));
        assert!(value(&reading, "limit") > 0.0);
    }
}
