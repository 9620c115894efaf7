//! The files of a ladder, grouped into rungs and read.

use super::cli::Options;
use crate::correlate::align::{self, Basis};
use crate::correlate::gather::{Frame, gather};
use crate::correlate::{clocks, input};
use crate::driver;
use crate::hist::Hist;
use crate::judge::robust::median;
use crate::text::InputError;
use crate::timeline::{Interval, Timeline};
use crate::waits::{self, Waits};
use std::path::{Path, PathBuf};

/// The share of a rung that is its warm-up, and at most how many seconds of it.
const WARM_UP: f64 = 0.15;
const WARM_UP_S: f64 = 5.0;

/// One rung as it was read.
#[derive(Debug, Default)]
pub struct Rung {
    /// Its PREFIX.
    pub name: String,
    /// Where it stands on the axis; NaN until that is known.
    pub at: f64,
    /// What its sampler saw.
    pub frame: Option<Frame>,
    /// The bins under load, its warm-up left out.
    pub loaded: (usize, usize),
    /// Who waited.
    pub waits: Option<Waits>,
    /// What the driver says of it.
    pub figures: Figures,
    /// The driver's own name.
    pub driver: String,
    /// The driver's caveats.
    pub said: Vec<String>,
    /// Visitors or connections, as the driver says.
    pub visitors: Option<f64>,
    /// Why it cannot be used.
    pub unusable: Option<String>,
}

/// What a rung did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Completed, per second.
    pub rate: f64,
    /// Ended well, per second.
    pub ok: f64,
    /// The share that failed.
    pub failed: f64,
    /// Median latency.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Whether the driver counted the rate.
    pub basis: Basis,
}

impl Default for Figures {
    fn default() -> Self {
        let nothing = f64::NAN;
        Self { rate: nothing, ok: nothing, failed: nothing, p50: nothing, p95: nothing, p99: nothing, basis: Basis::Measured }
    }
}

/// The files of one rung.
#[derive(Debug, Default, PartialEq)]
struct Group {
    name: String,
    ticks: Option<PathBuf>,
    logs: Vec<PathBuf>,
}

/// Reads the rungs of an arm.
pub fn read(given: &[PathBuf], options: &Options) -> Result<Vec<Rung>, InputError> {
    let groups = group(given)?;
    let rungs: Vec<Rung> = groups.iter().map(|group| rung(group, options)).collect();
    if rungs.iter().all(|rung| rung.unusable.is_some()) {
        let path = given.first().cloned().unwrap_or_default();
        let why = rungs.iter().find_map(|rung| Some(format!("{}: {}", rung.name, rung.unusable.as_deref()?)));
        return Err(InputError::new(
            &path,
            format!("is of a ladder without any rung that can be used; {}", why.unwrap_or_default()),
        )
        .hint("a rung is PREFIX.ticks.tsv with the driver's log PREFIX.* beside it, or the log alone"));
    }
    Ok(rungs)
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// What stands before `ticks.tsv`; the folder's name where nothing does.
fn prefix_of_ticks(path: &Path) -> Option<String> {
    let name = file_name(path);
    let prefix = name.strip_suffix(".gz").unwrap_or(&name).strip_suffix("ticks.tsv")?.trim_end_matches(['.', '-', '_']).to_owned();
    if prefix.is_empty() { path.parent().map(file_name) } else { Some(prefix) }
}

/// Files of one folder, sorted.
fn inside(folder: &Path) -> Result<Vec<PathBuf>, InputError> {
    let list = std::fs::read_dir(folder).map_err(|why| InputError::new(folder, format!("cannot be opened: {why}")))?;
    let mut files: Vec<PathBuf> = list.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_file()).collect();
    files.sort();
    Ok(files)
}

