//! Are the driver's clock and the sampler's the same?
//!
//! **Question.** By how much must the driver's log be moved so that what it completed fits what the targets counted?
//! **Method.** The driver's completions per bin, nothing outside its log, against the throughput gauge of the outermost
//! target: the lag with the highest correlation (both see the same requests, their start, their end and their chance
//! bunches). It counts only if it is clearly better than no lag, and does not take the log away from the ticks. Where the sampler started the driver, a log that begins
//! before that start is apart by at least so much. What is nearer than a few seconds is told by the chance bunches alone
//! ([`crate::judge::lag`]), of whichever throughput gauge resembles the driver's counts best. Its interval is the estimate's
//! own, widened by what a clock is not: a request's latency (a server may count its begin, the driver its end) and late
//! ticks. **How it fails.** A load without any edge or bunch (perfectly even, both ends outside the ticks) fits at every lag
//! of a plateau; then nothing is said.

use super::align::{self, Axis};
use super::caveats;
use super::floors;
use super::gather::{Frame, Gauge};
use super::tell::round;
use super::verdict::{Caveat, Clock};
use crate::judge::lag::{self, Amount, Even, Lag};
use crate::judge::robust::quantile;
use crate::timeline::{Interval, Timeline};

/// Farther than this the log is not of this run, or of another zone.
const MOST_S: f64 = 300.0;
/// Nearer than this nobody is apart: latency and a driver's own intervals explain it.
const LEAST_S: f64 = 3.0;
/// A nearer one, known well enough, is mended from here on: less does not matter to any onset.
const MENDED_S: f64 = 1.0;
/// So many bins times lags are looked at, for one gauge.
const PRODUCTS: f64 = 4e5;
/// How many throughput gauges are compared with the driver.
const COMPARED: usize = 8;
/// The correlation that the best lag must have.
const FITS: f64 = 0.9;
/// The share of what was left unexplained that the best lag must explain.
const BETTER: f64 = 0.5;
/// The share of the requests within the ticks that it must keep there.
const KEPT: f64 = 0.5;

/// The driver's log on the sampler's clock, how far the two were apart, and the caveats of that.
pub fn mend(frame: &Frame, timeline: Timeline) -> (Timeline, Option<Clock>, Option<Caveat>) {
    let coarse = apart(frame, &timeline).or_else(|| before_its_start(frame, &timeline));
    let mut timeline = coarse.map(|seconds| shift(&timeline, seconds)).unwrap_or(timeline);
    let fine = near(frame, &timeline);
    let mut moved = coarse.unwrap_or(0.0);
    if let Some((lag, _)) = &fine
        && (coarse.is_some() || is_apart(lag))
    {
        timeline = shift(&timeline, lag.seconds);
        moved += lag.seconds;
    }
    let (offset, within, by) = match (fine, coarse) {
        (Some((lag, by)), coarse) => (coarse.unwrap_or(0.0) + lag.seconds, lag.within_s, by),
        (None, Some(coarse)) => (coarse, LEAST_S, align::outermost(frame).map_or_else(String::new, |gauge| gauge.name.clone())),
        (None, None) => return (timeline, None, None),
    };
    let clock = told(offset, within, moved, by);
    (timeline, Some(clock), (moved != 0.0).then(|| caveats::clocks_apart(moved, within)))
}

/// Whether a lag is one of clocks, and large enough to be mended.
pub fn is_apart(lag: &Lag) -> bool {
    lag.seconds.abs() >= MENDED_S && lag.seconds.abs() > 2.0 * lag.within_s
}

/// Two clocks in the verdict's terms.
pub fn told(offset_s: f64, within_s: f64, moved_s: f64, by: String) -> Clock {
    let ms = |seconds: f64| round(1e3 * seconds, 0);
    let (low_ms, high_ms) = (ms(offset_s - within_s), ms(offset_s + within_s));
    Clock { offset_ms: ms(offset_s), low_ms, high_ms, moved_ms: ms(moved_s), by }
}

