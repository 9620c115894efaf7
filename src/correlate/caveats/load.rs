//! Caveats of the load: the driver, its log, and the rest.

use super::{caveat, is_driver};
use crate::correlate::align::{Basis, Load};
use crate::correlate::gather::Frame;
use crate::correlate::movers::Move;
use crate::correlate::phases::Phases;
use crate::correlate::verdict::Caveat;
use crate::driver::caveat::{CAVEATS, CLOSED_LOOP};
use crate::judge::rest::FEWEST;
use crate::judge::robust::{mean, quantile, smooth};
use crate::timeline::{Offered, Timeline};
use collectors::api::Class;

/// Under this share of what should have been sent, the driver is behind.
const BEHIND: f64 = 0.95;
/// Over this share of its machine's processors, the driver is saturated.
const DRIVER_BUSY: f64 = 0.9;
/// Under this share completed at low load, there is no rest.
const DONE_AT_REST: f64 = 0.8;

/// No load is seen at all.
pub fn no_load() -> Caveat {
    caveat(
        "no_load",
        "no load is seen: neither a driver's log nor a throughput gauge that moves",
        "give the load driver's log with --driver, or sample a target that counts its requests",
        true,
    )
}

/// The driver's clock and the sampler's are apart, and the log was moved.
pub fn clocks_apart(seconds: f64, within_s: f64) -> Caveat {
    let way = if seconds > 0.0 { "behind" } else { "ahead of" };
    caveat(
        "clocks_apart",
        format!(
            "the driver's clock is {:.1} s {way} the sampler's, give or take {within_s:.1} s, by what both counted; its log was moved by that",
            seconds.abs()
        ),
        "set both machines by one time server",
        false,
    )
}

/// The log has nothing at the time of the ticks.
pub fn log_of_another_time(frame: &Frame, timeline: &Timeline) -> Caveat {
    let begins = timeline.all().next().map_or(0, |interval| interval.unix_ms);
    caveat(
        "clocks_apart",
        format!(
            "the driver's log has nothing at the time of the ticks: it begins {:.0} s after them; it is left out",
            (begins as f64 - frame.at_ms(0)) / 1e3
        ),
        "give the log of this run; if it is, see --driver-zone and the clocks of both machines",
        true,
    )
}

/// Caveats of the load and the rest.
pub fn of_load(frame: &Frame, load: &Load, phases: &Phases, timeline: Option<&Timeline>, first: Option<&Move>) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    match (load.basis, load.kind) {
        (Basis::Inferred, _) => caveats.push(caveat(
            "no_driver",
            format!(
                "no driver's log: rates are those of {}, completed and not offered; latency, failures and the knee are not known",
                load.from.as_deref().unwrap_or("a throughput gauge")
            ),
            "give the load driver's log with --driver",
            false,
        )),
        (Basis::Measured, Offered::Achieved | Offered::Unknown) => caveats.push(caveat(
            "closed_loop",
            "the driver's log has no offered rate: rates are what was sent, and a load that waits for its answers sends less when the site slows down",
            "drive with an open loop (a fixed arrival rate), or read the rates as lower bounds; the knee is not told",
            false,
        )),
        _ => {}
    }
    rest(phases, &mut caveats);
    if let Some(timeline) = timeline {
        // A closed loop is said above, with what follows from it for this run.
        for (code, text, todo) in CAVEATS.iter().filter(|(code, ..)| *code != CLOSED_LOOP) {
            if timeline.driver.caveats.iter().any(|said| said == code) {
                caveats.push(caveat(code, *text, *todo, false));
            }
        }
        caveats.extend(behind(frame, load, phases, first));
        caveats.extend(saturated_at_rest(load, phases));
    }
    caveats.extend(busy_driver(frame, phases, first));
    caveats
}

fn rest(phases: &Phases, caveats: &mut Vec<Caveat>) {
    let resting = phases.low_bins().count();
    let before = phases.before.iter().filter(|on| **on).count();
    if phases.climbs() && resting < FEWEST {
        caveats.push(caveat(
            "few_resting_ticks",
            format!("only {resting} ticks of low load, {FEWEST} are needed to know a resting value"),
            "start lower, climb slower, or use a shorter tick",
            true,
        ));
    } else if !phases.climbs() {
        caveats.push(caveat(
            "no_low_load",
            format!("the load did not climb from a low rate; the rest is the {before} ticks before it, and a rate given here is an upper bound"),
            "begin at a tenth of the rate or less and climb",
            before < FEWEST,
        ));
    }
}

/// The driver sent less than it should have. If something had moved before, it is that which held the driver up.
fn behind(frame: &Frame, load: &Load, phases: &Phases, first: Option<&Move>) -> Option<Caveat> {
    if load.kind == Offered::Achieved {
        return None;
    }
    let width = frame.bins_of(3.0, 3);
    let (sent, offered) = (smooth(&load.started, width), smooth(&load.offered, width));
    let (from, to) = phases.range;
    let share = |bin: usize| sent[bin] / offered[bin];
    let late = |bin: &usize| share(*bin) < BEHIND;
    // A chance lack of arrivals in one bin is none: it must hold for most of what follows.
    let since = (from..to).filter(late).find(|bin| {
        let known = (*bin..to).filter(|bin| share(*bin).is_finite()).count();
        known >= width.max((to - from) / 10) && (*bin..to).filter(late).count() * 5 >= known * 4
    })?;
    let worst = mean((since..to).map(share));
    let held_up = first.is_some_and(|first| first.onset.low <= since);
    let why = if held_up { "after the first gauge had moved" } else { "and no gauge had moved before" };
    Some(caveat(
        "driver_behind",
        format!(
            "from t+{:.0} s on the driver sent only {:.0} % of what it should have, {why}",
            frame.elapsed_s(since),
            100.0 * worst
        ),
        if held_up {
            "give the driver more workers to see how far it goes"
        } else {
            "the driver is the bottleneck: give it more workers, or another machine"
        },
        !held_up,
    ))
}

fn saturated_at_rest(load: &Load, phases: &Phases) -> Option<Caveat> {
    let mean_of = |of: &[f64]| mean(phases.low_bins().map(|bin| of[bin]));
    let (offered, done) = (mean_of(&load.offered), mean_of(&load.completed));
    (phases.climbs() && offered > 0.0 && done < DONE_AT_REST * offered && load.kind != Offered::Achieved).then(|| {
        caveat(
            "saturated_at_rest",
            format!(
                "at low load only {:.0} % of the offered requests were completed: there is no rest to leave",
                100.0 * done / offered
            ),
            "begin at a lower rate",
            true,
        )
    })
}

fn busy_driver(frame: &Frame, phases: &Phases, first: Option<&Move>) -> Option<Caveat> {
    let drivers: Vec<&str> = frame.targets.iter().filter(|target| is_driver(target)).map(|target| &*target.instance).collect();
    let busy = frame
        .gauges
        .iter()
        .filter(|gauge| drivers.contains(&&*gauge.target) && gauge.class == Some(Class::Utilisation) && gauge.name.contains("cpu"));
    for gauge in busy {
        let Some(capacity) = frame.capacity(gauge) else { continue };
        let share = quantile((phases.range.0..phases.range.1).map(|bin| gauge.values[bin] / capacity[bin]), 0.9);
        if share > DRIVER_BUSY {
            return Some(caveat(
                "driver_saturated",
                format!("the driver's machine was at {:.0} % ({})", 100.0 * share, gauge.name),
                "run the driver on a larger machine: its delay is in every latency",
                first.is_none(),
            ));
        }
    }
    None
}
