//! The report for people: one line a part, each saying whether it was measured or inferred. Never more digits than the
//! interval has.

use super::super::align::Basis;
use super::super::sent;
use super::super::verdict::{Answer, Between, Caveat, Clock, Mover, Onset, Symptom, Verdict, WaitShare};
use super::junit;
use super::numbers::{number, rounded, thousands};
use std::collections::BTreeSet;

/// The report, with an empty line before and after it.
pub fn render(verdict: &Verdict) -> String {
    let mut page = Page::default();
    let basis = if verdict.run.rate_from.is_some() { Basis::Inferred } else { Basis::Measured };
    gates(&mut page, verdict);
    if verdict.verdict == Answer::Inconclusive {
        let why = verdict.caveats.iter().find(|caveat| caveat.can_change_name).map_or("", |caveat| &*caveat.text);
        page.line("Inconclusive", why.to_owned(), None);
    }
    match &verdict.first {
        Some(first) => moved(&mut page, verdict, first, basis),
        None => nothing_moved(&mut page, verdict, basis),
    }
    for symptom in verdict.symptoms.iter().flatten().take(4) {
        page.line("Felt at", felt(symptom), Some(Basis::Measured));
    }
    if let Some(knee) = verdict.knee {
        let between = Between { value: knee.rate_per_s, low: knee.low, high: knee.high };
        let (value, low, high) = rounded(between);
        page.line("Knee", format!("{value} req/s  ({low} to {high})"), Some(knee.basis));
    }
    super::held::growth(&mut page, verdict);
    super::held::recovery(&mut page, verdict);
    super::steps::table(&mut page, verdict);
    for (label, text) in verdict.run.sent.iter().flat_map(sent::lines) {
        page.line(label, text, Some(Basis::Measured));
    }
    forecast(&mut page, verdict);
    history(&mut page, verdict);
    rest(&mut page, verdict);
    if let Some(clock) = &verdict.run.clock {
        page.line("Clocks", clocks(clock, "the driver", "the sampler"), Some(Basis::Measured));
    }
    if let Some((first, others)) = verdict.run.files.split_first() {
        for (file, clock) in others.iter().filter_map(|file| Some((file, file.clock.as_ref()?))) {
            page.line("Clocks", clocks(clock, &file.host, &first.host), Some(Basis::Measured));
        }
    }
    for caveat in verdict.caveats.iter().filter(|caveat| !caveat.code.ends_with("_not_told")) {
        page.line("Caveat", warning(caveat), None);
    }
    page.print()
}

/// A caveat in one line.
pub fn warning(caveat: &Caveat) -> String {
    format!("{} ({}): {}", caveat.text.trim_end_matches('.'), caveat.code, caveat.todo)
}

/// The word, and every gate that broke; of those that held only how many.
fn gates(page: &mut Page, verdict: &Verdict) {
    let (broken, held): (Vec<_>, Vec<_>) = verdict.gates.iter().partition(|gate| !gate.passed);
    if verdict.gates.is_empty() {
        return;
    }
    let word = match verdict.verdict {
        Answer::Violated => "violated: a gate on what users feel broke",
        Answer::Saturated => "saturated: a gate on what is used up broke",
        Answer::Qualified => "qualified: every gate held",
        Answer::Inconclusive | Answer::Moved | Answer::Rested => "inconclusive: no gate broke, but a caveat can change the answer",
    };
    page.line("Verdict", word.to_owned(), None);
    for gate in broken {
        let name = gate.name.as_ref().map_or(String::new(), |name| format!("{name}: "));
        page.line(
            "Broken",
            format!("{name}{}  found {}", gate.gate, junit::broke(gate, &verdict.run.rate_unit)),
            Some(Basis::Measured),
        );
    }
    for gate in held {
        page.line("Held", format!("{}  worst {}", gate.gate, junit::value(gate)), Some(Basis::Measured));
    }
}

fn moved(page: &mut Page, verdict: &Verdict, first: &Mover, rate_basis: Basis) {
    let basis = if first.basis == Basis::Inferred { Basis::Inferred } else { rate_basis };
    let guessed = if first.class_guessed { format!("; class guessed: {}", first.class) } else { String::new() };
    page.line(
        "First to move",
        format!(
            "{}  {} at {} {}  ({}; t+{:.0} s{guessed})",
            first.gauge,
            left(first),
            rounded(first.rate_per_s).0,
            verdict.run.rate_unit,
            between(first.rate_per_s),
            first.onset.elapsed_s
        ),
        Some(basis),
    );
    if first.resource != first.gauge {
        page.line("Resource", first.resource.clone(), None);
    }
    if let Some((label, text)) = waited(verdict.waits.as_deref(), &first.resource) {
        page.line(label, text, Some(Basis::Measured));
    }
    let tied: BTreeSet<&str> = first.tied_with.iter().map(String::as_str).collect();
    if !tied.is_empty() {
        let decided = match &first.decided_by {
            Some(what) => format!("; {what} decided"),
            None => "; the times alone do not tell their order".to_owned(),
        };
        page.line("Tied with it", format!("{}{decided}", first.tied_with.join(", ")), None);
    }
    let later: Vec<&Mover> = verdict.movers.iter().skip(1).filter(|mover| !tied.contains(&*mover.gauge)).collect();
    if !later.is_empty() {
        let each = |mover: &&Mover| format!("{} at {} {}", mover.gauge, rounded(mover.rate_per_s).0, verdict.run.rate_unit);
        let more = if later.len() > 4 { format!(" · and {} more", later.len() - 4) } else { String::new() };
        let shown: Vec<String> = later.iter().take(4).map(each).collect();
        page.line("Then", format!("{}{more}  (consequences, or hidden behind the first)", shown.join(" · ")), Some(basis));
    }
}

