//! The table of steps in the report.

use super::super::steps::Step;
use super::super::verdict::Verdict;
use super::numbers::thousands;
use super::text::Page;

/// So many steps are shown.
const SHOWN: usize = 12;

/// One row a step: what was asked, how long it took, what became of it.
pub fn table(page: &mut Page, verdict: &Verdict) {
    let Some(steps) = verdict.steps.as_ref().filter(|steps| !steps.is_empty()) else { return };
    let delayed = steps.iter().any(|step| step.driver_delay_ms.is_some());
    let mut rows = vec![head(delayed)];
    rows.extend(steps.iter().take(SHOWN).map(|step| cells(step, delayed)));
    let widths: Vec<usize> =
        (0..rows[0].len()).map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0)).collect();
    for row in &rows {
        let padded: Vec<String> = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(at, (cell, width))| if at == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") })
            .collect();
        page.line("Steps", padded.join("  "), None);
    }
    if steps.len() > SHOWN {
        page.line("Steps", format!("and {} more", steps.len() - SHOWN), None);
    }
    if steps.iter().any(|step| step.percentiles == "of_windows" && step.p50_ms.is_some()) {
        page.line("Steps", "percentiles: the median of the log's own windows, which cannot be merged".to_owned(), None);
    }
}

/// The names of the columns.
pub fn head(delayed: bool) -> Vec<String> {
    let mut head: Vec<String> =
        ["step", "requests", "per s", "p50", "p95", "p99 ms", "refused", "failed", "dropped"].map(str::to_owned).to_vec();
    if delayed {
        head.push("in driver p95 ms".to_owned());
    }
    head
}

/// One step's row.
pub fn cells(step: &Step, delayed: bool) -> Vec<String> {
    let ms = |value: Option<f64>| match value {
        Some(value) if value < 10.0 => format!("{value:.1}"),
        Some(value) => thousands(value),
        None => "-".to_owned(),
    };
    let asked = step.requests + step.dropped.unwrap_or(0.0);
    let share = |count: Option<f64>| match count {
        None => "-".to_owned(),
        Some(0.0) => "0".to_owned(),
        Some(count) => format!("{} ({})", thousands(count), percent(count / asked)),
    };
    let mut cells = vec![
        if step.step == "*" { "all".to_owned() } else { step.step.clone() },
        thousands(step.requests),
        step.throughput_per_s.map_or("-".to_owned(), |rate| if rate < 10.0 { format!("{rate:.2}") } else { format!("{rate:.1}") }),
        ms(step.p50_ms),
        ms(step.p95_ms),
        ms(step.p99_ms),
        share(step.refused),
        share(step.failed),
        share(step.dropped),
    ];
    if delayed {
        cells.push(ms(step.driver_delay_ms.map(|delay| delay.p95)));
    }
    cells
}

fn percent(share: f64) -> String {
    if share < 0.001 { "<0.1 %".to_owned() } else { format!("{:.1} %", 100.0 * share) }
}
