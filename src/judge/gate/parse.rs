//! The words of a gate.

use super::{Gate, Measure, Of, Test};
use crate::text::scaled;
use crate::time::parse_duration;

pub const HINT: &str = "for example: 'postgres.sessions_used / capacity <= 0.75 for 15s', 'p95(checkout) < 800ms over 60s', \
                        'failed <= 1%', 'knee >= 3000/s', 'first not in mysql.*'";

pub fn gate(text: &str) -> Result<Gate, String> {
    let mut words = Words { rest: text.trim() };
    let measure = measure(&mut words)?;
    let test = test(&mut words, &measure)?;
    let (mut for_s, mut over_s, mut during) = (None, None, None);
    while !words.rest.is_empty() {
        let word = words.word();
        let twice = match word {
            "for" => for_s.replace(duration(words.word())?).is_some(),
            "over" => over_s.replace(duration(words.word())?).is_some(),
            "during" => during.replace(phase(&mut words)?).is_some(),
            other => return Err(format!("expected for, over or during, found {other:?}")),
        };
        if twice {
            return Err(format!("{word} stands there twice"));
        }
    }
    let windowed = matches!(
        measure,
        Measure::Latency { .. }
            | Measure::Failed(_)
            | Measure::Refused(_)
            | Measure::Dropped
            | Measure::Goodput(_)
            | Measure::Completed(_)
            | Measure::Offered
            | Measure::Reached
            | Measure::Share(_)
    );
    if over_s.is_some() && !windowed {
        return Err("over slides a window over requests; here nothing slides".to_owned());
    }
    if for_s.is_some() && !matches!(measure, Measure::Gauge { .. }) && over_s.is_none() {
        return Err("for needs a value that changes in the run: add a window, such as over 10s".to_owned());
    }
    if during.is_some() && matches!(measure, Measure::Knee | Measure::Recovery | Measure::First | Measure::Growth(_)) {
        return Err("this is of the whole run: during says nothing here".to_owned());
    }
    Ok(Gate { text: text.trim().to_owned(), measure, test, for_s: for_s.unwrap_or(0.0), over_s, during })
}

struct Words<'a> {
    rest: &'a str,
}

impl<'a> Words<'a> {
    /// Up to the next space or operator.
    fn word(&mut self) -> &'a str {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c: char| c.is_whitespace() || "<>=/()".contains(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        word
    }

    /// A word, the slash behind it, and the next word.
    fn joined(&mut self, first: &str) -> String {
        self.eat("/");
        format!("{first}/{}", self.word())
    }

    /// The next is this, and it is taken.
    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest.strip_prefix(token);
        self.rest = found.map_or(self.rest, str::trim_start);
        found.is_some()
    }

    /// What stands in parentheses, split at commas; names with spaces and slashes are allowed.
    fn arguments(&mut self) -> Result<Option<Vec<String>>, String> {
        if !self.eat("(") {
            return Ok(None);
        }
        let end = closing(self.rest).ok_or("expected a closing parenthesis")?;
        let (inside, rest) = self.rest.split_at(end);
        self.rest = rest[1..].trim_start();
        Ok(Some(inside.split(',').map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()))
    }
}

/// Where the parenthesis ends that is open: step names may hold pairs of their own.
fn closing(text: &str) -> Option<usize> {
    let mut open = 1;
    for (at, c) in text.char_indices() {
        match c {
            '(' => open += 1,
            ')' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some(at);
        }
    }
    None
}

