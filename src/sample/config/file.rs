//! The configuration file: TOML, read strictly. An error names the file, the line, the column and the key.

use super::super::cli::{Options, Role, Timeout, is_host};
use super::{Asked, Wrong};
use crate::judge::gate::GateError;
use crate::time::parse_duration;
use collectors::api::Spec;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use toml::de::{DeTable, DeValue};

/// Where something stands in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    file: Arc<PathBuf>,
    line: usize,
    column: usize,
    /// For a target: where each of its keys stands.
    keys: Vec<(String, usize, usize)>,
}

impl Place {
    /// The place of the key of this section that a message names, or the section's own.
    pub fn of_key_in(&self, message: &str) -> Self {
        let named = |key: &str| {
            [format!("`{key}`"), format!("\"{key}\""), format!(" {key} "), format!(" {key}:")]
                .iter()
                .any(|form| message.contains(form))
        };
        let found = self.keys.iter().find(|(key, ..)| named(key));
        found.map_or_else(|| self.clone(), |(_, line, column)| Self { line: *line, column: *column, ..self.clone() })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} line {}, column {}", self.file.display(), self.line, self.column)
    }
}

/// The options by name, for hints.
const OPTIONS: [&str; 18] = [
    "tick",
    "timeout",
    "seconds",
    "rest",
    "cool",
    "out",
    "force",
    "labels",
    "waits_per_tick",
    "show_rows",
    "allow_down",
    "host",
    "host_role",
    "quiet",
    "stop_when",
    "driver_log",
    "driver_live",
    "command",
];

/// The keys of a target that are the sampler's own; every other one is its collector's.
const ENDPOINT_KEYS: [&str; 3] = ["url", "endpoint", "address"];

/// One entry of a table, with what is needed to complain about it.
struct Entry<'a> {
    reader: &'a Reader<'a>,
    key: &'a str,
    start: usize,
    value: &'a DeValue<'a>,
}

struct Reader<'a> {
    file: Arc<PathBuf>,
    text: &'a str,
}

impl Reader<'_> {
    fn place(&self, offset: usize) -> Place {
        let before = &self.text[..offset.min(self.text.len())];
        let line = before.matches('\n').count() + 1;
        let column = before[before.rfind('\n').map_or(0, |at| at + 1)..].chars().count() + 1;
        Place { file: Arc::clone(&self.file), line, column, keys: Vec::new() }
    }

    fn entries<'a>(&'a self, table: &'a DeTable<'a>) -> impl Iterator<Item = Entry<'a>> {
        table.iter().map(|(key, value)| Entry {
            reader: self,
            key: key.get_ref().as_ref(),
            start: key.span().start,
            value: value.get_ref(),
        })
    }
}

impl Entry<'_> {
    fn place(&self) -> Place {
        self.reader.place(self.start)
    }

    fn wrong(&self, what: &str) -> Wrong {
        Wrong::new(format!("{}: {}: {what}", self.place(), self.key))
    }

    fn expected(&self, what: &str) -> Wrong {
        self.wrong(&format!("expected {what}, found {} {}", article(self.value.type_str()), self.value.type_str()))
    }

    fn text(&self) -> Result<&str, Wrong> {
        self.value.as_str().ok_or_else(|| self.expected("a text"))
    }

    fn texts(&self) -> Result<Vec<&str>, Wrong> {
        let list = self.value.as_array().ok_or_else(|| self.expected("a list of texts, such as [\"k6\", \"run\", \"x.js\"]"))?;
        let texts: Option<Vec<&str>> = list.iter().map(|text| text.get_ref().as_str()).collect();
        texts.ok_or_else(|| self.wrong("expected a list of texts"))
    }

    fn bool(&self) -> Result<bool, Wrong> {
        self.value.as_bool().ok_or_else(|| self.expected("true or false"))
    }

    /// A number as it was written, or a text.
    fn scalar(&self) -> Option<String> {
        match self.value {
            DeValue::String(text) => Some(text.to_string()),
            DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().replace('_', "")),
            DeValue::Float(number) => Some(number.as_str().replace('_', "")),
            DeValue::Boolean(value) => Some(value.to_string()),
            _ => None,
        }
    }

    fn duration(&self) -> Result<Duration, Wrong> {
        let text = self.scalar().ok_or_else(|| self.expected("a time such as \"500ms\", or seconds"))?;
        parse_duration(&text).map_err(|why| self.wrong(&why))
    }

    fn timeout(&self) -> Result<Timeout, Wrong> {
        let text = self.scalar().ok_or_else(|| self.expected("a time such as \"500ms\", or a share such as \"80%\""))?;
        Timeout::parse(&text).map_err(|why| self.wrong(&why))
    }

    fn table(&self) -> Result<&DeTable<'_>, Wrong> {
        self.value.as_table().ok_or_else(|| self.expected("a table"))
    }
}

fn article(kind: &str) -> &'static str {
    if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

