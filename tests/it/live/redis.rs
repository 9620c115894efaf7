//! The Redis collector against real ones: Redis 7 and Valkey 9.

mod access;
mod several;

use crate::support::collector::{self, read, value};
use crate::support::declared::declared;
use crate::support::sampler::{Folder, Ran, read_columns, signal};
use crate::support::server::Server;
use collectors::api::{Class, Collector, FaultKind, Reading, Support};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

pub(super) const BOTH: [&str; 2] = ["redis", "valkey"];

fn collector_with(endpoint: &str, settings: &str) -> Box<dyn Collector> {
    collector::collector("redis", endpoint, settings)
}

/// A line of the server's description, whichever of the two it is.
pub(super) fn of<'a>(server: &'a Server, name: &str, key: &str) -> &'a str {
    server.get(&format!("{}_{key}", name.to_uppercase()))
}

async fn started(endpoint: &str) -> (Box<dyn Collector>, Support) {
    collector::started("redis", endpoint).await
}

fn grown(name: &str, from: &Reading, to: &Reading) -> f64 {
    value(to, name) - value(from, name)
}

/// One client.
pub(super) struct Client(BufReader<TcpStream>);

impl Client {
    pub(super) fn new(port: &str) -> Self {
        let stream = TcpStream::connect(format!("127.0.0.1:{port}")).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
        Self(BufReader::new(stream))
    }

    pub(super) fn send(&mut self, words: &[&str]) {
        let mut text = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            write!(text, "${}\r\n{word}\r\n", word.len()).expect("it fits");
        }
        // A refusing server closes at once, and the command may then not reach it; its answer is there all the same.
        let _ = self.0.get_mut().write_all(&text);
    }

    /// The answer's first line; the text of a bulk string.
    pub(super) fn hear(&mut self) -> String {
        let mut line = String::new();
        let _ = self.0.read_line(&mut line);
        let line = line.trim_end();
        match line.strip_prefix('$').and_then(|length| length.parse::<usize>().ok()) {
            Some(length) => {
                let mut text = vec![0; length + 2];
                self.0.read_exact(&mut text).expect("the text");
                String::from_utf8_lossy(&text[..length]).into_owned()
            }
            None => line.to_owned(),
        }
    }

    pub(super) fn ask(&mut self, words: &[&str]) -> String {
        self.send(words);
        self.hear()
    }
}

#[tokio::test]
async fn at_rest_every_gauge_is_what_it_was_declared_to_be() {
    for name in BOTH {
        let Some(server) = Server::start(name, &[]) else { return };
        let (mut collector, support) = started(of(&server, name, "URL")).await;
        assert_eq!(support.lacks, []);
        let product = if name == "valkey" { ("Valkey", "9.") } else { ("Redis", "7.") };
        assert!(support.product == product.0 && support.version.starts_with(product.1), "{} {}", support.product, support.version);
        let own = |wanted: &str| support.columns.iter().find(|gauge| gauge.name == wanted).map(|gauge| gauge.own);
        assert_eq!((own("connected_clients"), own("ops_total")), (Some(1.0), Some(2.0)));
        let first = read(collector.as_mut()).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let second = read(collector.as_mut()).await;
        assert_eq!(value(&second, "connected_clients"), 1.0, "the sampler's own");
        assert_eq!(grown("ops_total", &first, &second), 2.0, "its own two commands");
        assert_eq!((value(&second, "maxclients"), value(&second, "maxmemory_bytes")), (200.0, 64.0 * 1024.0 * 1024.0));
        for event in
            ["rejected_connections_total", "evicted_keys_total", "oom_errors_total", "error_replies_total", "full_syncs_total"]
        {
            assert_eq!(grown(event, &first, &second), 0.0, "{name} {event}");
        }
        assert_eq!((value(&second, "blocked_clients"), value(&second, "replicas")), (0.0, 0.0));
        assert!(value(&second, "roundtrip_ms") < 200.0, "{}", value(&second, "roundtrip_ms"));
        declared(
            &support,
            &[
                ("roundtrip_ms", Class::Wait, None),
                ("connected_clients", Class::Utilisation, Some("maxclients")),
                ("used_memory_bytes", Class::Level, Some("maxmemory_bytes")),
                ("rejected_connections_total", Class::Event, None),
                ("evicted_keys_total", Class::Event, None),
                ("oom_errors_total", Class::Event, None),
            ],
        );
        assert!(grown("main_thread_cpu_seconds_total", &first, &second) < 0.25);
        if name == "valkey" {
            assert!(grown("eventloop_busy_seconds_total", &first, &second) < 0.25);
        }
    }
}

