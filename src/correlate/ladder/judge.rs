//! Who left the rest along the rungs.
//!
//! **Question.** From which rung on did requests wait, beyond what was there at rest, and stay waiting on all higher rungs?
//! **Method.** The loaded bins of all rungs stand one after the other on one axis; each gauge becomes waiting per request as
//! in a ramp ([`crate::correlate::bench`]), its rest learned on the lowest rungs. A rung has left where the mean of what was
//! added is over the floor, no single bin counted for more than four floors, and over three standard errors. A mover has
//! left on a rung and on four fifths of all higher ones. Between the rungs before and behind its onset the place is the
//! crossing of the floor, the interval both rungs. **How it fails.** Two that leave between the same two rungs are tied;
//! rungs nearer to each other tell them apart.

use super::knee;
use super::rungs::Rung;
use super::told::{Arm, Axis, Mover, Step};
use crate::correlate::align::{Basis, Load};
use crate::correlate::bench::{Bench, CEILING, can_be_first};
use crate::correlate::blame;
use crate::correlate::caveats::{self, caveat};
use crate::correlate::floors::Floors;
use crate::correlate::gather::{Frame, Gauge};
use crate::correlate::movers::{Evidence, Move, waiting_is_watched};
use crate::correlate::phases::Phases;
use crate::correlate::tell::{self, round};
use crate::correlate::verdict::{Answer, Aside, Between, Caveat};
use crate::driver::caveat::{CAVEATS, CLOSED_LOOP, COORDINATED_OMISSION, NO_TIMELINE, RELATIVE_CLOCK};
use crate::judge::onset::Dated;
use crate::judge::robust::{mean, median};
use crate::timeline::Offered;
use crate::waits::Waits;
use collectors::api::Class;

/// A bin counts for so many floors at most.
const HELD: f64 = 4.0;
/// So many standard errors over nothing.
const SURE: f64 = 3.0;
/// Of so many rungs one is rest.
const RUNGS_PER_REST: usize = 3;

/// An arm's answer.
pub fn arm(name: String, rungs: &[Rung], axis: &Axis, floor: Option<f64>) -> Arm {
    let usable: Vec<&Rung> = rungs.iter().filter(|rung| rung.unusable.is_none() && rung.at.is_finite()).collect();
    let rest = at_rest(&usable);
    let step = |rung: &Rung| {
        let figures = rung.figures;
        let known = |value: f64, digits| value.is_finite().then(|| round(value, digits));
        Step {
            name: rung.name.clone(),
            at: if rung.at.is_finite() { rung.at } else { 0.0 },
            rest: usable.iter().take(rest).any(|one| one.name == rung.name),
            rate_per_s: known(figures.rate, 2),
            ok_per_s: known(figures.ok, 2),
            failed: known(figures.failed, 4),
            p50_ms: known(figures.p50, 2),
            p95_ms: known(figures.p95, 2),
            p99_ms: known(figures.p99, 2),
            basis: figures.basis,
            unusable: rung.unusable.clone(),
        }
    };
    let mut arm = Arm {
        name,
        verdict: None,
        first: None,
        movers: Vec::new(),
        waits: None,
        knee: knee::find(&usable, rest),
        rungs: rungs.iter().map(step).collect(),
        floor_ms: None,
        judged: 0,
        not_with_load: Vec::new(),
        not_judged: Vec::new(),
        caveats: of_rungs(rungs, &usable),
    };
    if usable.iter().any(|rung| rung.frame.is_some()) {
        watched(&mut arm, &usable, rest, axis, floor);
    }
    arm
}

/// How many of the lowest rungs are rest: the lowest, and those behind it on which throughput follows and nobody waits, but
/// no more than a third of all.
fn at_rest(rungs: &[&Rung]) -> usize {
    let Some(lowest) = rungs.first() else { return 0 };
    let follows = |rung: &Rung| {
        let each = |rung: &Rung| rung.figures.ok / rung.at;
        let slower = rung.figures.p50 > 1.15 * lowest.figures.p50;
        each(rung) > 0.9 * each(lowest) && !slower
    };
    let most = (rungs.len() / RUNGS_PER_REST).max(1);
    rungs.iter().take(most).take_while(|rung| follows(rung)).count().max(1)
}

