//! The effective configuration as TOML that says the same again, secrets redacted.

use super::super::redact;
use super::{Config, show};
use std::fmt::Write as _;
use toml::Value;

/// The whole of it. What a secret was is shown as `***`.
pub fn print(config: &Config) -> String {
    let mut out = String::from("# The effective configuration. Secrets are shown as ***.\n");
    let mut line = |key: &str, value: Value| {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{key} = {value}");
    };
    let text = |text: &str| Value::String(text.to_owned());
    line("tick", text(&show(config.tick)));
    line("timeout", text(&show(config.timeout)));
    if let Some(seconds) = config.seconds {
        line("seconds", text(&show(seconds)));
    }
    if !config.command.is_empty() {
        // Word by word, as the file has it; what is secret in it was cut out of the whole.
        line("command", Value::Array(redact::words(&config.command).iter().map(|word| text(word)).collect()));
        line("rest", text(&show(config.rest)));
        line("cool", text(&show(config.cool)));
    }
    if !config.stop.gates.is_empty() {
        line("stop_when", Value::Array(config.stop.gates.iter().map(|gate| text(&gate.text)).collect()));
    }
    if let Some(log) = &config.stop.log {
        line("driver_log", text(&log.to_string_lossy()));
    }
    if let Some(live) = &config.stop.live {
        line("driver_live", text(&redact::urls(live)));
    }
    if let Some(prefix) = &config.out {
        line("out", text(&prefix.to_string_lossy()));
    }
    line("force", Value::Boolean(config.force));
    line("waits_per_tick", Value::Integer(i64::try_from(config.waits_per_tick).unwrap_or(i64::MAX)));
    line("show_rows", Value::Boolean(config.show_rows));
    if let Some(role) = config.host_role {
        line("host_role", text(role.name()));
    }
    line("quiet", Value::Boolean(config.quiet));
    if !config.targets.iter().any(|target| super::is_host(target.spec)) {
        line("host", Value::Boolean(false));
    }
    if !config.labels.is_empty() {
        let labels = config.labels.iter().map(|(key, value)| (key.clone(), text(value))).collect();
        line("labels", redact::value("labels", &Value::Table(labels)));
    }
    for target in &config.targets {
        let mut table = toml::Table::new();
        table.insert("name".to_owned(), text(&target.section.instance));
        if !target.section.endpoint.is_empty() {
            table.insert("endpoint".to_owned(), text(&redact::endpoint(&target.section.endpoint)));
        }
        table.insert("timeout".to_owned(), text(&show(target.section.timeout)));
        if let Some(every) = target.every {
            table.insert("every".to_owned(), text(&show(every)));
        }
        table.insert("allow_down".to_owned(), Value::Boolean(target.allow_down));
        for (key, value) in &target.section.settings {
            table.insert(key.clone(), redact::value(key, value));
        }
        let section = toml::Table::from_iter([(target.spec.name.to_owned(), Value::Array(vec![Value::Table(table)]))]);
        let _ = write!(out, "\n{}", toml::to_string(&section).unwrap_or_default());
    }
    out
}
