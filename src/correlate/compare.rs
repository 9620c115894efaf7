//! `correlate compare A B`: two runs side by side. Each is what `correlate --json` said of a run, or its file of ticks (judged
//! with the driver's log of the same prefix, where one stands beside it).
//!
//! What can be compared is told with its change; a value whose intervals overlap is told as the same. Two runs of different
//! scenarios are set side by side all the same, with what differs between them said first.

use super::cli::Options;
use super::report::numbers::number;
use super::session::Session;
use crate::exit;
use clap::Parser;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Sets two runs side by side: knee, first mover, what moved earlier or later, steps.
#[derive(Clone, Debug, Parser)]
#[command(name = "correlate compare")]
struct Compare {
    /// The run before: its file of ticks, or what `correlate --json` said of it
    before: PathBuf,
    /// The run after
    after: PathBuf,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand; the first argument is its name.
pub fn run(args: impl IntoIterator<Item = OsString>, out: &mut impl std::io::Write, err: &mut impl std::io::Write) -> u8 {
    let options = match Compare::try_parse_from(args) {
        Ok(options) => options,
        Err(why) => {
            let _ = why.print();
            return if why.use_stderr() { exit::USAGE } else { exit::DONE };
        }
    };
    let verdicts = verdict(&options.before).and_then(|before| Ok((before, verdict(&options.after)?)));
    let (before, after) = match verdicts {
        Ok(both) => both,
        Err(why) => {
            let _ = writeln!(err, "correlate compare: {why}");
            return exit::UNUSABLE_INPUT;
        }
    };
    let found = Side::by_side(&before, &after);
    let text = if options.json { format!("{:#}\n", found.json()) } else { found.text(&options.before, &options.after) };
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    exit::DONE
}

/// The verdict of a run, from its JSON or from its files.
fn verdict(path: &Path) -> Result<Value, String> {
    let bytes = std::fs::read(path).map_err(|why| format!("{} cannot be read: {why}", path.display()))?;
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{') {
        let found: Value = serde_json::from_slice(&bytes).map_err(|why| format!("{}: {why}", path.display()))?;
        return if found["whatgives"].is_string() {
            Ok(found)
        } else {
            Err(format!("{} is JSON, but not what correlate --json prints", path.display()))
        };
    }
    let mut args: Vec<OsString> = vec!["correlate".into(), path.into()];
    if let Some(log) = log_beside(path) {
        args.extend(["--driver".into(), log.into()]);
    }
    let options = Options::try_parse_from(args).map_err(|why| why.to_string())?;
    let session = Session::read(&options).map_err(|why| why.to_string())?;
    let verdict = session.verdict(&options, &[]).map_err(|why| why.to_string())?;
    serde_json::to_value(&verdict).map_err(|why| format!("{}: {why}", path.display()))
}

/// A driver's log in a neutral form with the same prefix.
fn log_beside(ticks: &Path) -> Option<PathBuf> {
    let name = ticks.file_name()?.to_str()?;
    let prefix = &name[..name.find("ticks.tsv")?];
    ["requests.tsv", "requests.tsv.gz", "timeline.tsv"]
        .into_iter()
        .map(|kind| ticks.with_file_name(format!("{prefix}{kind}")))
        .find(|log| log.exists())
}

/// One line of the comparison.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    what: String,
    before: String,
    after: String,
    change: String,
}

/// Two runs side by side.
#[derive(Clone, Debug, Default, PartialEq)]
struct Side {
    differs: Vec<String>,
    rows: Vec<Row>,
    movers: Vec<Row>,
    steps: Vec<Row>,
}

impl Side {
    fn by_side(before: &Value, after: &Value) -> Self {
        let mut side = Self { differs: differs(before, after), ..Self::default() };
        let word = |verdict: &Value| verdict["verdict"].as_str().unwrap_or("-").to_owned();
        side.rows.push(Row::of("Verdict", word(before), word(after)));
        let top = |verdict: &Value| verdict["run"]["top_rate_per_s"].as_f64();
        side.rows.push(Row::numbers("Highest rate", top(before), top(after), 0.05));
        side.rows.push(knee(before, after));
        let first = |verdict: &Value| verdict["first"]["gauge"].as_str().unwrap_or("nothing").to_owned();
        side.rows.push(Row::of("First to move", first(before), first(after)));
        side.movers = movers(before, after);
        side.steps = steps(before, after);
        side
    }