fn of_rungs(rungs: &[Rung], usable: &[&Rung]) -> Vec<Caveat> {
    let mut said = Vec::new();
    for rung in rungs {
        if let Some(why) = &rung.unusable {
            let text = format!("the rung {} is left out: {why}", rung.name);
            said.push(caveat("rung_failed", text, "run that rung again", false));
        }
    }
    for rung in usable.iter().filter(|rung| rung.figures.failed > 0.5) {
        let text = format!("on the rung {} {:.0} % of the requests failed", rung.name, 100.0 * rung.figures.failed);
        said.push(caveat("mostly_failed", text, "see why: latencies there are those of the few that did not fail", false));
    }
    if usable.len() < 3 {
        let text = format!("{} usable rungs: a knee needs three", usable.len());
        said.push(caveat("few_rungs", text, "run rungs at twice and at four times the load", false));
    }
    if usable.iter().any(|rung| rung.figures.basis == Basis::Inferred) {
        let text = "a rung without a driver's log: its rate is that of a throughput gauge, its latency is not known";
        said.push(caveat("no_driver", text, "keep each rung's log beside its ticks: PREFIX.*", false));
    }
    // What follows from a closed loop and from a summary is what a ladder is for.
    let known = [CLOSED_LOOP, COORDINATED_OMISSION, NO_TIMELINE, RELATIVE_CLOCK];
    for (code, text, todo) in CAVEATS.iter().filter(|(code, ..)| !known.contains(code)) {
        if usable.iter().any(|rung| rung.said.iter().any(|said| said == code)) {
            said.push(caveat(code, *text, *todo, false));
        }
    }
    said
}

/// What is judged where ticks were read.
fn watched(arm: &mut Arm, usable: &[&Rung], rest: usize, axis: &Axis, floor: Option<f64>) {
    let Some(line) = Line::of(usable, rest) else { return };
    let floors = Floors::of(&line.frame, &line.load, &line.phases, floor);
    let bench = Bench::new(&line.frame, &line.load, &line.phases, floors);
    arm.floor_ms = Some(round(floors.wait_ms, 3));
    let mut moves = Vec::new();
    for (n, gauge) in line.frame.gauges.iter().enumerate() {
        let Some(tested) = tested(&bench, gauge) else { continue };
        let (excess, floor, scale, evidence) = match tested {
            Ok(tested) => tested,
            Err(why) => {
                arm.not_judged.push(Aside { gauge: gauge.name.clone(), why });
                continue;
            }
        };
        arm.judged += usize::from(evidence == Evidence::Waits);
        match line.follow(&excess, &floor, &scale) {
            Along::Left(onset) => {
                let resting = median(line.phases.low_bins().map(|bin| gauge.values[bin]));
                moves.push(Move { gauge: n, onset, alarm: onset.high, resting: (resting, resting, resting), evidence });
            }
            Along::Healed(rung) if evidence != Evidence::Ceiling => arm.not_with_load.push(Aside {
                gauge: gauge.name.clone(),
                why: format!("left at {} {} and was back on a higher rung", number(usable[rung].at), axis.unit),
            }),
            _ => {}
        }
    }
    let silent = moves.iter().filter(|found| found.evidence == Evidence::Silence).count();
    if let Some(caveat) = caveats::several_silent(silent) {
        arm.caveats.push(caveat);
        moves.retain(|found| found.evidence != Evidence::Silence);
    }
    let around = moves.iter().map(|found| line.rung_of(found.onset.high)).min();
    let shares = Line::waits(&usable[around.unwrap_or(rest).min(usable.len())..]).map(|waits| {
        let (shares, twice) = blame::shares(&waits, f64::NEG_INFINITY, f64::INFINITY);
        arm.caveats.extend(caveats::waits_as_pairs(twice, waits.rows.len()));
        shares
    });
    let order = blame::order(&line.frame, moves, shares.as_deref().unwrap_or_default(), &[]);
    arm.movers = order.movers.iter().map(|found| line.mover(usable, found)).collect();
    let tied = arm.movers.iter().skip(1).take(order.tied).map(|mover| mover.gauge.clone()).collect();
    if let (Some(first), Some(found)) = (arm.movers.first_mut(), order.movers.first()) {
        first.tied_with = tied;
        first.decided_by = order.decided_by;
        if let Some(name) = tell::waited_for(&line.frame.gauges[found.gauge], shares.as_deref()) {
            first.resource = name;
        }
    }
    arm.first = arm.movers.first().cloned();
    arm.waits = shares;
    arm.caveats.extend(of_answer(arm, axis));
    arm.verdict = Some(match (arm.first.is_some(), arm.caveats.iter().any(|caveat| caveat.can_change_name)) {
        (_, true) => Answer::Inconclusive,
        (true, false) => Answer::Moved,
        (false, false) => Answer::Rested,
    });
}

