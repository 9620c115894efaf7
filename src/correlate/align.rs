//! The load on the ticks' bins: from the driver's log, or inferred from a throughput gauge of the outermost target.

use super::gather::{Frame, Gauge};
use crate::judge::robust::{mean, median, quantile, smooth};
use crate::timeline::{Interval, Offered, Timeline};
use collectors::api::{Class, Kind, Layer};

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// Somebody counted it.
    Measured,
    /// It follows from something else.
    Inferred,
}

/// What ran against the targets, one value per bin; NaN where it is not known.
#[derive(Clone, Debug)]
pub struct Load {
    /// The rate that should have been sent, per second; where nobody knows, what was sent or completed.
    pub offered: Vec<f64>,
    /// Completed, whatever the outcome, per second (3-s mean, shorter in short runs).
    pub completed: Vec<f64>,
    /// Was sent, per second.
    pub started: Vec<f64>,
    /// Ended well, per second.
    pub ok: Vec<f64>,
    /// Ended otherwise, failed or refused, per second.
    pub failed: Vec<f64>,
    /// Median latency.
    pub p50_ms: Vec<f64>,
    /// 95th percentile.
    pub p95_ms: Vec<f64>,
    /// 99th percentile.
    pub p99_ms: Vec<f64>,
    /// The longest.
    pub max_ms: Vec<f64>,
    /// Whether the driver counted it.
    pub basis: Basis,
    /// The throughput gauge it was inferred from.
    pub from: Option<String>,
    /// Where the offered rate comes from.
    pub kind: Offered,
    /// What the rates count.
    pub unit: &'static str,
    /// How many seconds one count of the log covers.
    pub interval_s: f64,
}

/// Over how many seconds the completed rate is averaged.
fn window_s(frame: &Frame) -> f64 {
    (frame.bins as f64 * frame.step_s / 60.0).clamp(1.0, 3.0)
}

/// Bins of one width.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// The middle of the first one, Unix milliseconds.
    pub start_ms: f64,
    /// Seconds in one.
    pub step_s: f64,
    /// How many.
    pub bins: usize,
}

impl From<&Frame> for Axis {
    fn from(frame: &Frame) -> Self {
        Self { start_ms: frame.start_ms, step_s: frame.step_s, bins: frame.bins }
    }
}

/// Spreads an amount per interval over the bins it covers: amounts per second.
pub fn spread<'a>(
    axis: impl Into<Axis>,
    intervals: impl Iterator<Item = &'a Interval>,
    amount: impl Fn(&Interval) -> Option<f64>,
) -> Vec<f64> {
    let axis = axis.into();
    let (mut sums, mut seconds) = (vec![0.0; axis.bins], vec![0.0; axis.bins]);
    let pieces = intervals.filter_map(|i| Some(Piece { from_ms: i.unix_ms as f64, dur_ms: i.dur_ms.max(1.0), amount: amount(i)? }));
    for piece in joined(pieces.collect()) {
        for (bin, covered) in cover(axis, piece.from_ms, piece.dur_ms) {
            sums[bin] += piece.amount * covered / (piece.dur_ms / 1e3);
            seconds[bin] += covered;
        }
    }
    // A bin that the log covers in part is taken for what was covered.
    sums.iter().zip(&seconds).map(|(sum, seconds)| if *seconds > 0.0 { sum / seconds } else { f64::NAN }).collect()
}

/// What an interval holds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    from_ms: f64,
    dur_ms: f64,
    amount: f64,
}

/// A log begins with its first request and ends with its last, so that its first and last interval may be short and yet
/// hold something for certain: no rate of their own. One of less than half its neighbour's length is counted to that.
fn joined(mut pieces: Vec<Piece>) -> Vec<Piece> {
    let meet = |early: &Piece, late: &Piece| (early.from_ms + early.dur_ms - late.from_ms).abs() < 2.0;
    if let [first, second, ..] = pieces[..]
        && first.dur_ms < 0.5 * second.dur_ms
        && meet(&first, &second)
    {
        pieces[1] = Piece { from_ms: first.from_ms, dur_ms: first.dur_ms + second.dur_ms, amount: first.amount + second.amount };
        pieces.remove(0);
    }
    if let [.., before, last] = pieces[..]
        && last.dur_ms < 0.5 * before.dur_ms
        && meet(&before, &last)
    {
        pieces.pop();
        if let Some(end) = pieces.last_mut() {
            *end = Piece { dur_ms: before.dur_ms + last.dur_ms, amount: before.amount + last.amount, ..before };
        }
    }
    pieces
}

