//! `correlate history runs.tsv`: every scenario's runs in their order, and where the series changed; as text, and as a page.

mod page;

use super::Line;
use crate::correlate::report::numbers::number;
use crate::exit;
use crate::judge::change::{Change, MANY, Told, change_points, told};
use crate::time::utc;
use clap::Parser;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Shows the runs that --history wrote, scenario by scenario, and where their knee changed.
#[derive(Clone, Debug, Parser)]
#[command(name = "correlate history")]
struct Show {
    /// The file of runs
    runs: PathBuf,
    /// Write it as a page that stands alone
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// Runs the subcommand; the first argument is its name.
pub fn run(args: impl IntoIterator<Item = OsString>, out: &mut impl std::io::Write, err: &mut impl std::io::Write) -> u8 {
    let options = match Show::try_parse_from(args) {
        Ok(options) => options,
        Err(why) => {
            let _ = why.print();
            return if why.use_stderr() { exit::USAGE } else { exit::DONE };
        }
    };
    let (lines, bad) = match super::read(&options.runs) {
        Ok(read) => read,
        Err(why) => {
            let _ = writeln!(err, "correlate history: {why}");
            return exit::UNUSABLE_INPUT;
        }
    };
    if bad > 0 {
        let _ = writeln!(err, "correlate history: {bad} lines of {} cannot be read", options.runs.display());
    }
    let series = series(lines);
    let _ = out.write_all(text(&series).as_bytes()).and_then(|()| out.flush());
    if let Some(path) = &options.report
        && let Err(why) = std::fs::write(path, page::render(&series))
    {
        let _ = writeln!(err, "correlate history: {} cannot be written: {why}", path.display());
        return exit::USAGE;
    }
    exit::DONE
}

/// The runs of one scenario.
struct Series {
    runs: Vec<Line>,
    /// The first run after each change of what it can do.
    changes: Vec<usize>,
}

fn series(lines: Vec<Line>) -> Vec<Series> {
    let mut all: Vec<Vec<Line>> = Vec::new();
    for line in lines {
        match all.iter_mut().find(|runs| runs[0].scenario == line.scenario) {
            Some(runs) => runs.push(line),
            None => all.push(vec![line]),
        }
    }
    let one = |mut runs: Vec<Line>| {
        runs.sort_by_key(|run| run.start_unix_ms);
        let known: Vec<(usize, f64)> = runs.iter().enumerate().filter_map(|(n, run)| Some((n, run.capacity()?))).collect();
        let values: Vec<f64> = known.iter().map(|(_, value)| *value).collect();
        let changes = change_points(&values).into_iter().map(|at| known[at].0).collect();
        Series { runs, changes }
    };
    all.into_iter().map(one).collect()
}

impl Series {
    fn title(&self) -> String {
        let labels: Vec<String> = self.runs[0]
            .labels
            .iter()
            .filter(|(name, _)| *name != "version")
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let labels = if labels.is_empty() { "no labels".to_owned() } else { labels.join(" ") };
        format!("Scenario {}: {labels}", self.runs[0].scenario)
    }

    /// A run against those before it, back to where the series last changed. Of many runs only for the last: there the change
    /// points tell.
    fn told(&self, at: usize) -> Option<Told> {
        let from = self.changes.iter().rfind(|change| **change < at).copied().unwrap_or(0);
        let earlier: Vec<f64> = self.runs[from..at].iter().filter_map(Line::capacity).collect();
        let few = earlier.len() < MANY || at + 1 == self.runs.len();
        few.then(|| told(&earlier, self.runs[at].capacity()?)).flatten()
    }

    /// What it could do before a change point and from there on.
    fn change(&self, at: usize) -> Option<(String, String)> {
        let place = self.changes.iter().position(|change| *change == at)?;
        let ends = |n: usize| self.changes.get(n).copied().unwrap_or(self.runs.len());
        let begin = if place == 0 { 0 } else { self.changes[place - 1] };
        let median = |from: usize, to: usize| crate::judge::robust::median(self.runs[from..to].iter().filter_map(Line::capacity));
        Some((number(median(begin, at).round()), number(median(at, ends(place + 1)).round())))
    }

    /// What is to be said of a run; nothing where it was as usual.
    fn note(&self, at: usize) -> Option<String> {
        let moved = self.told(at).and_then(|told| moved(told.change));
        let changed = self.change(at).map(|(before, after)| format!("changed here: {before} before, {after} from here on"));
        let notes: Vec<String> = moved.into_iter().chain(changed).collect();
        (!notes.is_empty()).then(|| notes.join("; "))
    }