#[tokio::test]
async fn a_slow_script_holds_up_the_round_trip_and_nothing_else_tells() {
    for name in BOTH {
        // On a busy machine a second of processor time takes long, and after 5 s it would answer that it is busy.
        let args = [(&*format!("{}_ARGS", name.to_uppercase()), "--busy-reply-threshold 60000")];
        let Some(server) = Server::start(name, &args) else { return };
        let (mut collector, _) = started(of(&server, name, "URL")).await;
        let mut client = Client::new(of(&server, name, "PORT"));
        let script = "local n = 0; for i = 1, tonumber(ARGV[1]) do n = n + i % 7 end; return n";
        let fresh = read(collector.as_mut()).await;
        assert!(client.ask(&["EVAL", script, "0", "20000000"]).starts_with(':'));
        let rest = read(collector.as_mut()).await;
        // As many rounds as take a second of processor time, however busy this machine is.
        let rounds = 2e7 / grown("main_thread_cpu_seconds_total", &fresh, &rest).max(0.01);

        let began = Instant::now();
        client.send(&["EVAL", script, "0", &format!("{rounds:.0}")]);
        std::thread::sleep(Duration::from_millis(30));
        // Under the sampler this read would be late after 800 ms: a missing cell and a poll_ms, never a 0.
        let early = tokio::time::timeout(Duration::from_millis(100), collector.read()).await;
        assert!(early.is_err(), "{name}: an answer while the script runs: {early:?}");
        let held = read(collector.as_mut()).await;
        let took = began.elapsed().as_secs_f64() * 1e3;
        let waited = value(&held, "roundtrip_ms");
        assert!(waited > 300.0 && waited < took, "{name}: {waited} of {took} ms");
        assert_eq!(value(&held, "blocked_clients"), 0.0, "the page itself says nothing");
        assert!(grown("main_thread_cpu_seconds_total", &rest, &held) > 0.6, "{name}");
        client.hear();
        let after = read(collector.as_mut()).await;
        if name == "valkey" {
            assert!(grown("eventloop_busy_seconds_total", &rest, &after) > 0.6);
        }
        assert!(value(&after, "roundtrip_ms") < waited / 2.0, "{name}: back to {}", value(&after, "roundtrip_ms"));
        assert!(value(&after, "slowlog_entries") >= 1.0);
    }
}

#[tokio::test]
async fn a_full_memory_evicts_and_the_hit_ratio_falls() {
    for name in BOTH {
        let args = [(&*format!("{}_ARGS", name.to_uppercase()), "--maxmemory 8mb --maxmemory-policy allkeys-lru")];
        let Some(server) = Server::start(name, &args) else { return };
        let (mut collector, support) = started(of(&server, name, "URL")).await;
        assert!(support.columns.iter().any(|gauge| gauge.name == "hit_ratio"));
        let mut client = Client::new(of(&server, name, "PORT"));
        let text = "x".repeat(2000);
        let mut store = |keys: std::ops::Range<u32>| {
            for key in keys {
                assert_eq!(client.ask(&["SET", &format!("key{key}"), &text]), "+OK");
            }
        };
        store(0..500);
        let warm = read(collector.as_mut()).await;
        assert_eq!((value(&warm, "keys"), value(&warm, "evicted_keys_total")), (500.0, 0.0));
        store(500..8000);
        let mut reader = Client::new(of(&server, name, "PORT"));
        let found = (0..500).filter(|key| reader.ask(&["GET", &format!("key{key}")]) != "$-1").count() as f64;
        let full = read(collector.as_mut()).await;
        assert!(grown("evicted_keys_total", &warm, &full) > 1000.0);
        assert!(value(&full, "used_memory_bytes") > 0.8 * value(&full, "maxmemory_bytes"));
        let (hits, misses) = (grown("keyspace_hits_total", &warm, &full), grown("keyspace_misses_total", &warm, &full));
        assert_eq!((hits, misses), (found, 500.0 - found));
        assert!(hits / (hits + misses) < 0.7, "old keys were evicted: {found} of 500 are left");
    }
}