/// A value of each interval on the bins it covers, the covered seconds as weights. A bin that the log covers in part is
/// taken for what was covered.
pub fn hold<'a>(
    axis: impl Into<Axis>,
    intervals: impl Iterator<Item = &'a Interval>,
    value: impl Fn(&Interval) -> Option<f64>,
) -> Vec<f64> {
    let axis = axis.into();
    let (mut sums, mut seconds) = (vec![0.0; axis.bins], vec![0.0; axis.bins]);
    for interval in intervals {
        let Some(value) = value(interval) else { continue };
        for (bin, covered) in cover(axis, interval.unix_ms as f64, interval.dur_ms.max(1.0)) {
            sums[bin] += value * covered;
            seconds[bin] += covered;
        }
    }
    sums.iter().zip(&seconds).map(|(sum, seconds)| if *seconds > 0.0 { sum / seconds } else { f64::NAN }).collect()
}

/// The bins of an interval and how many seconds of each it covers.
fn cover(axis: Axis, from_ms: f64, dur_ms: f64) -> impl Iterator<Item = (usize, f64)> {
    let step = axis.step_s;
    let edge = axis.start_ms / 1e3 - step / 2.0;
    let (from, to) = (from_ms / 1e3 - edge, (from_ms + dur_ms) / 1e3 - edge);
    let first = (from / step).floor().max(0.0) as usize;
    let last = ((to / step).ceil().max(0.0) as usize).min(axis.bins);
    (first..last).filter_map(move |bin| {
        let covered = to.min((bin + 1) as f64 * step) - from.max(bin as f64 * step);
        (covered > 1e-9).then_some((bin, covered))
    })
}

/// The throughput gauge of the outermost target.
pub fn outermost(frame: &Frame) -> Option<&Gauge> {
    throughputs(frame).next()
}

/// Throughput gauges that can stand for the load, that of the outermost target first.
pub fn throughputs(frame: &Frame) -> impl Iterator<Item = &Gauge> {
    let mut fits: Vec<_> = frame.gauges.iter().filter_map(|gauge| fitness(frame, gauge).map(|fit| (fit, gauge))).collect();
    fits.sort_by_key(|(fit, _)| *fit);
    fits.into_iter().map(|(_, gauge)| gauge)
}

impl Load {
    /// From a driver's log; `None` where it has nothing at the time of the ticks.
    pub fn from_driver(frame: &Frame, timeline: &Timeline) -> Option<Self> {
        let all = || timeline.all();
        let width = frame.bins_of(window_s(frame), 1);
        let completed = smooth(&spread(frame, all(), Interval::ended), width);
        if completed.iter().filter(|x| x.is_finite()).count() < 5 {
            return None;
        }
        let planned = spread(frame, all(), |i| i.offered);
        let sent = spread(frame, all(), |i| i.started.or_else(|| i.ended()));
        let known = planned.iter().filter(|x| x.is_finite()).count() * 2 > completed.iter().filter(|x| x.is_finite()).count();
        let offered = if known { planned } else { smooth(&sent, width) };
        Some(Self {
            offered,
            completed,
            started: sent,
            ok: spread(frame, all(), |i| i.ok.or(i.started)),
            failed: spread(frame, all(), |i| Some(i.failed.unwrap_or(0.0) + i.refused.unwrap_or(0.0))),
            p50_ms: hold(frame, all(), |i| i.p50_ms.or_else(|| i.hist.as_ref().and_then(|hist| hist.quantile_ms(0.5)))),
            p95_ms: hold(frame, all(), |i| i.p95_ms.or_else(|| i.hist.as_ref().and_then(|hist| hist.quantile_ms(0.95)))),
            p99_ms: hold(frame, all(), |i| i.p99_ms.or_else(|| i.hist.as_ref().and_then(|hist| hist.quantile_ms(0.99)))),
            max_ms: hold(frame, all(), |i| i.max_ms),
            basis: Basis::Measured,
            from: None,
            kind: if known { timeline.driver.offered } else { Offered::Achieved },
            unit: REQUESTS,
            interval_s: median(all().map(|interval| interval.dur_ms / 1e3)),
        })
    }

