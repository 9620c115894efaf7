//! The nginx collector against a real nginx.

use crate::support::collector::{SOON, begun, collector, read, until, value};
use crate::support::server::Server;
use collectors::api::{Capacity, Class, Collector, FaultKind, Support};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

fn nginx(url: &str, settings: &str) -> Box<dyn Collector> {
    collector("nginx", url, settings)
}

async fn started(url: &str, settings: &str) -> (Box<dyn Collector>, Support) {
    begun(nginx(url, settings)).await
}

/// A connection with a request that nginx works on for so long.
fn slow(server: &Server, ms: u32) -> TcpStream {
    let mut stream = silent(server);
    // A server that closes at once may do so before the request is written.
    let _ = write!(stream, "GET /slow?{ms} HTTP/1.0\r\nHost: site\r\n\r\n");
    stream
}

fn silent(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.get("NGINX_PORT").parse().expect("a port"))).expect("nginx listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    stream
}

/// How many of these got an answer.
fn answered(streams: Vec<TcpStream>) -> usize {
    let answer = |mut stream: TcpStream| {
        let mut text = String::new();
        stream.read_to_string(&mut text).is_ok() && text.contains("slept")
    };
    streams.into_iter().filter_map(|stream| answer(stream).then_some(())).count()
}

#[tokio::test]
async fn an_idle_server_rests_with_one_connection_our_own_and_nothing_dropped() {
    let Some(server) = Server::start("nginx", &[]) else { return };
    // A URL without a path: the usual ones are tried.
    let (mut collector, support) = started(server.get("NGINX_URL"), "connections_max = 128").await;
    assert_eq!(support.endpoint, server.get("NGINX_STATUS_URL"));
    let reading = read(collector.as_mut()).await;
    for (name, own) in [("active", 1.0), ("writing", 1.0), ("reading", 0.0), ("waiting", 0.0)] {
        assert_eq!(value(&reading, name), own, "{name}");
        let gauge = support.columns.iter().find(|gauge| gauge.name == name).expect("a column");
        assert_eq!((gauge.own, gauge.capacity), (own, Capacity::Column("connections_max")), "{name}");
    }
    assert_eq!((value(&reading, "dropped_total"), value(&reading, "connections_max")), (0.0, 128.0));
    let active = support.columns.iter().find(|gauge| gauge.name == "active").expect("a column");
    assert_eq!(active.class, Class::Utilisation);
    assert!(support.columns.iter().any(|gauge| gauge.name == "dropped_total" && gauge.class == Class::Event));
    let next = read(collector.as_mut()).await;
    assert_eq!(value(&next, "requests_total") - value(&reading, "requests_total"), 1.0, "our own read alone");
    assert_eq!(value(&next, "accepts_total"), value(&reading, "accepts_total"), "over one kept connection");
    assert_eq!(next.notes, Vec::<String>::new());
}

#[tokio::test]
async fn requests_worked_on_and_connections_that_say_nothing_are_told_apart() {
    let Some(server) = Server::start("nginx", &[]) else { return };
    let (mut collector, _) = started(server.get("NGINX_STATUS_URL"), "").await;
    let working: Vec<_> = (0..5).map(|_| slow(&server, 3000)).collect();
    let silent: Vec<_> = (0..3).map(|_| silent(&server)).collect();
    let reading = until(collector.as_mut(), "all of them", |reading| value(reading, "active") == 9.0).await;
    assert_eq!((value(&reading, "writing"), value(&reading, "waiting")), (6.0, 3.0));
    drop(silent);
    assert_eq!(answered(working), 5);
}