#[tokio::test]
async fn a_full_memory_without_eviction_refuses_to_store_and_each_refusal_is_counted() {
    for name in BOTH {
        let args = [(&*format!("{}_ARGS", name.to_uppercase()), "--maxmemory 6mb --maxmemory-policy noeviction")];
        let Some(server) = Server::start(name, &args) else { return };
        let (mut collector, _) = started(of(&server, name, "URL")).await;
        let rest = read(collector.as_mut()).await;
        assert_eq!(value(&rest, "oom_errors_total"), 0.0);
        let mut client = Client::new(of(&server, name, "PORT"));
        let text = "x".repeat(10_000);
        let mut refused = 0;
        for key in 0..3000 {
            let answer = client.ask(&["SET", &format!("key{key}"), &text]);
            refused += i32::from(answer.starts_with("-OOM"));
            if refused == 5 {
                break;
            }
        }
        let full = read(collector.as_mut()).await;
        assert_eq!(refused, 5, "{name} was never full");
        assert_eq!(grown("oom_errors_total", &rest, &full), 5.0);
        assert_eq!(grown("error_replies_total", &rest, &full), 5.0);
        assert_eq!(grown("evicted_keys_total", &rest, &full), 0.0);
        assert!(value(&full, "used_memory_bytes") > 0.95 * value(&full, "maxmemory_bytes"));
    }
}

#[tokio::test]
async fn a_full_server_refuses_others_while_the_kept_connection_goes_on() {
    for name in BOTH {
        let args = [(&*format!("{}_ARGS", name.to_uppercase()), "--maxclients 20")];
        let Some(server) = Server::start(name, &args) else { return };
        let (mut collector, _) = started(of(&server, name, "URL")).await;
        let mut clients: Vec<Client> = Vec::new();
        let mut refused = 0;
        while refused < 3 {
            let mut client = Client::new(of(&server, name, "PORT"));
            match client.ask(&["PING"]) {
                answer if answer == "+PONG" => clients.push(client),
                answer => {
                    assert!(answer.contains("max number of clients"), "{answer:?}");
                    refused += 1;
                }
            }
            assert!(clients.len() < 20, "the limit was never reached");
        }
        let full = read(collector.as_mut()).await;
        assert_eq!((value(&full, "connected_clients"), value(&full, "maxclients")), (20.0, 20.0));
        assert_eq!(value(&full, "rejected_connections_total"), 3.0);
        for endpoint in ["URL", "PROBE_URL"] {
            let fault = collector_with(of(&server, name, endpoint), "").start().await.expect_err("full");
            assert_eq!(fault.kind, FaultKind::Refused, "{fault}");
            assert!(fault.hint.is_some_and(|hint| hint.contains("before the load")));
        }
        assert_eq!(value(&read(collector.as_mut()).await, "rejected_connections_total"), 5.0);
    }
}