    /// Requests that were served, per second: completed ones, but of those that failed only as many as the system has shown
    /// that it can serve. A refusal at the door waits nowhere, and must not thin out the waits of the others.
    pub fn served(&self) -> Vec<f64> {
        let mut best = 0.0_f64;
        self.completed
            .iter()
            .zip(&smooth(&self.ok, 5))
            .map(|(completed, ok)| {
                best = best.max(if ok.is_finite() { *ok } else { 0.0 });
                completed.min(best.max(completed / 4.0))
            })
            .collect()
    }

    /// From the throughput gauge of the outermost target; `None` where no gauge can stand for the load.
    pub fn inferred(frame: &Frame) -> Option<Self> {
        let gauge = outermost(frame)?;
        let completed = smooth(&gauge.values, frame.bins_of(window_s(frame), 1));
        let nothing = vec![f64::NAN; frame.bins];
        Some(Self {
            offered: smooth(&gauge.values, frame.bins_of(3.0 * window_s(frame), 3)),
            ok: completed.clone(),
            started: nothing.clone(),
            failed: nothing.clone(),
            completed,
            p50_ms: nothing.clone(),
            p95_ms: nothing.clone(),
            p99_ms: nothing.clone(),
            max_ms: nothing,
            basis: Basis::Inferred,
            from: Some(gauge.name.clone()),
            kind: Offered::Unknown,
            unit: spoken(&gauge.name).map_or(REQUESTS, |group| WORDS[group].0),
            interval_s: frame.step_s,
        })
    }
}

const REQUESTS: &str = "req/s";

/// What a counter counts, by words in its name; the likeliest to be a visitor's request first.
const WORDS: [(&str, &[&str]); 4] = [
    (REQUESTS, &["requests", "accesses", "rps", "accepted_conn"]),
    ("statements/s", &["transactions", "commit", "questions", "queries", "statements", "xact"]),
    ("commands/s", &["commands", "ops", "cmd", "get"]),
    ("connections/s", &["accepts", "connections", "handled"]),
];

fn spoken(column: &str) -> Option<usize> {
    let name = column.rsplit('.').next().unwrap_or(column);
    // Hits of a site are requests, those of a cache are not.
    let of_site = name.starts_with("hits").then_some(0);
    of_site.or_else(|| WORDS.iter().position(|(_, words)| words.iter().any(|word| name.contains(word))))
}

