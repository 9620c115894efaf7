//! `--report`: one page that stands alone. No script, nothing loaded; the answer is the first thing read, and below it all
//! charts over time share one axis.

use super::answer::{self, basis, broken, clock};
use super::chart::{self, Chart, Mark};
use super::held;
use super::junit::{self, escaped};
use super::numbers::{number, rounded};
use super::steps;
use super::text;
use crate::correlate::plot::{Panel, Plot};
use crate::correlate::verdict::{Mover, Onset, Verdict};
use std::fmt::Write as _;

/// The style of a page and its charts.
pub const STYLE: &str = include_str!("page.css");

/// The page.
pub fn render(verdict: &Verdict, plot: &Plot) -> String {
    let mut page = String::with_capacity(1 << 16);
    let (headline, plain) = answer::headline(verdict);
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{}</title><style>{STYLE}</style></head><body>\n",
        escaped(&plain)
    );
    let _ = writeln!(page, "<header><p class=\"kind\">{}</p><h1>{headline}</h1></header>", escaped(&answer::word(verdict)));
    answer::tiles(&mut page, verdict);
    answer::facts(&mut page, verdict);
    gates(&mut page, verdict);
    charts(&mut page, verdict, plot);
    knee(&mut page, verdict, plot);
    steps(&mut page, verdict);
    held_and_spikes(&mut page, verdict, plot);
    caveats(&mut page, verdict);
    others(&mut page, verdict);
    scenario(&mut page, verdict);
    page.push_str("</body></html>\n");
    page
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
    let over_time = |unit| over_time(plot, unit);
    let marks = verdict.first.iter().map(|first| mark(&first.gauge, first.onset, "first")).chain(recovered(verdict));
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

/// A chart whose x axis all of them share.
fn over_time<'a>(plot: &Plot, unit: &'a str) -> Chart<'a> {
    Chart { x_unit: "s", unit, x: plot.span_s, ..Chart::default() }
}

/// From the end of each spike until everything was back.
fn recovered(verdict: &Verdict) -> impl Iterator<Item = Mark> {
    verdict.recovery.iter().flatten().filter_map(|recovery| {
        let after = recovery.after_s?;
        let (from, at) = (recovery.spike_to_s, recovery.spike_to_s + after);
        Some(Mark { at, between: (from, at), label: format!("everything back {} after the spike", clock(after)), class: "back" })
    })
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
        let (rate, low, high) = rounded(mover.rate_per_s);
        format!("{} · left {} at {rate} ({low} to {high}) · {}", mover.resource, number(mover.resting.value), basis(mover.basis))
    });
    let mut out = format!("<h3>{} <small>{}</small></h3>", broken(&panel.title), escaped(&said));
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
fn held_and_spikes(page: &mut String, verdict: &Verdict, plot: &Plot) {
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
    page.push_str("</dl>");
    for panel in &plot.growth {
        page.push_str(&of_panel(panel, &over_time(plot, &panel.unit), "later", None));
    }
    page.push_str("</section>\n");
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
