//! `--junit`: every gate a test case, for pipelines that show those.

use crate::correlate::verdict::{GateResult, Verdict};
use std::fmt::Write as _;

/// The document.
pub fn render(verdict: &Verdict) -> String {
    let failed = verdict.gates.iter().filter(|gate| !gate.passed).count();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<testsuite name=\"whatgives\" tests=\"{}\" failures=\"{failed}\" time=\"{}\">",
        verdict.gates.len(),
        verdict.run.elapsed_s
    );
    for gate in &verdict.gates {
        let name = gate.name.as_ref().map_or(gate.gate.clone(), |name| format!("{name}: {}", gate.gate));
        let _ = write!(out, "  <testcase classname=\"whatgives.{}\" name=\"{}\"", gate.code, escaped(&name));
        if gate.passed {
            out.push_str("/>\n");
        } else {
            let _ = writeln!(out, ">\n    <failure message=\"{}\"/>\n  </testcase>", escaped(&broke(gate, &verdict.run.rate_unit)));
        }
    }
    out.push_str("</testsuite>\n");
    out
}

/// How a gate broke, in words: its value, since when, at which rate, for how long.
pub fn broke(gate: &GateResult, rate_unit: &str) -> String {
    let mut text = value(gate);
    if let Some(onset) = &gate.onset {
        let _ = write!(text, ", broken at t+{:.0} s", onset.elapsed_s);
    }
    if let Some(rate) = gate.rate_per_s {
        let _ = write!(text, ", {} {rate_unit}", super::numbers::number(rate));
    }
    if let Some(seconds) = gate.lasted_s.filter(|seconds| *seconds > 0.0) {
        let _ = write!(text, ", for {} s", super::numbers::number(seconds));
    }
    text
}

/// The value of a gate, in words.
pub fn value(gate: &GateResult) -> String {
    let coarse = if gate.coarse { " (the worst interval's: the log has percentiles only)" } else { "" };
    match &gate.value {
        serde_json::Value::Null => "nothing".to_owned(),
        serde_json::Value::String(name) => name.clone(),
        other => format!("{}{coarse}", other.as_f64().map_or(other.to_string(), super::numbers::number)),
    }
}

/// Text inside a document or an attribute; what XML cannot hold is left out.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(' '),
            c if c.is_control() || ('\u{fffe}'..='\u{ffff}').contains(&c) => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_data_cannot_leave_its_attribute() {
        assert_eq!(escaped("a<b & \"c\" 'd'\n\u{1}e"), "a&lt;b &amp; &quot;c&quot; &#39;d&#39; e");
    }
}