/// Where most waiters waited, and whether that is the first mover's own place.
pub fn waited(waits: Option<&[WaitShare]>, resource: &str) -> Option<(&'static str, String)> {
    let waits = waits?;
    let top = waits.first()?;
    let all: f64 = waits.iter().map(|wait| wait.waiters as f64).sum();
    let place: Vec<String> = [
        top.object.clone(),
        top.index.clone(),
        top.row.as_ref().map(|row| format!("{} {row}", if top.kind == "row" { "row" } else { &top.kind })),
    ]
    .into_iter()
    .flatten()
    .collect();
    let place = if place.is_empty() { format!("a {} lock", top.kind) } else { place.join(", ") };
    let held = top.blocker_state.as_ref().map_or(String::new(), |state| format!("; held by a session {state}"));
    // Another target's waits, or waits beside another resource, are no place of the first mover.
    let its_own = resource.starts_with(&format!("{} {} lock", top.target, top.kind));
    let text = format!("{:.0} % of {} waiters: {place}{held}", 100.0 * top.share, thousands(all));
    Some((if its_own { "Where" } else { "Waits seen" }, text))
}

/// How a gauge moved, in words.
fn left(mover: &Mover) -> String {
    match &*mover.evidence {
        "waiting" => format!("left {}", number(mover.resting.value)),
        other => format!("({other}) left {}", number(mover.resting.value)),
    }
}

fn nothing_moved(page: &mut Page, verdict: &Verdict, basis: Basis) {
    match (verdict.run.top_rate_per_s, verdict.run.judged) {
        (Some(top), 1..) if verdict.verdict == Answer::Rested => {
            page.line(
                "Nothing left rest",
                format!("up to {} {}; {} gauges judged", number(top), verdict.run.rate_unit, verdict.run.judged),
                Some(basis),
            );
        }
        (Some(top), _) => page.line(
            "Nothing named",
            format!("up to {} {}; {} gauges could be judged", number(top), verdict.run.rate_unit, verdict.run.judged),
            Some(basis),
        ),
        (None, _) => page.line("Nothing judged", String::new(), None),
    }
}

/// What was felt, in words.
pub fn felt(symptom: &Symptom) -> String {
    let step = if symptom.step == "*" { "all steps".to_owned() } else { symptom.step.clone() };
    let what = match &*symptom.measure {
        "p95_ms" => format!("p95 crossed {:.0} ms", symptom.threshold),
        "failed" => "the first failure came".to_owned(),
        _ => "the first refusal came".to_owned(),
    };
    let after = match symptom.after_first_s {
        Some(after) if after >= 0.0 => format!(", {after:.0} s after the first gauge moved"),
        Some(after) => format!(", {:.0} s before the first gauge moved", -after),
        None => String::new(),
    };
    format!("{} req/s  {step}: {what}{after}", rounded(symptom.rate_per_s).0)
}

/// How full everything is at the rate that was asked for.
fn forecast(page: &mut Page, verdict: &Verdict) {
    let Some(forecast) = &verdict.forecast else { return };
    let label = format!("At {} {}", number(forecast.rate_per_s), verdict.run.rate_unit);
    if let Some(why) = &forecast.refused {
        page.line(&label, format!("not told: {why}"), None);
        return;
    }
    for filled in forecast.gauges.iter().take(4) {
        let (full, low, high) = rounded(filled.full_at_per_s);
        let text = format!("{} {:.0} % full; full at {full} ({low} to {high})", filled.gauge, 100.0 * filled.share);
        page.line(&label, text, Some(Basis::Inferred));
    }
    if let (Some(instances), Some(with_one_lost)) = (forecast.instances, forecast.instances_with_one_lost) {
        let text = format!(
            "{instances} of what was measured carry it with {:.0} % free, {with_one_lost} with one lost",
            100.0 * forecast.headroom
        );
        page.line("Instances", text, Some(Basis::Inferred));
    }
}

/// The run against the earlier ones of its scenario.
fn history(page: &mut Page, verdict: &Verdict) {
    let Some(history) = &verdict.history else { return };
    let runs = |count: usize| format!("{count} earlier run{}", if count == 1 { "" } else { "s" });
    let text = match &history.knee {
        None => "the first run of its scenario".to_owned(),
        Some(knee) => {
            let usual = match knee.between {
                Some([low, high]) => format!("{} to {} in {}", number(low), number(high), runs(history.earlier)),
                None => format!("{} in {}, too few to tell what is usual", number(knee.usual), runs(history.earlier)),
            };
            let change = match knee.change {
                "usual" => "as usual".to_owned(),
                change => format!("{change} by {:.0} %", 100.0 * knee.share),
            };
            format!("knee {}: {change}  ({usual})", number(knee.value))
        }
    };
    page.line("Against history", text, Some(Basis::Measured));
}