/// Reads a file: the options it gives, and its targets in their order.
pub(super) fn read(registry: &[&'static Spec], path: &Path) -> Result<(Options, Vec<Asked>), Wrong> {
    let text = std::fs::read_to_string(path).map_err(|why| Wrong::new(format!("{}: cannot be read: {why}", path.display())))?;
    let reader = Reader { file: Arc::new(path.to_owned()), text: &text };
    let table = DeTable::parse(&text).map_err(|why| {
        let place = reader.place(why.span().map_or(0, |span| span.start));
        Wrong::new(format!("{place}: {}", why.message().trim().replace('\n', ", ")))
    })?;
    // The same text again as plain values, for the collectors.
    let values: toml::Table = toml::from_str(&text).map_err(|why| Wrong::new(format!("{}: {}", path.display(), why.message())))?;
    let mut options = Options::default();
    let mut asked: Vec<(usize, Asked)> = Vec::new();
    for entry in reader.entries(table.get_ref()) {
        let kind = registry.iter().find(|spec| spec.name == entry.key);
        match (kind, entry.value) {
            // `host = false` is an option; `[host]` is a target.
            (Some(spec), value) if !(is_host(spec) && value.is_bool()) => {
                targets(&reader, spec, &entry, values.get(entry.key), &mut asked)?;
            }
            _ => option(registry, &entry, &mut options)?,
        }
    }
    asked.sort_by_key(|(start, _)| *start);
    Ok((options, asked.into_iter().map(|(_, target)| target).collect()))
}

fn option(registry: &[&'static Spec], entry: &Entry<'_>, options: &mut Options) -> Result<(), Wrong> {
    match entry.key {
        "tick" => options.tick = Some(entry.duration()?),
        "timeout" => options.timeout = Some(entry.timeout()?),
        "seconds" => options.seconds = Some(entry.duration()?),
        "rest" => options.rest = Some(entry.duration()?),
        "cool" => options.cool = Some(entry.duration()?),
        "out" => options.out = Some(PathBuf::from(entry.text()?)),
        "force" => options.force = Some(entry.bool()?),
        "show_rows" => options.show_rows = Some(entry.bool()?),
        "allow_down" => options.allow_down = Some(entry.bool()?),
        "host" => options.host = Some(entry.bool()?),
        "quiet" => options.quiet = Some(entry.bool()?),
        "host_role" => options.host_role = Some(Role::parse(entry.text()?).map_err(|why| entry.wrong(&why))?),
        "waits_per_tick" => {
            let number = entry.scalar().and_then(|text| text.parse().ok());
            options.waits_per_tick = Some(number.ok_or_else(|| entry.expected("a whole number of rows"))?);
        }
        "labels" => {
            for label in entry.reader.entries(entry.table()?) {
                let value = label.scalar().ok_or_else(|| label.expected("a text"))?;
                options.labels.insert(label.key.to_owned(), value);
            }
        }
        "driver_log" => options.stop.log = Some(PathBuf::from(entry.text()?)),
        "driver_live" => options.stop.live = Some(entry.text()?.to_owned()),
        "stop_when" => {
            for text in entry.texts()? {
                options.stop.gates.push(text.parse().map_err(|why: GateError| entry.wrong(&why.to_string()))?);
            }
        }
        "command" => {
            options.command = entry.texts()?.into_iter().map(OsString::from).collect();
        }
        unknown => {
            let known = OPTIONS.iter().copied().chain(registry.iter().map(|spec| spec.name));
            let hint = match crate::text::closest(unknown, known) {
                Some(near) => format!("did you mean {near}?"),
                None => format!(
                    "options are {}; targets are {}",
                    OPTIONS.join(", "),
                    registry.iter().map(|spec| format!("[[{}]]", spec.name)).collect::<Vec<_>>().join(", ")
                ),
            };
            return Err(entry.wrong("is not known").hint(hint));
        }
    }
    Ok(())
}

fn targets(
    reader: &Reader<'_>,
    spec: &'static Spec,
    entry: &Entry<'_>,
    values: Option<&toml::Value>,
    asked: &mut Vec<(usize, Asked)>,
) -> Result<(), Wrong> {
    let sections: Vec<(usize, &DeTable<'_>)> = match entry.value {
        DeValue::Table(table) => vec![(entry.start, table)],
        DeValue::Array(list) => list
            .iter()
            .map(|item| match item.get_ref() {
                DeValue::Table(table) => Ok((item.span().start, table)),
                _ => Err(entry.expected(&format!("sections [[{}]]", spec.name))),
            })
            .collect::<Result<_, _>>()?,
        _ => return Err(entry.expected(&format!("a section [[{}]]", spec.name))),
    };
    for (n, (start, table)) in sections.into_iter().enumerate() {
        let values = match values {
            Some(toml::Value::Array(list)) => list.get(n).and_then(toml::Value::as_table),
            Some(toml::Value::Table(table)) => Some(table),
            _ => None,
        };
        let mut settings = values.cloned().unwrap_or_default();
        let mut place = reader.place(start);
        let mut target = Asked {
            spec,
            name: None,
            endpoint: String::new(),
            settings: toml::Table::new(),
            timeout: None,
            every: None,
            allow_down: None,
            place: None,
        };
        let mut endpoint_key: Option<&str> = None;
        for key in reader.entries(table) {
            let at = key.place();
            place.keys.push((key.key.to_owned(), at.line, at.column));
            match key.key {
                "name" => target.name = Some(key.text()?.to_owned()),
                "timeout" => target.timeout = Some(key.timeout()?),
                "every" => target.every = Some(key.duration()?),
                "allow_down" => target.allow_down = Some(key.bool()?),
                _ if ENDPOINT_KEYS.contains(&key.key) && !spec.value.is_empty() => {
                    if let Some(other) = endpoint_key.replace(key.key) {
                        return Err(key.wrong(&format!("says the same as {other}: one is enough")));
                    }
                    target.endpoint = key.scalar().ok_or_else(|| key.expected("a text"))?;
                }
                _ => continue,
            }
            settings.remove(key.key);
        }
        target.settings = settings;
        target.place = Some(place);
        asked.push((start, target));
    }
    Ok(())
}