    fn text(&self, before: &Path, after: &Path) -> String {
        let mut out = String::from("\n");
        for what in &self.differs {
            let _ = writeln!(out, "  Not one scenario   {what}");
        }
        if !self.differs.is_empty() {
            out.push('\n');
        }
        let names = Row {
            what: String::new(),
            before: format!("before: {}", before.display()),
            after: format!("after: {}", after.display()),
            change: String::new(),
        };
        let all: Vec<&Row> = std::iter::once(&names).chain(&self.rows).chain(&self.movers).chain(&self.steps).collect();
        let width = |cell: fn(&Row) -> &str| all.iter().map(|row| cell(row).chars().count()).max().unwrap_or(0);
        let (what, left, right) = (width(|row| &row.what), width(|row| &row.before), width(|row| &row.after));
        let mut table = |title: &str, rows: &[&Row]| {
            if !title.is_empty() && !rows.is_empty() {
                let _ = writeln!(out, "\n  {title}");
            }
            for row in rows {
                let line = format!("  {:<what$}  {:<left$}  {:<right$}  {}", row.what, row.before, row.after, row.change);
                let _ = writeln!(out, "{}", line.trim_end());
            }
        };
        table("", &[&names]);
        table("", &self.rows.iter().collect::<Vec<_>>());
        table("What moved, and at which rate", &self.movers.iter().collect::<Vec<_>>());
        table("Steps, p95 in ms and failed", &self.steps.iter().collect::<Vec<_>>());
        out.push('\n');
        out
    }

    fn json(&self) -> Value {
        let rows = |rows: &[Row]| -> Value {
            rows.iter()
                .map(|row| json!({ "what": row.what, "before": row.before, "after": row.after, "change": row.change }))
                .collect()
        };
        json!({ "differs": self.differs, "run": rows(&self.rows), "movers": rows(&self.movers), "steps": rows(&self.steps) })
    }
}

impl Row {
    fn of(what: &str, before: String, after: String) -> Self {
        let change = if before == after { "same".to_owned() } else { "changed".to_owned() };
        Self { what: what.to_owned(), before, after, change }
    }

    /// Two numbers; a change of less than `least` is none.
    fn numbers(what: &str, before: Option<f64>, after: Option<f64>, least: f64) -> Self {
        let text = |value: Option<f64>| value.map_or("-".to_owned(), number);
        let change = match (before, after) {
            (Some(a), Some(b)) if (b - a).abs() <= least * a.abs() => "same".to_owned(),
            (Some(a), Some(b)) if a != 0.0 => signed_percent((b - a) / a),
            (Some(_), Some(_)) => "changed".to_owned(),
            (None, None) => "same".to_owned(),
            (Some(_), None) => "only before".to_owned(),
            (None, Some(_)) => "only after".to_owned(),
        };
        Self { what: what.to_owned(), before: text(before), after: text(after), change }
    }
}

fn signed_percent(share: f64) -> String {
    format!("{}{:.0} %", if share < 0.0 { "-" } else { "+" }, 100.0 * share.abs())
}

/// A number with its interval.
struct Interval {
    value: f64,
    low: f64,
    high: f64,
}

impl Interval {
    fn of(value: &Value, key: &str) -> Option<Self> {
        Some(Self { value: value[key].as_f64()?, low: value["low"].as_f64()?, high: value["high"].as_f64()? })
    }

    fn text(of: Option<&Self>) -> String {
        of.map_or("-".to_owned(), |of| format!("{} ({} to {})", number(of.value), number(of.low), number(of.high)))
    }

    /// Overlapping intervals are no change.
    fn change(before: Option<&Self>, after: Option<&Self>) -> String {
        match (before, after) {
            (Some(a), Some(b)) if a.low <= b.high && b.low <= a.high => "within both intervals".to_owned(),
            (Some(a), Some(b)) => signed_percent((b.value - a.value) / a.value),
            (None, None) => "same".to_owned(),
            (Some(_), None) => "only before".to_owned(),
            (None, Some(_)) => "only after".to_owned(),
        }
    }
}

fn knee(before: &Value, after: &Value) -> Row {
    let of = |verdict: &Value| Interval::of(&verdict["knee"], "rate_per_s");
    let (a, b) = (of(before), of(after));
    Row {
        what: "Knee".to_owned(),
        before: Interval::text(a.as_ref()),
        after: Interval::text(b.as_ref()),
        change: Interval::change(a.as_ref(), b.as_ref()),
    }
}