/// How far another clock is from one's own.
fn clocks(clock: &Clock, other: &str, own: &str) -> String {
    let within = (clock.high_ms - clock.low_ms) / 2e3;
    let digits = usize::from(within < 1.0) + usize::from(within < 0.1);
    let told = |seconds: f64| format!("{seconds:.digits$}");
    let moved = if clock.moved_ms == 0.0 { "" } else { "; moved by that" };
    let offset = clock.offset_ms / 1e3;
    if clock.low_ms <= 0.0 && clock.high_ms >= 0.0 {
        return format!("{other} and {own} agree, to {} s, by {}{moved}", told(clock.high_ms.max(-clock.low_ms) / 1e3), clock.by);
    }
    let way = if offset > 0.0 { "behind" } else { "ahead of" };
    format!("{other}'s is {} s {way} {own}'s (± {} s), by {}{moved}", told(offset.abs()), told(within), clock.by)
}

fn rest(page: &mut Page, verdict: &Verdict) {
    let run = &verdict.run;
    if !run.not_moved.is_empty() {
        let targets: BTreeSet<&str> = run.not_moved.iter().map(|name| name.split('.').next().unwrap_or(name)).collect();
        let moved: BTreeSet<&str> = verdict.movers.iter().map(|mover| &*mover.target).collect();
        let quiet: Vec<&str> = targets.into_iter().filter(|target| !moved.contains(target)).collect();
        let quiet = if quiet.is_empty() { String::new() } else { format!("; none at all of {}", quiet.join(", ")) };
        let plural = if run.not_moved.len() == 1 { "" } else { "s" };
        page.line("Not moved", format!("{} gauge{plural}{quiet}", run.not_moved.len()), None);
    }
    if !run.used.is_empty() {
        let shown: Vec<String> =
            run.used.iter().take(5).map(|used| format!("{} {:.0} %", used.gauge, 100.0 * used.share)).collect();
        page.line("Used at the end", shown.join(", "), Some(Basis::Measured));
    }
    if !run.not_with_load.is_empty() {
        let each: Vec<String> = run.not_with_load.iter().take(5).map(|aside| format!("{} ({})", aside.gauge, aside.why)).collect();
        let more = run.not_with_load.len().saturating_sub(5);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        page.line("Not with the load", format!("{}{more}", each.join(", ")), None);
    }
    if !run.not_judged.is_empty() {
        let each: Vec<String> = run.not_judged.iter().take(5).map(|aside| format!("{} ({})", aside.gauge, aside.why)).collect();
        let more = run.not_judged.len().saturating_sub(5);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        page.line("Not judged", format!("{}: {}{more}", run.not_judged.len(), each.join(", ")), None);
    }
    if let Some(left_rest) = &run.left_rest {
        page.line("Left rest means", left_rest.clone(), None);
    }
}

fn between(rate: Between) -> String {
    let (value, low, high) = rounded(rate);
    if low == high { format!("about {value}") } else { format!("between {low} and {high}") }
}

/// An onset as seconds since the start, no finer than its interval.
pub fn at(onset: Onset) -> String {
    let (value, _, _) = rounded(Between { value: onset.elapsed_s, low: onset.low_s, high: onset.high_s });
    format!("t+{value} s")
}

/// Lines of a label, a text, and whether that is measured.
#[derive(Default)]
pub struct Page {
    lines: Vec<(String, String, Option<Basis>)>,
}

impl Page {
    /// Adds a line.
    pub fn line(&mut self, label: &str, text: String, basis: Option<Basis>) {
        // A label of several lines stands only on the first.
        let before = self.lines.iter().rfind(|line| !line.0.is_empty()).map_or("", |line| &*line.0);
        let label = if before == label { String::new() } else { label.to_owned() };
        self.lines.push((label, text, basis));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Labels and texts, in order.
    pub(super) fn lines(&self) -> impl Iterator<Item = (&str, &str)> {
        self.lines.iter().map(|(label, text, _)| (&**label, &**text))
    }

    /// The page, with an empty line before and after it.
    pub fn print(&self) -> String {
        // One long line does not push the last column off everybody's screen.
        let lengths = self.lines.iter().filter(|line| line.2.is_some()).map(|line| line.1.chars().count());
        let widest = lengths.filter(|length| *length <= 100).max().unwrap_or(0);
        let mut out = String::from("\n");
        for (label, text, basis) in &self.lines {
            let line = match basis {
                Some(basis) => {
                    let word = if *basis == Basis::Measured { "measured" } else { "inferred" };
                    format!("  {label:<17}  {text:<widest$}  {word}")
                }
                None => format!("  {label:<17}  {text}"),
            };
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out.push('\n');
        out
    }
}
