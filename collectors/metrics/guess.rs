//! What a series of a foreign page means, guessed from its name, its type and nothing else. The columns say so.
//!
//! The guess is careful in one direction: what is only perhaps a wait is no wait, and no gauge gets a capacity, since the
//! denominators that names suggest are high-water marks as often as limits.

use super::text::Type;
use crate::api::{Class, Gauge, Kind, Lag, Unit, Worse, intern};

const LIMIT: &[&str] = &["max", "maximum", "min", "minimum", "limit", "limits", "capacity", "quota"];
const QUEUE: &[&str] = &["queue", "queued", "pending", "waiting", "waiters", "backlog", "blocked", "lag"];
const WAIT: &[&str] =
    &["wait", "waited", "waiting", "acquire", "acquisition", "queue", "queued", "blocked", "stalled", "throttled", "delay"];
const SPARE: &[&str] = &["idle", "free", "available", "spare"];
const BUSY: &[&str] = &["active", "busy", "used", "inuse", "inflight", "running", "acquired", "checkedout", "leased", "current"];
const EVENT: &[&str] = &[
    "error",
    "errors",
    "failed",
    "failure",
    "failures",
    "fail",
    "rejected",
    "rejections",
    "rejects",
    "refused",
    "timeout",
    "timeouts",
    "timedout",
    "dropped",
    "drops",
    "evicted",
    "evictions",
    "denied",
    "aborted",
    "aborts",
    "overflow",
    "overflows",
    "exceeded",
    "retries",
    "retry",
    "deadlock",
    "deadlocks",
    "oom",
    "shed",
    "throttled",
    "lost",
    "reached",
    "canceled",
    "cancelled",
];
/// Waiting for work is rest, and the exporter's own metrics are about the sampler.
const AT_REST: &[&str] = &["idle", "poll", "usage", "use", "sleep"];

/// Declares a series, or `None` where it is nothing to judge: metadata, time stamps, buckets and quantiles, and what the
/// exporter says of itself.
pub fn gauge(name: &str, kind: Type, quantile_or_bucket: bool, help: &str) -> Option<Gauge> {
    let lower =
        name.to_ascii_lowercase().replace("in_use", "inuse").replace("in_flight", "inflight").replace("timed_out", "timedout");
    let words: Vec<&str> = lower.split(['_', ':', '.', '-']).filter(|word| !word.is_empty()).collect();
    let any = |of: &[&str]| words.iter().any(|word| of.contains(word));
    let last = words.last().copied().unwrap_or_default();
    // The `_count` of a histogram of seconds counts things.
    let unit = if last == "count" { Unit::Count } else { unit(&words) };
    let is_time = unit.in_ms().is_some();
    if quantile_or_bucket || kind == Type::Info || matches!(last, "created" | "info") || any(&["promhttp", "scrape", "scraper"]) {
        return None;
    }
    // A `_sum` or `_count` of a histogram or summary only grows, and so does what ends in `_total`, said or not.
    let grows = match kind {
        Type::Counter => true,
        Type::Histogram | Type::Summary => matches!(last, "sum" | "count"),
        Type::Unknown => last == "total",
        Type::Gauge | Type::Info => false,
    };
    // `max_queue_seconds` only grows; of `queue_seconds_max` (Micrometer) nobody knows when it falls again.
    let high_water = any(LIMIT) && !(is_time && last == "max") && !any(&["reached", "exceeded"]);
    let moment =
        any(&["timestamp", "uptime"]) || (any(&["start", "since", "boot", "last", "next"]) && any(&["time", "since", "timestamp"]));
    let (class, worse) = if moment || high_water {
        (Class::Constant, Worse::Neither)
    } else if grows {
        growing(unit, any)
    } else {
        standing(unit, any, &words)
    };
    let told = if help.is_empty() { String::new() } else { format!(": {}", help.chars().take(120).collect::<String>()) };
    let mut gauge = Gauge::new(intern(name), class, unit, intern(&format!("class guessed{told}"))).worse(worse).guessed();
    if grows && class != Class::Constant {
        gauge.kind = Kind::Counter;
    }
    if matches!(class, Class::WaitSum | Class::Wait) {
        gauge.lag = Lag::Completion;
    }
    match unit {
        Unit::Ratio if class == Class::Utilisation && worse == Worse::Up => Some(gauge.of_fixed(1.0)),
        Unit::Percent if class == Class::Utilisation && worse == Worse::Up => Some(gauge.of_fixed(100.0)),
        _ => Some(gauge),
    }
}

