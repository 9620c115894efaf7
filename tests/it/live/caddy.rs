//! Caddy through the presets of `metrics`, against a real one before a real nginx.

use super::haproxy::{all_served, answers, slow};
use crate::support::collector::{begun, open, value};
use crate::support::server::Server;
use collectors::api::{Class, Collector, Reading, Support, Worse};
use std::time::{Duration, Instant};

/// A Caddy before an nginx that can be slow.
struct Pair {
    caddy: Server,
    nginx: Server,
}

impl Pair {
    /// `wait` is how long a request waits for its turn.
    fn start(wait: &str) -> Option<Self> {
        let nginx = Server::start("nginx", &[])?;
        let backend = format!("127.0.0.1:{}", nginx.get("NGINX_PORT"));
        let caddy = Server::start("caddy", &[("CADDY_BACKEND", &backend), ("CADDY_TRY", wait)])?;
        Some(Self { caddy, nginx })
    }

    fn port(&self) -> u16 {
        self.caddy.get("CADDY_PORT").parse().expect("a port")
    }
}

async fn started(caddy: &Server) -> (Box<dyn Collector>, Support) {
    begun(open(&collectors::metrics::SPEC, "caddy", caddy.get("CADDY_METRICS_URL"), "")).await
}

/// Reads until `seen`, for at most 20 s: Caddy looks at its back ends every 10.
async fn until(collector: &mut dyn Collector, what: &str, seen: impl Fn(&Reading) -> bool) -> Reading {
    let (end, mut last) = (Instant::now() + Duration::from_secs(20), Reading::default());
    while Instant::now() < end {
        last = collector.read().await.expect("Caddy answers");
        if seen(&last) {
            return last;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never seen: {what}; the last reading: {last:?}");
}

const IN_FLIGHT: &str = "caddy_http_requests_in_flight";
const REQUESTS: &str = "caddy_http_requests_total";
const ERRORS: &str = "caddy_http_request_errors_total";
const HEALTHY: &str = "caddy_reverse_proxy_upstreams_healthy";

#[tokio::test]
async fn requests_that_wait_for_a_full_back_end_are_in_flight_and_counted_once() {
    let Some(pair) = Pair::start("20s") else { return };
    let (mut collector, support) = started(&pair.caddy).await;
    let gauge = |name: &str| support.columns.iter().find(|gauge| gauge.name == name).unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(
        (gauge(IN_FLIGHT).class, gauge(REQUESTS).class, gauge(ERRORS).class),
        (Class::Utilisation, Class::Throughput, Class::Event)
    );
    assert_eq!((gauge(HEALTHY).class, gauge(HEALTHY).worse), (Class::Level, Worse::Down));
    assert!([IN_FLIGHT, REQUESTS, ERRORS, HEALTHY].iter().all(|name| !gauge(name).guessed && gauge(name).own == 0.0));
    // Caddy has no series of a request before the first, and none of an error.
    let fresh = collector.read().await.expect("Caddy answers");
    assert_eq!((fresh.get(IN_FLIGHT), fresh.get(REQUESTS), fresh.get(ERRORS)), (None, None, None), "missing is not 0");
    assert_eq!((value(&fresh, HEALTHY), &fresh.notes), (1.0, &vec![]));
    all_served(slow(pair.port(), 1, 1, ""));
    let rest = until(collector.as_mut(), "one request", |reading| reading.get(REQUESTS) == Some(1.0)).await;
    assert_eq!((value(&rest, IN_FLIGHT), rest.get(ERRORS)), (0.0, None), "its page counts in neither");

    let all = slow(pair.port(), 12, 1500, "");
    let full = until(collector.as_mut(), "all in flight", |reading| value(reading, IN_FLIGHT) == 12.0).await;
    assert_eq!(value(&full, REQUESTS), 1.0, "counted when they end");
    all_served(all);
    let after = until(collector.as_mut(), "rest", |reading| value(reading, REQUESTS) == 13.0).await;
    assert_eq!((value(&after, IN_FLIGHT), after.get(ERRORS)), (0.0, None));
    let spent = value(&after, "caddy_http_request_duration_seconds_sum");
    // Four at once, 1.5 s each: the last four took 4.5 s.
    assert!((17.0..60.0).contains(&spent), "{spent}");
}

#[tokio::test]
async fn requests_refused_for_a_full_back_end_and_for_one_that_is_gone_are_errors() {
    let Some(mut pair) = Pair::start("0s") else { return };
    let (mut collector, _) = started(&pair.caddy).await;
    let all = slow(pair.port(), 12, 1500, "");
    until(collector.as_mut(), "eight refused while four are served", |reading| {
        (reading.get(IN_FLIGHT), reading.get(ERRORS)) == (Some(4.0), Some(8.0))
    })
    .await;
    let lines = answers(all);
    assert_eq!(lines.iter().filter(|line| line.starts_with("HTTP/1.1 503")).count(), 8, "{lines:?}");
    until(collector.as_mut(), "rest", |reading| value(reading, IN_FLIGHT) == 0.0).await;

    pair.nginx.stop();
    let lines = answers(slow(pair.port(), 3, 1, ""));
    assert!(lines.iter().all(|line| line.starts_with("HTTP/1.1 50")), "{lines:?}");
    let down = until(collector.as_mut(), "no healthy back end", |reading| value(reading, HEALTHY) == 0.0).await;
    assert_eq!(value(&down, ERRORS), 11.0);
}