/// Within how many seconds a lag is looked for: a long run is compared at fewer lags.
pub fn reach_s(frame: &Frame, usual_s: f64) -> f64 {
    let usual = usual_s.max(frame.step_s);
    (PRODUCTS / frame.bins as f64 * usual).clamp(LEAST_S.max(4.0 * usual), MOST_S)
}

/// What is left between the two clocks once they are near each other, and the gauge that tells it.
fn near(frame: &Frame, timeline: &Timeline) -> Option<(Lag, String)> {
    let counts: [fn(&Interval) -> Option<f64>; 2] = [Interval::ended, |i| i.started];
    let amounts = |count: &dyn Fn(&Interval) -> Option<f64>| -> Vec<Amount> {
        let amount = |i: &Interval| {
            let (from_s, dur_s) = (i.unix_ms as f64 / 1e3, i.dur_ms.max(1.0) / 1e3);
            Some(Amount { from_s, dur_s, rate: count(i)? / dur_s })
        };
        timeline.all().filter_map(amount).collect()
    };
    let told = counts.map(|count| amounts(&count));
    let reach = reach_s(frame, quantile(timeline.all().map(|interval| interval.dur_ms / 1e3), 0.5));
    let best = align::throughputs(frame)
        .take(COMPARED)
        .flat_map(|gauge| told.iter().filter_map(move |told| Some((lag::lag(&seen(frame, gauge), told, 0.0, reach)?, gauge))))
        .max_by(|a, b| a.0.fits.total_cmp(&b.0.fits))?;
    let (mut lag, gauge) = best;
    let known = |value: Option<f64>| value.unwrap_or(f64::NAN);
    let latencies = timeline.all().filter_map(|i| floors::mean_latency(known(i.p50_ms), known(i.p95_ms), known(i.p99_ms)));
    let latency = quantile(latencies, 0.25);
    lag.within_s += (if latency.is_finite() { latency } else { 0.0 } + frame.health.late_p99_ms.max(0.0)) / 1e3;
    Some((lag, gauge.name.clone()))
}

/// A throughput gauge as amounts on even bins. A counter tells of the tick that ends with its read, so that its bin begins
/// half a tick before the bin that is centred on the read; reads are a little late.
pub fn seen(frame: &Frame, gauge: &Gauge) -> Even {
    let tick_s = (frame.run.tick_ms / 1e3).min(frame.step_s);
    let from_s = (frame.at_ms(0) + frame.health.late_p50_ms) / 1e3 - f64::midpoint(frame.step_s, tick_s);
    Even { from_s, step_s: frame.step_s, rates: gauge.values.clone() }
}

/// By how many seconds the driver's log must be moved; `None` where it fits or where it cannot be told.
fn apart(frame: &Frame, timeline: &Timeline) -> Option<f64> {
    let gauge = align::outermost(frame)?;
    let longest = timeline.all().map(|interval| interval.dur_ms / 1e3).fold(0.0, f64::max);
    let reach = (MOST_S / frame.step_s).ceil() as usize;
    let wide =
        Axis { start_ms: frame.start_ms - reach as f64 * frame.step_s * 1e3, step_s: frame.step_s, bins: frame.bins + 2 * reach };
    let driver: Vec<f64> =
        align::spread(wide, timeline.all(), Interval::ended).into_iter().map(|x| if x.is_finite() { x } else { 0.0 }).collect();
    // A fine lag needs a fine series only where there are few bins.
    let stride = ((frame.bins * 2 * reach) / 40_000_000 + 1).max(1);
    let fit = |lag: usize| correlation(&gauge.values, &driver[lag..lag + frame.bins]);
    let here = fit(reach);
    let (best, lag) = (0..=2 * reach)
        .step_by(stride)
        .map(|lag| (fit(lag), lag))
        .filter(|(fits, _)| fits.is_finite())
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    let seconds = (reach as f64 - lag as f64) * frame.step_s;
    let clearly = best > FITS && 1.0 - best * best < (1.0 - BETTER) * (1.0 - here.max(0.0).powi(2));
    // One burst of each may fit where the log has left the ticks but for that.
    let within = |lag: usize| driver[lag..lag + frame.bins].iter().sum::<f64>();
    let clearly = clearly && within(lag) >= KEPT * within(reach);
    (clearly && seconds.abs() >= LEAST_S.max(1.5 * longest)).then_some(seconds)
}

