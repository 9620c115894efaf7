//! `--markdown`: the answer for a pull request, with one small chart as an SVG file beside it.

use super::chart::{self, Chart};
use super::junit;
use super::numbers::{number, rounded};
use super::text;
use super::{answer, html};
use crate::correlate::plot::Plot;
use crate::correlate::verdict::{Between, Verdict};
use std::fmt::Write as _;

/// The text; `picture` is how it refers to the chart.
pub fn render(verdict: &Verdict, picture: &str) -> String {
    let mut out = format!("### {}\n\n", cell(&answer::sentence(verdict)));
    // Writing to a string cannot fail.
    macro_rules! line { ($($arg:tt)*) => { let _ = writeln!(out, $($arg)*); } }
    line!("![offered and completed rate, with the onset]({})\n", picture.replace(' ', "%20"));
    line!("| | |\n|---|---|");
    line!("| Verdict | {} |", cell(&answer::word(verdict)));
    if let Some(first) = &verdict.first {
        line!("| First to move | `{}` at {} {} |", first.gauge, rounded(first.rate_per_s).0, verdict.run.rate_unit);
    }
    if let Some(knee) = &verdict.knee {
        let (value, low, high) = rounded(Between { value: knee.rate_per_s, low: knee.low, high: knee.high });
        line!("| Knee | {value} req/s ({low} to {high}) |");
    }
    for symptom in verdict.symptoms.iter().flatten().take(4) {
        line!("| Felt | {} |", cell(&text::felt(symptom)));
    }
    if let Some(top) = verdict.run.top_rate_per_s {
        line!("| Highest rate | {} {} |", number(top), verdict.run.rate_unit);
    }
    if !verdict.gates.is_empty() {
        line!("\n| gate | held | found |\n|---|---|---|");
        for gate in &verdict.gates {
            let name = gate.name.as_ref().map_or(String::new(), |name| format!("{name}: "));
            let found = if gate.passed { junit::value(gate) } else { junit::broke(gate, &verdict.run.rate_unit) };
            line!("| {}{} | {} | {} |", cell(&name), cell(&gate.gate), if gate.passed { "yes" } else { "**no**" }, cell(&found));
        }
    }
    for caveat in &verdict.caveats {
        line!("\n> **{}** ({}): {}", cell(&caveat.text), caveat.code, cell(&caveat.todo));
    }
    out
}

/// The chart, with colours of its own: an image in a page has no style but this.
pub fn picture(verdict: &Verdict, plot: &Plot) -> String {
    let chart = Chart {
        x_unit: "s",
        unit: &verdict.run.rate_unit,
        x: plot.span_s,
        lines: chart::lines(&plot.load),
        marks: verdict.first.iter().map(|first| html::mark(&first.gauge, first.onset, "first")).collect(),
        ..Chart::default()
    };
    chart::alone(&chart, 720.0, 200.0, "the rate that was offered and the rate that was completed, over time", html::STYLE)
}

/// Text inside a line of Markdown: nothing of it is markup or ends the cell.
fn cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            '|' | '\\' | '[' | ']' | '*' | '_' | '<' | '>' | '`' | '#' | '!' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_data_cannot_end_its_cell_or_become_markup() {
        assert_eq!(cell("a|b\n<img> `x`"), "a\\|b \\<img\\> \\`x\\`");
    }
}
