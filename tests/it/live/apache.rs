//! The Apache collector against a real Apache, event and prefork.

use crate::support::collector::{SOON, collector, started, until};
use crate::support::declared::declared;
use crate::support::server::Server;
use collectors::api::{Class, Fault, FaultKind};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::JoinHandle;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_millis(400);

async fn refused(url: &str) -> Fault {
    collector("apache", url, "").start().await.expect_err("that is no status page")
}

/// Requests that each hold a worker for so long.
fn slow(server: &Server, count: usize, ms: u32) -> Vec<JoinHandle<()>> {
    let port: u16 = server.get("APACHE_PORT").parse().expect("a port");
    (0..count)
        .map(|_| {
            std::thread::spawn(move || {
                let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("apache listens");
                write!(stream, "GET /slow?{ms} HTTP/1.0\r\nHost: site\r\n\r\n").expect("sent");
                let mut answer = String::new();
                stream.read_to_string(&mut answer).expect("answered");
                assert!(answer.contains("slept"), "{answer}");
            })
        })
        .collect()
}

fn join(threads: Vec<JoinHandle<()>>) {
    for thread in threads {
        thread.join().expect("the slow request was answered");
    }
}

#[tokio::test]
async fn an_idle_server_rests_with_one_busy_worker_our_own() {
    for (mpm, workers) in [("event", "32"), ("prefork", "20")] {
        let Some(server) = Server::start("apache", &[("APACHE_MPM", mpm), ("APACHE_WORKERS", workers)]) else { return };
        // A URL without a path, as `--status-url=http://SITE:8080` gives it.
        let (mut collector, support) = started("apache", server.get("APACHE_URL")).await;
        assert_eq!(support.product, "Apache");
        assert!(support.version.starts_with("2.4."), "{}", support.version);
        assert_eq!(support.endpoint, format!("{}/server-status?auto", server.get("APACHE_URL")));
        assert!(support.facts.contains(&("mpm".to_owned(), mpm.into())), "{:?}", support.facts);
        let reading = collector.read().await.expect("apache answers");
        assert_eq!(reading.get("busy_workers"), Some(1.0));
        assert_eq!(reading.get("workers"), Some(workers.parse().expect("a number")), "MaxRequestWorkers");
        assert_eq!(reading.get("scoreboard_writing"), Some(1.0));
        declared(&support, &[("busy_workers", Class::Utilisation, Some("workers"))]);
        assert!(reading.get("uptime_seconds").is_some());
        let columns: Vec<_> = support.columns.iter().map(|gauge| gauge.name).collect();
        assert_eq!(columns.contains(&"conns_async_writing"), mpm == "event", "{mpm}");
        assert!(reading.values.iter().all(|(name, _)| columns.contains(name)), "{:?}", reading.values);
        let before = reading.get("accesses_total").expect("ExtendedStatus is on");
        let after = collector.read().await.expect("apache answers").get("accesses_total").expect("ExtendedStatus is on");
        assert_eq!(after - before, 1.0, "our own read alone");
        assert!(reading.notes.is_empty(), "{:?}", reading.notes);
    }
}

#[tokio::test]
async fn event_shows_every_worker_busy_then_falls_silent_and_goes_on_after_release() {
    let Some(server) = Server::start("apache", &[("APACHE_WORKERS", "4")]) else { return };
    let (mut collector, _) = started("apache", server.get("APACHE_STATUS_URL")).await;
    let some = slow(&server, 3, 1500);
    let reading = until(&mut *collector, "all workers busy", |reading| reading.get("busy_workers") == Some(4.0)).await;
    assert_eq!((reading.get("workers"), reading.get("idle_workers")), (Some(4.0), Some(0.0)));
    join(some);
    let all = slow(&server, 8, 700);
    tokio::time::sleep(Duration::from_millis(200)).await;
    {
        let mut late = collector.read();
        assert!(tokio::time::timeout(DEADLINE, &mut late).await.is_err(), "the page needs a worker and none is free");
        // The caller leaves a late read to end by itself: it must, with an answer.
        let reading = tokio::time::timeout(Duration::from_secs(10), late).await.expect("ends").expect("an answer");
        assert!(reading.get("busy_workers").is_some());
    }
    join(all);
    // A worker is counted as busy for a moment after its client has the answer.
    let reading = until(&mut *collector, "the workers are free", |reading| reading.get("busy_workers") == Some(1.0)).await;
    assert!(reading.notes.is_empty(), "{:?}", reading.notes);
}

