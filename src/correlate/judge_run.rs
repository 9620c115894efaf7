//! From the files to the verdict, one step after the other.

use super::align::{Basis, Load};
use super::bench::Bench;
use super::blame;
use super::caveats;
use super::cli::Options;
use super::floors::Floors;
use super::gather::{self, Frame};
use super::input;
use super::knee;
use super::movers::{self, Evidence, Move, Outcome};
use super::phases::Phases;
use super::symptoms;
use super::verdict::{Answer, Aside, Between, Caveat, Mover, Onset, Phase, Run, Used, Verdict};
use crate::judge::robust::{mean, median};
use crate::text::InputError;
use crate::timeline::Timeline;
use crate::waits::{self, Waits};
use collectors::api::Class;

/// Reads everything and judges it.
pub fn verdict(options: &Options) -> Result<Verdict, InputError> {
    let files = input::files(&options.files)?;
    let frame = gather::gather(&files.ticks)?;
    let waits = files.waits.as_deref().map(waits::read).transpose()?;
    let started = frame.children.iter().find_map(|child| child.start_unix_ms);
    let timeline = input::driver(&options.driver, &options.log.options(started))?;
    let mut verdict = judge(&frame, waits.as_ref(), timeline.as_ref(), options);
    verdict.run.ticks = files.ticks.display().to_string();
    verdict.run.waits = files.waits.map(|path| path.display().to_string());
    Ok(verdict)
}

/// An onset from bins.
pub fn onset(frame: &Frame, low: usize, at: usize, high: usize) -> Onset {
    let high = high.min(frame.bins.saturating_sub(1));
    Onset {
        unix_ms: frame.at_ms(at) as i64,
        elapsed_s: round(frame.elapsed_s(at), 3),
        low_s: round(frame.elapsed_s(low), 3),
        high_s: round(frame.elapsed_s(high), 3),
    }
}

/// The load at bins.
pub fn rates(load: &Load, phases: &Phases, low: usize, at: usize, high: usize) -> Between {
    let end = phases.range.1.saturating_sub(1);
    let rate = |bin: usize| {
        let (from, to) = (bin.saturating_sub(2), (bin + 3).min(phases.axis.len()));
        let near = mean(phases.axis[from..to].iter().copied());
        if phases.axis[bin.min(phases.axis.len() - 1)].is_finite() { phases.axis[bin.min(phases.axis.len() - 1)] } else { near }
    };
    let _ = load;
    let (value, low, high) = (rate(at.min(end)), rate(low.min(end)), rate(high.min(end)));
    Between { value: round(value, 2), low: round(low.min(value), 2), high: round(high.max(value), 2) }
}

fn round(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}