fn movers(before: &Value, after: &Value) -> Vec<Row> {
    let names = |verdict: &Value| -> Vec<String> {
        verdict["movers"].as_array().into_iter().flatten().filter_map(|mover| mover["gauge"].as_str().map(str::to_owned)).collect()
    };
    let rate = |verdict: &Value, name: &str| {
        let mover = verdict["movers"].as_array()?.iter().find(|mover| mover["gauge"] == name)?;
        Interval::of(&mover["rate_per_s"], "value")
    };
    let mut all = names(before);
    for name in names(after) {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all.into_iter()
        .map(|name| {
            let (a, b) = (rate(before, &name), rate(after, &name));
            let change = match (&a, &b) {
                (Some(x), Some(y)) if x.high < y.low => format!("later, {}", Interval::change(a.as_ref(), b.as_ref())),
                (Some(x), Some(y)) if y.high < x.low => format!("earlier, {}", Interval::change(a.as_ref(), b.as_ref())),
                _ => Interval::change(a.as_ref(), b.as_ref()),
            };
            Row { what: name, before: Interval::text(a.as_ref()), after: Interval::text(b.as_ref()), change }
        })
        .collect()
}

fn steps(before: &Value, after: &Value) -> Vec<Row> {
    let of = |verdict: &Value, name: &str, key: &str| {
        verdict["steps"].as_array()?.iter().find(|step| step["step"] == name).and_then(|step| step[key].as_f64())
    };
    let mut names: Vec<String> = Vec::new();
    for verdict in [before, after] {
        for step in verdict["steps"].as_array().into_iter().flatten() {
            if let Some(name) = step["step"].as_str().filter(|name| !names.iter().any(|other| other == name)) {
                names.push(name.to_owned());
            }
        }
    }
    names
        .iter()
        .flat_map(|name| {
            [("p95", "p95_ms"), ("failed", "failed")].map(|(what, key)| {
                let name_shown = if name == "*" { "all steps" } else { name };
                Row::numbers(&format!("{name_shown} {what}"), of(before, name, key), of(after, name, key), 0.1)
            })
        })
        .filter(|row| !(row.what.ends_with(" failed") && row.before == row.after))
        .collect()
}

/// In what the two are not one scenario.
fn differs(before: &Value, after: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let labels = |verdict: &Value| verdict["run"]["labels"].as_object().cloned().unwrap_or_default();
    let (a, b) = (labels(before), labels(after));
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or("nothing").to_owned();
    for name in names.into_iter().filter(|name| *name != "version" && a.get(*name) != b.get(*name)) {
        found.push(format!("label {name}: {} before, {} after", text(a.get(name)), text(b.get(name))));
    }
    let steps = |verdict: &Value| -> BTreeSet<String> {
        verdict["steps"].as_array().into_iter().flatten().filter_map(|step| step["step"].as_str().map(str::to_owned)).collect()
    };
    let (a, b) = (steps(before), steps(after));
    for (only, when) in [(a.difference(&b), "before"), (b.difference(&a), "after")] {
        let names: Vec<&str> = only.map(|name| if name == "*" { "(none told apart)" } else { &**name }).collect();
        if !names.is_empty() {
            found.push(format!("steps only {when}: {}", names.join(", ")));
        }
    }
    if before["run"]["tick_ms"] != after["run"]["tick_ms"] {
        found.push(format!("a tick of {} ms before, {} ms after", before["run"]["tick_ms"], after["run"]["tick_ms"]));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(knee: f64, pool_at: f64, mix: &str) -> Value {
        json!({
            "whatgives": "0.1.0", "verdict": "moved",
            "run": { "labels": { "mix": mix }, "top_rate_per_s": 200.0, "tick_ms": 1000.0 },
            "knee": { "rate_per_s": knee, "low": knee * 0.95, "high": knee * 1.05 },
            "first": { "gauge": "app.pool_waiting" },
            "movers": [{ "gauge": "app.pool_waiting", "rate_per_s": { "value": pool_at, "low": pool_at - 5.0, "high": pool_at + 5.0 } }],
            "steps": [{ "step": "hold", "p95_ms": 80.0, "failed": 0.0 }],
        })
    }

    #[test]
    fn what_changed_is_told_with_how_much_and_what_overlaps_is_no_change() {
        let text = Side::by_side(&run(100.0, 100.0, "a"), &run(80.0, 102.0, "a")).text(Path::new("a.json"), Path::new("b.json"));
        assert!(text.contains("-20 %"), "{text}");
        assert!(text.contains("app.pool_waiting  100 (95 to 105)") && text.contains("within both intervals"), "{text}");
        assert!(!text.contains("Not one scenario") && !text.contains("failed  "), "{text}");
        let later = Side::by_side(&run(100.0, 100.0, "a"), &run(100.0, 150.0, "b"));
        assert_eq!(later.movers[0].change, "later, +50 %");
        assert_eq!(later.differs, ["label mix: a before, b after"]);
    }
}
