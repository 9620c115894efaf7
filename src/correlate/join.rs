//! Several files of ticks of one run, one sampler a machine, as one.
//!
//! **Question.** What did all machines say at one moment? **Method.** Every file is gathered by itself, so that a gap or a
//! reset is one of its own columns only; then all are laid on bins of the coarsest file. Instances that two files share are
//! told apart by their sampler's host. The clock of each is compared with that of the first (or of the sampler that started
//! the driver) by the throughput gauges of both ([`crate::judge::lag`]): one request is counted by the web server's machine
//! and by the database's. What is clearly apart by a second or more is moved. **How it fails.** Two machines that share no
//! request cannot be compared; their clocks are then taken as they are, and the report says so.

use super::align;
use super::clocks;
use super::gather::{Frame, Gauge, gather};
use super::input::Files;
use super::verdict::{Caveat, FilePart};
use super::{caveats, tell};
use crate::judge::lag::{self, Amount, Lag};
use crate::text::InputError;
use crate::ticks::Capacity;
use crate::waits::{self, Waits};
use std::collections::HashSet;

/// How many throughput gauges of each file are compared.
const COMPARED: usize = 4;

/// The files of one run, as one.
pub struct Joined {
    /// All gauges.
    pub frame: Frame,
    /// All waiters, where any file of waits was there.
    pub waits: Option<Waits>,
    /// The single files, where there are several.
    pub parts: Vec<FilePart>,
    /// What is to be known of their clocks.
    pub caveats: Vec<Caveat>,
}

struct Part {
    frame: Frame,
    waits: Option<Waits>,
    told: FilePart,
}

/// Reads all files of one run.
pub fn read(files: &[Files]) -> Result<Joined, InputError> {
    let mut parts = Vec::new();
    for files in files {
        let frame = gather(&files.ticks)?;
        let waits = files.waits.as_deref().map(waits::read).transpose()?;
        let path = |path: &std::path::Path| path.display().to_string();
        let told =
            FilePart { ticks: path(&files.ticks), waits: files.waits.as_deref().map(path), host: name(&frame, files), clock: None };
        parts.push(Part { frame, waits, told });
    }
    if let [_] = parts[..]
        && let Some(Part { frame, waits, .. }) = parts.pop()
    {
        return Ok(Joined { frame, waits, parts: Vec::new(), caveats: Vec::new() });
    }
    tell_apart(&mut parts);
    let caveats = one_clock(&mut parts);
    meet(files, &parts)?;
    Ok(together(parts, caveats))
}

/// What a file's machine is called: its sampler's host, else the file's PREFIX.
fn name(frame: &Frame, files: &Files) -> String {
    let of_targets = || frame.targets.iter().find_map(|target| target.about.get("host").and_then(|host| host.as_str()));
    if !frame.run.host.is_empty() {
        return frame.run.host.clone();
    }
    of_targets().map(str::to_owned).unwrap_or_else(|| files.prefix())
}

/// Instances of several files get their machine's name in front: `web1/host.cpu_busy`.
fn tell_apart(parts: &mut [Part]) {
    let (mut seen, mut shared) = (HashSet::new(), HashSet::new());
    for target in parts.iter().flat_map(|part| &part.frame.targets) {
        if !seen.insert(target.instance.clone()) {
            shared.insert(target.instance.clone());
        }
    }
    let mut taken = HashSet::new();
    for part in parts {
        let host = part.told.host.clone();
        let mut n = 1;
        // Two samplers on one machine, or two machines of one name.
        while !taken.insert(part.told.host.clone()) {
            n += 1;
            part.told.host = format!("{host}-{n}");
        }
        for instance in &shared {
            rename(part, instance);
        }
    }
}

