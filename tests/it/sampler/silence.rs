//! Every kind of target before a server that takes connections and does not answer: each costs its own cells, one connection
//! and nothing else. A kind that is new in the registry has to say here how it is reached.

use crate::support::memcached::Memcached;
use crate::support::sampler::{Folder, Ran, notes, read_columns, signal};
use collectors::REGISTRY;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Kinds that ask the machine itself.
const LOCAL: [&str; 4] = ["host", "process", "cgroup", "listen"];

/// How each kind is told of an address.
fn endpoint(kind: &str, address: SocketAddr) -> String {
    match kind {
        "mysql" => format!("mysql://probe:probe@{address}/"),
        "postgres" => format!("postgres://probe:probe@{address}/shop"),
        "pgbouncer" => format!("postgres://probe@{address}/pgbouncer"),
        "redis" => format!("redis://{address}/"),
        "memcached" => address.to_string(),
        "phpfpm" => format!("{address}/status"),
        "apache" | "nginx" | "haproxy" | "status" | "metrics" | "json" => format!("http://{address}/page"),
        "rabbitmq" => format!("http://{address}"),
        "promql" => format!("http://{address}::up"),
        "query" => format!("postgres://probe:probe@{address}/shop::SELECT 1 AS depth"),
        other => panic!("{other} is new: how is it told of an address?"),
    }
}

/// A server that says so much to whoever comes, and then nothing more; it counts who is there.
struct Mute {
    address: SocketAddr,
    open: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Mute {
    fn start(says: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (open, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mute = Self { address, open: open.clone(), most: most.clone() };
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                most.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                let open = open.clone();
                thread::spawn(move || {
                    until_closed(stream, says);
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        mute
    }
}

fn until_closed(mut stream: TcpStream, says: &[u8]) {
    let mut buffer = [0; 4096];
    let mut said = false;
    while stream.read(&mut buffer).is_ok_and(|read| read > 0) {
        if !said && stream.write_all(says).is_err() {
            return;
        }
        said = true;
    }
}

/// The kinds that are reached over the network, and what was seen of them at such a server.
fn watched(says: &'static [u8]) -> (Folder, Ran, Vec<&'static str>, Vec<Mute>) {
    let kinds: Vec<&str> = REGISTRY.iter().map(|spec| spec.name).filter(|name| !LOCAL.contains(name)).collect();
    let servers: Vec<Mute> = kinds.iter().map(|_| Mute::start(says)).collect();
    let well = Memcached::start();
    let folder = Folder::new();
    let mut args = vec![format!("--memcached=well={}", well.address)];
    for (kind, server) in kinds.iter().zip(&servers) {
        let spec = REGISTRY.iter().find(|spec| spec.name == *kind).unwrap();
        args.push(format!("--{}=mute_{kind}={}", spec.flag, endpoint(kind, server.address)));
    }
    args.extend(["--allow-down", "--no-host", "--tick=200ms", "--seconds=60"].map(str::to_owned));
    let child = folder.start(&args.iter().map(String::as_str).collect::<Vec<_>>());
    folder.until_rows(12);
    signal(child.id(), "TERM");
    let ran = Ran::end(child);
    assert_eq!(ran.code, 0, "{}", ran.err);
    (folder, ran, kinds, servers)
}

fn hold(folder: &Folder, kinds: &[&str], servers: &[Mute]) {
    let ticks = folder.ticks();
    let gaps = |name: &str| ticks.column(name).unwrap().iter().filter(|up| **up == 0.0).count();
    let rows = ticks.tick.len();
    // A machine that stands still for longer than a read may take costs the healthy one a cell, seldom.
    assert!(gaps("well.up") <= rows / 4, "{}", notes(&ticks));
    for (kind, server) in kinds.iter().zip(servers) {
        assert_eq!(gaps(&format!("mute_{kind}.up")), rows, "{kind}: {}", notes(&ticks));
        assert!(notes(&ticks).contains(&format!("mute_{kind}: ")), "{kind} has no reason: {}", notes(&ticks));
        // The server hears of one that was given up a moment after the next has come.
        let most = server.most.load(Ordering::SeqCst);
        assert!(most <= 2, "{kind} came {most} times at once");
        for (column, cells) in read_columns(&ticks, &format!("mute_{kind}")) {
            assert!(cells.iter().all(|cell| cell.is_nan()), "{column}: {cells:?}");
        }
    }
}

#[test]
fn every_kind_of_target_that_takes_a_connection_and_says_nothing_costs_its_own_cells_and_one_connection() {
    let (folder, ran, kinds, servers) = watched(b"");
    hold(&folder, &kinds, &servers);
    assert!(ran.err.contains("no answer in"), "{}", ran.err);
    let still_open: usize = servers.iter().map(|server| server.open.load(Ordering::SeqCst)).sum();
    assert!(still_open <= kinds.len(), "{still_open} connections are left");
}

#[test]
fn every_kind_of_target_whose_answer_stops_in_the_middle_costs_its_own_cells_and_gives_no_half_values() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4000\r\n\r\nBusyWorkers: 3\nIdleWorkers: 5\nActive connections: 1\n";
    let (folder, _, kinds, servers) = watched(head);
    hold(&folder, &kinds, &servers);
}
