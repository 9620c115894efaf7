//! From the files to the verdict, one step after the other.

use super::align::Load;
use super::bench::Bench;
use super::blame;
use super::caveats;
use super::cli::Options;
use super::clocks;
use super::explain;
use super::floors::Floors;
use super::forecast;
use super::gates;
use super::gather::Frame;
use super::growth::{self, Runs};
use super::history;
use super::input::{self, Files};
use super::join::{self, Joined};
use super::knee;
use super::movers::{self, Evidence, Outcome};
use super::phases::Phases;
use super::plot::{self, Plot};
use super::recovery;
use super::sent;
use super::steps;
use super::symptoms;
use super::tell;
use super::verdict::{Answer, Aside, Caveat, Clock, FilePart, Run, Verdict};
use crate::judge::gate::GateError;
use crate::text::InputError;
use crate::timeline::Timeline;
use crate::waits::Waits;
use std::path::{Path, PathBuf};

/// Everything that was read of one run.
pub struct Session {
    files: Vec<Files>,
    parts: Vec<FilePart>,
    frame: Frame,
    waits: Option<Waits>,
    timeline: Option<Timeline>,
    clock: Option<Clock>,
    load: Option<Load>,
    phases: Option<Phases>,
    caveats: Vec<Caveat>,
}

impl Session {
    /// Reads the files and lays the driver's log on the ticks.
    pub fn read(options: &Options) -> Result<Self, InputError> {
        let files = input::files(&options.files)?;
        let Joined { frame, waits, parts, caveats: of_files } = join::read(&files)?;
        let started = frame.children.iter().find_map(|child| child.start_unix_ms);
        let timeline = input::driver(&options.driver, &options.log.options(started))?;
        let mut caveats = caveats::of_sampling(&frame);
        caveats.extend(of_files);
        let mut clock = None;
        let timeline = timeline.and_then(|timeline| same_clock(&frame, timeline, &mut clock, &mut caveats));
        let measured = timeline.as_ref().and_then(|timeline| Load::from_driver(&frame, timeline));
        let load = measured.or_else(|| Load::inferred(&frame));
        let phases = load.as_ref().and_then(|load| Phases::of(&frame, load));
        let phases = phases.map(|phases| phases.with(&frame, &options.phase));
        Ok(Self { files, parts, frame, waits, timeline, clock, load, phases, caveats })
    }

    /// What gave way first, and which of the gates held.
    pub fn verdict(&self, options: &Options, listed: &[gates::Listed]) -> Result<Verdict, GateError> {
        let mut verdict = self.answer(options);
        let run = gates::Run {
            files: self
                .files
                .iter()
                .enumerate()
                .map(|(n, files)| (&*files.ticks, self.parts.get(n).map(|part| &*part.host)))
                .collect(),
            frame: &self.frame,
            phases: self.phases.as_ref(),
            timeline: self.timeline.as_ref(),
        };
        gates::judge(listed, &run, &mut verdict)?;
        Ok(verdict)
    }

    /// Compares the run with the earlier ones of this file and appends it.
    pub fn record(&self, path: &Path, verdict: &mut Verdict) -> Result<(), InputError> {
        let run = history::Run { frame: &self.frame, load: self.load.as_ref(), phases: self.phases.as_ref() };
        history::record(path, run, verdict)
    }

