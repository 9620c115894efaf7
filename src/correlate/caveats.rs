//! What a reader must know about the run: computed, typed, each with what to do about it.

use super::align::{Basis, Load};
use super::gather::Frame;
use super::phases::Phases;
use super::verdict::Caveat;
use crate::driver::caveat::{CAVEATS, CLOSED_LOOP};
use crate::judge::rest::FEWEST;
use crate::judge::robust::{mean, quantile};
use crate::timeline::{Offered, Timeline};

/// Whether a target is the machine of the driver: its trouble is a caveat about the driver, never the first mover.
pub fn is_driver(target: &crate::ticks::Target) -> bool {
    target.about.get("role").and_then(|role| role.as_str()) == Some("driver")
}

/// Caveats of the sampling alone.
pub fn of_sampling(frame: &Frame) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    let tick_ms = frame.run.tick_ms.max(1.0);
    if frame.health.late_p99_ms > 0.5 * tick_ms {
        caveats.push(Caveat {
            code: "late_ticks",
            text: format!(
                "one tick in a hundred began {:.0} ms late or more, of a period of {tick_ms:.0} ms",
                frame.health.late_p99_ms
            ),
            todo: "give the sampler a core of its own, or a longer tick".to_owned(),
            can_change_name: false,
        });
    }
    if frame.health.missed * 20 > frame.health.rows {
        caveats.push(Caveat {
            code: "missed_ticks",
            text: format!("{} ticks were missed, {} were read", frame.health.missed, frame.health.rows),
            todo: "give the sampler a core of its own, or a longer tick".to_owned(),
            can_change_name: false,
        });
    }
    if frame.health.backwards > 0 {
        caveats.push(Caveat {
            code: "ticks_out_of_order",
            text: format!("{} rows are not later than the row before them", frame.health.backwards),
            todo: "give the file as the sampler wrote it; was the clock set during the run?".to_owned(),
            can_change_name: frame.health.backwards * 20 > frame.health.rows,
        });
    }
    let mut targets: Vec<&str> =
        frame.health.resets.iter().filter_map(|(column, _)| frame.gauge(column)).map(|gauge| &*gauge.target).collect();
    targets.sort_unstable();
    targets.dedup();
    for target in targets {
        let columns: Vec<&(String, usize)> =
            frame.health.resets.iter().filter(|(column, _)| frame.gauge(column).is_some_and(|g| g.target == target)).collect();
        caveats.push(Caveat {
            code: "reset",
            text: format!(
                "{target}: {} counter{} fell at t+{:.0} s ({}); no rate is taken across it",
                columns.len(),
                if columns.len() == 1 { "" } else { "s" },
                frame.elapsed_s(columns[0].1),
                columns[0].0
            ),
            todo: format!("see whether {target} was restarted or its counters were reset during the run"),
            can_change_name: false,
        });
    }
    caveats
}

/// Caveats of the load and the rest.
pub fn of_load(frame: &Frame, load: &Load, phases: &Phases, timeline: Option<&Timeline>) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    match (load.basis, load.kind) {
        (Basis::Inferred, _) => caveats.push(Caveat {
            code: "no_driver",
            text: format!(
                "no driver's log: rates are those of {}, completed and not offered; latency, failures and the knee are not known",
                load.from.as_deref().unwrap_or("a throughput gauge")
            ),
            todo: "give the load driver's log with --driver".to_owned(),
            can_change_name: false,
        }),
        (Basis::Measured, Offered::Achieved | Offered::Unknown) => caveats.push(Caveat {
            code: "closed_loop",
            text: "the driver's log has no offered rate: rates are what was sent, and a load that waits for its answers sends less when the site slows down".to_owned(),
            todo: "drive with an open loop (a fixed arrival rate), or read the rates as lower bounds; the knee is not told".to_owned(),
            can_change_name: false,
        }),
        _ => {}
    }
    if phases.climbs() {
        let resting = phases.low_bins().count();
        if resting < FEWEST {
            caveats.push(Caveat {
                code: "few_resting_ticks",
                text: format!("only {resting} ticks of low load, {FEWEST} are needed to know a resting value"),
                todo: "start lower, climb slower, or use a shorter tick".to_owned(),
                can_change_name: true,
            });
        }
    } else {
        let before = phases.before.iter().filter(|on| **on).count();
        caveats.push(Caveat {
            code: "no_low_load",
            text: format!(
                "the load did not climb from a low rate; the rest is the {before} ticks before it, and a rate given here is an upper bound"
            ),
            todo: "begin at a tenth of the rate or less and climb".to_owned(),
            can_change_name: before < FEWEST,
        });
    }
    if let Some(timeline) = timeline {
        let sum = |f: fn(&crate::timeline::Interval) -> Option<f64>| timeline.all().filter_map(f).sum::<f64>();
        let (offered, started, dropped) = (sum(|i| i.offered), sum(|i| i.started), sum(|i| i.dropped));
        if load.kind != Offered::Achieved
            && offered > 0.0
            && started > 0.0
            && (started < 0.95 * offered || dropped > 0.05 * offered)
        {
            caveats.push(Caveat {
                code: "driver_behind",
                text: format!("the driver sent {:.0} % of what it should have", 100.0 * started.min(offered - dropped) / offered),
                todo: "give the driver more workers, or another machine".to_owned(),
                can_change_name: true,
            });
        }
        // A closed loop is said above, with what follows from it for this run.
        for (code, text, todo) in CAVEATS.iter().filter(|(code, ..)| *code != CLOSED_LOOP) {
            if timeline.driver.caveats.iter().any(|said| said == code) {
                caveats.push(Caveat { code, text: (*text).to_owned(), todo: (*todo).to_owned(), can_change_name: false });
            }
        }
        // What is slow already at rest has no rest.
        let resting = quantile(phases.low_bins().map(|bin| load.p50_ms[bin]), 0.5);
        let (offered, ok) =
            (mean(phases.low_bins().map(|bin| load.offered[bin])), mean(phases.low_bins().map(|bin| load.completed[bin])));
        if phases.climbs() && resting.is_finite() && offered > 0.0 && ok < 0.8 * offered && load.kind != Offered::Achieved {
            caveats.push(Caveat {
                code: "saturated_at_rest",
                text: format!("at low load only {:.0} % of the offered requests were completed", 100.0 * ok / offered),
                todo: "begin at a lower rate: there is no rest to leave".to_owned(),
                can_change_name: true,
            });
        }
    }
    let drivers: Vec<&str> = frame.targets.iter().filter(|target| is_driver(target)).map(|target| &*target.instance).collect();
    for gauge in frame.gauges.iter().filter(|gauge| drivers.contains(&&*gauge.target)) {
        let busy = gauge.class == Some(collectors::api::Class::Utilisation) && gauge.name.contains("cpu");
        let Some(capacity) = frame.capacity(gauge).filter(|_| busy) else { continue };
        let share = quantile((phases.range.0..phases.range.1).map(|bin| gauge.values[bin] / capacity[bin]), 0.9);
        if share > 0.9 {
            caveats.push(Caveat {
                code: "driver_saturated",
                text: format!("the driver's machine was at {:.0} % ({})", 100.0 * share, gauge.name),
                todo: "run the driver on a larger machine: its delay is in every latency".to_owned(),
                can_change_name: true,
            });
        }
    }
    caveats
}