fn measure(words: &mut Words) -> Result<Measure, String> {
    let name = words.word();
    if name.is_empty() {
        return Err("it is empty".to_owned());
    }
    // Of several machines the column has its machine's name in front: web1/host.procs_running.
    let machine = !name.contains('.') && words.rest.starts_with('/');
    let name = if machine { words.joined(name) } else { name.to_owned() };
    let name = name.as_str();
    if name.contains('.') && !is_percentile(name) {
        let of = if words.eat("/") {
            let first = words.word();
            let other = if first.contains('.') || !words.rest.starts_with('/') { first.to_owned() } else { words.joined(first) };
            Some(match &*other {
                "capacity" => Of::Capacity,
                column if column.contains('.') => Of::Column(column.to_owned()),
                other => return Err(format!("expected capacity or a column after /, found {other:?}")),
            })
        } else {
            None
        };
        return Ok(Measure::Gauge { column: name.to_owned(), of });
    }
    let arguments = words.arguments()?;
    let one = || match arguments.as_deref() {
        None | Some([]) => Ok(None),
        Some([step]) => Ok(Some(step.clone())),
        Some(several) => Err(format!("{name} takes one step, found {}", several.len())),
    };
    let needed = || one()?.ok_or_else(|| format!("{name} needs a name: {name}(…)"));
    let none = |measure: Measure| match &arguments {
        None => Ok(measure),
        Some(_) => Err(format!("{name} takes nothing in parentheses")),
    };
    if is_percentile(name) {
        let percent: f64 = name[1..].parse().map_err(|_| format!("not a percentile: {name:?}"))?;
        if !(0.0..100.0).contains(&percent) {
            return Err(format!("not a percentile: {name:?}"));
        }
        return Ok(Measure::Latency { quantile: (percent * 10.0).round() / 1000.0, step: one()? });
    }
    match name {
        "max" => Ok(Measure::Latency { quantile: 1.0, step: one()? }),
        "failed" | "errors" => Ok(Measure::Failed(one()?)),
        "refused" => Ok(Measure::Refused(one()?)),
        "dropped" => none(Measure::Dropped),
        "goodput" => Ok(Measure::Goodput(one()?)),
        "completed" => Ok(Measure::Completed(one()?)),
        "offered" => none(Measure::Offered),
        "reached" => none(Measure::Reached),
        "share" => match arguments {
            Some(steps) if !steps.is_empty() => Ok(Measure::Share(steps)),
            _ => Err("share needs steps: share(hold, checkout)".to_owned()),
        },
        "count" => Ok(Measure::Count(needed()?)),
        "knee" => none(Measure::Knee),
        "recovery" => none(Measure::Recovery),
        "growth" => Ok(Measure::Growth(needed()?)),
        "first" => none(Measure::First),
        other => Err(format!("{other:?} is no measure, and no column (those have a dot)")),
    }
}

fn is_percentile(name: &str) -> bool {
    name.len() > 1 && name.starts_with('p') && name[1..].chars().all(|c| c.is_ascii_digit() || c == '.')
}

fn test(words: &mut Words, measure: &Measure) -> Result<Test, String> {
    if *measure == Measure::First {
        let not = words.eat("not ");
        if !words.eat("in ") {
            return Err("expected in or not in after first".to_owned());
        }
        let patterns: Vec<String> =
            words.rest.split(',').map(|pattern| pattern.trim().to_owned()).filter(|pattern| !pattern.is_empty()).collect();
        words.rest = "";
        if patterns.is_empty() || patterns.iter().any(|pattern| pattern.contains(char::is_whitespace)) {
            return Err("expected names after in, such as mysql.*, redis.*".to_owned());
        }
        return Ok(if not { Test::NotIn(patterns) } else { Test::In(patterns) });
    }
    let make: fn(f64) -> Test = if words.eat("<=") {
        Test::AtMost
    } else if words.eat(">=") {
        Test::AtLeast
    } else if words.eat("<") {
        Test::Below
    } else if words.eat(">") {
        Test::Above
    } else {
        return Err(format!("expected <, <=, > or >= before {:?}", words.rest));
    };
    Ok(make(limit(words, measure)?))
}

/// A number with its unit, in the measure's own.
fn limit(words: &mut Words, measure: &Measure) -> Result<f64, String> {
    let word = words.word();
    let end = word.find(|c: char| !(c.is_ascii_digit() || "._-+e".contains(c))).unwrap_or(word.len());
    let (digits, unit) = word.split_at(end);
    let per = if words.eat("/") { words.word() } else { "" };
    let number: f64 = digits.replace('_', "").parse().map_err(|_| format!("expected a number, found {word:?}"))?;
    let bare = per.is_empty();
    let share = (unit == "%" && bare).then_some(number / 100.0);
    let (value, wanted) = match measure {
        Measure::Latency { .. } => (time_ms(number, unit).filter(|_| bare), "a time such as 800ms"),
        Measure::Recovery => (time_ms(number, unit).filter(|_| bare).map(|ms| ms / 1e3), "a time such as 30s"),
        Measure::Goodput(_) | Measure::Completed(_) | Measure::Offered | Measure::Knee => {
            ((unit.is_empty() && matches!(per, "" | "s")).then_some(number), "a rate such as 3000/s")
        }
        Measure::Growth(_) => {
            let minutes = if per == "h" { 60.0 } else { 1.0 };
            let known = matches!(per, "" | "min" | "h");
            (scaled(number / minutes, unit).filter(|_| known), "a growth such as 5MiB/min or 300MiB/h")
        }
        Measure::Gauge { .. } => {
            let size = scaled(number, unit).filter(|_| matches!(per, "" | "s"));
            (share.or(size), "a number, a share such as 75% or a size such as 512MiB")
        }
        _ => (share.or((unit.is_empty() && bare).then_some(number)), "a number or a share such as 1%"),
    };
    let found = if bare { word.to_owned() } else { format!("{word}/{per}") };
    value.ok_or_else(|| format!("expected {wanted}, found {found:?}"))
}

