//! The file of requirements, every value with its line.

use crate::correlate::cli;
use crate::correlate::verdict::Answer;
use crate::text::{InputError, scaled};
use crate::time::parse_duration;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::{Spanned, Value};

/// What a release needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirements {
    /// The file, as it was given.
    pub file: String,
    /// The version under test.
    pub version: Option<String>,
    /// The runs that must be there, in their order.
    pub needs: Vec<Need>,
    /// What production is, in its order.
    pub production: Vec<Instance>,
}

/// A value and the line it stands in.
#[derive(Clone, Debug, PartialEq)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Counted from 1.
    pub line: usize,
}

impl<T> At<T> {
    fn map<U>(self, of: impl Fn(T) -> U) -> At<U> {
        At { value: of(self.value), line: self.line }
    }
}

/// A `[[run]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Need {
    /// Its name, or its number.
    pub name: String,
    /// Where it begins.
    pub line: usize,
    /// Parts of this name only.
    pub phase: Option<At<String>>,
    /// Seconds.
    pub duration: Option<At<f64>>,
    /// Per second.
    pub rate: Option<At<f64>>,
    /// Any of these.
    pub verdict: At<Vec<Answer>>,
    /// Steps that were asked for.
    pub steps: Vec<At<String>>,
    /// Labels of the run.
    pub labels: BTreeMap<String, String>,
}

impl Need {
    /// Where it first says how the load must be held; `None` where it does not.
    pub fn load_line(&self) -> Option<usize> {
        let lines =
            [self.phase.as_ref().map(|at| at.line), self.duration.as_ref().map(|at| at.line), self.rate.as_ref().map(|at| at.line)];
        lines.into_iter().flatten().min()
    }
}

/// A table of `[production]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    /// The instance, as in the ticks.
    pub name: String,
    /// The file it stands in.
    pub file: String,
    /// Where it begins.
    pub line: usize,
    /// A key of its header or a column, and what it must be.
    pub wants: Vec<(String, At<Want>)>,
}

/// What a value must be.
#[derive(Clone, Debug, PartialEq)]
pub enum Want {
    /// This version, or one within it.
    Version(String),
    /// This text.
    Text(String),
    /// This number.
    Number(f64),
    /// Not less.
    AtLeast(f64),
    /// Not more.
    AtMost(f64),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: Option<String>,
    #[serde(default)]
    run: Vec<Spanned<Run>>,
    #[serde(default)]
    production: Profile,
    profile: Option<Spanned<PathBuf>>,
}

type Profile = BTreeMap<String, Spanned<BTreeMap<String, Spanned<Value>>>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    name: Option<String>,
    phase: Option<Spanned<String>>,
    duration: Option<Spanned<Seconds>>,
    rate: Option<Spanned<PerSecond>>,
    verdict: Option<Spanned<Vec<Answer>>>,
    #[serde(default)]
    steps: Vec<Spanned<String>>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

struct Seconds(f64);
struct PerSecond(f64);

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let duration = parse_duration(&written(from)?).map_err(D::Error::custom)?;
        Ok(Self(duration.as_secs_f64()))
    }
}

impl<'de> Deserialize<'de> for PerSecond {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        cli::rate(&written(from)?).map(Self).map_err(D::Error::custom)
    }
}

/// A text, or a number as it would stand in one.
fn written<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    match Value::deserialize(from)? {
        Value::String(text) => Ok(text),
        number @ (Value::Integer(_) | Value::Float(_)) => Ok(number.to_string()),
        other => Err(D::Error::custom(format!("expected a text or a number, found {other}"))),
    }
}

