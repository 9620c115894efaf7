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
use memchr::memmem;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::HashMap;

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
                run.rows += 1;
                let looks_whole = next.bytes.starts_with(b"{") && next.bytes.ends_with(b"}");
                if looks_whole && !may_be_wanted(next.bytes) {
                    continue;
                }
                if !looks_whole && !next.whole {
                    run.rows -= 1;
                    run.caveat(caveat::CUT_LOG);
                    break;
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
                let tags = &point.data.tags;
                let tag = |name: &str| tags.get(name).or_else(|| point.data.metadata.get(name)).map_or("", |value| value.as_ref());
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

/// Whether the name of a metric that is read stands anywhere in the line.
fn may_be_wanted(line: &[u8]) -> bool {
    const NAMES: [&[u8]; 8] = [
        b"\"http_req_duration\"",
        b"\"grpc_req_duration\"",
        b"\"http_req_blocked\"",
        b"\"http_req_connecting\"",
        b"\"http_req_tls_handshaking\"",
        b"\"vus\"",
        b"\"dropped_iterations\"",
        b"\"checks\"",
    ];
    // The metric stands at one end of the line: looking there first spares most of the search.
    let metric = [&line[..line.len().min(60)], &line[line.len().saturating_sub(60)..]].into_iter().find_map(|part| {
        let at = memmem::find(part, b"\"metric\":\"")? + 10;
        let end = memchr::memchr(b'"', &part[at..])?;
        Some(&part[at..at + end])
    });
    match metric {
        Some(metric) => Sample::of(metric).is_some(),
        None => memmem::find(line, b"\"iterations\"").is_some() || NAMES.iter().any(|name| memmem::find(line, name).is_some()),
    }
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
    #[serde(borrow, default, deserialize_with = "or_none")]
    tags: HashMap<&'a str, Text<'a>>,
    #[serde(borrow, default, deserialize_with = "or_none")]
    metadata: HashMap<&'a str, Text<'a>>,
}

/// A text that is copied only where it has escapes. (`Cow` alone is always copied inside of a map.)
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl AsRef<str> for Text<'_> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

fn or_none<'de, D: serde::Deserializer<'de>>(from: D) -> Result<HashMap<&'de str, Text<'de>>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}