#[tokio::test]
async fn a_read_given_up_under_saturation_does_not_spoil_the_next() {
    let Some(server) = Server::start("apache", &[("APACHE_WORKERS", "4")]) else { return };
    let (mut collector, _) = started("apache", server.get("APACHE_STATUS_URL")).await;
    let all = slow(&server, 4, 800);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(tokio::time::timeout(DEADLINE, collector.read()).await.is_err(), "cancelled at its deadline");
    join(all);
    let reading = tokio::time::timeout(SOON, collector.read()).await.expect("in time").expect("an answer");
    assert!(reading.get("busy_workers").is_some());
}

#[tokio::test]
async fn prefork_shows_every_worker_busy_on_the_kept_connection_and_hangs_without_it() {
    let Some(server) = Server::start("apache", &[("APACHE_MPM", "prefork"), ("APACHE_WORKERS", "4")]) else { return };
    let (mut collector, _) = started("apache", server.get("APACHE_STATUS_URL")).await;
    let all = slow(&server, 8, 1200);
    // The kept connection holds a worker of its own, so that the page goes on answering while others queue.
    let reading = until(&mut *collector, "all workers busy", |reading| reading.get("busy_workers") == Some(4.0)).await;
    assert_eq!((reading.get("workers"), reading.get("idle_workers")), (Some(4.0), Some(0.0)));
    let mut late = self::collector("apache", server.get("APACHE_STATUS_URL"), "");
    assert!(tokio::time::timeout(DEADLINE, late.start()).await.is_err(), "a new connection finds no worker");
    join(all);
}

#[tokio::test]
async fn without_extended_status_accesses_are_missing_and_the_line_is_named() {
    let Some(server) = Server::start("apache", &[("APACHE_EXTENDED", "Off")]) else { return };
    let (mut collector, support) = started("apache", server.get("APACHE_STATUS_URL")).await;
    assert!(support.lacks.iter().any(|lack| lack.mend.as_deref() == Some("ExtendedStatus On")), "{:?}", support.lacks);
    let reading = collector.read().await.expect("apache answers");
    for name in ["accesses_total", "sent_bytes_total", "duration_ms_total"] {
        assert_eq!(reading.get(name), None, "{name}");
    }
    assert_eq!(reading.get("busy_workers"), Some(1.0));
}

#[tokio::test]
async fn a_url_without_auto_works_and_a_page_that_is_none_is_named() {
    let Some(server) = Server::start("apache", &[]) else { return };
    let site = server.get("APACHE_URL");
    let (_, support) = started("apache", &format!("{site}/server-status")).await;
    assert!(support.sees.iter().any(|sees| sees.contains("?auto was added")), "{:?}", support.sees);
    let fault = refused(&format!("{site}/index.html")).await;
    assert_eq!(fault.kind, FaultKind::Nonsense);
    assert!(fault.message.contains("an HTML page") && fault.message.contains("It works"), "{fault}");
    let fault = refused(&format!("{site}/nowhere")).await;
    assert!(fault.message.contains("404 Not Found"), "{fault}");
}

#[tokio::test]
async fn a_page_that_is_not_allowed_is_denied_with_the_lines_that_allow_it() {
    let extra = "<Location \"/server-status\">\nRequire ip 192.0.2.1\n</Location>\n\
        LoadModule authz_host_module ${MODULES}/mod_authz_host.so";
    let Some(server) = Server::start("apache", &[("APACHE_EXTRA", extra)]) else { return };
    let fault = refused(server.get("APACHE_URL")).await;
    assert_eq!(fault.kind, FaultKind::Denied);
    assert!(
        fault.message.contains("403 Forbidden") && fault.hint.is_some_and(|hint| hint.contains("Require ip")),
        "{}",
        fault.message
    );
}

