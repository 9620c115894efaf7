//! The answer as the page tells it: a sentence, the four numbers of a run, and what they stand on.

use super::held;
use super::junit::escaped;
use super::numbers::{number, rounded};
use super::text;
use crate::correlate::align::Basis;
use crate::correlate::growth::Grown;
use crate::correlate::verdict::{Answer, Between, Verdict};
use std::fmt::Write as _;

/// The verdict in words, and the driver.
pub fn word(verdict: &Verdict) -> String {
    let word = match verdict.verdict {
        Answer::Moved => "Something gave way",
        Answer::Rested => "Nothing gave way",
        Answer::Inconclusive => "Inconclusive",
        Answer::Violated => "Violated: a gate on what users feel broke",
        Answer::Saturated => "Saturated: a gate on what is used up broke",
        Answer::Qualified => "Qualified: every gate held",
    };
    match &verdict.run.driver {
        Some(driver) => format!("{word} · {driver}"),
        None => format!(
            "{word} · without a driver's log, rates inferred from {}",
            verdict.run.rate_from.as_deref().unwrap_or("nothing")
        ),
    }
}

/// The answer as a sentence, with the name marked and plain.
pub fn headline(verdict: &Verdict) -> (String, String) {
    let unit = &verdict.run.rate_unit;
    match (&verdict.first, verdict.run.top_rate_per_s) {
        (Some(first), _) => {
            let (rate, low, high) = rounded(first.rate_per_s);
            let name = if first.resource.is_empty() { &first.gauge } else { &first.resource };
            let rest =
                format!(" gave way first, at {rate} {unit} ({low} to {high}), {} into the run", clock(first.onset.elapsed_s));
            let doubt = if verdict.verdict == Answer::Inconclusive { "In doubt: " } else { "" };
            (format!("{doubt}<span class=\"name\">{}</span>{}", broken(name), escaped(&rest)), format!("{doubt}{name}{rest}"))
        }
        (None, Some(top)) => {
            let top = number(top);
            let inconclusive = verdict.verdict == Answer::Inconclusive;
            if let Some(grown) = grown(verdict) {
                let verb = if inconclusive { "nothing else is named" } else { "nothing left rest" };
                let rest = format!(" grows under held load; {verb} up to {top} {unit}");
                (
                    format!("<span class=\"name\">{}</span>{}", broken(&grown.gauge), escaped(&rest)),
                    format!("{}{rest}", grown.gauge),
                )
            } else {
                let verb = if inconclusive { "Nothing is named" } else { "Nothing left rest" };
                let text = format!("{verb} up to {top} {unit}");
                (escaped(&text), text)
            }
        }
        (None, None) => {
            let text = "Nothing could be judged".to_owned();
            (text.clone(), text)
        }
    }
}

/// The answer as a sentence.
pub fn sentence(verdict: &Verdict) -> String {
    headline(verdict).1
}

pub fn clock(seconds: f64) -> String {
    match seconds {
        s if s >= 7200.0 => format!("{:.1} h", s / 3600.0),
        s if s >= 600.0 => format!("{:.0} min", s / 60.0),
        s => format!("{s:.0} s"),
    }
}

/// What grew under held load by itself: what left its rest may grow as its queue does.
fn grown(verdict: &Verdict) -> Option<&Grown> {
    let all = verdict.growth.iter().flat_map(|growth| &growth.plateaus).flat_map(|held| &held.gauges);
    all.into_iter().find(|grown| !grown.moved)
}

/// Escaped, with the places where a long name may be broken.
pub fn broken(text: &str) -> String {
    escaped(text).replace('.', ".<wbr>").replace('_', "_<wbr>")
}

/// The four numbers of a run on one screen.
pub fn tiles(page: &mut String, verdict: &Verdict) {
    let tile = |page: &mut String, value: &str, what: &str| {
        let _ = write!(page, "<div><b>{}</b><span>{}</span></div>", broken(value), broken(what));
    };
    page.push_str("<section class=\"tiles\">");
    match &verdict.first {
        Some(first) => tile(page, &first.gauge, &format!("first gauge · {}", basis(first.basis))),
        None => tile(page, "none", "gauge that left its rest"),
    }
    match &verdict.knee {
        Some(knee) => {
            let (value, low, high) = rounded(Between { value: knee.rate_per_s, low: knee.low, high: knee.high });
            tile(page, &format!("{value} req/s"), &format!("knee, {low} to {high} · {}", basis(knee.basis)));
        }
        None => tile(page, "none", "knee: goodput followed to the end, or it cannot be told"),
    }
    match grown(verdict) {
        Some(grown) => tile(page, &grown.gauge, &format!("grows: {}", held::how(grown))),
        None if verdict.growth.is_some() => tile(page, "none", "growth on a plateau"),
        None => tile(page, "not told", "growth: no stretch of held load is long enough"),
    }
    match verdict.recovery.as_deref().unwrap_or_default() {
        [] => tile(page, "no spike", "recovery"),
        spikes => {
            let slowest = spikes.iter().filter_map(|spike| spike.after_s).fold(0.0, f64::max);
            match spikes.iter().find(|spike| !spike.recovered) {
                Some(spike) => tile(page, "not recovered", &format!("in {} after the spike", clock(spike.observed_s))),
                None => tile(page, &clock(slowest), "recovery after the spike"),
            }
        }
    }
    page.push_str("</section>\n");
}

pub fn basis(basis: Basis) -> &'static str {
    match basis {
        Basis::Measured => "measured",
        Basis::Inferred => "inferred",
    }
}

pub fn facts(page: &mut String, verdict: &Verdict) {
    page.push_str("<dl>");
    let mut fact = |name: &str, text: &str| {
        let _ = write!(page, "<dt>{}</dt><dd>{}</dd>", escaped(name), escaped(text));
    };
    if let Some(first) = &verdict.first {
        if let Some(waits) = verdict.waits.as_ref().and_then(|waits| waits.first()) {
            let place: Vec<&str> =
                [waits.object.as_deref(), waits.index.as_deref(), waits.row.as_deref()].into_iter().flatten().collect();
            let place = if place.is_empty() { format!("a {} lock", waits.kind) } else { place.join(", ") };
            let held = waits.blocker_state.as_ref().map_or(String::new(), |state| format!("; held by a session {state}"));
            fact("Waited on", &format!("{:.0} % of the waiters: {place}{held}", 100.0 * waits.share));
        }
        if !first.tied_with.is_empty() {
            let decided = first
                .decided_by
                .as_ref()
                .map_or("the times alone do not tell their order".to_owned(), |what| format!("{what} decided"));
            fact("Tied with it", &format!("{}; {decided}", first.tied_with.join(", ")));
        }
        let later: Vec<String> = verdict
            .movers
            .iter()
            .skip(1)
            .filter(|mover| !first.tied_with.contains(&mover.gauge))
            .map(|mover| format!("{} at {}", mover.gauge, rounded(mover.rate_per_s).0))
            .collect();
        if !later.is_empty() {
            fact("Then", &format!("{} (consequences, or hidden behind the first)", later.join(" · ")));
        }
    }
    for symptom in verdict.symptoms.iter().flatten().take(4) {
        fact("Felt", &text::felt(symptom));
    }
    if let Some(left_rest) = &verdict.run.left_rest {
        fact("Left rest means", left_rest);
    }
    page.push_str("</dl>\n");
}