    /// The last run against those before it.
    fn last(&self) -> String {
        let last = self.runs.len() - 1;
        let rate = self.runs[last].capacity().map_or("no rate".to_owned(), |rate| format!("{} req/s", number(rate)));
        let Some(told) = self.told(last) else {
            return if last == 0 { format!("The first run of its scenario: {rate}") } else { format!("The last run: {rate}") };
        };
        let usual = match told.between {
            Some((low, high)) => format!("{} to {}", number(low.max(0.0)), number(high)),
            None => number(told.usual),
        };
        let how = moved(told.change).unwrap_or_else(|| "is as usual".to_owned());
        let since =
            self.changes.iter().rfind(|change| **change < last).map_or(String::new(), |at| format!(" since run {}", at + 1));
        format!("The last run {how}: {rate} (usual{since}: {usual})")
    }

    /// The latest of the others of which there is something to be said.
    fn before(&self) -> Option<String> {
        let at = (0..self.runs.len() - 1).rev().find(|at| self.note(*at).is_some())?;
        Some(match (self.change(at), self.note(at)) {
            (Some((before, after)), _) => format!("Run {} changed the series: {before} before, {after} from there on", at + 1),
            (None, note) => format!("Run {} {}", at + 1, note?),
        })
    }
}

fn moved(change: Change) -> Option<String> {
    match change {
        Change::Usual => None,
        Change::Fell(share) => Some(format!("fell by {:.0} %", 100.0 * share)),
        Change::Rose(share) => Some(format!("rose by {:.0} %", 100.0 * share)),
    }
}

fn text(all: &[Series]) -> String {
    let mut out = String::new();
    for series in all {
        let _ = writeln!(out, "\n  {}\n", series.title());
        for said in std::iter::once(series.last()).chain(series.before()) {
            let _ = writeln!(out, "  {said}");
        }
        out.push('\n');
        let rows: Vec<[String; 6]> = series.runs.iter().map(cells).collect();
        let widths: Vec<usize> = (0..6).map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0)).collect();
        for (n, row) in rows.iter().enumerate() {
            let mut line = String::from(" ");
            for (cell, width) in row.iter().zip(&widths) {
                let _ = write!(line, " {cell:<width$} ");
            }
            let note = series.note(n).unwrap_or_default();
            let _ = writeln!(out, "{}", format!("{line} {note}").trim_end());
        }
    }
    out.push('\n');
    out
}

fn cells(run: &Line) -> [String; 6] {
    let knee = match (run.knee, run.top_per_s) {
        (Some(_), _) => format!("knee {}", rate(run)),
        (None, Some(_)) => rate(run),
        (None, None) => "-".to_owned(),
    };
    [
        utc(run.start_unix_ms),
        run.version.clone().unwrap_or_else(|| "-".to_owned()),
        run.verdict.clone(),
        knee,
        run.first.clone().unwrap_or_else(|| "nothing moved".to_owned()),
        run.gates.as_ref().map_or("-".to_owned(), |gates| format!("gates {gates}")),
    ]
}

/// The knee with its interval, or how far there was none.
fn rate(run: &Line) -> String {
    match (run.knee, run.top_per_s) {
        (Some([knee, low, high]), _) => format!("{} ({} to {})", number(knee), number(low), number(high)),
        (None, Some(top)) => format!("no knee up to {}", number(top)),
        (None, None) => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(n: i64, knee: f64, scenario: &str) -> Line {
        Line {
            start_unix_ms: 1_796_000_000_000 + n,
            scenario: scenario.into(),
            verdict: "moved".into(),
            knee: Some([knee, knee - 5.0, knee + 5.0]),
            ..Line::default()
        }
    }

    #[test]
    fn a_series_is_shown_by_scenario_with_the_run_at_which_it_changed() {
        let mut lines: Vec<Line> = (0..8).map(|n| line(n, 850.0 + n as f64, "aaaa")).collect();
        lines.push(line(8, 20.0, "bbbb"));
        lines.extend((9..17).map(|n| line(n, 700.0 + n as f64, "aaaa")));
        let all = series(lines);
        assert_eq!((all.len(), &all[0].changes), (2, &vec![8]));
        let text = text(&all);
        assert!(text.contains("  The last run is as usual: 716 req/s (usual since run 9: "), "{text}");
        assert!(text.contains("  Run 9 changed the series: 854 before, 713 from there on\n"), "{text}");
        assert_eq!(text.matches("changed here: 854 before, 713 from here on").count(), 1, "{text}");
        let page = page::render(&all);
        assert!(page.contains("class=\"mark knee\" data-at=\"8.500\"") && !page.contains("<script"), "{page}");
    }
}