#[tokio::test]
async fn a_reset_sets_counters_back_while_the_server_goes_on_and_is_noted() {
    for name in BOTH {
        let Some(server) = Server::start(name, &[]) else { return };
        let (mut collector, _) = started(of(&server, name, "URL")).await;
        let mut client = Client::new(of(&server, name, "PORT"));
        for _ in 0..50 {
            client.ask(&["GET", "nothing"]);
        }
        let before = read(collector.as_mut()).await;
        assert_eq!(value(&before, "keyspace_misses_total"), 50.0);
        assert_eq!(client.ask(&["CONFIG", "RESETSTAT"]), "+OK");
        let reset = read(collector.as_mut()).await;
        assert_eq!(value(&reset, "keyspace_misses_total"), 0.0);
        assert_eq!(reset.restarted.as_deref(), Some("counters reset (CONFIG RESETSTAT)"));
        assert_eq!(read(collector.as_mut()).await.notes, Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_killed_server_costs_its_reads_and_the_next_one_is_found_and_noted_once() {
    for name in BOTH {
        let Some(mut server) = Server::start(name, &[]) else { return };
        let (mut collector, _) = started(of(&server, name, "URL")).await;
        read(collector.as_mut()).await;
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
        assert!(fault.message.contains(of(&server, name, "PORT")), "{fault}");
        server.start_again();
        let reading = read(collector.as_mut()).await;
        assert_eq!(value(&reading, "connected_clients"), 1.0);
        assert_eq!(reading.restarted.as_deref(), Some("the server was started anew"));
        assert_eq!(read(collector.as_mut()).await.notes, Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_stopped_server_is_silent_and_answers_again_when_it_goes_on() {
    for name in BOTH {
        let Some(server) = Server::start(name, &[]) else { return };
        let (mut collector, _) = started(of(&server, name, "URL")).await;
        server.signal("STOP");
        let silent = tokio::time::timeout(Duration::from_millis(300), collector.read()).await;
        server.signal("CONT");
        assert!(silent.is_err(), "{silent:?}");
        let mut clients = 0.0;
        for _ in 0..100 {
            clients = value(&read(collector.as_mut()).await, "connected_clients");
            if clients == 1.0 {
                break;
            }
            // The connection that was given up is seen to be gone a little later.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(clients, 1.0, "one connection is kept, however often the server was silent");
    }
}

#[test]
fn a_server_that_is_blocked_is_missing_in_its_rows_and_never_0() {
    for name in BOTH {
        let args = [(&*format!("{}_ARGS", name.to_uppercase()), "--enable-debug-command local")];
        let Some(server) = Server::start(name, &args) else { return };
        let folder = Folder::new();
        let flag = format!("--redis={}", of(&server, name, "URL"));
        let child = folder.start(&[&flag, "--no-host", "--tick=200ms", "--seconds=60"]);
        folder.until_rows(5);
        let mut client = Client::new(of(&server, name, "PORT"));
        assert_eq!(client.ask(&["DEBUG", "SLEEP", "1.5"]), "+OK");
        let rows = folder.ticks().tick.len();
        folder.until_rows(rows + 5);
        signal(child.id(), "TERM");
        let ran = Ran::end(child);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let ticks = folder.ticks();
        let column = |name: &str| ticks.column(name).expect("a column");
        let up = column("redis.up");
        let silent: Vec<usize> = (0..up.len()).filter(|row| up[*row] == 0.0).collect();
        assert!(silent.len() >= 4 && up.last() == Some(&1.0), "{name}: {up:?}");
        for (column, cells) in read_columns(&ticks, "redis") {
            assert!(silent.iter().all(|row| cells[*row].is_nan()), "{name} {column}: {cells:?}");
        }
        // What does move while it is silent: how long it has been waited for.
        let waited = silent.iter().map(|row| column("redis.poll_ms")[*row]).fold(0.0, f64::max);
        assert!(waited > 700.0, "{name}: {waited}");
        let clients = column("redis.connected_clients").iter().copied().fold(0.0, f64::max);
        assert!(clients <= 2.0, "{name}: {clients} clients, the one that sleeps and ours");
    }
}
