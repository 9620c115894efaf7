//! `correlate history runs.tsv`: every scenario's runs in their order, and where the series changed; as text, and as a page.

use super::Line;
use crate::correlate::report::chart::{self, Chart, Mark};
use crate::correlate::report::html::STYLE;
use crate::correlate::report::junit::escaped;
use crate::correlate::report::numbers::number;
use crate::exit;
use crate::judge::change::change_points;
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
        && let Err(why) = std::fs::write(path, page(&series))
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

    fn change(&self, at: usize) -> Option<String> {
        let place = self.changes.iter().position(|change| *change == at)?;
        let ends = |n: usize| self.changes.get(n).copied().unwrap_or(self.runs.len());
        let begin = if place == 0 { 0 } else { self.changes[place - 1] };
        let median = |from: usize, to: usize| crate::judge::robust::median(self.runs[from..to].iter().filter_map(Line::capacity));
        let (before, after) = (median(begin, at), median(at, ends(place + 1)));
        Some(format!("changed here: {} before, {} from here on", number(before.round()), number(after.round())))
    }
}

fn text(all: &[Series]) -> String {
    let mut out = String::new();
    for series in all {
        let _ = writeln!(out, "\n  {}\n", series.title());
        let rows: Vec<[String; 6]> = series.runs.iter().map(cells).collect();
        let widths: Vec<usize> = (0..6).map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0)).collect();
        for (n, row) in rows.iter().enumerate() {
            let mut line = String::from(" ");
            for (cell, width) in row.iter().zip(&widths) {
                let _ = write!(line, " {cell:<width$} ");
            }
            let change = series.change(n).unwrap_or_default();
            let _ = writeln!(out, "{}", format!("{line} {change}").trim_end());
        }
    }
    out.push('\n');
    out
}

fn cells(run: &Line) -> [String; 6] {
    let knee = match (run.knee, run.top_per_s) {
        (Some([knee, low, high]), _) => format!("knee {} ({} to {})", number(knee), number(low), number(high)),
        (None, Some(top)) => format!("no knee up to {}", number(top)),
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

fn page(all: &[Series]) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>Runs</title><style>{STYLE}</style></head><body>\n<h1>What the runs could do</h1>\n"
    );
    for series in all {
        let _ = write!(out, "<section><h2>{}</h2>", escaped(&series.title()));
        let points: Vec<(f64, f64)> =
            series.runs.iter().enumerate().map(|(n, run)| (n as f64 + 1.0, run.capacity().unwrap_or(f64::NAN))).collect();
        let mark = |at: &usize| {
            let at_run = *at as f64 + 0.5;
            Mark { at: at_run, between: (at_run, at_run), label: series.change(*at).unwrap_or_default(), class: "knee" }
        };
        let chart = Chart {
            x_unit: "run",
            unit: "knee, or the highest rate where nothing gave way, req/s",
            x: (0.5, series.runs.len() as f64 + 0.5),
            lines: vec![("knee", &points)],
            dots: &points,
            marks: series.changes.iter().map(mark).collect(),
            ..Chart::default()
        };
        out.push_str(&chart::both(&chart, 200.0, "what each run could do"));
        out.push_str("<div class=\"wide-table\"><table><tr><th>run</th><th class=\"text\">started</th><th class=\"text\">version</th><th class=\"text\">verdict</th><th class=\"text\">knee</th><th class=\"text\">first to move</th><th class=\"text\">gates</th><th class=\"text\"></th></tr>");
        for (n, run) in series.runs.iter().enumerate() {
            let _ = write!(out, "<tr><td>{}</td>", n + 1);
            for cell in cells(run).iter().chain([&series.change(n).unwrap_or_default()]) {
                let _ = write!(out, "<td class=\"text\">{}</td>", escaped(cell));
            }
            out.push_str("</tr>");
        }
        out.push_str("</table></div></section>\n");
    }
    out.push_str("</body></html>\n");
    out
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
        assert_eq!(text.matches("changed here: 854 before, 713 from here on").count(), 1, "{text}");
        let page = page(&all);
        assert!(page.contains("class=\"mark knee\" data-at=\"8.500\"") && !page.contains("<script"), "{page}");
    }
}
