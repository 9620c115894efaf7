//! Caveats of the sampling: what the ticks and the waits say of themselves.

use super::caveat;
use crate::correlate::gather::Frame;
use crate::correlate::verdict::Caveat;

const CORE_OF_ITS_OWN: &str = "give the sampler a core of its own, or a longer tick";

/// Caveats of the ticks alone.
pub fn of_sampling(frame: &Frame) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    let health = &frame.health;
    let tick_ms = frame.run.tick_ms.max(1.0);
    if health.late_p99_ms > 0.5 * tick_ms {
        let text = format!("one tick in a hundred began {:.0} ms late or more, of a period of {tick_ms:.0} ms", health.late_p99_ms);
        caveats.push(caveat("late_ticks", text, CORE_OF_ITS_OWN, false));
    }
    if health.missed * 20 > health.rows {
        let text = format!("{} ticks were missed, {} were read", health.missed, health.rows);
        caveats.push(caveat("missed_ticks", text, CORE_OF_ITS_OWN, false));
    }
    if health.backwards > 0 {
        caveats.push(caveat(
            "ticks_out_of_order",
            format!("{} rows are not later than the row before them; no rate is taken across such a place", health.backwards),
            "give the file as the sampler wrote it; was the clock set during the run?",
            health.backwards * 20 > health.rows,
        ));
    }
    resets(frame, &mut caveats);
    unreachable(frame, &mut caveats);
    caveats
}

/// One sampler's clock is apart from the first one's, and its files were moved.
pub fn clocks_of_files_apart(host: &str, first: &str, seconds: f64, within_s: f64) -> Caveat {
    let way = if seconds > 0.0 { "behind" } else { "ahead of" };
    let text = format!(
        "the clock of {host} is {:.1} s {way} that of {first}, give or take {within_s:.1} s, by what both counted; its files were moved by that",
        seconds.abs()
    );
    caveat("clocks_apart", text, "set all machines by one time server", false)
}

/// Two samplers saw no requests in common.
pub fn clocks_of_files_unknown(host: &str, first: &str) -> Caveat {
    caveat(
        "clocks_unknown",
        format!("no gauge of {host} counts what a gauge of {first} counts: whether their clocks agree is not known"),
        "sample on both machines something that counts the requests, and set both by one time server",
        false,
    )
}

fn resets(frame: &Frame, caveats: &mut Vec<Caveat>) {
    let resets = &frame.health.resets;
    let target = |column: &str| frame.gauge(column).map_or("", |gauge| &*gauge.target);
    let mut targets: Vec<&str> = resets.iter().map(|(column, _)| target(column)).collect();
    targets.sort_unstable();
    targets.dedup();
    for name in targets {
        let fell: Vec<&(String, usize)> = resets.iter().filter(|(column, _)| target(column) == name).collect();
        let plural = if fell.len() == 1 { "" } else { "s" };
        let (column, bin) = fell[0];
        caveats.push(caveat(
            "reset",
            format!(
                "{name}: {} counter{plural} fell at t+{:.0} s ({column}); no rate is taken across it",
                fell.len(),
                frame.elapsed_s(*bin)
            ),
            format!("see whether {name} was restarted or its counters were reset during the run"),
            false,
        ));
    }
}

/// Targets that did not answer for a good part of the run.
fn unreachable(frame: &Frame, caveats: &mut Vec<Caveat>) {
    for target in &frame.targets {
        let Some(up) = frame.gauge(&format!("{}.up", target.instance)) else { continue };
        let (read, answered) = up
            .values
            .iter()
            .fold((0, 0), |(read, answered), up| (read + usize::from(up.is_finite()), answered + usize::from(*up > 0.5)));
        if read > 0 && answered * 2 < read {
            caveats.push(caveat(
                "target_unreachable",
                format!("{} answered only {answered} of {read} reads", target.instance),
                format!("run sampler --check against {}", target.instance),
                false,
            ));
        }
    }
}

/// Several targets that fall silent for good together point at the sampler.
pub fn several_silent(silent: usize) -> Option<Caveat> {
    (silent > 1).then(|| {
        caveat(
            "several_silent",
            format!("{silent} targets fell silent: that is the sampler's network or machine"),
            "see the machine and the network of the sampler; no target is named for it",
            true,
        )
    })
}

/// Rows that tell of one waiter again are pairs of waiter and blocker, as other tools write them.
pub fn waits_as_pairs(twice: usize, rows: usize) -> Option<Caveat> {
    (twice * 20 > rows).then(|| {
        caveat(
            "waits_as_pairs",
            format!("{twice} rows of the waits tell of a waiter again: they are pairs of waiter and blocker; each waiter is counted once"),
            "give the sampler's own waits: one row a waiter",
            false,
        )
    })
}