fn of_answer(arm: &Arm, axis: &Axis) -> Vec<Caveat> {
    let mut said = Vec::new();
    if arm.judged == 0 {
        let text = "no gauge could be judged: too few ticks on the lowest rung";
        said.push(caveat("few_resting_ticks", text, "longer rungs, or a shorter tick", true));
    } else if let (Some(knee), None) = (arm.knee, &arm.first) {
        let text = format!(
            "throughput stops following at {} {}, and no gauge that is watched had left its rest: what gave way is not watched, or is the driver",
            number(round(knee.at.value, 1)),
            axis.unit
        );
        let todo = "watch more: the accept queue, the pool, the machine of every service on the way, and of the driver";
        said.push(caveat("felt_without_a_mover", text, todo, true));
    }
    said
}

type Tested = (Vec<f64>, Vec<f64>, Vec<f64>, Evidence);

/// What of a gauge is followed: what was added, its floor and its scale; `None` for evidence.
fn tested(bench: &Bench, gauge: &Gauge) -> Option<Result<Tested, String>> {
    let bins = bench.frame.bins;
    if bench.frame.targets.iter().any(|target| target.instance == gauge.target && caveats::is_driver(target)) {
        return None;
    }
    match gauge.class {
        None if gauge.name == format!("{}.up", gauge.target) => {
            let silent = gauge.values.iter().map(|up| 1.0 - up).collect();
            Some(Ok((silent, vec![0.5; bins], vec![0.1; bins], Evidence::Silence)))
        }
        Some(Class::Utilisation) if !waiting_is_watched(bench, gauge) => {
            let share = bench.signal(gauge, Class::Utilisation).ok()?.values;
            let over = share.iter().map(|share| share - (2.0 * CEILING - 1.0)).collect();
            Some(Ok((over, vec![1.0 - CEILING; bins], vec![(1.0 - CEILING) / 4.0; bins], Evidence::Ceiling)))
        }
        Some(class) if can_be_first(class) => Some(
            bench.trace(gauge, class, bench.floors.wait_ms).map(|trace| (trace.excess, trace.floor, trace.scale, Evidence::Waits)),
        ),
        _ => None,
    }
}

/// What became of a gauge along the rungs.
enum Along {
    /// It stayed away.
    Left(Dated),
    /// It left on this rung and came back.
    Healed(usize),
    Rested,
}

/// The loaded bins of all rungs, one after the other.
struct Line {
    frame: Frame,
    load: Load,
    phases: Phases,
    /// The bins of each rung.
    bins: Vec<(usize, usize)>,
    rest: usize,
}

impl Line {
    /// `None` where the lowest rungs have no ticks: there is no rest.
    fn of(rungs: &[&Rung], rest: usize) -> Option<Self> {
        let first = rungs[..rest].iter().find_map(|rung| rung.frame.as_ref())?;
        let mut bins = Vec::new();
        let mut n = 0;
        for rung in rungs {
            let own = if rung.frame.is_some() { rung.loaded.1 - rung.loaded.0 } else { 0 };
            bins.push((n, n + own));
            n += own;
        }
        let mut frame = Frame::empty(0.0, first.step_s, n);
        frame.readings = first.readings;
        frame.targets.clone_from(&first.targets);
        for (rung, (from, to)) in rungs.iter().zip(&bins) {
            let Some(own) = &rung.frame else { continue };
            for gauge in &own.gauges {
                if frame.gauge(&gauge.name).is_none() {
                    frame.put(Gauge { values: vec![f64::NAN; n], ..gauge.clone() });
                }
                let values = &gauge.values[rung.loaded.0..rung.loaded.1];
                if let Some(joined) = frame.gauges.iter_mut().find(|joined| joined.name == gauge.name) {
                    joined.values[*from..*to].copy_from_slice(values);
                }
            }
        }
        let each = |of: &dyn Fn(&Rung) -> f64| -> Vec<f64> {
            rungs.iter().zip(&bins).flat_map(|(rung, (from, to))| vec![of(rung); to - from]).collect()
        };
        let axis = each(&|rung| rung.at);
        let nothing = vec![f64::NAN; n];
        let load = Load {
            offered: axis.clone(),
            completed: each(&|rung| rung.figures.rate),
            started: each(&|rung| rung.figures.rate),
            ok: each(&|rung| rung.figures.ok),
            failed: each(&|rung| (rung.figures.rate - rung.figures.ok).max(0.0)),
            p50_ms: each(&|rung| rung.figures.p50),
            p95_ms: each(&|rung| rung.figures.p95),
            p99_ms: each(&|rung| rung.figures.p99),
            max_ms: nothing,
            basis: Basis::Measured,
            from: None,
            kind: Offered::Achieved,
            unit: "req/s",
            interval_s: first.step_s,
        };
        let low_end = bins[rest - 1].1;
        let phases = Phases {
            loaded: vec![true; n],
            before: vec![false; n],
            low: (0..n).map(|bin| bin < low_end).collect(),
            range: (0, n),
            told: axis.clone(),
            axis,
            top: rungs.last().map_or(0.0, |rung| rung.at),
            bottom: rungs[0].at,
            parts: Vec::new(),
        };
        Some(Self { frame, load, phases, bins, rest })
    }