#[tokio::test]
async fn a_kept_connection_that_apache_closes_is_no_fault() {
    for (mpm, extra) in [("event", "MaxKeepAliveRequests 2"), ("prefork", "KeepAliveTimeout 150ms"), ("event", "KeepAlive Off")] {
        let Some(server) = Server::start("apache", &[("APACHE_MPM", mpm), ("APACHE_EXTRA", extra)]) else { return };
        let (mut collector, _) = started("apache", server.get("APACHE_STATUS_URL")).await;
        for read in 0..12 {
            let reading = collector.read().await.unwrap_or_else(|fault| panic!("{extra}, read {read}: {fault}"));
            assert!(reading.get("busy_workers").is_some());
            assert!(reading.notes.is_empty(), "{:?}", reading.notes);
            // Around the timeout, so that some requests meet the closing connection.
            tokio::time::sleep(Duration::from_millis(140 + 5 * (read % 5))).await;
        }
    }
}

#[tokio::test]
async fn a_graceful_restart_keeps_the_counters_and_is_noted_once() {
    for mpm in ["event", "prefork"] {
        let Some(server) = Server::start("apache", &[("APACHE_MPM", mpm)]) else { return };
        let (mut collector, _) = started("apache", server.get("APACHE_STATUS_URL")).await;
        let before = collector.read().await.expect("apache answers");
        server.signal("USR1");
        let mut notes = Vec::new();
        let mut last = before.clone();
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            // A process that ends takes the kept connection with it, and the new one may not listen yet.
            if let Ok(reading) = collector.read().await {
                notes.extend(reading.notes.clone());
                last = reading;
            }
        }
        assert_eq!(notes, ["graceful restart"], "{mpm}");
        assert!(last.get("accesses_total") >= before.get("accesses_total"));
        assert_eq!(last.get("workers"), before.get("workers"));
    }
}

#[tokio::test]
async fn a_server_killed_and_started_again_costs_its_time_and_one_note() {
    let Some(mut server) = Server::start("apache", &[]) else { return };
    let (mut collector, _) = started("apache", server.get("APACHE_STATUS_URL")).await;
    for _ in 0..20 {
        collector.read().await.expect("apache answers");
    }
    server.signal_all("KILL");
    tokio::time::sleep(Duration::from_millis(100)).await;
    let fault = collector.read().await.expect_err("it is gone");
    assert_eq!(fault.kind, FaultKind::Unreachable);
    assert!(fault.message.contains("refused"), "{fault}");
    // The server's clock of its start has whole seconds.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    server.start_again();
    let reading = collector.read().await.expect("it is back");
    assert_eq!(reading.restarted.as_deref(), Some("restarted, counters begin again"));
    assert!(reading.get("accesses_total") < Some(10.0), "{:?}", reading.get("accesses_total"));
    assert!(collector.read().await.expect("apache answers").notes.is_empty());
    server.stop();
    assert_eq!(collector.read().await.expect_err("stopped").kind, FaultKind::Unreachable);
}

#[tokio::test]
async fn a_server_stopped_by_a_signal_answers_late_and_goes_on() {
    let Some(server) = Server::start("apache", &[]) else { return };
    let (mut collector, _) = started("apache", server.get("APACHE_STATUS_URL")).await;
    server.signal_all("STOP");
    // A process that runs on another processor stops a moment later.
    tokio::time::sleep(Duration::from_millis(100)).await;
    {
        let mut late = collector.read();
        assert!(tokio::time::timeout(DEADLINE, &mut late).await.is_err(), "a stopped server does not answer");
        server.signal_all("CONT");
        tokio::time::timeout(Duration::from_secs(5), late).await.expect("ends").expect("an answer");
    }
    let reading = collector.read().await.expect("apache answers");
    assert!(reading.notes.is_empty(), "{:?}", reading.notes);
}