/// How well a throughput gauge stands for completed requests: smaller is better.
fn fitness(frame: &Frame, gauge: &Gauge) -> Option<(usize, usize, usize)> {
    let rate = gauge.meaning.kind != Kind::Gauge && gauge.class == Some(Class::Throughput);
    let counts = gauge.meaning.unit.is_empty() || gauge.meaning.unit == "count";
    let moves = {
        let (low, high) = (quantile(gauge.values.iter().copied(), 0.05), quantile(gauge.values.iter().copied(), 0.95));
        high > 0.5 && high > 1.2 * low
    };
    let missing = gauge.values.iter().filter(|value| !value.is_finite()).count();
    if !rate || !counts || !moves || 2 * missing > frame.bins || mean(gauge.values.iter().copied()) < 0.2 {
        return None;
    }
    let spoken = spoken(&gauge.name)?;
    let layer = match gauge.meaning.layer {
        Some(Layer::Accept | Layer::Worker) => 0,
        Some(Layer::App) => 1,
        None => 2,
        Some(Layer::Pool) => 3,
        Some(Layer::Server) => 4,
        Some(Layer::Lock | Layer::Disk | Layer::Host) => 5,
    };
    // An amount of this tick needs no difference and has no reset.
    Some((layer, spoken, usize::from(gauge.meaning.kind == Kind::Counter)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::ALL;

    fn pieces(list: &[(f64, f64, f64)]) -> Vec<Piece> {
        list.iter().map(|(from_ms, dur_ms, amount)| Piece { from_ms: *from_ms, dur_ms: *dur_ms, amount: *amount }).collect()
    }

    #[test]
    fn a_short_first_or_last_interval_has_no_rate_of_its_own() {
        let log = [(901.0, 99.0, 3.0), (1000.0, 1000.0, 8.0), (2000.0, 1000.0, 66.0), (3000.0, 315.0, 35.0)];
        assert_eq!(joined(pieces(&log)), pieces(&[(901.0, 1099.0, 11.0), (2000.0, 1315.0, 101.0)]));
    }

    #[test]
    fn an_interval_of_half_its_neighbour_or_behind_a_gap_stands_for_itself() {
        for log in [
            vec![(500.0, 500.0, 3.0), (1000.0, 1000.0, 8.0), (2000.0, 600.0, 6.0)],
            vec![(901.0, 99.0, 3.0), (5000.0, 1000.0, 8.0), (9000.0, 100.0, 6.0)],
            vec![(901.0, 99.0, 3.0)],
        ] {
            assert_eq!(joined(pieces(&log)), pieces(&log));
        }
        assert_eq!(joined(pieces(&[(901.0, 99.0, 3.0), (1000.0, 1000.0, 8.0)])), pieces(&[(901.0, 1099.0, 11.0)]));
    }

    const AXIS: Axis = Axis { start_ms: 500.0, step_s: 1.0, bins: 4 };

    fn interval(unix_ms: i64, dur_ms: f64, ok: f64) -> Interval {
        Interval { unix_ms, dur_ms, step: ALL.into(), ok: Some(ok), p50_ms: Some(ok), ..Interval::default() }
    }

    #[test]
    fn an_interval_over_several_bins_gives_each_the_same_rate() {
        let one = [interval(0, 2000.0, 60.0)];
        let rates = spread(AXIS, one.iter(), |i| i.ok);
        assert_eq!(rates[..2], [30.0, 30.0]);
        assert!(rates[2].is_nan(), "nothing is known of what the log does not cover");
    }

    #[test]
    fn a_bin_that_two_intervals_share_takes_of_each_what_it_covers() {
        let two = [interval(0, 1500.0, 30.0), interval(1500, 1500.0, 90.0)];
        let rates = spread(AXIS, two.iter(), |i| i.ok);
        assert_eq!(rates[..3], [20.0, 40.0, 60.0]);
        assert_eq!(hold(AXIS, two.iter(), |i| i.p50_ms)[..3], [30.0, 60.0, 90.0]);
    }

    #[test]
    fn failures_at_the_door_do_not_thin_out_the_waits_of_those_inside() {
        let load = Load {
            completed: vec![100.0, 100.0, 300.0],
            ok: vec![100.0, 100.0, 100.0],
            failed: vec![0.0, 0.0, 200.0],
            offered: Vec::new(),
            started: Vec::new(),
            p50_ms: Vec::new(),
            p95_ms: Vec::new(),
            p99_ms: Vec::new(),
            max_ms: Vec::new(),
            basis: Basis::Measured,
            from: None,
            kind: Offered::Scheduled,
            unit: REQUESTS,
            interval_s: 1.0,
        };
        assert_eq!(load.served(), [100.0, 100.0, 100.0]);
    }

    #[test]
    fn a_visitors_request_stands_for_the_load_before_a_statement_does() {
        assert!(spoken("web.requests_total") < spoken("mysql.questions_total"));
        assert_eq!(spoken("host.context_switches_total"), None);
        assert!(spoken("app.hits_total") < spoken("mysql.questions_total"));
        assert_eq!(spoken("mysql.buffer_pool_hits_total"), None);
    }
}
