//! The HAProxy collector against a real HAProxy: over its page and over its runtime socket, with a real nginx behind it.

use crate::support::collector::{SOON, collector, read, started, until, value};
use crate::support::sampler::{Folder, Ran, notes, signal, until as until_seen};
use crate::support::server::Server;
use collectors::api::{Capacity, Class, FaultKind};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_millis(400);

/// A HAProxy before an nginx that can be slow.
pub(super) struct Pair {
    pub(super) haproxy: Server,
    nginx: Server,
}

impl Pair {
    /// `NGINX` in the additional lines stands for the address of nginx.
    pub(super) fn start(options: &[(&str, &str)], extra: &str) -> Option<Self> {
        let nginx = Server::start("nginx", &[])?;
        let address = format!("127.0.0.1:{}", nginx.get("NGINX_PORT"));
        let extra = extra.replace("NGINX", &address);
        let mut options = options.to_vec();
        options.extend([("HAPROXY_BACKEND", address.as_str()), ("HAPROXY_EXTRA", &extra)]);
        Some(Self { haproxy: Server::start("haproxy", &options)?, nginx })
    }

    pub(super) fn port(&self) -> u16 {
        self.haproxy.get("HAPROXY_PORT").parse().expect("a port")
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

/// Requests that nginx works on for so long each.
pub(super) fn slow(port: u16, count: usize, ms: u32, header: &str) -> Vec<TcpStream> {
    let one = || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("HAProxy listens");
        stream.set_read_timeout(Some(Duration::from_secs(15))).expect("a timeout");
        write!(stream, "GET /slow?{ms} HTTP/1.1\r\nHost: site\r\nConnection: close\r\n{header}\r\n").expect("sent");
        stream
    };
    (0..count).map(|_| one()).collect()
}

/// The status line of each answer.
pub(super) fn answers(streams: Vec<TcpStream>) -> Vec<String> {
    let answer = |mut stream: TcpStream| {
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        text.lines().next().unwrap_or_default().to_owned()
    };
    streams.into_iter().map(answer).collect()
}

pub(super) fn all_served(streams: Vec<TcpStream>) {
    let answers = answers(streams);
    assert!(answers.iter().all(|line| line == "HTTP/1.1 200 OK"), "{answers:?}");
}

#[tokio::test]
async fn at_rest_nothing_waits_and_our_own_reads_count_in_no_column() {
    let Some(pair) = Pair::start(&[], "") else { return };
    let page = pair.haproxy.get("HAPROXY_STATS_URL");
    for endpoint in [pair.haproxy.get("HAPROXY_SOCKET"), page, &page.replace("/stats", "")] {
        let (mut collector, support) = started("haproxy", endpoint).await;
        let socket = endpoint.starts_with('/');
        assert_eq!(support.endpoint, if socket { format!("unix:{endpoint}") } else { format!("{page};csv") });
        assert_eq!(support.version.starts_with("2."), socket, "only the socket tells: {}", support.version);
        let names: Vec<&str> = support.columns.iter().map(|gauge| gauge.name).collect();
        assert_eq!(names.contains(&"stats_frontend_sessions"), socket, "the page's own proxy");
        assert!(support.columns.iter().all(|gauge| gauge.own == 0.0));
        read(collector.as_mut()).await;
        let rest = read(collector.as_mut()).await;
        for gauge in support.columns.iter().filter(|gauge| matches!(gauge.class, Class::Queue | Class::Event)) {
            assert_eq!(value(&rest, gauge.name), 0.0, "{}", gauge.name);
        }
        assert_eq!((value(&rest, "app_servers_sessions"), value(&rest, "app_servers_sessions_max")), (0.0, 16.0));
        assert_eq!((value(&rest, "web_frontend_sessions"), value(&rest, "web_frontend_requests_total")), (0.0, 0.0));
        assert_eq!(value(&rest, "app_servers_up"), 1.0);
        if socket {
            assert_eq!((value(&rest, "connections"), value(&rest, "connections_max")), (0.0, 400.0));
            assert!(value(&rest, "busy_percent") < 50.0, "{}", value(&rest, "busy_percent"));
        }
        assert_eq!(rest.notes, Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_full_server_makes_requests_wait_in_the_backends_queue_and_both_ways_see_it() {
    let Some(pair) = Pair::start(&[], "") else { return };
    let (mut socket, support) = started("haproxy", pair.haproxy.get("HAPROXY_SOCKET")).await;
    let (mut page, _) = started("haproxy", pair.haproxy.get("HAPROXY_STATS_URL")).await;
    let gauge = |name: &str| *support.columns.iter().find(|gauge| gauge.name == name).expect("a column");
    assert_eq!((gauge("app_queue").class, gauge("app_queue").resource), (Class::Queue, "haproxy backend app"));
    assert_eq!(gauge("app_servers_sessions").capacity, Capacity::Column("app_servers_sessions_max"));

    let all = slow(pair.port(), 24, 1500, "");
    until(socket.as_mut(), "requests that wait", |reading| value(reading, "app_queue") == 8.0).await;
    for collector in [&mut socket, &mut page] {
        let full = read(collector.as_mut()).await;
        assert_eq!((value(&full, "app_queue"), value(&full, "app_servers_queue")), (8.0, 0.0));
        assert_eq!((value(&full, "app_servers_sessions"), value(&full, "app_servers_sessions_max")), (16.0, 16.0));
        assert_eq!((value(&full, "web_frontend_sessions"), value(&full, "web_frontend_requests_total")), (24.0, 24.0));
    }
    all_served(all);
    let after = until(socket.as_mut(), "rest", |reading| value(reading, "app_requests_total") == 24.0).await;
    assert_eq!((value(&after, "app_queue"), value(&after, "app_servers_sessions")), (0.0, 0.0));
    assert!(value(&after, "app_queue_time_ms") > 100.0, "8 of 24 waited 1.5 s: {}", value(&after, "app_queue_time_ms"));
    assert!(value(&after, "app_response_time_ms") >= 1500.0);
}

#[tokio::test]
async fn requests_bound_to_one_server_wait_in_its_own_queue_and_not_in_the_backends() {
    let port = free_port();
    let extra = format!(
        "frontend bound\n    bind 127.0.0.1:{port}\n    default_backend stuck\nbackend stuck\n    cookie SRV insert\n    \
         server a NGINX maxconn 2 cookie a\n    server b NGINX maxconn 2 cookie b"
    );
    let Some(pair) = Pair::start(&[], &extra) else { return };
    let (mut socket, _) = started("haproxy", pair.haproxy.get("HAPROXY_SOCKET")).await;
    let all = slow(port, 5, 1200, "Cookie: SRV=a\r\n");
    let full = until(socket.as_mut(), "requests that wait", |reading| value(reading, "stuck_servers_queue") == 3.0).await;
    assert_eq!(value(&full, "stuck_queue"), 0.0);
    assert_eq!((value(&full, "stuck_servers_sessions"), value(&full, "stuck_servers_sessions_max")), (2.0, 4.0));
    all_served(all);
    until(socket.as_mut(), "rest", |reading| value(reading, "stuck_servers_queue") == 0.0).await;
}

#[tokio::test]
async fn the_process_at_its_maxconn_silences_the_page_while_the_socket_goes_on_and_others_wait_in_the_kernel() {
    let Some(pair) = Pair::start(&[("HAPROXY_TOTAL", "10")], "") else { return };
    let (mut socket, _) = started("haproxy", pair.haproxy.get("HAPROXY_SOCKET")).await;
    let page = pair.haproxy.get("HAPROXY_STATS_URL");
    let (mut kept, _) = started("haproxy", page).await;
    let mut kernel = collector("listen", pair.haproxy.get("HAPROXY_PORT"), "");
    kernel.start().await.expect("HAProxy listens");
    assert_eq!(value(&read(socket.as_mut()).await, "connections"), 1.0, "the page's kept connection");

    let all = slow(pair.port(), 14, 1500, "");
    let full = until(socket.as_mut(), "a full process", |reading| value(reading, "connections") == 10.0).await;
    assert_eq!((value(&full, "connections_max"), value(&full, "web_frontend_sessions")), (10.0, 9.0));
    assert_eq!(value(&read(kernel.as_mut()).await, "queue"), 5.0);
    // A kept connection is one of the ten and goes on; a new one waits like everybody.
    assert_eq!(value(&read(kept.as_mut()).await, "web_frontend_sessions"), 9.0);
    let mut new = collector("haproxy", page, "");
    assert!(tokio::time::timeout(DEADLINE, new.start()).await.is_err(), "no connection is left for it");
    assert_eq!(value(&tokio::time::timeout(SOON, read(socket.as_mut())).await.expect("in time"), "connections"), 10.0);
    all_served(all);
    until(socket.as_mut(), "rest", |reading| value(reading, "connections") <= 2.0).await;
}

#[tokio::test]
async fn a_frontend_at_its_limit_lets_others_wait_in_the_kernel() {
    let port = free_port();
    let extra = format!("frontend narrow\n    bind 127.0.0.1:{port}\n    maxconn 4\n    default_backend app");
    let Some(pair) = Pair::start(&[], &extra) else { return };
    let (mut page, _) = started("haproxy", pair.haproxy.get("HAPROXY_STATS_URL")).await;
    let mut kernel = collector("listen", &port.to_string(), "");
    kernel.start().await.expect("HAProxy listens");
    let all = slow(port, 7, 1200, "");
    let full = until(page.as_mut(), "a full frontend", |reading| value(reading, "narrow_frontend_sessions") == 4.0).await;
    assert_eq!((value(&full, "narrow_frontend_sessions_max"), value(&full, "app_queue")), (4.0, 0.0));
    assert_eq!(value(&read(kernel.as_mut()).await, "queue"), 3.0);
    all_served(all);
}

#[tokio::test]
async fn servers_that_go_down_and_what_that_costs_are_events() {
    let port = free_port();
    let extra = format!(
        "frontend hope\n    bind 127.0.0.1:{port}\n    default_backend checked\nbackend checked\n    retries 1\n    \
         timeout connect 200ms\n    server s NGINX maxconn 5 check inter 100ms fall 2\nfrontend front_of_none\n    \
         bind 127.0.0.1:{none}\n    default_backend broken\nbackend broken\n    retries 2\n    server gone 127.0.0.1:1",
        none = free_port()
    );
    let Some(mut pair) = Pair::start(&[], &extra) else { return };
    let (mut socket, _) = started("haproxy", pair.haproxy.get("HAPROXY_SOCKET")).await;
    let rest = until(socket.as_mut(), "the server up", |reading| value(reading, "checked_servers_up") == 1.0).await;
    assert_eq!((value(&rest, "checked_server_downs_total"), value(&rest, "checked_servers_sessions_max")), (0.0, 5.0));
    pair.nginx.stop();
    let down = until(socket.as_mut(), "the server down", |reading| value(reading, "checked_servers_up") == 0.0).await;
    assert_eq!(value(&down, "checked_server_downs_total"), 1.0);
    assert!(down.values.iter().all(|(name, _)| *name != "checked_servers_sessions_max"), "nobody is left");
    let refused = answers(slow(port, 3, 1, ""));
    assert!(refused.iter().all(|line| line.starts_with("HTTP/1.1 503")), "{refused:?}");
    // HAProxy counts an answer a moment after it was sent.
    let felt = until(socket.as_mut(), "three refusals", |reading| value(reading, "hope_frontend_responses_5xx_total") >= 3.0).await;
    assert_eq!(value(&felt, "hope_frontend_responses_5xx_total"), 3.0);
    // A server that is not checked stays up, and every connection to it fails.
    let tried = answers(slow(pair.port(), 1, 1, ""));
    assert!(tried[0].starts_with("HTTP/1.1 503"), "{tried:?}");
    let felt = until(socket.as_mut(), "one failure", |reading| value(reading, "web_frontend_responses_5xx_total") >= 1.0).await;
    assert_eq!(value(&felt, "app_connect_errors_total"), 1.0);
    assert!(value(&felt, "app_retries_total") >= 1.0, "{}", value(&felt, "app_retries_total"));
    assert_eq!(value(&felt, "web_frontend_responses_5xx_total"), 1.0);
}

#[tokio::test]
async fn cleared_counters_a_restart_and_a_silence_cost_a_note_or_their_time() {
    let Some(mut pair) = Pair::start(&[], "") else { return };
    let (mut socket, _) = started("haproxy", pair.haproxy.get("HAPROXY_SOCKET")).await;
    let (mut page, _) = started("haproxy", pair.haproxy.get("HAPROXY_STATS_URL")).await;
    all_served(slow(pair.port(), 3, 1, ""));
    for collector in [&mut socket, &mut page] {
        assert_eq!(value(&read(collector.as_mut()).await, "web_frontend_requests_total"), 3.0);
    }
    let mut cli = UnixStream::connect(pair.haproxy.get("HAPROXY_SOCKET")).expect("the runtime socket");
    cli.write_all(b"clear counters all\n").expect("sent");
    cli.read_to_end(&mut Vec::new()).expect("done");
    for collector in [&mut socket, &mut page] {
        let cleared = read(collector.as_mut()).await;
        assert_eq!(value(&cleared, "web_frontend_requests_total"), 0.0);
        assert_eq!(cleared.restarted.as_deref(), Some("counters begin again (restarted, reloaded or cleared)"));
        assert_eq!(read(collector.as_mut()).await.notes, Vec::<String>::new());
    }

    pair.haproxy.signal("STOP");
    tokio::time::sleep(Duration::from_millis(100)).await;
    let silent = (
        tokio::time::timeout(Duration::from_millis(200), socket.read()).await,
        tokio::time::timeout(Duration::from_millis(200), page.read()).await,
    );
    pair.haproxy.signal("CONT");
    assert!(silent.0.is_err() && silent.1.is_err(), "{silent:?}");
    all_served(slow(pair.port(), 2, 1, ""));
    for collector in [&mut socket, &mut page] {
        assert_eq!(value(&read(collector.as_mut()).await, "web_frontend_requests_total"), 2.0);
    }

    pair.haproxy.signal("KILL");
    for collector in [&mut socket, &mut page] {
        let fault = loop {
            match collector.read().await {
                Ok(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                Err(fault) => break fault,
            }
        };
        assert_eq!(fault.kind, FaultKind::Unreachable, "{fault}");
    }
    pair.haproxy.start_again();
    let back = read(socket.as_mut()).await;
    assert_eq!(back.restarted.as_deref(), Some("another process answers (restarted or reloaded), counters begin again"));
    assert_eq!(value(&back, "web_frontend_requests_total"), 0.0);
    assert_eq!(read(page.as_mut()).await.restarted.as_deref(), Some("counters begin again (restarted, reloaded or cleared)"));
    assert_eq!(read(socket.as_mut()).await.notes, Vec::<String>::new());
}

#[test]
fn one_that_comes_up_late_fills_the_columns_of_the_proxies_that_were_named_and_notes_the_others() {
    let Some(mut pair) = Pair::start(&[], "") else { return };
    let folder = Folder::new();
    let one = |name: &str, more: &str| {
        format!("[[haproxy]]\nname = \"{name}\"\nendpoint = \"{}\"\n{more}\n", pair.haproxy.get("HAPROXY_SOCKET"))
    };
    folder.write("c.toml", &[one("named", "proxies = [\"web\", \"app\"]"), one("all", "")].concat());
    pair.haproxy.stop();
    let child = folder.start(&["--config=c.toml", "--no-host", "--allow-down", "--tick=200ms", "--seconds=60"]);
    folder.until_rows(2);
    pair.haproxy.start_again();
    until_seen("both are up", || {
        let ticks = folder.ticks();
        ["named.up", "all.up"].iter().all(|up| ticks.column(up).expect("up").last() == Some(&1.0))
    });
    signal(child.id(), "TERM");
    let ran = Ran::end(child);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.err.matches("not seen: queues, sessions and errors of its proxies").count(), 1, "{}", ran.err);
    let ticks = folder.ticks();
    assert_eq!(ticks.column("named.app_queue").expect("a column").last(), Some(&0.0));
    assert_eq!(ticks.column("all.connections_max").expect("a column").last(), Some(&400.0), "of the process");
    assert!(ticks.column("all.app_queue").is_none());
    let notes = notes(&ticks);
    let late = notes.lines().find(|note| note.contains("without a column, since not there at the start")).expect("a note");
    assert!(late.contains("all: ") && !notes.contains("named: without a column"), "{notes}");
}