fn judge(frame: &Frame, waits: Option<&Waits>, timeline: Option<&Timeline>, options: &Options) -> Verdict {
    let mut caveats = caveats::of_sampling(frame);
    let measured = timeline.and_then(|timeline| Load::from_driver(frame, timeline));
    let apart = timeline.is_some() && measured.is_none();
    if apart {
        caveats.push(Caveat {
            code: "clocks_apart",
            text: "the driver's log has nothing at the time of the ticks".to_owned(),
            todo: "give the log of this run; if it is, the two machines' clocks are apart".to_owned(),
            can_change_name: true,
        });
    }
    let timeline = timeline.filter(|_| !apart);
    let mut run = Run {
        driver: timeline.map(|timeline| timeline.driver.driver.clone()),
        start_unix_ms: frame.run.start_unix_ms,
        elapsed_s: round(frame.bins as f64 * frame.step_s, 1),
        tick_ms: frame.run.tick_ms,
        labels: frame.run.labels.clone(),
        ..Run::default()
    };
    let load = measured.or_else(|| Load::inferred(frame));
    let seen = load.as_ref().and_then(|load| Some((load, Phases::of(frame, load)?)));
    let Some((load, phases)) = seen else {
        caveats.push(Caveat {
            code: "no_load",
            text: "no load is seen: neither a driver's log nor a throughput gauge that moves".to_owned(),
            todo: "give the load driver's log with --driver, or sample a target that counts its requests".to_owned(),
            can_change_name: true,
        });
        return finish(run, Order::default(), None, None, None, None, caveats);
    };
    caveats.extend(caveats::of_load(frame, load, &phases, timeline));
    let floors = Floors::of(frame, load, &phases, options.floor);
    run.top_rate_per_s = Some(round(phases.top, 2));
    run.rate_from.clone_from(&load.from);
    run.floor_ms = Some(round(floors.wait_ms, 3));
    run.left_rest = Some(format!("more than {} ms added to the mean request", short(floors.wait_ms)));

    run.used = used(frame, phases.range);
    let outcomes = movers::judge(&Bench::new(frame, load, &phases, floors));
    let mut moved = Vec::new();
    for (gauge, outcome) in frame.gauges.iter().zip(outcomes) {
        let judged = !matches!(outcome, Outcome::Evidence | Outcome::NotJudged(_));
        run.judged += usize::from(judged);
        match outcome {
            Outcome::Moved(found) => moved.push(*found),
            Outcome::Healed(from, to) => run.not_with_load.push(Aside {
                gauge: gauge.name.clone(),
                why: format!("left at t+{:.0} s and was back at t+{:.0} s", frame.elapsed_s(from), frame.elapsed_s(to)),
            }),
            Outcome::Rested => run.not_moved.push(gauge.name.clone()),
            Outcome::NotJudged(why) => run.not_judged.push(Aside { gauge: gauge.name.clone(), why }),
            Outcome::Evidence => {}
        }
    }
    let silent: Vec<&Move> = moved.iter().filter(|found| found.evidence == Evidence::Silence).collect();
    if silent.len() > 1 {
        caveats.push(Caveat {
            code: "several_silent",
            text: format!("{} targets fell silent together: that is the sampler's network or machine", silent.len()),
            todo: "see the machine and the network of the sampler; no target is named for it".to_owned(),
            can_change_name: true,
        });
        moved.retain(|found| found.evidence != Evidence::Silence);
    }
    let around = moved.iter().map(|found| found.onset.low).min();
    let shares = waits.map(|waits| {
        let from = around.map_or(0.0, |bin| frame.at_ms(bin) - 5.0 * 1e3 * frame.step_s);
        blame::shares(waits, from, frame.at_ms(phases.range.1) + 1e3)
    });
    let order = blame::order(frame, moved, shares.as_deref().unwrap_or_default());
    let felt = timeline.map(|timeline| symptoms::felt(frame, load, &phases, timeline, order.movers.first(), options.threshold));
    let parts = phases
        .parts
        .iter()
        .map(|part| {
            let rate = |bin: usize| phases.axis[bin];
            let (from, to) = (rate(part.bins.0), rate(part.bins.1 - 1));
            Phase {
                name: part.name.to_owned(),
                from_s: round(frame.elapsed_s(part.bins.0) - frame.step_s / 2.0, 1).max(0.0),
                to_s: round(frame.elapsed_s(part.bins.1 - 1) + frame.step_s / 2.0, 1),
                rate_per_s: (from.is_finite() && to.is_finite()).then(|| [round(from, 2), round(to, 2)]),
            }
        })
        .collect();
    let knee = knee::find(frame, load, &phases);
    let movers = order.movers.iter().map(|found| mover(frame, load, &phases, found)).collect();
    let ordered = Order { movers, tied: order.tied, decided_by: order.decided_by };
    finish(run, ordered, felt, shares, Some(parts), knee, caveats)
}

#[derive(Default)]
struct Order {
    movers: Vec<Mover>,
    tied: usize,
    decided_by: Option<String>,
}