fn rename(part: &mut Part, instance: &str) {
    let long = format!("{}/{instance}", part.told.host);
    if !part.frame.targets.iter().any(|target| target.instance == instance) {
        return;
    }
    let renamed = |column: &str| match column.strip_prefix(instance) {
        Some(rest) if rest.starts_with('.') => format!("{long}{rest}"),
        _ => column.to_owned(),
    };
    for target in part.frame.targets.iter_mut().filter(|target| target.instance == instance) {
        target.instance.clone_from(&long);
    }
    for gauge in &mut part.frame.gauges {
        if gauge.target == instance {
            gauge.target.clone_from(&long);
            gauge.name = renamed(&gauge.name);
        }
        if let Some(Capacity::Column(column)) = &mut gauge.meaning.capacity {
            *column = renamed(column);
        }
        gauge.meaning.visits = gauge.meaning.visits.as_deref().map(renamed);
    }
    for (column, _) in &mut part.frame.health.resets {
        *column = renamed(column);
    }
    for row in part.waits.iter_mut().flat_map(|waits| &mut waits.rows).filter(|row| row.target == instance) {
        row.target.clone_from(&long);
    }
}

/// Moves every file to the clock of the first, the one whose sampler started the driver.
fn one_clock(parts: &mut [Part]) -> Vec<Caveat> {
    if let Some(at) = parts.iter().position(|part| part.frame.children.iter().any(|child| child.start_unix_ms.is_some())) {
        parts[..=at].rotate_right(1);
    }
    let mut caveats = Vec::new();
    let Some((reference, others)) = parts.split_first_mut() else { return caveats };
    for part in others {
        let Some((lag, by)) = compare(&reference.frame, &part.frame) else {
            caveats.push(caveats::clocks_of_files_unknown(&part.told.host, &reference.told.host));
            continue;
        };
        let moved = if clocks::is_apart(&lag) { lag.seconds } else { 0.0 };
        part.told.clock = Some(clocks::told(lag.seconds, lag.within_s, moved, by));
        if moved != 0.0 {
            caveats.push(caveats::clocks_of_files_apart(&part.told.host, &reference.told.host, moved, lag.within_s));
            shift(part, moved);
        }
    }
    caveats
}

/// What is to be added to the other's clock, by the pair of throughput gauges that resemble each other most.
fn compare(reference: &Frame, other: &Frame) -> Option<(Lag, String)> {
    let pairs = align::throughputs(reference)
        .take(COMPARED)
        .flat_map(|one| align::throughputs(other).take(COMPARED).map(move |two| (one, two)));
    pairs
        .filter_map(|(one, two)| {
            let seen = clocks::seen(reference, one);
            let even = clocks::seen(other, two);
            let amount = |(bin, rate): (usize, &f64)| {
                rate.is_finite().then(|| Amount { from_s: even.from_s + bin as f64 * even.step_s, dur_s: even.step_s, rate: *rate })
            };
            let told: Vec<Amount> = even.rates.iter().enumerate().filter_map(amount).collect();
            let mut lag = lag::lag(&seen, &told, 0.0, clocks::reach_s(reference, even.step_s))?;
            lag.within_s += (reference.health.late_p99_ms + other.health.late_p99_ms).max(0.0) / 1e3;
            Some((lag, format!("{} and {}", one.name, two.name)))
        })
        .max_by(|a, b| a.0.fits.total_cmp(&b.0.fits))
}

fn shift(part: &mut Part, seconds: f64) {
    let ms = 1e3 * seconds;
    part.frame.start_ms += ms;
    part.frame.run.start_unix_ms += ms.round() as i64;
    for row in part.waits.iter_mut().flat_map(|waits| &mut waits.rows) {
        row.unix_ms += ms.round() as i64;
    }
}

