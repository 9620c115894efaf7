//! A ladder for people and as JSON.

use super::judge::number;
use super::told::{Arm, Ladder, Step};
use crate::correlate::align::Basis;
use crate::correlate::report::numbers::thousands;
use crate::correlate::report::text::{Page, waited, warning};
use crate::correlate::verdict::Answer;

/// The object with a line end.
pub fn json(ladder: &Ladder) -> String {
    let mut text = serde_json::to_string_pretty(ladder).unwrap_or_default();
    text.push('\n');
    text
}

/// The report.
pub fn text(ladder: &Ladder) -> String {
    let mut page = Page::default();
    for arm in &ladder.arms {
        answer(&mut page, ladder, arm);
    }
    table(&mut page, ladder);
    for arm in &ladder.arms {
        for caveat in &arm.caveats {
            let of = if arm.name.is_empty() { String::new() } else { format!("{}: ", arm.name) };
            page.line("Caveat", format!("{of}{}", warning(caveat)), None);
        }
    }
    page.print()
}

fn answer(page: &mut Page, ladder: &Ladder, arm: &Arm) {
    let unit = &ladder.axis.unit;
    let of = if arm.name.is_empty() { String::new() } else { format!("{}: ", arm.name) };
    let top = arm.rungs.iter().filter(|rung| rung.unusable.is_none()).map(|rung| rung.at).fold(0.0, f64::max);
    if arm.verdict == Some(Answer::Inconclusive) {
        let why = arm.caveats.iter().find(|caveat| caveat.can_change_name).map_or("", |caveat| &*caveat.text);
        page.line("Inconclusive", format!("{of}{why}"), None);
    }
    if let Some(first) = &arm.first {
        let between = format!("between {} and {} {unit}", number(first.at.low), number(first.at.high));
        let evidence = if first.evidence == "waiting" { String::new() } else { format!("({}) ", first.evidence) };
        let text = format!(
            "{of}{}  {evidence}left {} {between}: {} at {}",
            first.gauge,
            short(first.resting),
            short(first.value),
            number(first.at.high)
        );
        page.line("First to move", text, Some(first.basis));
        if first.resource != first.gauge {
            page.line("Resource", format!("{of}{}", first.resource), None);
        }
        if let Some((label, text)) = waited(arm.waits.as_deref(), &first.resource) {
            page.line(label, format!("{of}{text}"), Some(Basis::Measured));
        }
        if !first.tied_with.is_empty() {
            let decided = first
                .decided_by
                .as_ref()
                .map_or("their order is not told by the rungs".to_owned(), |what| format!("{what} decided"));
            page.line("Tied with it", format!("{of}{}; {decided}", first.tied_with.join(", ")), None);
        }
        let later: Vec<String> = arm
            .movers
            .iter()
            .skip(1)
            .filter(|mover| !first.tied_with.contains(&mover.gauge))
            .map(|mover| format!("{} by {}", mover.gauge, number(mover.at.high)))
            .collect();
        if !later.is_empty() {
            page.line("Then", format!("{of}{}", later.join(" · ")), Some(Basis::Measured));
        }
    } else if arm.verdict == Some(Answer::Rested) {
        page.line(
            "Nothing left rest",
            format!("{of}up to {} {unit}; {} gauges judged", number(top), arm.judged),
            Some(Basis::Measured),
        );
    } else if arm.verdict.is_none() {
        page.line("Nothing judged", format!("{of}no ticks beside the drivers' logs: throughput, latency and the knee only"), None);
    }
    match &arm.knee {
        Some(knee) => {
            let falls = if knee.last_per_s < 0.9 * knee.rate_per_s {
                format!(", and falls to {} at {}", short(knee.last_per_s), number(top))
            } else {
                String::new()
            };
            let text = format!(
                "{of}{} {unit}  (between {} and {}): throughput stops at {} req/s{falls}",
                number(knee.at.value.round().max(1.0)),
                number(knee.at.low),
                number(knee.at.high),
                short(knee.rate_per_s)
            );
            page.line("Knee", text, Some(knee.basis));
        }
        None if arm.rungs.iter().filter(|rung| rung.unusable.is_none()).count() >= 3 => {
            page.line("Knee", format!("{of}none up to {} {unit}", number(top)), Some(Basis::Measured));
        }
        None => {}
    }
}

/// Throughput and latency a rung, arm beside arm.
fn table(page: &mut Page, ladder: &Ladder) {
    let mut places: Vec<f64> = ladder.arms.iter().flat_map(|arm| &arm.rungs).map(|rung| rung.at).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let latency = measured(ladder);
    let mut rows = vec![vec![ladder.axis.unit.clone()]];
    for arm in &ladder.arms {
        let of = if arm.name.is_empty() { String::new() } else { format!("{} ", arm.name) };
        rows[0].extend([format!("{of}req/s"), format!("{} ms", latency.0), "failed".to_owned()]);
    }
    for place in places {
        let mut row = vec![number(place)];
        for arm in &ladder.arms {
            match arm.rungs.iter().find(|rung| rung.at == place) {
                Some(rung) if rung.unusable.is_none() => {
                    let failed = rung.failed.map_or("?".to_owned(), |share| format!("{:.1} %", 100.0 * share));
                    row.extend([cell(rung.ok_per_s), cell((latency.1)(rung)), failed]);
                }
                Some(_) => row.extend(["left out".to_owned(), String::new(), String::new()]),
                None => row.extend([String::new(), String::new(), String::new()]),
            }
        }
        rows.push(row);
    }
    let widths: Vec<usize> = (0..rows[0].len()).map(|n| rows.iter().map(|row| row[n].chars().count()).max().unwrap_or(0)).collect();
    for row in rows {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}")).collect();
        page.line("Rungs", cells.join("  "), None);
    }
}

type Latency = fn(&Step) -> Option<f64>;

/// The best latency that all rungs have.
fn measured(ladder: &Ladder) -> (&'static str, Latency) {
    let all: [(&str, Latency); 3] = [("p95", |rung| rung.p95_ms), ("p99", |rung| rung.p99_ms), ("p50", |rung| rung.p50_ms)];
    let there = |of: Latency| {
        ladder.arms.iter().flat_map(|arm| &arm.rungs).filter(|rung| rung.unusable.is_none() && of(rung).is_some()).count()
    };
    let most = all.iter().map(|(_, of)| there(*of)).max().unwrap_or(0);
    all.into_iter().find(|(_, of)| there(*of) == most).unwrap_or(all[0])
}

fn cell(value: Option<f64>) -> String {
    value.map_or("?".to_owned(), short)
}

fn short(value: f64) -> String {
    if value.abs() >= 100.0 || value == value.round() { thousands(value) } else { format!("{value:.1}") }
}