fn time_ms(number: f64, unit: &str) -> Option<f64> {
    let scale = match unit {
        "ms" => 1.0,
        "s" => 1e3,
        "m" | "min" => 60e3,
        _ => return None,
    };
    Some(number * scale)
}

fn duration(word: &str) -> Result<f64, String> {
    parse_duration(word).map(|duration| duration.as_secs_f64())
}

/// A phase may have a space in its name: up to the next of the three words.
fn phase(words: &mut Words) -> Result<String, String> {
    let end = [" for ", " over ", " during "].iter().filter_map(|word| words.rest.find(word)).min().unwrap_or(words.rest.len());
    let (name, rest) = words.rest.split_at(end);
    words.rest = rest.trim_start();
    let name = name.trim();
    if name.is_empty() { Err("during needs the name of a phase, such as plateau".to_owned()) } else { Ok(name.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Gate {
        text.parse().unwrap_or_else(|why| panic!("{why}"))
    }

    #[test]
    fn every_kind_of_gate_is_read() {
        let gate = parsed("postgres.sessions_used / capacity <= 0.75 for 15s");
        assert_eq!(gate.measure, Measure::Gauge { column: "postgres.sessions_used".into(), of: Some(Of::Capacity) });
        assert_eq!((gate.test, gate.for_s), (Test::AtMost(0.75), 15.0));
        let gate = parsed("a.x/b.y<75%");
        assert_eq!(gate.measure, Measure::Gauge { column: "a.x".into(), of: Some(Of::Column("b.y".into())) });
        assert_eq!(gate.test, Test::Below(0.75));
        let gate = parsed("web1/host.busy / web1/host.cores <= 0.9");
        let of = Some(Of::Column("web1/host.cores".into()));
        assert_eq!(gate.measure, Measure::Gauge { column: "web1/host.busy".into(), of });
        assert_eq!(gate.of_machine("web1").measure, parsed("host.busy / host.cores <= 0.9").measure);
        let gate = parsed("p99.9(GET /events/{}/seats (map)) < 1.5s over 1m for 10s during low load");
        let step = Some("GET /events/{}/seats (map)".to_owned());
        assert_eq!(gate.measure, Measure::Latency { quantile: 0.999, step });
        assert_eq!((gate.test, gate.over_s, gate.for_s), (Test::Below(1500.0), Some(60.0), 10.0));
        assert_eq!(gate.during.as_deref(), Some("low load"));
        assert_eq!(parsed("failed(pay) <= 0.5%").measure, Measure::Failed(Some("pay".into())));
        assert_eq!(parsed("share(hold, checkout) >= 0.3").measure, Measure::Share(vec!["hold".into(), "checkout".into()]));
        assert_eq!(parsed("knee >= 3_000/s").test, Test::AtLeast(3000.0));
        assert_eq!(parsed("recovery <= 2m").test, Test::AtMost(120.0));
        assert_eq!(parsed("growth(app.heap_bytes) <= 60MiB/h").test, Test::AtMost(1024.0 * 1024.0));
        assert_eq!(parsed("first not in mysql.*, redis.*").test, Test::NotIn(vec!["mysql.*".into(), "redis.*".into()]));
        assert_eq!(parsed("reached >= 95%").test, Test::AtLeast(0.95));
        assert_eq!(parsed("max < 3s").measure, Measure::Latency { quantile: 1.0, step: None });
    }

    #[test]
    fn what_is_no_gate_is_told_with_what_was_found() {
        for (text, told) in [
            ("", "it is empty"),
            ("p95 < 800", "expected a time such as 800ms, found \"800\""),
            ("p95 800ms", "expected <, <=, > or >="),
            ("latency < 800ms", "\"latency\" is no measure"),
            ("a.b < 5 over 10s", "nothing slides"),
            ("p95 < 5ms for 10s", "add a window"),
            ("a.b / 7 < 5", "expected capacity or a column"),
            ("knee >= 30ms", "a rate such as 3000/s"),
            ("a.b < 5 until 3s", "expected for, over or during, found \"until\""),
            ("a.b < 5 for 3s for 4s", "for stands there twice"),
            ("first is mysql", "expected in or not in"),
            ("p95(checkout < 5ms", "a closing parenthesis"),
            ("p0x(a) < 3ms", "no measure"),
            ("count() >= 1", "count needs a name"),
        ] {
            let error = text.parse::<Gate>().unwrap_err().to_string();
            assert!(error.contains(told), "{text:?}: {error}");
        }
    }
}
