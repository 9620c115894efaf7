//! k6, `--out json=FILE`: one JSON object a line, a definition once a metric and then a point a sample.
//!
//! The order of keys differs by version, identical lines are legal under load (k6#2662): nothing is taken by position or
//! thrown away as a duplicate. A line is parsed only if it holds the name of a metric that is read.

use super::input::Input;
use super::k6::{Sample, Samples};
use super::outcome::is_good_status;
use super::run::Run;
use super::{Clock, Head, Reader, caveat};
use crate::text::InputError;
use memchr::{memchr, memmem};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::fmt;

/// k6's JSON lines.
pub(super) struct Json;

impl Reader for Json {
    fn name(&self) -> &'static str {
        "k6-json"
    }

    fn about(&self) -> &'static str {
        "k6 run --out json=FILE (also .gz)"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.starts_with("{") && head.has("\"metric\":") && (head.has("\"type\":\"Metric\"") || head.has("\"type\":\"Point\""))
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("k6");
        let mut clock = Clock::default();
        let mut samples = Samples::default();
        let (mut step, mut line) = (Vec::new(), Vec::new());
        loop {
            let number = {
                let Some(next) = input.line()? else { break };
                if next.bytes.is_empty() {
                    continue;
                }
                let looks_whole = next.bytes.starts_with(b"{") && next.bytes.ends_with(b"}");
                if !looks_whole && !next.whole {
                    run.caveat(caveat::CUT_LOG);
                    break;
                }
                run.rows += 1;
                match metric(next.bytes).map(Sample::of) {
                    Some(None) if looks_whole => {
                        run.passed_over += 1;
                        continue;
                    }
                    // Parts of the request before them need no more than their value.
                    Some(Some(sample)) if sample.is_part() => {
                        if let Ok(Part { data: Value { value: Some(value) } }) = serde_json::from_slice(next.bytes) {
                            run.passed_over += 1;
                            samples.sample(run, sample, 0, value);
                            continue;
                        }
                        if is_definition(next.bytes) {
                            continue;
                        }
                    }
                    _ => {}
                }
                line.clear();
                line.extend_from_slice(next.bytes);
                next.number
            };
            let point: Point<'_> = match serde_json::from_slice(&line) {
                Ok(point) => point,
                Err(why) => {
                    run.bad_row(number, format!("is no sample: {why}"));
                    continue;
                }
            };
            let (Some(sample), "Point") = (Sample::of(point.metric.as_bytes()), point.kind.as_ref()) else { continue };
            let (Some(value), Some(time)) = (point.data.value, &point.data.time) else {
                run.bad_row(number, "a point without time or value");
                continue;
            };
            let Some(us) = run.stamp(input, &mut clock, time.as_bytes(), number)? else { continue };
            if matches!(sample, Sample::Duration | Sample::Rpc) {
                let tag = |name: &str| point.data.tags.get(name).or_else(|| point.data.metadata.get(name)).unwrap_or_default();
                let code = tag("status");
                let ok = match tag("expected_response") {
                    "true" => true,
                    "false" => false,
                    _ if sample == Sample::Rpc => code == "0",
                    _ => is_good_status(code.as_bytes()) && tag("error_code").is_empty(),
                };
                run.options.step_by.of(&mut step, |name| match name {
                    "name" if tag("name").is_empty() => tag("url").as_bytes(),
                    name => tag(name).as_bytes(),
                });
                let id = run.steps.id(&step);
                let outcome = run.judge(ok, code.as_bytes(), tag("error").as_bytes());
                samples.request(run, us, value, id, outcome);
            } else {
                samples.sample(run, sample, us, value);
            }
        }
        samples.finish(run);
        run.cells.coarse |= clock.is_coarse();
        Ok(())
    }
}

/// The metric's name, which stands near one end of the line: looking there spares the search.
fn metric(line: &[u8]) -> Option<&[u8]> {
    [&line[..line.len().min(60)], &line[line.len().saturating_sub(60)..]].into_iter().find_map(|part| {
        let at = memmem::find(part, b"\"metric\":\"")? + 10;
        let end = memchr(b'"', &part[at..])?;
        Some(&part[at..at + end])
    })
}

fn is_definition(line: &[u8]) -> bool {
    memmem::find(line, b"\"type\":\"Metric\"").is_some()
}

#[derive(Deserialize)]
struct Part {
    data: Value,
}

#[derive(Deserialize)]
struct Value {
    value: Option<f64>,
}

#[derive(Deserialize)]
struct Point<'a> {
    #[serde(borrow, default)]
    metric: Cow<'a, str>,
    #[serde(borrow, rename = "type", default)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    data: Data<'a>,
}

#[derive(Default, Deserialize)]
struct Data<'a> {
    #[serde(borrow)]
    time: Option<Cow<'a, str>>,
    value: Option<f64>,
    #[serde(borrow, default)]
    tags: Tags<'a>,
    #[serde(borrow, default)]
    metadata: Tags<'a>,
}

/// A few pairs in their order: no map is needed to find one of ten.
#[derive(Default)]
struct Tags<'a>(Vec<(Cow<'a, str>, Text<'a>)>);

impl Tags<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(tag, _)| tag == name).map(|(_, value)| value.0.as_ref())
    }
}

/// A text that is copied only where it has escapes. (`Cow` alone is always copied inside of a list.)
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Tags<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Tags<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("tags")
            }

            fn visit_unit<E>(self) -> Result<Tags<'de>, E> {
                Ok(Tags::default())
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Tags<'de>, M::Error> {
                let mut pairs = Vec::with_capacity(12);
                while let Some((Text(name), value)) = map.next_entry()? {
                    pairs.push((name, value));
                }
                Ok(Tags(pairs))
            }
        }
        from.deserialize_any(Pairs)
    }
}