fn mover(frame: &Frame, load: &Load, phases: &Phases, found: &Move) -> Mover {
    let gauge = &frame.gauges[found.gauge];
    let (value, low, high) = found.resting;
    let or_zero = |value: f64| if value.is_finite() { round(value, 4) } else { 0.0 };
    Mover {
        gauge: gauge.name.clone(),
        target: gauge.target.clone(),
        class: class_name(gauge, found.evidence),
        resting: Between { value: or_zero(value), low: or_zero(low), high: or_zero(high) },
        onset: onset(frame, found.onset.low, found.onset.at, found.onset.high),
        rate_per_s: rates(load, phases, found.onset.low, found.onset.at, found.onset.high),
        tied_with: Vec::new(),
        resource: if gauge.meaning.resource.is_empty() { gauge.name.clone() } else { gauge.meaning.resource.clone() },
        basis: if gauge.guessed { Basis::Inferred } else { Basis::Measured },
        decided_by: None,
        class_guessed: gauge.guessed,
    }
}

fn class_name(gauge: &gather::Gauge, evidence: Evidence) -> String {
    match evidence {
        Evidence::Silence => "silence".to_owned(),
        _ => gauge
            .class
            .and_then(|class| serde_json::to_value(class).ok())
            .and_then(|value| value.as_str().map(str::to_owned))
            .unwrap_or_default(),
    }
}

/// A number as people write it: two significant digits.
fn short(value: f64) -> String {
    if value >= 10.0 {
        format!("{value:.0}")
    } else if value >= 1.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

fn finish(
    run: Run,
    order: Order,
    symptoms: Option<Vec<super::verdict::Symptom>>,
    waits: Option<Vec<super::verdict::WaitShare>>,
    phases: Option<Vec<Phase>>,
    knee: Option<super::verdict::Knee>,
    mut caveats: Vec<Caveat>,
) -> Verdict {
    let mut movers = order.movers;
    if let Some(first) = movers.first() {
        let tied = movers[1..=order.tied].iter().map(|mover| mover.gauge.clone()).collect();
        let top = waits.as_ref().and_then(|waits| waits.first()).filter(|wait| wait.share >= 0.5 && wait.target == first.target);
        let resource = top.map(blame::resource);
        let first = &mut movers[0];
        first.tied_with = tied;
        first.decided_by = order.decided_by;
        if let Some(resource) = resource.filter(|_| first.class != "silence") {
            first.resource = resource;
        }
    }
    caveats.push(Caveat {
        code: "not_told",
        text: "growth, recovery and the table of steps are not told by this version".to_owned(),
        todo: "read them off the ticks and the driver's own report".to_owned(),
        can_change_name: false,
    });
    let doubt = caveats.iter().any(|caveat| caveat.can_change_name);
    let verdict = match (movers.is_empty(), doubt) {
        (_, true) => Answer::Inconclusive,
        (true, false) => Answer::Rested,
        (false, false) => Answer::Moved,
    };
    Verdict {
        whatgives: env!("CARGO_PKG_VERSION"),
        run,
        verdict,
        first: movers.first().cloned(),
        movers,
        symptoms,
        waits,
        phases,
        knee,
        growth: None,
        recovery: None,
        steps: None,
        gates: Some(serde_json::Value::Array(Vec::new())),
        caveats,
    }
}

/// How full every capacity was in the last tenth of what was judged.
fn used(frame: &Frame, range: (usize, usize)) -> Vec<Used> {
    let from = range.1 - (range.1 - range.0) / 10;
    let mut all: Vec<Used> = frame
        .gauges
        .iter()
        .filter(|gauge| gauge.class == Some(Class::Utilisation))
        .filter_map(|gauge| {
            let capacity = frame.capacity(gauge)?;
            let share = median((from..range.1).map(|bin| gauge.values[bin] / capacity[bin]));
            share.is_finite().then(|| Used { gauge: gauge.name.clone(), share: round(share, 3) })
        })
        .collect();
    all.sort_by(|a, b| b.share.total_cmp(&a.share));
    all
}