fn group(given: &[PathBuf]) -> Result<Vec<Group>, InputError> {
    let mut groups: Vec<Group> = Vec::new();
    let (folders, files): (Vec<&PathBuf>, Vec<&PathBuf>) = given.iter().partition(|path| path.is_dir());
    for folder in folders {
        let files = inside(folder)?;
        let ticks = files.iter().find(|path| input::is_ticks(path)).cloned();
        groups.push(Group { name: file_name(folder), logs: logs(&files, |_| true), ticks });
    }
    let (ticks, others): (Vec<&PathBuf>, Vec<&PathBuf>) =
        files.into_iter().partition(|path| prefix_of_ticks(path).is_some() && (!path.exists() || input::is_ticks(path)));
    for path in ticks {
        let name = prefix_of_ticks(path).unwrap_or_default();
        // What stands beside it is found whether it was given or not.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let own = |beside: &Path| file_name(beside).strip_prefix(&name).is_some_and(|rest| rest.starts_with('.'));
        groups.push(Group { logs: logs(&inside(folder)?, own), name, ticks: Some(path.clone()) });
    }
    for path in others {
        let known = |group: &Group| group.logs.iter().any(|log| file_name(log) == file_name(path));
        if input::is_ours(path) || groups.iter().any(known) {
            continue;
        }
        let name = file_name(path);
        let long =
            groups.iter().map(|group| group.name.clone()).filter(|prefix| !prefix.is_empty() && name.starts_with(prefix.as_str()));
        match long
            .max_by_key(String::len)
            .and_then(|prefix| groups.iter_mut().find(|group| group.name == prefix && group.ticks.is_some()))
        {
            Some(group) => group.logs.push(path.clone()),
            None => groups.push(Group { name: stem(&name), ticks: None, logs: vec![path.clone()] }),
        }
    }
    Ok(groups)
}

/// The files that can be a driver's log.
fn logs(files: &[PathBuf], own: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    files.iter().filter(|path| own(path) && !input::is_ours(path)).cloned().collect()
}

/// A name without what tells its kind.
fn stem(name: &str) -> String {
    let name = name.strip_suffix(".gz").unwrap_or(name);
    let short =
        name.rsplit_once('.').filter(|(short, end)| !short.is_empty() && end.bytes().any(|byte| byte.is_ascii_alphabetic()));
    let short = short.map_or(name, |(short, _)| short);
    short.strip_suffix(".timeline").or_else(|| short.strip_suffix("_timeline")).unwrap_or(short).to_owned()
}

fn rung(group: &Group, options: &Options) -> Rung {
    let mut rung = Rung { name: group.name.clone(), at: f64::NAN, ..Rung::default() };
    if let Some(ticks) = &group.ticks {
        match gather(ticks) {
            Ok(frame) => {
                rung.loaded = (0, frame.bins);
                rung.frame = Some(frame);
            }
            Err(why) => rung.unusable = Some(why.to_string()),
        }
        rung.waits = input::waits_beside(ticks).and_then(|path| waits::read(&path).ok());
    }
    let start = rung.frame.as_ref().and_then(|frame| frame.children.iter().find_map(|child| child.start_unix_ms));
    let log = options.log.options(start);
    let mut why = None;
    let read: Vec<Timeline> = group
        .logs
        .iter()
        .filter_map(|path| driver::read(std::slice::from_ref(path), &log).map_err(|error| why = Some(error)).ok())
        .collect();
    let is_timeline = |timeline: &Timeline| timeline.driver.more.get("kind").is_none_or(|kind| kind == "timeline");
    // Figures of the whole rung, where the driver gives them beside its log, are the driver's own.
    match read.iter().find(|timeline| !is_timeline(timeline)).or_else(|| read.first()) {
        Some(timeline) => driven(&mut rung, timeline),
        None if !group.logs.is_empty() => rung.unusable = why.map(|why| why.to_string()),
        None => {}
    }
    if let Some(frame) = &rung.frame {
        rung.loaded = loaded(frame, read.iter().find(|timeline| is_timeline(timeline)));
        if group.logs.is_empty() {
            inferred(&mut rung);
        }
    }
    if rung.unusable.is_none() && rung.figures.rate.max(0.0) == 0.0 {
        rung.unusable = Some("completed no request".to_owned());
    }
    rung
}

