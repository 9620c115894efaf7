use super::*;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

fn opened(endpoint: &str, settings: &str) -> Result<Box<dyn Collector>, Fault> {
    open(&Section::of("listen", endpoint, settings))
}

#[tokio::test]
async fn connections_that_nobody_accepts_are_counted_and_an_accepted_one_leaves() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut queue = opened(&address.port().to_string(), "").unwrap();
    let support = queue.start().await.unwrap();
    assert_eq!(support.lacks, []);
    assert_eq!(support.columns.len(), GAUGES.len());
    assert_eq!(support.columns[0].resource, format!("accept queue of :{}", address.port()));
    assert!(support.sees[0].contains(&address.to_string()), "{:?}", support.sees);
    assert_eq!(queue.read().await.unwrap().get("queue"), Some(0.0));

    let waiting: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
    let reading = queue.read().await.unwrap();
    assert_eq!(reading.get("queue"), Some(3.0));
    assert!(reading.get("limit").unwrap() >= 1.0);
    assert!(reading.get("overflows_total").is_some() && reading.get("drops_total").is_some());
    let _accepted = listener.accept().unwrap();
    assert_eq!(queue.read().await.unwrap().get("queue"), Some(2.0));
    drop(waiting);
}

#[tokio::test]
async fn a_listener_that_ends_is_a_fault_that_says_who_listens_and_a_new_one_is_found() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let others = TcpListener::bind(other).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut queue = opened(&address.to_string(), "").unwrap();
    queue.start().await.unwrap();
    drop(listener);
    let fault = queue.read().await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Unreachable);
    assert!(fault.message.contains(&format!("nobody listens on {address}")), "{fault}");
    assert!(fault.message.contains("ports that are listened on: "), "{fault}");
    let _again = TcpListener::bind(address).unwrap();
    assert_eq!(queue.read().await.unwrap().get("queue"), Some(0.0));
    drop(others);
}

#[tokio::test]
async fn a_unix_socket_has_a_queue_and_no_overflow_counters() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("app.sock");
    let _listener = UnixListener::bind(&path).unwrap();
    let mut queue = opened(path.to_str().unwrap(), "").unwrap();
    let support = queue.start().await.unwrap();
    assert_eq!(support.columns.iter().map(|gauge| gauge.name).collect::<Vec<_>>(), ["queue", "limit", "sockets"]);
    let _waiting = [UnixStream::connect(&path).unwrap(), UnixStream::connect(&path).unwrap()];
    assert_eq!(queue.read().await.unwrap().get("queue"), Some(2.0));
    let fault = opened(dir.path().join("other.sock").to_str().unwrap(), "").unwrap().start().await.unwrap_err();
    assert!(fault.message.contains("other.sock"), "{fault}");
}

#[tokio::test]
async fn the_namespace_of_a_process_that_shares_ours_needs_no_privilege() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut queue = opened(&port.to_string(), &format!("pid = {}", std::process::id())).unwrap();
    assert_eq!(queue.start().await.unwrap().lacks, []);
    let fault = opened(&port.to_string(), "netns = \"/nonexistent/ns\"").unwrap().start().await.unwrap_err();
    assert!(fault.message.contains("/nonexistent/ns"), "{fault}");
}

#[test]
fn wrong_addresses_and_settings_are_refused() {
    for endpoint in ["", "0", "web", "web:0", "70000"] {
        assert_eq!(opened(endpoint, "").err().unwrap().kind, FaultKind::Config, "{endpoint}");
    }
    let fault = opened("80", "pid = 1\nnetns = \"/x\"").err().unwrap();
    assert!(fault.message.contains("pid and netns"), "{fault}");
    assert!(opened("80", "pids = 1").err().unwrap().message.contains("pids"));
    assert!(opened("*:80", "").is_ok());
}

#[tokio::test]
async fn a_read_takes_a_small_part_of_a_millisecond() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut queue = opened(&listener.local_addr().unwrap().port().to_string(), "").unwrap();
    queue.start().await.unwrap();
    let mut best = Duration::MAX;
    for _ in 0..50 {
        let start = Instant::now();
        queue.read().await.unwrap();
        best = best.min(start.elapsed());
    }
    assert!(best < Duration::from_millis(5), "{best:?}");
}

#[tokio::test]
async fn where_sock_diag_is_refused_the_depth_stays_and_the_limit_is_lacking() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let _waiting = TcpStream::connect(address).unwrap();
    let mut queue = Listen {
        instance: "listen".to_owned(),
        place: Place::Tcp { host: None, port: address.port() },
        namespace: Namespace::Own,
        addresses: Vec::new(),
        view: None,
        sockets: None,
    };
    let refused = io::Error::from(io::ErrorKind::PermissionDenied);
    let tables = View::tables(std::path::Path::new("/proc/self/net"), &refused).unwrap();
    let support = queue.settle(tables).unwrap();
    assert!(support.lacks[0].what.contains("limit") && support.lacks[0].what.contains("permission denied"), "{:?}", support.lacks);
    assert!(!support.columns.iter().any(|gauge| gauge.name == "limit"));
    assert_eq!(support.columns[0].capacity, crate::api::Capacity::None);
    let reading = queue.read().await.unwrap();
    assert_eq!((reading.get("queue"), reading.get("limit")), (Some(1.0), None));
    assert!(reading.get("overflows_total").is_some());

    queue.place = Place::Unix("/nonexistent.sock".into());
    let tables = View::tables(std::path::Path::new("/proc/self/net"), &refused).unwrap();
    assert_eq!(queue.settle(tables).unwrap_err().kind, FaultKind::Denied, "no table tells a Unix socket's queue");
}
