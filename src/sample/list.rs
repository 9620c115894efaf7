//! Every kind of target with its gauges and what it needs, from the registry: for people, and for the README.

use collectors::api::{Capacity, Class, Gauge, Kind, Source, Spec, Unit};
use std::fmt::Write as _;

/// `sampler --list`, or in markdown.
pub fn list(registry: &[&'static Spec], markdown: bool) -> String {
    let parts: Vec<String> = registry.iter().map(|spec| if markdown { in_markdown(spec) } else { in_text(spec) }).collect();
    parts.join("\n").trim_end().to_owned()
}

fn flags(spec: &Spec) -> String {
    let value = if spec.value.is_empty() { String::new() } else { format!(" {}", spec.value) };
    std::iter::once(&spec.flag).chain(spec.aliases).map(|flag| format!("--{flag}{value}")).collect::<Vec<_>>().join(", ")
}

fn in_text(spec: &Spec) -> String {
    let mut out = format!(
        "{}  {}\n  flags  {}\n  needs  {}\n",
        spec.name,
        spec.about,
        flags(spec),
        spec.needs.trim().replace('\n', "\n         ")
    );
    let width = spec.gauges.iter().map(|gauge| gauge.name.len()).max().unwrap_or(0);
    for gauge in spec.gauges {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "  {:width$}  {}  {}", gauge.name, facts(gauge), gauge.help);
    }
    out
}

fn in_markdown(spec: &Spec) -> String {
    let mut out = format!("### {}\n\n{}. `{}`\n\n", spec.name, sentence(spec.about), flags(spec));
    let _ = writeln!(out, "Needs:\n\n```\n{}\n```\n", spec.needs.trim());
    out.push_str("| gauge | class | kind | unit | capacity | what it is |\n|---|---|---|---|---|---|\n");
    for gauge in spec.gauges {
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} | {} |",
            gauge.name,
            class(gauge.class),
            kind(gauge),
            unit(gauge.unit),
            capacity(gauge).map(|capacity| format!("`{capacity}`")).unwrap_or_default(),
            gauge.help.replace('|', "\\|")
        );
    }
    out
}

fn sentence(text: &str) -> String {
    let mut chars = text.trim_end_matches('.').chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

fn facts(gauge: &Gauge) -> String {
    let capacity = capacity(gauge).map(|capacity| format!(" of {capacity}")).unwrap_or_default();
    format!("[{} {}, {}{capacity}]", class(gauge.class), kind(gauge), unit(gauge.unit))
}

fn capacity(gauge: &Gauge) -> Option<String> {
    match gauge.capacity {
        Capacity::None => None,
        Capacity::Fixed(value) => Some(value.to_string()),
        Capacity::Column(name) => Some(name.to_owned()),
    }
}

fn kind(gauge: &Gauge) -> &'static str {
    match (gauge.source, gauge.kind) {
        (Source::Share(..) | Source::Of(..), _) => "derived",
        (Source::Read, Kind::Counter) => "counter",
        (Source::Read, Kind::Delta) => "delta",
        (Source::Read, Kind::Gauge) => "gauge",
    }
}

fn class(class: Class) -> String {
    word(&class)
}

fn unit(unit: Unit) -> String {
    word(&unit)
}

/// The word that the files use.
fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::FAKE;

    #[test]
    fn every_gauge_is_listed_with_class_unit_and_capacity() {
        let text = list(&[&FAKE], false);
        assert!(text.contains("--fake WHAT, --fake-host WHAT"), "{text}");
        assert!(text.contains("busy         [occupancy gauge, count of limit]  "), "{text}");
        let markdown = list(&[&FAKE], true);
        assert!(markdown.contains("| `busy` | occupancy | gauge | count | `limit` |"), "{markdown}");
    }
}
