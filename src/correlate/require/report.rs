//! What became of the requirements, for people and for programs.

use super::Finding;
use super::judge::{Coverage, Nearest, Told};
use crate::correlate::report::numbers::number;
use crate::time::{lasted, utc};
use serde_json::json;
use std::fmt::Write as _;
use std::path::Path;

/// One object, whatever the exit code.
pub fn json(coverage: &Coverage) -> String {
    let told = json!({
        "whatgives": env!("CARGO_PKG_VERSION"),
        "covered": coverage.covered(),
        "labels": coverage.labels,
        "runs": coverage.runs,
        "unreadable": coverage.unreadable,
        "needs": coverage.needs,
        "findings": coverage.findings,
    });
    format!("{told:#}\n")
}

/// A paragraph a requirement, then the staging.
pub fn text(coverage: &Coverage, history: &Path) -> String {
    let labels: Vec<String> = coverage.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let word = if coverage.covered() { "covered" } else { "not covered" };
    let runs = if coverage.runs == 1 { "1 run".to_owned() } else { format!("{} runs", coverage.runs) };
    let mut out = format!("\n  {}: {word}; {} has {runs} of it\n", labels.join(" "), history.display());
    if coverage.unreadable > 0 {
        let _ = writeln!(out, "  Lines of it that cannot be read: {}", coverage.unreadable);
    }
    let width = coverage.findings.iter().map(|finding| finding.text.chars().count()).max().unwrap_or(0);
    let line = |finding: &Finding| {
        let Finding { text, code, unknown, file, line, .. } = finding;
        format!("    {text:<width$}  {code}{}, {file} line {line}\n", if *unknown { ", unknown" } else { "" })
    };
    for need in &coverage.needs {
        let own: Vec<&Finding> = coverage.findings.iter().filter(|finding| finding.need.as_ref() == Some(&need.name)).collect();
        let _ = writeln!(out, "\n  {:<12} {}", need.name, said(need, own.is_empty()));
        out.extend(own.into_iter().map(line));
    }
    let of_all: Vec<&Finding> = coverage.findings.iter().filter(|finding| finding.need.is_none()).collect();
    // Runs of one staging are told together.
    let mut told: Vec<(Vec<i64>, String)> = Vec::new();
    for same in of_all.chunk_by(|a, b| a.run_unix_ms == b.run_unix_ms) {
        let lines: String = same.iter().map(|finding| line(finding)).collect();
        let run = same[0].run_unix_ms;
        match told.iter_mut().find(|(_, other)| *other == lines) {
            Some((runs, _)) => runs.extend(run),
            None => told.push((run.into_iter().collect(), lines)),
        }
    }
    for (runs, lines) in told {
        let runs: Vec<String> = runs.into_iter().map(utc).collect();
        let title = if runs.is_empty() { String::new() } else { format!("  staging      {}\n", runs.join(", ")) };
        let _ = write!(out, "\n{title}{lines}");
    }
    out.push('\n');
    out
}

fn said(need: &Told, has_all: bool) -> String {
    match &need.run {
        Some(run) if need.covered => format!("covered by the {}", run_of(run)),
        Some(run) if has_all => format!("not covered, for its staging; nearest: {}", run_of(run)),
        Some(run) => format!("not covered; nearest: {}", run_of(run)),
        None => "not covered; no run".to_owned(),
    }
}

fn run_of(run: &Nearest) -> String {
    let mut text = format!("run of {}", utc(run.start_unix_ms));
    if let Some(seconds) = run.lasted_s {
        let _ = write!(text, ", {}", lasted(seconds));
    }
    if let Some(rate) = run.rate_per_s {
        let _ = write!(text, " at {}/s", number(rate));
    }
    format!("{text}, {}", run.verdict)
}
