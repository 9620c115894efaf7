//! The kinds of gates, each on a story, and what the story's files say of it.

use crate::support::raw::{Seen, Sent, Story};

/// What a story's files say of a gate.
pub enum Found {
    /// A value over time, from which everything else follows.
    Over(Vec<Seen>),
    /// A value of the whole log.
    Whole(f64),
    /// A value that is fitted: about this, and broken between these times where it has any.
    About { least: f64, most: f64, since: Option<Seen> },
    /// A name, and between which times it moved.
    Name { since: Seen },
}

/// A kind of gate on a story.
pub struct Case {
    /// The gate's code.
    pub kind: &'static str,
    pub story: &'static str,
    /// Further arguments.
    pub with: &'static [&'static str],
    /// The gate, with `{}` in place of what must hold.
    pub gate: &'static str,
    /// Empty where it can only break.
    pub holds: &'static str,
    pub breaks: &'static str,
    pub found: fn(&Story) -> Found,
}

pub const CASES: &[Case] = &[
    Case {
        kind: "gate_gauge",
        story: "mysql-max-connections",
        with: &["--outcome", "1040=refused"],
        gate: "mysql.threads_connected {} for 2s",
        holds: "<= 19",
        breaks: "< 15",
        // One of them is the sampler's.
        found: |story| Found::Over(changed(story.column("mysql.threads_connected"), |open| open - 1.0)),
    },
    Case {
        kind: "gate_gauge",
        story: "mysql-max-connections",
        with: &["--outcome", "1040=refused"],
        gate: "mysql.connections_refused_total {}",
        holds: "<= 100/s",
        breaks: "<= 12/s",
        found: |story| Found::Over(story.rate("mysql.connections_refused_total")),
    },
    Case {
        kind: "gate_capacity",
        story: "mysql-max-connections",
        with: &["--outcome", "1040=refused"],
        gate: "mysql.threads_connected / capacity {} for 2s",
        holds: "<= 95%",
        breaks: "<= 75%",
        found: |story| Found::Over(changed(story.column("mysql.threads_connected"), |open| (open - 1.0) / 20.0)),
    },
    Case {
        kind: "gate_capacity",
        story: "app-pool",
        with: &["--phase", "evening=30.1s..40.1s"],
        gate: "app.pool_connections_in_use / app.pool_connections_max {} during evening for 1s",
        holds: "<= 1",
        breaks: "<= 0.75",
        found: |story| {
            let used = changed(story.column("app.pool_connections_in_use"), |used| used / 8.0);
            let evening = story.start_ms() + 30_100.0..story.start_ms() + 40_100.0;
            Found::Over(used.into_iter().filter(|(at, _)| evening.contains(at)).collect())
        },
    },
    Case {
        kind: "gate_latency",
        story: "app-pool",
        with: &["--phase", "evening=30.1s..40.1s"],
        gate: "p95(book) {} over 5s for 2s",
        holds: "< 60000ms",
        breaks: "< 800ms",
        found: |story| Found::Over(story.windows(5, |window| window.percentile(0.95))),
    },
    Case {
        kind: "gate_latency",
        story: "app-pool",
        with: &["--phase", "evening=30.1s..40.1s"],
        gate: "max {}",
        holds: "< 60000ms",
        breaks: "< 800ms",
        found: |story| Found::Whole(story.whole().percentile(1.0)),
    },
    Case {
        kind: "gate_failed",
        story: "spike-no-recovery",
        with: &[],
        gate: "failed(buy) {} over 5s for 3s",
        holds: "<= 100%",
        breaks: "<= 50%",
        found: |story| Found::Over(story.windows(5, |window| window.share(|sent| sent.outcome == "timeout"))),
    },
    Case {
        kind: "gate_failed",
        story: "on-sale-pool",
        with: &[],
        gate: "failed {}",
        holds: "<= 2%",
        breaks: "<= 1%",
        found: |story| Found::Whole(story.whole().share(|sent| sent.outcome == "timeout")),
    },
    Case {
        kind: "gate_refused",
        story: "mysql-max-connections",
        with: &["--outcome", "1040=refused"],
        gate: "refused(book) {} over 4s",
        holds: "<= 75%",
        breaks: "<= 10%",
        found: |story| Found::Over(story.windows(4, |window| window.share(|sent| sent.outcome == "fail_http"))),
    },
    Case {
        kind: "gate_goodput",
        story: "spike-no-recovery",
        with: &[],
        gate: "goodput(buy) {} over 5s",
        holds: ">= 0/s",
        breaks: ">= 10/s",
        found: |story| Found::Over(story.windows(5, |window| window.count(|sent| sent.outcome == "ok") / window.seconds)),
    },
    Case {
        kind: "gate_goodput",
        story: "spike-no-recovery",
        with: &[],
        gate: "goodput {}",
        holds: ">= 10/s",
        breaks: ">= 20/s",
        found: |story| Found::Whole(story.whole().count(|sent| sent.outcome == "ok") / story.whole().seconds),
    },
    Case {
        kind: "gate_completed",
        story: "spike-no-recovery",
        with: &[],
        gate: "completed {}",
        holds: ">= 30/s",
        breaks: ">= 60/s",
        found: |story| Found::Whole(story.whole().ended.len() as f64 / story.whole().seconds),
    },
    Case {
        kind: "gate_completed",
        story: "app-pool",
        with: &["--phase", "evening=30.1s..40.1s"],
        gate: "completed(book) {} over 3s for 2s",
        holds: "<= 90/s",
        breaks: "<= 60/s",
        found: |story| Found::Over(story.windows(3, |window| window.ended.len() as f64 / window.seconds)),
    },
    Case {
        kind: "gate_offered",
        story: "app-pool",
        with: &["--phase", "evening=30.1s..40.1s"],
        gate: "offered {} over 5s",
        holds: "<= 200/s",
        breaks: "<= 60/s",
        found: |story| Found::Over(story.windows(5, |window| window.due / window.seconds)),
    },
    Case {
        kind: "gate_reached",
        story: "driver-bottleneck",
        with: &[],
        gate: "reached {} over 5s",
        holds: ">= 50%",
        breaks: ">= 90%",
        found: |story| Found::Over(story.windows(5, |window| window.started / window.due)),
    },
    Case {
        kind: "gate_share",
        story: "on-sale-pool",
        with: &[],
        gate: "share(look, visit) {} over 10s",
        holds: "<= 95%",
        breaks: "<= 55%",
        found: |story| Found::Over(story.windows(10, |window| window.share(|sent| sent.step == "look" || sent.step == "visit"))),
    },
    Case {
        kind: "gate_count",
        story: "on-sale-pool",
        with: &[],
        gate: "count(look) {}",
        holds: ">= 2509",
        breaks: ">= 2510",
        found: |story| Found::Whole(story.whole().count(|sent| sent.step == "look")),
    },
    Case {
        kind: "gate_count",
        story: "on-sale-pool",
        with: &[],
        gate: "count(refund) {}",
        holds: "",
        breaks: ">= 1",
        found: |_| Found::Whole(0.0),
    },
    Case {
        kind: "gate_knee",
        story: "app-pool",
        with: &["--phase", "evening=30.1s..40.1s"],
        gate: "knee {}",
        holds: ">= 60/s",
        breaks: ">= 100/s",
        // What is done at most: 8 connections of 100 ms.
        found: |story| {
            let rates = story.windows(10, |window| window.ended.len() as f64 / window.seconds);
            let most = rates.into_iter().map(|(_, rate)| rate).fold(0.0, f64::max);
            assert!((70.0..82.0).contains(&most), "{most}");
            Found::About { least: 0.9 * most, most: 1.1 * most, since: None }
        },
    },
    Case {
        // Without a knee it is at least what was served: four workers of 100 ms send no more than 40 a second of the 60.
        kind: "gate_knee",
        story: "driver-bottleneck",
        with: &[],
        gate: "knee {}",
        holds: ">= 30/s",
        breaks: ">= 50/s",
        found: |_| Found::About { least: 36.0, most: 41.0, since: None },
    },
    Case {
        kind: "gate_recovery",
        story: "spike-recovers",
        with: &[],
        gate: "recovery {}",
        holds: "<= 15s",
        breaks: "<= 3s",
        found: |story| {
            let end_ms = spikes_end(story);
            let usual = median(story.requests.iter().filter(|sent| sent.end_us as f64 / 1e3 < end_ms - 10_000.0).map(Sent::ms));
            let slow = story.requests.iter().filter(|sent| sent.ms() > 1.5 * usual).map(|sent| sent.end_us).max();
            let after_s = (slow.expect("the spike is felt") as f64 / 1e3 - end_ms) / 1e3;
            Found::About { least: after_s - 2.0, most: after_s + 2.0, since: Some((end_ms - 1000.0, end_ms + 1000.0)) }
        },
    },
    Case {
        kind: "gate_growth",
        story: "leak",
        with: &[],
        gate: "growth(app.session_memory_bytes) {}",
        holds: "<= 12000000/min",
        breaks: "<= 5000000/min",
        found: |story| {
            let due = story.windows(5, |window| window.due / window.seconds);
            let held_ms = due.iter().find(|(_, rate)| *rate >= 39.0).expect("40 a second").0;
            let grown: Vec<Seen> = story.column("app.session_memory_bytes").into_iter().filter(|(at, _)| *at > held_ms).collect();
            let per_minute = 60e3 * slope(&grown);
            Found::About { least: 0.97 * per_minute, most: 1.03 * per_minute, since: Some((held_ms - 5000.0, held_ms + 30_000.0)) }
        },
    },
    Case {
        kind: "gate_first",
        story: "app-pool",
        with: &["--phase", "evening=30.1s..40.1s"],
        gate: "first {}",
        holds: "in app.pool_acquire_*",
        breaks: "not in app.pool_acquire_*",
        // By the story's arithmetic it gives way between 48 and 85 a second.
        found: |story| {
            let due = story.windows(5, |window| window.due / window.seconds);
            let passed = |rate: f64| due.iter().find(|(_, due)| *due > rate).expect("the load climbs so far").0;
            Found::Name { since: (passed(48.0) - 5000.0, passed(85.0)) }
        },
    },
];

fn changed(seen: Vec<Seen>, to: fn(f64) -> f64) -> Vec<Seen> {
    seen.into_iter().map(|(at, value)| (at, to(value))).collect()
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Least squares, per millisecond.
fn slope(seen: &[Seen]) -> f64 {
    let n = seen.len() as f64;
    let (at, value) = (seen.iter().map(|s| s.0).sum::<f64>() / n, seen.iter().map(|s| s.1).sum::<f64>() / n);
    let covariance: f64 = seen.iter().map(|s| (s.0 - at) * (s.1 - value)).sum();
    covariance / seen.iter().map(|s| (s.0 - at).powi(2)).sum::<f64>()
}

/// The end of the last second in which far more were due than before and after: 200 instead of 30.
fn spikes_end(story: &Story) -> f64 {
    let due = story.windows(1, |window| window.due);
    due.into_iter().filter(|(_, due)| *due > 100.0).map(|(at, _)| at).next_back().expect("a spike")
}
