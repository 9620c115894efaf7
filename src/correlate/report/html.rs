//! `--report`: one page that stands alone. No script, nothing loaded; the answer is the first thing read, and below it all
//! charts over time share one axis.

use super::chart::{self, Chart, Mark};
use super::held;
use super::junit::{self, escaped};
use super::steps;
use super::text::{self, number};
use crate::correlate::align::Basis;
use crate::correlate::plot::{Panel, Plot};
use crate::correlate::verdict::{Answer, Between, Mover, Onset, Verdict};
use std::fmt::Write as _;

/// The style of a page and its charts.
pub const STYLE: &str = include_str!("page.css");

/// The page.
pub fn render(verdict: &Verdict, plot: &Plot) -> String {
    let mut page = String::with_capacity(1 << 16);
    let (headline, plain) = headline(verdict);
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{}</title><style>{STYLE}</style></head><body>\n",
        escaped(&plain)
    );
    let _ = writeln!(page, "<header><p class=\"kind\">{}</p><h1>{headline}</h1></header>", escaped(&word(verdict)));
    tiles(&mut page, verdict);
    facts(&mut page, verdict);
    gates(&mut page, verdict);
    charts(&mut page, verdict, plot);
    knee(&mut page, verdict, plot);
    steps(&mut page, verdict);
    held_and_spikes(&mut page, verdict);
    caveats(&mut page, verdict);
    others(&mut page, verdict);
    scenario(&mut page, verdict);
    page.push_str("</body></html>\n");
    page
}

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
fn headline(verdict: &Verdict) -> (String, String) {
    let unit = &verdict.run.rate_unit;
    match (&verdict.first, verdict.run.top_rate_per_s) {
        (Some(first), _) => {
            let (rate, low, high) = text::rounded(first.rate_per_s);
            let name = if first.resource.is_empty() { &first.gauge } else { &first.resource };
            let rest =
                format!(" gave way first, at {rate} {unit} ({low} to {high}), {} into the run", clock(first.onset.elapsed_s));
            let doubt = if verdict.verdict == Answer::Inconclusive { "In doubt: " } else { "" };
            (format!("{doubt}<span class=\"name\">{}</span>{}", escaped(name), escaped(&rest)), format!("{doubt}{name}{rest}"))
        }
        (None, Some(top)) => {
            let verb = if verdict.verdict == Answer::Inconclusive { "Nothing is named" } else { "Nothing left rest" };
            let text = format!("{verb} up to {} {unit}", number(top));
            (escaped(&text), text)
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

fn clock(seconds: f64) -> String {
    match seconds {
        s if s >= 7200.0 => format!("{:.1} h", s / 3600.0),
        s if s >= 600.0 => format!("{:.0} min", s / 60.0),
        s => format!("{s:.0} s"),
    }
}

/// The four numbers of a run on one screen.
fn tiles(page: &mut String, verdict: &Verdict) {
    let tile = |page: &mut String, value: &str, what: &str| {
        let _ = write!(page, "<div><b>{}</b><span>{}</span></div>", escaped(value), escaped(what));
    };
    page.push_str("<section class=\"tiles\">");
    match &verdict.first {
        Some(first) => tile(page, &first.gauge, &format!("first gauge · {}", basis(first.basis))),
        None => tile(page, "none", "gauge that left its rest"),
    }
    match &verdict.knee {
        Some(knee) => {
            let (value, low, high) = text::rounded(Between { value: knee.rate_per_s, low: knee.low, high: knee.high });
            tile(page, &format!("{value} req/s"), &format!("knee, {low} to {high} · {}", basis(knee.basis)));
        }
        None => tile(page, "none", "knee: goodput followed to the end, or it cannot be told"),
    }
    match verdict.growth.as_ref().map(|growth| growth.plateaus.iter().flat_map(|held| &held.gauges)).and_then(|mut all| all.next())
    {
        Some(grown) => tile(page, &grown.gauge, &format!("grows: {}", held::grew(grown))),
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

fn basis(basis: Basis) -> &'static str {
    match basis {
        Basis::Measured => "measured",
        Basis::Inferred => "inferred",
    }
}

fn facts(page: &mut String, verdict: &Verdict) {
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
            .map(|mover| format!("{} at {}", mover.gauge, text::rounded(mover.rate_per_s).0))
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

fn gates(page: &mut String, verdict: &Verdict) {
    if verdict.gates.is_empty() {
        return;
    }
    page.push_str("<section><h2>Gates</h2><div class=\"wide-table\"><table><tr><th>gate</th><th class=\"text\">held</th><th class=\"text\">found</th></tr>");
    for gate in &verdict.gates {
        let name = gate.name.as_ref().map_or(String::new(), |name| format!("{name}: "));
        let (class, held) = if gate.passed { ("held", "held") } else { ("broken", "broken") };
        let found = if gate.passed { junit::value(gate) } else { junit::broke(gate, &verdict.run.rate_unit) };
        let _ = write!(
            page,
            "<tr><td><code>{}</code></td><td class=\"text {class}\">{held}</td><td class=\"text\">{}</td></tr>",
            escaped(&format!("{name}{}", gate.gate)),
            escaped(&found)
        );
    }
    page.push_str("</table></div></section>\n");
}

fn charts(page: &mut String, verdict: &Verdict, plot: &Plot) {
    let phases: Vec<(f64, f64, &str)> =
        verdict.phases.iter().flatten().map(|phase| (phase.from_s, phase.to_s, &*phase.name)).collect();
    let over_time = |unit| Chart { x_unit: "s", unit, x: plot.span_s, ..Chart::default() };
    let marks = verdict.first.iter().map(|first| mark(&first.gauge, first.onset, "first"));
    page.push_str("<section><h2>Load</h2>");
    page.push_str(&chart::legend(plot.load.iter().map(|line| &line.name)));
    let load =
        Chart { lines: chart::lines(&plot.load), marks: marks.collect(), stretches: phases, ..over_time(&verdict.run.rate_unit) };
    page.push_str(&chart::both(&load, 210.0, "the rate that was offered and the rate that was completed, over time"));
    page.push_str("</section>\n");

    if !plot.movers.is_empty() {
        page.push_str("<section><h2>What moved, in its order</h2><p class=\"note\">Shaded across: where it rests. Shaded upright: the interval in which it left.</p>");
        for (n, panel) in plot.movers.iter().enumerate() {
            let class = if n == 0 { "first" } else { "later" };
            let mover = verdict.movers.iter().find(|mover| mover.gauge == panel.title);
            page.push_str(&of_panel(panel, &over_time(&panel.unit), class, mover));
        }
        page.push_str("</section>\n");
    }
    if !plot.latency.is_empty() {
        page.push_str("<section><h2>Latency</h2>");
        for panel in &plot.latency {
            page.push_str(&of_panel(panel, &over_time(&panel.unit), "felt", None));
        }
        page.push_str("</section>\n");
    }
    if !plot.waits.is_empty() {
        page.push_str("<section><h2>Who waited, and on what</h2>");
        page.push_str(&chart::legend(plot.waits.iter().map(|line| &line.name)));
        let waits = Chart { lines: chart::lines(&plot.waits), stacked: true, ..over_time("waiters at a time") };
        page.push_str(&chart::both(&waits, 150.0, "waiters at a time, by object"));
        page.push_str("</section>\n");
    }
}

/// A mark for an onset.
pub fn mark(name: &str, onset: Onset, class: &'static str) -> Mark {
    Mark {
        at: onset.elapsed_s,
        between: (onset.low_s, onset.high_s),
        label: format!("{name}: {} (between {} and {})", clock(onset.elapsed_s), clock(onset.low_s), clock(onset.high_s)),
        class,
    }
}

fn of_panel(panel: &Panel, over_time: &Chart, class: &'static str, mover: Option<&Mover>) -> String {
    let said = mover.map_or(String::new(), |mover| {
        let (rate, low, high) = text::rounded(mover.rate_per_s);
        format!("{} · left {} at {rate} ({low} to {high}) · {}", mover.resource, number(mover.resting.value), basis(mover.basis))
    });
    let mut out = format!("<h3>{} <small>{}</small></h3>", escaped(&panel.title), escaped(&said));
    if panel.lines.len() > 1 {
        out.push_str(&chart::legend(panel.lines.iter().map(|line| &line.name)));
    }
    let marks =
        panel.onset.map(|(low_s, elapsed_s, high_s)| mark(&panel.title, Onset { unix_ms: 0, elapsed_s, low_s, high_s }, class));
    let chart = Chart {
        lines: chart::lines(&panel.lines),
        band: panel.band,
        limit: panel.limit.map(|limit| (limit, format!("{} {}", number(limit), panel.unit))),
        marks: marks.into_iter().collect(),
        squeezed: panel.material,
        ..over_time.clone()
    };
    out.push_str(&chart::both(&chart, 130.0, &format!("{} over time", panel.title)));
    out
}

fn knee(page: &mut String, verdict: &Verdict, plot: &Plot) {
    let top = plot.knee.iter().map(|(offered, _)| *offered).fold(0.0, f64::max);
    if plot.knee.len() < 5 || verdict.run.rate_from.is_some() {
        return;
    }
    let (mut marks, mut fitted) = (Vec::new(), Vec::new());
    if let Some(knee) = &verdict.knee {
        marks.push(Mark {
            at: knee.rate_per_s,
            between: (knee.low, knee.high),
            label: format!("knee: {} req/s", number(knee.rate_per_s)),
            class: "knee",
        });
        fitted = vec![(0.0, 0.0), (knee.rate_per_s, knee.rate_per_s), (top, knee.rate_per_s)];
    }
    page.push_str("<section><h2>Goodput against what was offered</h2>");
    let chart =
        Chart { x_unit: "req/s", unit: "ok, req/s", x: (0.0, 1.02 * top), dots: &plot.knee, marks, fitted, ..Chart::default() };
    page.push_str(&chart::both(&chart, 220.0, "goodput against the offered rate, with the knee"));
    page.push_str("<p class=\"note\">Across: offered, req/s.</p></section>\n");
}

fn steps(page: &mut String, verdict: &Verdict) {
    let Some(steps) = verdict.steps.as_ref().filter(|steps| !steps.is_empty()) else { return };
    page.push_str("<section><h2>Steps</h2><div class=\"wide-table\"><table>");
    let delayed = steps.iter().any(|step| step.driver_delay_ms.is_some());
    for (n, row) in std::iter::once(steps::head(delayed)).chain(steps.iter().map(|step| steps::cells(step, delayed))).enumerate() {
        let tag = if n == 0 { "th" } else { "td" };
        page.push_str("<tr>");
        for cell in row {
            let _ = write!(page, "<{tag}>{}</{tag}>", escaped(&cell));
        }
        page.push_str("</tr>");
    }
    page.push_str("</table></div></section>\n");
}

/// What the text report says of held load and of spikes, in the same words.
fn held_and_spikes(page: &mut String, verdict: &Verdict) {
    let mut lines = text::Page::default();
    held::growth(&mut lines, verdict);
    held::recovery(&mut lines, verdict);
    if lines.is_empty() {
        return;
    }
    page.push_str("<section><h2>Held load and spikes</h2><dl>");
    for (name, text) in lines.lines() {
        let _ = write!(page, "<dt>{}</dt><dd>{}</dd>", escaped(name), escaped(text));
    }
    page.push_str("</dl></section>\n");
}

fn caveats(page: &mut String, verdict: &Verdict) {
    if verdict.caveats.is_empty() {
        return;
    }
    page.push_str("<section><h2>Caveats</h2><ul class=\"caveats\">");
    for caveat in &verdict.caveats {
        let class = if caveat.can_change_name { "serious" } else { "" };
        let _ = write!(
            page,
            "<li><span class=\"{class}\">{}</span> <span class=\"note\">({}) {}</span></li>",
            escaped(&caveat.text),
            caveat.code,
            escaped(&caveat.todo)
        );
    }
    page.push_str("</ul></section>\n");
}

fn others(page: &mut String, verdict: &Verdict) {
    let run = &verdict.run;
    page.push_str("<section><h2>What else was watched</h2><dl>");
    let mut list = |name: &str, items: Vec<String>| {
        if !items.is_empty() {
            let _ = write!(page, "<dt>{} ({})</dt><dd>{}</dd>", escaped(name), items.len(), escaped(&items.join(", ")));
        }
    };
    list("Used at the end", run.used.iter().map(|used| format!("{} {:.0} %", used.gauge, 100.0 * used.share)).collect());
    let aside = |aside: &crate::correlate::verdict::Aside| format!("{} ({})", aside.gauge, aside.why);
    list("Moved, not with the load", run.not_with_load.iter().map(aside).collect());
    list("Not judged", run.not_judged.iter().map(aside).collect());
    list("Not moved", run.not_moved.clone());
    page.push_str("</dl></section>\n");
}

fn scenario(page: &mut String, verdict: &Verdict) {
    let run = &verdict.run;
    page.push_str("<section><h2>The run</h2><dl>");
    let mut fact = |name: &str, text: String| {
        let _ = write!(page, "<dt>{}</dt><dd>{}</dd>", escaped(name), escaped(&text));
    };
    fact("Started", crate::time::utc(run.start_unix_ms));
    fact("Lasted", format!("{}, one tick every {} ms", clock(run.elapsed_s), number(run.tick_ms)));
    fact("Ticks", run.ticks.clone());
    if let Some(waits) = &run.waits {
        fact("Waits", waits.clone());
    }
    for (name, value) in &run.labels {
        fact(name, value.clone());
    }
    let _ = writeln!(page, "</dl><p class=\"note\">whatgives {}</p></section>", verdict.whatgives);
}