/// How long before the driver was started its log begins; `None` where the sampler did not start it or where it fits.
fn before_its_start(frame: &Frame, timeline: &Timeline) -> Option<f64> {
    let start = frame.children.iter().find_map(|child| child.start_unix_ms)?;
    let begins = timeline.all().find(|interval| interval.started.or(interval.ok).is_some_and(|count| count > 0.0))?.unix_ms;
    let early = (start - begins) as f64 / 1e3;
    (early > LEAST_S).then_some(early)
}

/// Moves a log.
fn shift(timeline: &Timeline, seconds: f64) -> Timeline {
    let mut moved = timeline.clone();
    for interval in &mut moved.intervals {
        interval.unix_ms += (seconds * 1e3).round() as i64;
    }
    moved.driver.clock_offset_ms += seconds * 1e3;
    moved
}

/// Pearson's correlation over the bins in which both are known.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let (mut n, mut sa, mut sb, mut saa, mut sbb, mut sab) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
    for (x, y) in a.iter().zip(b).filter(|(x, y)| x.is_finite() && y.is_finite()) {
        n += 1.0;
        sa += x;
        sb += y;
        saa += x * x;
        sbb += y * y;
        sab += x * y;
    }
    let (va, vb) = (saa - sa * sa / n, sbb - sb * sb / n);
    if n < 5.0 || va <= 0.0 || vb <= 0.0 { f64::NAN } else { (sab - sa * sb / n) / (va * vb).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ticks::Meaning;
    use crate::timeline::ALL;
    use collectors::api::{Class, Kind};

    #[test]
    fn a_burst_of_another_kind_at_the_begin_does_not_draw_the_end_of_the_log_to_it() {
        // Connections are opened in the second second; a second after the load those who were held up all end at once.
        let mut frame = Frame::empty(0.0, 1.0, 60);
        let values = (0..60).map(|n| if n == 1 { 5000.0 } else { 40.0 + f64::from(n % 3) }).collect();
        let meaning = Meaning { kind: Kind::Counter, class: Some(Class::Throughput), ..Meaning::default() };
        let name = "db.questions_total".to_owned();
        frame.put(Gauge { name, target: "db".into(), class: meaning.class, guessed: false, meaning, values });
        let ended = |second: i64| match second {
            5..45 => 20.0 + (second % 4) as f64,
            56 => 300.0,
            _ => 0.0,
        };
        let interval = |second: i64, count: f64| Interval {
            unix_ms: 1000 * second - 500,
            dur_ms: 1000.0,
            step: ALL.into(),
            ok: Some(count),
            ..Interval::default()
        };
        let log = |intervals: Vec<Interval>| Timeline { intervals, ..Timeline::default() };
        let held_up = log((5..58).map(|second| interval(second, ended(second))).collect());
        assert_eq!(apart(&frame, &held_up), None);
        // A log whose clock is 100 s apart still goes to where it belongs.
        frame.put(Gauge { values: (0..60).map(|n| ended(n) * 3.0).collect(), ..frame.gauges[0].clone() });
        let elsewhere = log((5..58).map(|second| interval(second + 100, ended(second))).collect());
        assert_eq!(apart(&frame, &elsewhere), Some(-100.0));
    }

    #[test]
    fn a_series_fits_itself_and_a_constant_fits_nothing() {
        let a = [1.0, 5.0, 2.0, 8.0, 3.0, f64::NAN];
        assert!((correlation(&a, &a) - 1.0).abs() < 1e-12);
        assert!(correlation(&a, &[2.0; 6]).is_nan());
    }
}
