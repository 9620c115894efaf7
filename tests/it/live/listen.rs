//! The listen collector against this machine's own listeners.

use crate::support::collector::{collector, value};
use collectors::api::{Collector, FaultKind};
use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::Command;
use std::time::Duration;
use tokio::net::{TcpSocket, UnixSocket, UnixStream};

async fn started(endpoint: &str) -> Box<dyn Collector> {
    let mut collector = collector("listen", endpoint, "");
    let support = collector.start().await.expect("it listens");
    assert_eq!(support.lacks, []);
    collector
}

async fn queue(collector: &mut Box<dyn Collector>) -> (f64, f64) {
    let reading = collector.read().await.expect("it listens");
    (value(&reading, "queue"), value(&reading, "limit"))
}

/// A listener that shares its port and never accepts.
fn listener(address: &str, backlog: u32) -> tokio::net::TcpListener {
    let address: SocketAddr = address.parse().expect("an address");
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.expect("a socket");
    socket.set_reuseport(true).expect("shared");
    socket.bind(address).expect("bound");
    socket.listen(backlog).expect("it listens")
}

#[tokio::test]
async fn depth_and_limit_are_those_of_the_listener_over_ipv4_and_ipv6() {
    for (bound, backlog) in [("127.0.0.1:0", 4), ("[::1]:0", 7)] {
        let listener = listener(bound, backlog);
        let address = listener.local_addr().expect("an address");
        for endpoint in [address.port().to_string(), address.to_string()] {
            let mut collector = started(&endpoint).await;
            assert_eq!(queue(&mut collector).await, (0.0, f64::from(backlog)), "{endpoint}");
        }
        let mut collector = started(&address.to_string()).await;
        let mut waiting = Vec::new();
        for count in 1..=backlog {
            waiting.push(TcpStream::connect(address).expect("let in"));
            assert_eq!(queue(&mut collector).await, (f64::from(count), f64::from(backlog)));
        }
        let _accepted = listener.accept().await.expect("accepted");
        assert_eq!(queue(&mut collector).await.0, f64::from(backlog - 1));
    }
}

#[tokio::test]
async fn overflows_are_counted_only_after_the_queue_was_full() {
    let listener = listener("127.0.0.1:0", 2);
    let address = listener.local_addr().expect("an address");
    let mut collector = started(&address.to_string()).await;
    let before = value(&collector.read().await.expect("read"), "overflows_total");
    // The kernel lets one more wait than the limit says.
    let _waiting: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(address).expect("let in")).collect();
    assert_eq!(queue(&mut collector).await, (3.0, 2.0));
    // Others wait outside: their requests are dropped, and repeated after a second.
    let outside: Vec<_> = (0..3)
        .map(|_| std::thread::spawn(move || TcpStream::connect_timeout(&address, Duration::from_millis(300)).is_err()))
        .collect();
    let shut_out =
        outside.into_iter().filter(|_| true).map(|thread| thread.join().expect("tried")).filter(|failed| *failed).count();
    assert!(shut_out > 0, "somebody was let into a full queue");
    let reading = collector.read().await.expect("read");
    assert!(value(&reading, "overflows_total") >= before + shut_out as f64);
    assert!(value(&reading, "drops_total") >= value(&reading, "overflows_total"));
}

#[tokio::test]
async fn sockets_that_share_a_port_are_summed_and_a_change_of_their_number_is_noted() {
    let first = listener("127.0.0.1:0", 5);
    let address = first.local_addr().expect("an address");
    let second = listener(&address.to_string(), 6);
    let mut collector = collector("listen", &address.port().to_string(), "");
    let support = collector.start().await.expect("they listen");
    assert!(support.sees[0].contains("2 sockets") && support.sees[0].contains("summed"), "{:?}", support.sees);
    let _waiting: Vec<TcpStream> = (0..4).map(|_| TcpStream::connect(address).expect("let in")).collect();
    assert_eq!(queue(&mut collector).await, (4.0, 11.0));
    drop(second);
    let reading = collector.read().await.expect("one listens");
    assert_eq!((value(&reading, "sockets"), value(&reading, "limit")), (1.0, 5.0));
    assert_eq!(reading.notes, ["2 listening sockets became 1"]);
}

#[tokio::test]
async fn a_unix_listener_has_a_queue_by_its_path_and_by_its_abstract_name() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("app.sock");
    let hidden = format!("@whatgives-{}", std::process::id());
    for (endpoint, bind) in [(path.to_str().expect("text").to_owned(), None), (hidden.clone(), Some(hidden))] {
        let socket = UnixSocket::new_stream().expect("a socket");
        let name = bind.as_ref().map_or_else(|| endpoint.clone(), |hidden| hidden.replace('@', "\0"));
        socket.bind(&name).expect("bound");
        let listener = socket.listen(3).expect("it listens");
        let mut collector = started(&endpoint).await;
        assert_eq!(queue(&mut collector).await, (0.0, 3.0));
        let _waiting = [UnixStream::connect(&name).await.expect("let in"), UnixStream::connect(&name).await.expect("let in")];
        assert_eq!(queue(&mut collector).await, (2.0, 3.0), "{endpoint}");
        drop(listener);
        assert_eq!(collector.read().await.expect_err("nobody listens").kind, FaultKind::Unreachable);
    }
}

/// A network namespace that ends with the test.
struct Namespace(String);

impl Namespace {
    fn new() -> Option<Self> {
        let name = format!("whatgives-{}", std::process::id());
        let made = Command::new("ip").args(["netns", "add", &name]).output();
        let why = match made {
            Ok(output) if output.status.success() => return Some(Self(name)),
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(why) => why.to_string(),
        };
        eprintln!("NOT TESTED: another network namespace cannot be made here ({why}); it needs ip and CAP_SYS_ADMIN");
        None
    }

    fn file(&self) -> String {
        format!("/run/netns/{}", self.0)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

#[tokio::test]
async fn a_listener_in_another_network_namespace_is_seen_there_and_not_here() {
    let Some(namespace) = Namespace::new() else { return };
    let up = Command::new("ip").args(["-n", &namespace.0, "link", "set", "lo", "up"]).status().expect("ip runs");
    assert!(up.success());
    let file = File::open(namespace.file()).expect("the namespace");
    // Three connections to a listener there, none accepted; the sockets stay in the namespace of the thread that made them.
    let (listener, _waiting) = std::thread::spawn(move || {
        rustix::thread::move_into_link_name_space(file.as_fd(), None).expect("gone there");
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("an address");
        let waiting: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(address).expect("let in")).collect();
        (listener, waiting)
    })
    .join()
    .expect("the thread ended well");
    let port = listener.local_addr().expect("an address").port();

    let mut there = collector("listen", &port.to_string(), &format!("netns = {:?}", namespace.file()));
    let support = there.start().await.expect("it listens there");
    assert_eq!(support.lacks, []);
    let reading = there.read().await.expect("it listens there");
    assert_eq!(value(&reading, "queue"), 3.0);
    assert_eq!(value(&reading, "overflows_total"), 0.0, "the counters are those of the new namespace");
    let _accepted = listener.accept().expect("accepted");
    assert_eq!(value(&there.read().await.expect("it listens there"), "queue"), 2.0);

    let here = collector("listen", &port.to_string(), "").start().await.expect_err("nobody listens here");
    assert!(here.message.contains("nobody listens") && here.hint.is_some_and(|hint| hint.contains("pid")), "{}", here.message);
    drop(listener);
    let gone = there.read().await.expect_err("nobody listens there");
    assert!(gone.message.contains("none at all"), "{gone}");
}
