//! A class for a gauge that nobody declared: rules on its name, always reported as "class guessed".
//!
//! **Method.** Words of the column's last part, the most telling first. Names follow the habits of Prometheus exporters and
//! of the servers' own status pages. **How it fails.** A name that says nothing (`value3`) gets no class and is evidence
//! only; a misleading one (`wait_threads` for a size of a pool) gets the wrong class. Declaring it in the configuration ends
//! the guessing.

use collectors::api::{Class, Kind};

/// What a name tells.
pub fn class(column: &str, kind: Kind) -> Option<Class> {
    let name = column.rsplit('.').next().unwrap_or(column).to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    let time = ["_ms", "_us", "_ns", "_seconds", "_time", "_duration", "_msec", "_usec"]
        .iter()
        .any(|end| name.strip_suffix("_total").unwrap_or(&name).ends_with(end) || name.ends_with(&format!("{end}_sum")));
    let grows = kind != Kind::Gauge || name.ends_with("_total");
    if has(&["limit", "max_", "_max", "capacity", "_size", "configured"]) && !grows {
        return Some(Class::Constant);
    }
    if has(&["age", "oldest"]) && !has(&["usage", "page", "message", "storage", "manage", "coverage", "average"]) {
        return Some(Class::Age);
    }
    if has(&["wait", "blocked", "lag", "stall"]) && time {
        return Some(if grows { Class::WaitSum } else { Class::Wait });
    }
    if has(&["refused", "rejected", "timeout", "timed_out", "evict", "dropped", "drops", "overflow", "fail", "error", "aborted"]) {
        return grows.then_some(Class::Event);
    }
    if has(&["pressure", "psi"]) {
        return Some(Class::Pressure);
    }
    if has(&["hit_ratio", "hit_rate", "hitratio"]) {
        return Some(Class::Ratio);
    }
    if has(&["waiting", "waiters", "queue", "pending", "backlog", "blocked"]) && !grows && !time {
        return Some(Class::Queue);
    }
    if has(&["util", "busy", "in_use", "active", "_pct", "percent", "used_ratio"]) && !grows {
        return Some(Class::Utilisation);
    }
    if has(&["memory", "bytes", "heap", "rss", "open_fds", "connections", "items", "goroutines"]) && !grows {
        return Some(Class::Level);
    }
    grows.then_some(Class::Throughput)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_common_exporters_get_the_class_that_a_reader_would_give_them() {
        for (name, kind, want) in [
            ("app.hikaricp_connections_pending", Kind::Gauge, Some(Class::Queue)),
            ("go.sql_wait_duration_seconds_total", Kind::Counter, Some(Class::WaitSum)),
            ("go.sql_wait_count_total", Kind::Counter, Some(Class::Throughput)),
            ("node.eventloop_lag_seconds", Kind::Gauge, Some(Class::Wait)),
            ("outbox.oldest_age_seconds", Kind::Gauge, Some(Class::Age)),
            ("redis.evicted_keys_total", Kind::Counter, Some(Class::Event)),
            ("mysql.max_connections", Kind::Gauge, Some(Class::Constant)),
            ("proc.process_resident_memory_bytes", Kind::Gauge, Some(Class::Level)),
            ("web.http_requests_total", Kind::Counter, Some(Class::Throughput)),
            ("x.value3", Kind::Gauge, None),
        ] {
            assert_eq!(class(name, kind), want, "{name}");
        }
    }

    #[test]
    fn a_state_of_errors_is_no_event_because_it_need_not_rest_at_zero() {
        assert_eq!(class("x.errors", Kind::Gauge), None);
    }
}