fn growing(unit: Unit, any: impl Fn(&[&str]) -> bool) -> (Class, Worse) {
    if any(&["pressure"]) {
        (Class::Pressure, Worse::Up)
    } else if unit.in_ms().is_some() && any(WAIT) && !any(AT_REST) {
        (Class::WaitSum, Worse::Up)
    } else if unit == Unit::Count && any(EVENT) && !any(&["checks"]) {
        (Class::Event, Worse::Up)
    } else {
        (Class::Throughput, Worse::Neither)
    }
}

fn standing(unit: Unit, any: impl Fn(&[&str]) -> bool, words: &[&str]) -> (Class, Worse) {
    let is_time = unit.in_ms().is_some();
    let is_share = matches!(unit, Unit::Ratio | Unit::Percent);
    if unit == Unit::Count && any(QUEUE) && !any(&["inuse"]) {
        (Class::Queue, Worse::Up)
    } else if is_time && any(&["lag", "age", "oldest", "staleness"]) && !any(&["eventloop"]) {
        (Class::Age, Worse::Up)
    } else if is_time && any(WAIT) && !any(AT_REST) && !any(&["max", "min"]) {
        (Class::Wait, Worse::Up)
    } else if any(&["hit", "hits"]) && (is_share || any(&["rate"])) {
        (Class::Ratio, Worse::Down)
    } else if any(&["rate"]) {
        (Class::Throughput, Worse::Neither)
    } else if is_share && any(&["utilization", "utilisation", "usage", "busy", "saturation"]) {
        (Class::Utilisation, Worse::Up)
    } else if any(SPARE) || words.ends_with(&["up"]) {
        (if unit == Unit::Bytes || words.ends_with(&["up"]) { Class::Level } else { Class::Utilisation }, Worse::Down)
    } else if unit == Unit::Count && any(BUSY) {
        (Class::Utilisation, Worse::Up)
    } else {
        (Class::Level, Worse::Up)
    }
}