/// One file's text, to tell lines by.
struct Source<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Source<'_> {
    fn line(&self, offset: usize) -> usize {
        self.text[..offset.min(self.text.len())].matches('\n').count() + 1
    }

    fn at<T>(&self, spanned: Spanned<T>) -> At<T> {
        At { line: self.line(spanned.span().start), value: spanned.into_inner() }
    }

    fn error(&self, line: usize, what: impl Into<String>) -> InputError {
        InputError::new(self.path, what).at(line as u64)
    }

    fn parse<T: for<'de> Deserialize<'de>>(&self) -> Result<T, InputError> {
        toml::from_str(self.text).map_err(|why| {
            let what = why.message().trim().replace('\n', ", ");
            self.error(self.line(why.span().map_or(0, |span| span.start)), what)
        })
    }

    fn profile(&self, profile: Profile) -> Result<Vec<Instance>, InputError> {
        let mut all = Vec::new();
        for (name, table) in profile {
            let At { line, value: table } = self.at(table);
            let mut wants = Vec::new();
            for (key, value) in table {
                let At { line, value } = self.at(value);
                let value = want(&key, value).map_err(|why| self.error(line, format!("{name}.{key}: {why}")))?;
                wants.push((key, At { value, line }));
            }
            wants.sort_by_key(|(_, want)| want.line);
            all.push(Instance { name, file: self.path.display().to_string(), line, wants });
        }
        all.sort_by_key(|instance| instance.line);
        Ok(all)
    }
}

fn text_of(path: &Path) -> Result<String, InputError> {
    std::fs::read_to_string(path).map_err(|why| InputError::new(path, format!("cannot be read: {why}")))
}

/// Reads the file, and that of the production profile where it names one.
pub fn read(path: &Path) -> Result<Requirements, InputError> {
    let text = text_of(path)?;
    let source = Source { path, text: &text };
    let file: File = source.parse()?;
    if file.run.is_empty() {
        return Err(InputError::new(path, "needs no run: without a table [[run]] everything would be covered"));
    }
    let needs: Vec<Need> = file.run.into_iter().enumerate().map(|(n, run)| need(&source, n, run)).collect();
    for (n, need) in needs.iter().enumerate() {
        if needs[..n].iter().any(|other| other.name == need.name) {
            return Err(source.error(need.line, format!("there are two runs named {}", need.name)));
        }
    }
    let mut production = source.profile(file.production)?;
    if let Some(profile) = file.profile {
        let At { line, value: profile } = source.at(profile);
        if !production.is_empty() {
            return Err(source.error(line, "production is given twice: as [production] and as profile"));
        }
        // Beside the requirements, as a person who opens both would look for it.
        let path = path.parent().unwrap_or(Path::new("")).join(profile);
        let text = text_of(&path)?;
        let source = Source { path: &path, text: &text };
        production = source.profile(source.parse()?)?;
    }
    Ok(Requirements { file: path.display().to_string(), version: file.version, needs, production })
}

fn need(source: &Source, n: usize, run: Spanned<Run>) -> Need {
    let At { line, value: run } = source.at(run);
    let qualified = || At { line, value: vec![Answer::Qualified] };
    Need {
        name: run.name.unwrap_or_else(|| format!("run {}", n + 1)),
        line,
        phase: run.phase.map(|phase| source.at(phase)),
        duration: run.duration.map(|duration| source.at(duration).map(|Seconds(seconds)| seconds)),
        rate: run.rate.map(|rate| source.at(rate).map(|PerSecond(rate)| rate)),
        verdict: run.verdict.map_or_else(qualified, |verdict| source.at(verdict)),
        steps: run.steps.into_iter().map(|step| source.at(step)).collect(),
        labels: run.labels,
    }
}

fn want(key: &str, value: Value) -> Result<Want, String> {
    match value {
        Value::String(version) if key == "version" => Ok(Want::Version(version)),
        // 8.10 would be 8.1.
        other if key == "version" => Err(format!("expected a version in quotes, found {other}")),
        Value::Integer(number) => Ok(Want::Number(number as f64)),
        Value::Float(number) => Ok(Want::Number(number)),
        Value::Boolean(yes) => Ok(Want::Text(yes.to_string())),
        Value::String(text) => {
            let limit = |limit: &str| number(limit).ok_or_else(|| format!("expected a number such as >= 512MiB, found {text:?}"));
            if let Some(least) = text.strip_prefix(">=") {
                return limit(least).map(Want::AtLeast);
            }
            if let Some(most) = text.strip_prefix("<=") {
                return limit(most).map(Want::AtMost);
            }
            Ok(number(&text).map_or(Want::Text(text), Want::Number))
        }
        other => Err(format!("expected a number, a text, true or false, found {other}")),
    }
}

/// A number, with a unit of size or without.
pub fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || "._,-".contains(c))).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    scaled(digits.replace(['_', ','], "").parse().ok()?, unit.trim())
}