#[tokio::test]
async fn exhausted_worker_connections_silence_the_page_and_show_as_dropped_after() {
    let Some(server) = Server::start("nginx", &[("NGINX_CONNECTIONS", "16")]) else { return };
    let (mut collector, _) = started(server.get("NGINX_STATUS_URL"), "connections_max = 16").await;
    let rest = read(collector.as_mut()).await;
    assert_eq!(value(&rest, "dropped_total"), 0.0);

    // As many as there is room for beside the kept connection.
    let mut working: Vec<TcpStream> = (0..12).map(|_| slow(&server, 8000)).collect();
    let full = until(collector.as_mut(), "all of them", |reading| value(reading, "active") == 13.0).await;
    assert_eq!(value(&full, "connections_max"), 16.0);
    assert_eq!(value(&full, "dropped_total"), 0.0);

    // More: nginx gives up the kept connection first, since it idles, and then closes whatever it accepts.
    while collector.read().await.is_ok() {
        working.push(slow(&server, 8000));
        assert!(working.len() < 30, "16 connections were never used up");
    }
    working.extend((0..4).map(|_| slow(&server, 8000)));
    for _ in 0..3 {
        let fault = tokio::time::timeout(SOON, collector.read()).await.expect("at once").expect_err("closed");
        assert_eq!(fault.kind, FaultKind::Unreachable, "{fault}");
        assert!(fault.message.contains("connected, but no answer"), "{fault}");
        assert!(fault.hint.is_some_and(|hint| hint.contains("worker_connections")));
    }
    // Nobody waits in front of it meanwhile: what it cannot serve it closes.
    #[cfg(target_os = "linux")]
    {
        let mut queue = self::collector("listen", server.get("NGINX_PORT"), "");
        queue.start().await.expect("nginx listens");
        assert_eq!(value(&queue.read().await.expect("nginx listens"), "queue"), 0.0);
    }
    let tried = working.len();
    let served = answered(working);
    assert!(served < tried, "{served} of {tried}");
    let after = read(collector.as_mut()).await;
    let dropped = value(&after, "dropped_total");
    // Beside the others our own attempts, two a read at most.
    let (least, most) = ((tried - served) as f64, (tried - served + 8) as f64);
    assert!(dropped >= least && dropped <= most, "{dropped} dropped, {served} of {tried} served");
    assert_eq!((value(&after, "active"), after.notes.len()), (1.0, 0));
    assert_eq!(value(&read(collector.as_mut()).await, "dropped_total"), dropped, "and it stays");
}

#[tokio::test]
async fn a_reload_keeps_the_counters_and_a_restart_begins_them_anew_with_one_note() {
    let Some(mut server) = Server::start("nginx", &[]) else { return };
    let (mut collector, _) = started(server.get("NGINX_STATUS_URL"), "").await;
    for _ in 0..5 {
        assert_eq!(answered(vec![slow(&server, 1)]), 1);
    }
    let before = read(collector.as_mut()).await;
    server.signal("HUP");
    tokio::time::sleep(Duration::from_millis(500)).await;
    let reloaded = read(collector.as_mut()).await;
    assert!(value(&reloaded, "requests_total") > value(&before, "requests_total"));
    assert_eq!(reloaded.notes, Vec::<String>::new());

    server.signal_all("KILL");
    let fault = loop {
        // The last answer may be under way.
        match collector.read().await {
            Ok(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(fault) => break fault,
        }
    };
    assert_eq!(fault.kind, FaultKind::Unreachable, "{fault}");
    let fault = collector.read().await.expect_err("nobody there");
    assert!(fault.message.contains("refused"), "{fault}");
    server.start_again();
    let back = read(collector.as_mut()).await;
    assert_eq!(back.restarted.as_deref(), Some("restarted, counters begin again"));
    assert!(value(&back, "requests_total") < value(&reloaded, "requests_total"));
    assert_eq!(read(collector.as_mut()).await.notes, Vec::<String>::new(), "said once");
}

#[tokio::test]
async fn a_stopped_server_is_silent_and_goes_on_and_a_kept_connection_that_it_closes_is_no_fault() {
    let Some(server) = Server::start("nginx", &[("NGINX_EXTRA", "keepalive_requests 2;")]) else { return };
    let (mut collector, _) = started(server.get("NGINX_STATUS_URL"), "").await;
    for _ in 0..6 {
        assert_eq!(read(collector.as_mut()).await.notes, Vec::<String>::new());
    }
    server.signal_all("STOP");
    tokio::time::sleep(Duration::from_millis(100)).await;
    let silent = tokio::time::timeout(Duration::from_millis(300), collector.read()).await;
    server.signal_all("CONT");
    assert!(silent.is_err(), "{silent:?}");
    assert!(value(&read(collector.as_mut()).await, "active") >= 1.0);
}

#[tokio::test]
async fn a_page_that_is_not_allowed_is_denied_and_one_that_is_none_is_named() {
    let extra = "location = /nginx_status { stub_status; allow 192.0.2.1; deny all; }";
    let Some(server) = Server::start("nginx", &[("NGINX_EXTRA", extra)]) else { return };
    let site = server.get("NGINX_URL");
    let fault = nginx(&format!("{site}/nginx_status"), "").start().await.expect_err("denied");
    assert_eq!(fault.kind, FaultKind::Denied);
    assert!(fault.hint.is_some_and(|hint| hint.contains("allow")), "{}", fault.message);
    let fault = nginx(&format!("{site}/index.html"), "").start().await.expect_err("no status");
    assert_eq!(fault.kind, FaultKind::Nonsense);
    assert!(fault.message.contains("an HTML page") && fault.message.contains("It works."), "{fault}");
}