    fn rung_of(&self, bin: usize) -> usize {
        self.bins.iter().position(|(from, to)| (*from..*to).contains(&bin)).unwrap_or(self.bins.len() - 1)
    }

    /// How many floors were added on each rung; NaN where too little was read to be sure.
    fn levels(&self, excess: &[f64], floor: &[f64], scale: &[f64]) -> Vec<f64> {
        self.bins
            .iter()
            .map(|(from, to)| {
                let known: Vec<usize> = (*from..*to).filter(|bin| excess[*bin].is_finite()).collect();
                let level = mean(known.iter().map(|bin| (excess[*bin] / floor[*bin]).min(HELD)));
                let error = mean(known.iter().map(|bin| scale[*bin] / floor[*bin])) / (known.len() as f64).sqrt();
                if level > 1.0 && level < SURE * error { f64::NAN } else { level }
            })
            .collect()
    }

    fn follow(&self, excess: &[f64], floor: &[f64], scale: &[f64]) -> Along {
        let levels = self.levels(excess, floor, scale);
        let over = |rung: &usize| levels[*rung] >= 1.0;
        let stays = |rung: &usize| {
            let known = (*rung..levels.len()).filter(|higher| levels[*higher].is_finite()).count();
            over(rung) && (*rung..levels.len()).filter(over).count() * 5 >= known * 4
        };
        let Some(left) = (self.rest..levels.len()).find(stays) else {
            return (self.rest..levels.len()).find(over).map_or(Along::Rested, Along::Healed);
        };
        // The nearest rung below on which something is known.
        let Some(below) = (0..left).rev().find(|rung| levels[*rung].is_finite() && self.bins[*rung].0 < self.bins[*rung].1) else {
            return Along::Rested;
        };
        let part = ((1.0 - levels[below]) / (levels[left] - levels[below])).clamp(0.0, 1.0);
        let (from, to) = (self.bins[below].0, self.bins[left].0);
        Along::Left(Dated { low: from, at: from + (part * (to - from) as f64) as usize, high: to })
    }

    /// Who waited on these rungs.
    fn waits(rungs: &[&Rung]) -> Option<Waits> {
        let mut all = None::<Waits>;
        for rung in rungs {
            let (Some(waits), Some(frame)) = (&rung.waits, &rung.frame) else { continue };
            let (begin, end) = (frame.at_ms(rung.loaded.0), frame.at_ms(rung.loaded.1));
            let within = |row: &&crate::waits::WaitRow| (begin..=end).contains(&(row.unix_ms as f64));
            all.get_or_insert_with(Waits::default).rows.extend(waits.rows.iter().filter(within).cloned());
        }
        all
    }

    fn mover(&self, rungs: &[&Rung], found: &Move) -> Mover {
        let gauge = &self.frame.gauges[found.gauge];
        let (below, left) = (self.rung_of(found.onset.low), self.rung_of(found.onset.high));
        let (low, high) = (rungs[below].at, rungs[left].at);
        let (from, to) = (self.bins[below].0 as f64, self.bins[left].0 as f64);
        let value = low + (high - low) * (found.onset.at as f64 - from) / (to - from).max(1.0);
        let (first, last) = self.bins[left];
        let or_zero = |value: f64| if value.is_finite() { round(value, 4) } else { 0.0 };
        Mover {
            gauge: gauge.name.clone(),
            target: gauge.target.clone(),
            class: tell::class_name(gauge, found.evidence),
            resting: or_zero(found.resting.0),
            at: Between { value: round(value, 2), low, high },
            rung: rungs[left].name.clone(),
            value: or_zero(mean(gauge.values[first..last].iter().copied())),
            tied_with: Vec::new(),
            resource: if gauge.meaning.resource.is_empty() { gauge.name.clone() } else { gauge.meaning.resource.clone() },
            basis: if gauge.guessed { Basis::Inferred } else { Basis::Measured },
            evidence: tell::evidence_text(found.evidence),
            decided_by: None,
        }
    }
}

/// A place on the axis as people write it.
pub fn number(value: f64) -> String {
    if value == value.round() { format!("{value:.0}") } else { format!("{value:.1}") }
}