fn unit(words: &[&str]) -> Unit {
    let named = |word: &&str| match *word {
        "seconds" | "second" | "secs" => Some(Unit::Seconds),
        "milliseconds" | "millis" | "ms" | "msec" => Some(Unit::Milliseconds),
        "microseconds" | "micros" | "us" | "usec" => Some(Unit::Microseconds),
        "nanoseconds" | "nanos" | "ns" | "nsec" => Some(Unit::Nanoseconds),
        "bytes" | "byte" => Some(Unit::Bytes),
        "ratio" | "fraction" => Some(Unit::Ratio),
        "percent" | "percentage" | "pct" => Some(Unit::Percent),
        _ => None,
    };
    // `bytes_per_second` and the like end in what they are divided by.
    if words.contains(&"per") { Unit::Count } else { words.iter().rev().find_map(named).unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(name: &str, kind: Type) -> Option<(Class, Kind, Unit)> {
        gauge(name, kind, false, "").map(|gauge| (gauge.class, gauge.kind, gauge.unit))
    }

    #[test]
    fn classes_follow_from_names_and_types() {
        use Type::{Counter, Gauge, Histogram, Summary, Unknown};
        let cases = [
            ("worker_queue_length", Gauge, Class::Queue, Kind::Gauge, Unit::Count),
            ("db_pool_waiting", Gauge, Class::Queue, Kind::Gauge, Unit::Count),
            ("kafka_consumer_lag", Gauge, Class::Queue, Kind::Gauge, Unit::Count),
            ("replication_lag_seconds", Gauge, Class::Age, Kind::Gauge, Unit::Seconds),
            ("queue_oldest_age_seconds", Gauge, Class::Age, Kind::Gauge, Unit::Seconds),
            ("db_in_use", Gauge, Class::Utilisation, Kind::Gauge, Unit::Count),
            ("requests_in_flight", Gauge, Class::Utilisation, Kind::Gauge, Unit::Count),
            ("cache_hit_ratio", Gauge, Class::Ratio, Kind::Gauge, Unit::Ratio),
            ("cpu_utilization_ratio", Gauge, Class::Utilisation, Kind::Gauge, Unit::Ratio),
            ("heap_used_bytes", Gauge, Class::Level, Kind::Gauge, Unit::Bytes),
            ("heap_free_bytes", Gauge, Class::Level, Kind::Gauge, Unit::Bytes),
            ("cpu_idle_percent", Gauge, Class::Utilisation, Kind::Gauge, Unit::Percent),
            ("current_session_rate", Gauge, Class::Throughput, Kind::Gauge, Unit::Count),
            ("backend_max_queue_time_seconds", Gauge, Class::Constant, Kind::Gauge, Unit::Seconds),
            ("request_seconds_max", Gauge, Class::Level, Kind::Gauge, Unit::Seconds),
            ("pool_max", Gauge, Class::Constant, Kind::Gauge, Unit::Count),
            ("start_time_seconds", Gauge, Class::Constant, Kind::Gauge, Unit::Seconds),
            ("thing_last_timestamp_seconds", Gauge, Class::Constant, Kind::Gauge, Unit::Seconds),
            ("errors_total", Counter, Class::Event, Kind::Counter, Unit::Count),
            ("http_timed_out", Counter, Class::Event, Kind::Counter, Unit::Count),
            ("pool_wait_seconds_total", Counter, Class::WaitSum, Kind::Counter, Unit::Seconds),
            ("pool_acquire_nanos_sum", Summary, Class::WaitSum, Kind::Counter, Unit::Nanoseconds),
            ("pool_acquire_seconds_count", Histogram, Class::Throughput, Kind::Counter, Unit::Count),
            ("request_seconds_sum", Histogram, Class::Throughput, Kind::Counter, Unit::Seconds),
            ("worker_idle_wait_seconds_total", Counter, Class::Throughput, Kind::Counter, Unit::Seconds),
            ("sent_bytes_total", Unknown, Class::Throughput, Kind::Counter, Unit::Bytes),
            ("error_bytes_total", Unknown, Class::Throughput, Kind::Counter, Unit::Bytes),
            ("node_pressure_cpu_waiting_seconds_total", Counter, Class::Pressure, Kind::Counter, Unit::Seconds),
            // php-fpm types its high-water marks and its age as counters.
            ("phpfpm_max_listen_queue", Counter, Class::Constant, Kind::Gauge, Unit::Count),
            ("phpfpm_max_children_reached", Counter, Class::Event, Kind::Counter, Unit::Count),
            ("phpfpm_start_since", Counter, Class::Constant, Kind::Gauge, Unit::Count),
            ("throughput_bytes_per_second", Gauge, Class::Level, Kind::Gauge, Unit::Count),
            ("whatever", Unknown, Class::Level, Kind::Gauge, Unit::Count),
        ];
        for (name, kind, expected, behaves, unit) in cases {
            assert_eq!(class(name, kind), Some((expected, behaves, unit)), "{name}");
        }
    }

    #[test]
    fn metadata_and_what_the_exporter_says_of_itself_are_left_out() {
        assert_eq!(class("app_build_info", Type::Gauge), None);
        assert_eq!(class("target_info", Type::Info), None);
        assert_eq!(class("requests_created", Type::Unknown), None);
        assert_eq!(class("promhttp_metric_handler_requests_total", Type::Counter), None);
        assert!(gauge("request_seconds_bucket", Type::Histogram, true, "").is_none());
    }

    #[test]
    fn every_guess_says_that_it_is_one_and_guesses_no_capacity_but_of_shares() {
        let guessed = gauge("pool_active", Type::Gauge, false, "Connections\tin use").unwrap();
        assert!(guessed.guessed && guessed.help.starts_with("class guessed: Connections"));
        assert_eq!(guessed.capacity, crate::api::Capacity::None);
        assert_eq!(gauge("cpu_idle_percent", Type::Gauge, false, "").unwrap().capacity, crate::api::Capacity::None);
        assert_eq!(gauge("disk_busy_percent", Type::Gauge, false, "").unwrap().capacity, crate::api::Capacity::Fixed(100.0));
    }
}