    fn answer(&self, options: &Options) -> Verdict {
        let mut run = Run {
            ticks: listed(self.files.iter().map(|files| &files.ticks)).unwrap_or_default(),
            waits: listed(self.files.iter().filter_map(|files| files.waits.as_ref())),
            files: self.parts.clone(),
            driver: self.timeline.as_ref().map(|timeline| timeline.driver.driver.clone()),
            sent: self.timeline.as_ref().and_then(|timeline| sent::of(&self.frame, timeline)),
            clock: self.clock.clone(),
            ..tell::run(&self.frame)
        };
        run.labels.extend(options.label.iter().cloned());
        let mut caveats = self.caveats.clone();
        let (Some(load), Some(phases)) = (&self.load, &self.phases) else {
            caveats.push(caveats::no_load());
            return empty(run, caveats);
        };
        let (frame, timeline) = (&self.frame, self.timeline.as_ref());
        let floors = Floors::of(frame, load, phases, options.floor);
        tell::measure(&mut run, frame, load, phases, floors);

        let bench = Bench::new(frame, load, phases, floors);
        let mut moved = Vec::new();
        for (gauge, outcome) in frame.gauges.iter().zip(movers::judge(&bench)) {
            run.judged += usize::from(!matches!(outcome, Outcome::Evidence | Outcome::NotJudged(_)));
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
        if let Some(caveat) = caveats::several_silent(moved.iter().filter(|m| m.evidence == Evidence::Silence).count()) {
            caveats.push(caveat);
            moved.retain(|found| found.evidence != Evidence::Silence);
        }
        let around = moved.iter().map(|found| found.onset.low).min();
        let shares = self.waits.as_ref().map(|waits| {
            let from = around.map_or(frame.at_ms(0), |bin| frame.at_ms(bin)) - 5e3 * frame.step_s;
            let (shares, twice) = blame::shares(waits, from, frame.at_ms(phases.range.1) + 1e3);
            caveats.extend(caveats::waits_as_pairs(twice, waits.rows.len()));
            shares
        });
        let mut felt = timeline.map(|timeline| symptoms::felt(frame, phases, timeline, options.threshold));
        let order = blame::order(frame, moved, shares.as_deref().unwrap_or_default(), felt.as_deref().unwrap_or_default());
        let first = order.movers.first();
        if let (Some(felt), Some(first)) = (&mut felt, first) {
            symptoms::since(felt, frame, first);
        }
        caveats.extend(caveats::of_load(frame, load, phases, timeline, first));
        caveats.extend(timeline.is_none().then(caveats::steps_not_told));
        caveats.extend(caveats::of_answer(frame, load, phases, floors, first, felt.as_deref().unwrap_or_default()));
        let untold = caveats::waits_untold(frame, first, shares.as_deref());
        caveats.extend(untold.or_else(|| caveats::waits_empty(frame, self.waits.as_ref())));

        let held = Runs {
            frame,
            load,
            phases,
            timeline,
            moved: &order.movers.iter().map(|found| found.gauge).collect::<Vec<usize>>(),
            first: first.map(|first| first.onset.at),
        };
        let growth = growth::find(held).map_err(|why| caveats.push(growth_caveat(options, frame, phases, &why))).ok();
        let recovery = Some(recovery::find(&bench, timeline, options.threshold)).filter(|found| !found.is_empty());
        if recovery.is_none() {
            caveats.push(caveats::recovery_not_told(phases.parts.iter().any(|part| part.name == "spike")));
        }

        let first_bin = first.map(|first| first.onset.low);
        let (movers, shares) = tell::movers(frame, phases, order, shares);
        let verdict = match (movers.is_empty(), caveats.iter().any(|caveat| caveat.can_change_name)) {
            (_, true) => Answer::Inconclusive,
            (true, false) => Answer::Rested,
            (false, false) => Answer::Moved,
        };
        let knee = knee::find(frame, load, phases);
        let forecast = options.forecast.map(|rate| forecast::forecast(&bench, first_bin, knee.as_ref(), rate, options.headroom));
        Verdict {
            verdict,
            forecast,
            first: movers.first().cloned(),
            movers,
            symptoms: felt,
            waits: shares,
            phases: Some(tell::phases(frame, phases)),
            knee,
            growth,
            recovery,
            steps: timeline.map(steps::table),
            ..empty(run, caveats)
        }
    }

    /// What a page draws of it.
    pub fn plot(&self, options: &Options, verdict: &Verdict) -> Plot {
        let (Some(load), Some(phases)) = (&self.load, &self.phases) else { return Plot::default() };
        let floors = Floors::of(&self.frame, load, phases, options.floor);
        plot::plot(&Bench::new(&self.frame, load, phases, floors), self.timeline.as_ref(), self.waits.as_ref(), verdict)
    }

    /// Why one gauge was or was not a mover.
    pub fn explain(&self, options: &Options, gauge: &str) -> Result<String, String> {
        let (Some(load), Some(phases)) = (&self.load, &self.phases) else { return Err(caveats::no_load().text) };
        let floors = Floors::of(&self.frame, load, phases, options.floor);
        explain::explain(&Bench::new(&self.frame, load, phases, floors), gauge)
    }
}

/// Several paths as one text.
fn listed<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> Option<String> {
    let paths: Vec<String> = paths.map(|path| path.display().to_string()).collect();
    (!paths.is_empty()).then(|| paths.join(", "))
}

/// The driver's log on the sampler's clock; `None` where it is of another time.
fn same_clock(frame: &Frame, timeline: Timeline, clock: &mut Option<Clock>, caveats: &mut Vec<Caveat>) -> Option<Timeline> {
    let (timeline, found, caveat) = clocks::mend(frame, timeline);
    caveats.extend(caveat);
    if Load::from_driver(frame, &timeline).is_none() {
        caveats.push(caveats::log_of_another_time(frame, &timeline));
        return None;
    }
    *clock = found;
    Some(timeline)
}

fn growth_caveat(options: &Options, frame: &Frame, phases: &Phases, why: &growth::Why) -> Caveat {
    let judged_s = (phases.range.1 - phases.range.0) as f64 * frame.step_s;
    caveats::growth_not_told(why, judged_s, !options.phase.is_empty())
}

/// A verdict that names nothing.
fn empty(run: Run, caveats: Vec<Caveat>) -> Verdict {
    Verdict {
        whatgives: env!("CARGO_PKG_VERSION"),
        run,
        verdict: Answer::Inconclusive,
        first: None,
        movers: Vec::new(),
        symptoms: None,
        waits: None,
        phases: None,
        knee: None,
        growth: None,
        recovery: None,
        steps: None,
        gates: Vec::new(),
        caveats,
        forecast: None,
        history: None,
    }
}