/// Files that have no moment in common are not of one run.
fn meet(files: &[Files], parts: &[Part]) -> Result<(), InputError> {
    let span = |part: &Part| (part.frame.at_ms(0), part.frame.at_ms(part.frame.bins));
    let first = span(&parts[0]);
    for part in &parts[1..] {
        let (from, to) = span(part);
        if to <= first.0 || from >= first.1 {
            let path = files.iter().find(|files| files.ticks.display().to_string() == part.told.ticks);
            let apart = (from - first.0).abs() / 1e3;
            return Err(InputError::new(
                path.map_or(std::path::Path::new(""), |files| &files.ticks),
                format!("has no moment in common with {}: they begin {apart:.0} s apart", parts[0].told.ticks),
            )
            .hint("give the files of one run; if they are, see the clocks of both machines"));
        }
    }
    Ok(())
}

fn together(parts: Vec<Part>, caveats: Vec<Caveat>) -> Joined {
    let step_s = parts.iter().map(|part| part.frame.step_s).fold(0.0, f64::max);
    let first = &parts[0].frame;
    let start_ms = {
        // On the first file's own bins, from before every file's begin.
        let earliest = parts.iter().map(|part| part.frame.start_ms).fold(f64::INFINITY, f64::min);
        first.start_ms - ((first.start_ms - earliest) / (1e3 * step_s)).ceil().max(0.0) * 1e3 * step_s
    };
    let end_ms = parts.iter().map(|part| part.frame.at_ms(part.frame.bins)).fold(0.0, f64::max);
    let bins = ((end_ms - start_ms) / (1e3 * step_s)).ceil().max(1.0) as usize;
    let mut frame = Frame::empty(start_ms, step_s, bins);
    frame.readings = parts.iter().map(|part| step_s / part.frame.step_s * part.frame.readings).fold(f64::INFINITY, f64::min);
    frame.run = first.run.clone();
    frame.run.host = parts.iter().map(|part| &*part.told.host).collect::<Vec<_>>().join(", ");
    let (mut all_waits, mut told) = (None::<Waits>, Vec::new());
    for part in parts {
        let bin = |own: usize| ((part.frame.at_ms(own) - start_ms) / (1e3 * step_s)).round().max(0.0) as usize;
        frame.run.start_unix_ms = frame.run.start_unix_ms.min(part.frame.run.start_unix_ms);
        frame.run.tick_ms = frame.run.tick_ms.max(part.frame.run.tick_ms);
        for (label, value) in &part.frame.run.labels {
            frame.run.labels.entry(label.clone()).or_insert_with(|| value.clone());
        }
        let (health, own) = (&mut frame.health, &part.frame.health);
        health.rows += own.rows;
        health.backwards += own.backwards;
        health.missed += own.missed;
        health.late_p50_ms = health.late_p50_ms.max(own.late_p50_ms);
        health.late_p99_ms = health.late_p99_ms.max(own.late_p99_ms);
        health.resets.extend(own.resets.iter().map(|(column, at)| (column.clone(), bin(*at).min(bins - 1))));
        for gauge in &part.frame.gauges {
            let (mut sums, mut counts) = (vec![0.0; bins], vec![0.0; bins]);
            for (own, value) in gauge.values.iter().enumerate().filter(|(_, value)| value.is_finite()) {
                let at = bin(own).min(bins - 1);
                sums[at] += value;
                counts[at] += 1.0;
            }
            let values = sums.iter().zip(&counts).map(|(sum, n)| if *n > 0.0 { sum / n } else { f64::NAN }).collect();
            frame.put(Gauge { values, ..gauge.clone() });
        }
        frame.targets.extend(part.frame.targets);
        frame.children.extend(part.frame.children);
        if let Some(waits) = part.waits {
            let all = all_waits.get_or_insert_with(Waits::default);
            all.rows.extend(waits.rows);
            all.statements.extend(waits.statements);
        }
        told.push(part.told);
    }
    if let Some(waits) = &mut all_waits {
        waits.rows.sort_by_key(|row| row.unix_ms);
    }
    frame.run.tick_ms = tell::round(frame.run.tick_ms, 3);
    Joined { frame, waits: all_waits, parts: told, caveats }
}
