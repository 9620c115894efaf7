//! What the report says of held load and of spikes.

use super::super::align::Basis;
use super::super::growth::{Grown, Quarters};
use super::super::recovery::Recovery;
use super::super::verdict::{Between, Verdict};
use super::numbers::{Scale, number, rounded, signed, significant, thousands};
use super::text::Page;
use crate::time::lasted;

/// So many gauges that grew are shown.
const SHOWN: usize = 5;

/// What grew while the load was held, and which step's quarters grew.
pub fn growth(page: &mut Page, verdict: &Verdict) {
    let basis = if verdict.run.rate_from.is_some() { Basis::Inferred } else { Basis::Measured };
    for held in verdict.growth.iter().flat_map(|growth| &growth.plateaus) {
        let mut told: Vec<&Grown> = held.gauges.iter().filter(|grown| !grown.moved).collect();
        let more = told.len().saturating_sub(SHOWN);
        told.truncate(SHOWN);
        for grown in told {
            let place = format!("{} of t+{:.0} to {:.0} s", held.phase, held.from_s, held.to_s);
            page.line("Growing", format!("{}  ({place})", grew(grown)), Some(basis));
        }
        if more > 0 {
            page.line("Growing", format!("and {more} more"), Some(basis));
        }
        for quarters in held.quarters.iter().flatten().filter(|quarters| !quarters.grew.is_empty()) {
            page.line("Slower by quarter", by_quarter(quarters), Some(Basis::Measured));
        }
        if held.phase == "soak" && held.gauges.is_empty() {
            let judged = held.judged;
            page.line(
                "Growing",
                format!("nothing in the soak of {:.0} s; {judged} gauges judged", held.to_s - held.from_s),
                Some(basis),
            );
        }
    }
}

/// What grew, and how.
fn grew(grown: &Grown) -> String {
    format!("{} {}", grown.gauge, how(grown))
}

/// How it grew, in words.
pub fn how(grown: &Grown) -> String {
    // Falling towards its limit, both ends are negative.
    let Between { value, low, high } = grown.per_minute;
    let scale = Scale::of(&grown.unit, value.abs());
    let own = |value: f64| value.abs() / scale.by;
    let (value, low, high) = (own(value), own(low), own(high));
    let (value, low, high) = rounded(Between { value, low: low.min(high), high: high.max(low) });
    let way = if grown.per_minute.value < 0.0 { "-" } else { "+" };
    let requests = grown.per_1000_requests.map_or(String::new(), |per| {
        let scale = Scale::of(&grown.unit, per.abs());
        format!(", {}{} per 1,000 requests", signed(per / scale.by), scale.unit)
    });
    let whole = |value: f64| {
        let scale = Scale::of(&grown.unit, value.abs());
        if scale.by > 1.0 { format!("{}{}", significant(value / scale.by), scale.unit) } else { number(value) }
    };
    let limit = match (grown.to_limit_s, grown.limit) {
        (Some(seconds), Some(limit)) => format!(", at {} in {}", whole(limit), lasted(seconds)),
        _ => String::new(),
    };
    let minima = if grown.saw_tooth { ", by its minima" } else { "" };
    let level = whole(grown.level);
    format!("{way}{value}{} a minute ({low} to {high}{minima}) from {level}{requests}{limit}", scale.unit)
}

fn by_quarter(quarters: &Quarters) -> String {
    let step = if quarters.step == "*" { "all steps" } else { &quarters.step };
    let named = [("p50", &quarters.p50_ms), ("p95", &quarters.p95_ms), ("p99", &quarters.p99_ms)];
    let each = named.into_iter().zip(quarters.last_over_first).map(|((name, of), ratio)| {
        let ms: Vec<String> = of.iter().map(|ms| ms.map_or("-".to_owned(), significant)).collect();
        let ratio = ratio.map_or(String::new(), |ratio| format!(" (x {ratio:.2})"));
        format!("{name} {} ms{ratio}", ms.join(" "))
    });
    format!("{step}: {}", each.collect::<Vec<String>>().join(" · "))
}

/// How long after a spike everything was back, and what the spike cost.
pub fn recovery(page: &mut Page, verdict: &Verdict) {
    for recovery in verdict.recovery.iter().flatten() {
        let spike = format!("the spike of t+{:.0} to {:.0} s", recovery.spike_from_s, recovery.spike_to_s);
        let (label, text) = if let Some(after) = recovery.after_s {
            ("Recovered", format!("{} after {spike}{}", lasted(after), slowest(recovery)))
        } else {
            let left = recovery.parts.iter().filter(|part| part.after_s.is_none()).map(|part| &*part.measure);
            let left: Vec<&str> = left.take(SHOWN).collect();
            ("Not recovered", format!("in {} after {spike}: {}", lasted(recovery.observed_s), left.join(", ")))
        };
        page.line(label, text, Some(Basis::Measured));
        if let Some(cost) = &recovery.cost {
            let text = format!(
                "{} requests over {:.0} ms and {} not served for {} that the spike added: {:.2} each",
                thousands(cost.over),
                cost.threshold_ms,
                thousands(cost.not_served),
                thousands(cost.extra),
                cost.per_extra
            );
            let basis = if cost.percentiles == "merged" { Basis::Measured } else { Basis::Inferred };
            page.line("The spike cost", text, Some(basis));
        }
    }
}

fn slowest(recovery: &Recovery) -> String {
    let last = recovery.parts.first().filter(|part| part.after_s.is_some_and(|after| after > 0.0));
    let p95 = recovery.parts.iter().find(|part| part.measure == "p95_ms").and_then(|part| part.after_s);
    match (last, p95) {
        (Some(last), Some(p95)) if last.measure != "p95_ms" => {
            format!("; {} came back last, p95 after {}", last.measure, lasted(p95))
        }
        (Some(last), _) => format!("; {} came back last", last.measure),
        (None, _) => String::new(),
    }
}
