//! Whether a run was made on a staging like production: what its header says of each instance against the profile.

use super::Finding;
use super::file::{Instance, Requirements, Want, number};
use crate::correlate::history::Line;
use crate::correlate::history::about::QUERY;
use crate::correlate::report::numbers::number as shown;
use crate::text::closest;
use serde_json::Value;

/// Bytes, and what a query counted, are never the same twice.
const ABOUT: f64 = 0.05;

/// What differs, or is not known.
pub fn judge(required: &Requirements, line: &Line) -> Vec<Finding> {
    required.production.iter().flat_map(|instance| of_instance(instance, line)).collect()
}

fn of_instance(instance: &Instance, line: &Line) -> Vec<Finding> {
    let finding = |code, unknown, text, at| Finding {
        code,
        need: None,
        unknown,
        text,
        file: instance.file.clone(),
        line: at,
        run_unix_ms: Some(line.start_unix_ms),
    };
    let Some(header) = line.about["targets"].get(&instance.name) else {
        let known: Vec<&str> = line.about["targets"].as_object().into_iter().flatten().map(|(name, _)| &**name).collect();
        let has = if known.is_empty() { "its line tells none".to_owned() } else { format!("it has {}", known.join(", ")) };
        let near = near(&instance.name, known.into_iter());
        return vec![finding("require_target", true, format!("no target {}{near}; {has}", instance.name), instance.line)];
    };
    let collector = header["collector"].as_str().unwrap_or_default();
    let prefix = format!("{}.", instance.name);
    let gauges = line.about["gauges"].as_object();
    let wants = instance.wants.iter().filter_map(|(key, want)| {
        let code = code(collector, key);
        let found = header.get(key).or_else(|| gauges?.get(&format!("{prefix}{key}")));
        let Some(found) = found else {
            let columns = gauges.into_iter().flatten().filter_map(|(name, _)| name.strip_prefix(&prefix));
            let near = near(key, header.as_object().into_iter().flatten().map(|(name, _)| &**name).chain(columns));
            let text = format!("{prefix}{key} is not known of it{near}");
            return Some(finding(code, true, text, want.line));
        };
        let close = if collector == QUERY || key.ends_with("_bytes") { ABOUT } else { 1e-9 };
        if want.value.is(found, close) {
            return None;
        }
        let text = format!("{prefix}{key} is {}, in production {}", text_of(found), want.value);
        Some(finding(code, false, text, want.line))
    });
    wants.collect()
}

/// What was probably meant, in words; nothing where no known word is near.
pub(super) fn near<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> String {
    closest(word, known).map_or(String::new(), |near| format!(" (is it {near}?)"))
}

fn code(collector: &str, key: &str) -> &'static str {
    match (collector, key) {
        (_, "version") => "require_version",
        (QUERY, _) => "require_rows",
        ("host", _) | (_, "cores") => "require_size",
        _ => "require_capacity",
    }
}

fn text_of(found: &Value) -> String {
    match (found.as_str(), found.as_f64()) {
        (Some(text), _) => text.to_owned(),
        (None, Some(value)) => shown(value),
        (None, None) => found.to_string(),
    }
}

impl Want {
    /// Whether what was found is what is wanted; a number may be off by this share.
    fn is(&self, found: &Value, close: f64) -> bool {
        let text = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
        let value = found.as_f64().or_else(|| number(&text));
        match self {
            // 9.7 is 9.7.4-2 as well, and not 9.70.
            Self::Version(version) => text.strip_prefix(&**version).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric)),
            Self::Text(wanted) => text == *wanted,
            Self::Number(wanted) => value.is_some_and(|value| (value - wanted).abs() <= close * wanted.abs()),
            Self::AtLeast(least) => value.is_some_and(|value| value >= *least),
            Self::AtMost(most) => value.is_some_and(|value| value <= *most),
        }
    }
}

impl std::fmt::Display for Want {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Self::Version(text) | Self::Text(text) => f.write_str(text),
            Self::Number(value) => f.write_str(&shown(*value)),
            Self::AtLeast(value) => write!(f, "at least {}", shown(*value)),
            Self::AtMost(value) => write!(f, "at most {}", shown(*value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_version_holds_what_is_within_it_and_a_number_what_is_near() {
        let version = |wanted: &str, found: &str| Want::Version(wanted.into()).is(&json!(found), 0.0);
        assert!(version("9.7", "9.7.4-2") && version("15", "15.18 (Debian 15.18-0+deb12u1)") && version("8.0.36", "8.0.36"));
        assert!(!version("9.7", "9.70") && !version("15.1", "15.18") && !version("", "9") && !version("v9", "9"));
        let rows = Want::Number(2e7);
        assert!(rows.is(&json!(20_900_000), ABOUT) && !rows.is(&json!(18_900_000), ABOUT) && !rows.is(&json!(20_000_001), 1e-9));
        assert!(Want::Number(10.0).is(&json!("10"), 1e-9), "PgBouncer's settings are texts");
        assert!(Want::AtLeast(1e7).is(&json!(1e7), 0.0) && !Want::AtMost(1e7).is(&json!(1e7 + 1.0), 0.0));
        assert!(Want::Text("true".into()).is(&json!(true), 0.0) && !Want::Number(5.0).is(&json!("on"), 1.0));
    }
}