/// What a driver's log or summary says.
fn driven(rung: &mut Rung, timeline: &Timeline) {
    let all: Vec<&Interval> = timeline.all().collect();
    let whole = all.len() == 1;
    // The first and the last interval of a log are partial, the first ones warm up.
    let skip = if whole { 0 } else { ((all.len() as f64 * WARM_UP) as usize).clamp(1, all.len() - 1) };
    let end = if all.len() > skip + 2 { all.len() - 1 } else { all.len() };
    let used = &all[skip..end];
    let sum = |of: fn(&Interval) -> Option<f64>| used.iter().filter_map(|i| of(i)).sum::<f64>();
    let seconds = used.iter().map(|i| i.dur_ms).sum::<f64>() / 1e3;
    let (ended, ok, failed) = (sum(Interval::ended), sum(|i| i.ok.or(i.started)), sum(|i| i.failed));
    let mut hist = Hist::default();
    used.iter().filter_map(|i| i.hist.as_ref()).for_each(|one| hist.merge(one));
    let quantile =
        |q: f64, of: fn(&Interval) -> Option<f64>| hist.quantile_ms(q).unwrap_or_else(|| median(used.iter().filter_map(|i| of(i))));
    rung.figures = Figures {
        rate: ended / seconds,
        ok: ok / seconds,
        failed: if ended > 0.0 { failed / ended } else { f64::NAN },
        p50: quantile(0.5, |i| i.p50_ms),
        p95: quantile(0.95, |i| i.p95_ms),
        p99: quantile(0.99, |i| i.p99_ms),
        basis: Basis::Measured,
    };
    rung.visitors = used.iter().filter_map(|i| i.vus).reduce(f64::max);
    rung.driver.clone_from(&timeline.driver.driver);
    rung.said.clone_from(&timeline.driver.caveats);
}

/// The rate of the outermost target, where no driver says it.
fn inferred(rung: &mut Rung) {
    let Some(frame) = &rung.frame else { return };
    let Some(gauge) = align::outermost(frame) else { return };
    let (from, to) = rung.loaded;
    let rate = median(gauge.values[from..to].iter().copied());
    rung.figures = Figures { rate, ok: rate, basis: Basis::Inferred, ..Figures::default() };
}

/// The bins under load: while the sampler's driver ran, or while the log says so; else all.
fn loaded(frame: &Frame, timeline: Option<&Timeline>) -> (usize, usize) {
    let bin = |ms: f64| ((ms - frame.at_ms(0)) / (1e3 * frame.step_s)).clamp(0.0, frame.bins as f64);
    let start = frame.children.iter().find_map(|child| child.start_unix_ms);
    let end = frame.children.iter().find_map(|child| child.end_unix_ms);
    let (mut from, mut to) = match (start, end) {
        (Some(start), end) => (bin(start as f64).ceil(), end.map_or(frame.bins as f64, |end| bin(end as f64).floor())),
        (None, _) => (0.0, frame.bins as f64),
    };
    if let (None, Some(timeline)) = (start, timeline) {
        let (moved, ..) = clocks::mend(frame, timeline.clone());
        let ends = moved.all().map(|i| i.unix_ms as f64 + i.dur_ms).fold(f64::NAN, f64::max);
        let begins = moved.all().map(|i| i.unix_ms as f64).fold(f64::NAN, f64::min);
        if bin(ends) - bin(begins) >= 3.0 {
            (from, to) = (bin(begins).ceil(), bin(ends).floor());
        }
    }
    // A counter's first difference, and the driver's own start and end.
    let warm = (WARM_UP * (to - from)).min(WARM_UP_S / frame.step_s).max(1.0);
    let (from, to) = ((from + warm) as usize, to as usize);
    if to > from + 1 { (from, to) } else { (0, frame.bins) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_loses_what_tells_its_kind_and_keeps_its_numbers() {
        for (name, wanted) in [
            ("wrk_c8.txt", "wrk_c8"),
            ("hey_c32_q20.csv.gz", "hey_c32_q20"),
            ("rung-0.5", "rung-0.5"),
            ("rung-8.timeline.tsv", "rung-8"),
            ("siege", "siege"),
        ] {
            assert_eq!(stem(name), wanted);
        }
    }

    #[test]
    fn ticks_are_called_by_their_prefix_or_their_folder() {
        assert_eq!(prefix_of_ticks(Path::new("a/rung-8.ticks.tsv")).as_deref(), Some("rung-8"));
        assert_eq!(prefix_of_ticks(Path::new("a/rung-8/ticks.tsv")).as_deref(), Some("rung-8"));
        assert_eq!(prefix_of_ticks(Path::new("rung-8.wrk.txt")), None);
    }
}
