//! k6, `--out csv=FILE`: one row a sample, `metric_name,timestamp,metric_value,` and the tags.
//!
//! Stamps are those of the request's END. The columns depend on `systemTags` and on the version, so they are taken by
//! name. A request is its `http_req_duration` row; the rows `http_req_connecting` and `http_req_tls_handshaking` that
//! follow it are added to the site's time, because a full accept queue shows only there, and what `http_req_blocked` holds
//! beyond them (k6 counts both into it) is the driver's own wait. Of all other rows only the metric's name is looked at.

use super::fields::{Fields, number};
use super::input::Input;
use super::outcome::is_good_status;
use super::run::Run;
use super::steps::StepBy;
use super::{Clock, Head, Reader, Request, caveat};
use crate::text::InputError;
use crate::timeline::Offered;
use memchr::memchr;
use serde_json::json;

/// k6's CSV.
pub(super) struct Csv;

impl Reader for Csv {
    fn name(&self) -> &'static str {
        "k6"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["k6-csv"]
    }

    fn about(&self) -> &'static str {
        "k6 run --out csv=FILE (also .gz)"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        let has = |name: &str| head.line.split(|byte| *byte == b',').any(|cell| cell.trim_ascii() == name.as_bytes());
        has("metric_name") && has("timestamp") && has("metric_value")
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("k6");
        let mut fields = Fields::default();
        let mut line = Vec::new();
        let Some(header) = input.line()? else { return Ok(()) };
        fields.split(header.bytes, b',');
        let columns = Columns::of(&fields, &run.options.step_by);
        let (Some(metric), Some(stamp), Some(value)) = (columns.metric, columns.stamp, columns.value) else {
            return Err(input.error("has no columns metric_name, timestamp and metric_value").at(1));
        };
        let width = fields.len();
        let mut clock = Clock::default();
        let mut samples = Samples::default();
        let mut step = Vec::new();
        loop {
            let (number_of_line, whole) = {
                let Some(next) = input.line()? else { break };
                // The name stands first in every file that k6 writes: nothing else of most rows is looked at.
                if metric == 0
                    && let Some(end) = memchr(b',', next.bytes)
                {
                    match Sample::of(&next.bytes[..end]) {
                        None => {
                            run.rows += 1;
                            run.passed_over += 1;
                            continue;
                        }
                        // Parts of the request before them need no more than their value, which stands third.
                        Some(sample) if next.whole && (stamp, value) == (1, 2) && sample.is_part() => {
                            if let Some(value) = third(&next.bytes[end + 1..]) {
                                run.rows += 1;
                                run.passed_over += 1;
                                samples.sample(run, sample, 0, value);
                                continue;
                            }
                        }
                        Some(_) => {}
                    }
                }
                line.clear();
                line.extend_from_slice(next.bytes);
                (next.number, next.whole)
            };
            if line.is_empty() {
                continue;
            }
            let closed = fields.split(&line, b',');
            if !whole && (!closed || fields.len() != width) {
                run.caveat(caveat::CUT_LOG);
                break;
            }
            run.rows += 1;
            if !closed || fields.len() != width {
                run.bad_row(number_of_line, format!("expected {width} cells, found {}", fields.len()));
                continue;
            }
            let Some(sample) = Sample::of(fields.get(metric)) else { continue };
            let Some(value) = number(fields.get(value)) else {
                run.bad_row(number_of_line, format!("expected a value, found {:?}", String::from_utf8_lossy(fields.get(value))));
                continue;
            };
            let Some(us) = run.stamp(input, &mut clock, fields.get(stamp), number_of_line)? else { continue };
            // Within a whole second the middle is the best guess.
            let us = if clock.is_coarse() { us + 500_000 } else { us };
            if matches!(sample, Sample::Duration | Sample::Rpc) {
                let code = fields.of(columns.status);
                let ok = match fields.of(columns.expected) {
                    b"true" => true,
                    b"false" => false,
                    _ if sample == Sample::Rpc => code == b"0",
                    _ => is_good_status(code) && fields.of(columns.error_code).is_empty(),
                };
                columns.step(&run.options.step_by, &fields, &mut step);
                let id = run.steps.id(&step);
                let outcome = run.judge(ok, code, fields.of(columns.error));
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

/// The number in the second of these cells.
fn third(cells: &[u8]) -> Option<f64> {
    let rest = &cells[memchr(b',', cells)? + 1..];
    number(&rest[..memchr(b',', rest)?])
}

/// The metrics that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sample {
    Duration,
    Rpc,
    Blocked,
    Connecting,
    Tls,
    Vus,
    Iterations,
    Dropped,
    Checks,
}

impl Sample {
    /// Whether its time does not matter.
    pub fn is_part(self) -> bool {
        matches!(self, Self::Blocked | Self::Connecting | Self::Tls | Self::Iterations | Self::Checks)
    }

    pub fn of(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"http_req_duration" => Self::Duration,
            b"grpc_req_duration" => Self::Rpc,
            b"http_req_blocked" => Self::Blocked,
            b"http_req_connecting" => Self::Connecting,
            b"http_req_tls_handshaking" => Self::Tls,
            b"vus" => Self::Vus,
            b"iterations" => Self::Iterations,
            b"dropped_iterations" => Self::Dropped,
            b"checks" => Self::Checks,
            _ => return None,
        })
    }
}

struct Columns {
    metric: Option<usize>,
    stamp: Option<usize>,
    value: Option<usize>,
    expected: Option<usize>,
    status: Option<usize>,
    error_code: Option<usize>,
    error: Option<usize>,
    tags: [Option<usize>; 2],
    /// The driver's name for the step, and the fields of another choice: a column, or a tag.
    name: Option<usize>,
    url: Option<usize>,
    fields: Vec<(String, Option<usize>)>,
}

impl Columns {
    fn of(header: &Fields, by: &StepBy) -> Self {
        let column = |name: &str| header.column(&[name]);
        Self {
            metric: column("metric_name"),
            stamp: column("timestamp"),
            value: column("metric_value"),
            expected: column("expected_response"),
            status: column("status"),
            error_code: column("error_code"),
            error: column("error"),
            tags: [column("extra_tags"), column("metadata")],
            name: column("name"),
            url: column("url"),
            fields: by.fields().into_iter().map(|name| (name.to_owned(), column(name))).collect(),
        }
    }

    fn step(&self, by: &StepBy, fields: &Fields, out: &mut Vec<u8>) {
        by.of(out, |name| match self.fields.iter().find(|(field, _)| field == name) {
            Some((_, Some(column))) => fields.get(*column),
            Some((tag, None)) => self.tags.iter().find_map(|column| tag_of(fields.of(*column), tag)).unwrap_or_default(),
            None if self.name.is_some() => fields.of(self.name),
            None => fields.of(self.url),
        });
    }
}

/// The value of a tag in `k=v&k=v`, which k6 does not escape.
fn tag_of<'a>(tags: &'a [u8], wanted: &str) -> Option<&'a [u8]> {
    tags.split(|byte| *byte == b'&').find_map(|pair| pair.strip_prefix(wanted.as_bytes())?.strip_prefix(b"="))
}

/// Samples to requests; the same for CSV and JSON.
#[derive(Default)]
pub(super) struct Samples {
    pending: Option<Pending>,
    requests: u64,
    iterations: f64,
    dropped: f64,
    first_drop_us: Option<i64>,
    checks: [u64; 2],
}

struct Pending {
    request: Request,
    blocked: Option<f64>,
    connecting: Option<f64>,
    tls: Option<f64>,
}

impl Samples {
    /// A request, by its end.
    pub fn request(&mut self, run: &mut Run<'_>, end_us: i64, ms: f64, step: u16, outcome: super::Outcome) {
        self.flush(run);
        self.requests += 1;
        let request = Request { start_us: end_us, end_us, ms, step, outcome };
        self.pending = Some(Pending { request, blocked: None, connecting: None, tls: None });
    }

    /// Any other sample.
    pub fn sample(&mut self, run: &mut Run<'_>, sample: Sample, us: i64, value: f64) {
        match (sample, &mut self.pending) {
            (Sample::Blocked, Some(pending)) => _ = pending.blocked.get_or_insert(value),
            (Sample::Connecting, Some(pending)) => _ = pending.connecting.get_or_insert(value),
            (Sample::Tls, Some(pending)) => _ = pending.tls.get_or_insert(value),
            (Sample::Vus, _) => run.cells.vus(us, run.file, value),
            (Sample::Iterations, _) => self.iterations += value,
            (Sample::Dropped, _) => {
                self.dropped += value;
                self.first_drop_us = Some(self.first_drop_us.map_or(us, |first| first.min(us)));
                run.cells.dropped_raw(us, value);
            }
            (Sample::Checks, _) => self.checks[usize::from(value == 0.0)] += 1,
            _ => {}
        }
    }

    fn flush(&mut self, run: &mut Run<'_>) {
        let Some(Pending { request, blocked, connecting, tls }) = self.pending.take() else { return };
        let handshakes = connecting.unwrap_or(0.0) + tls.unwrap_or(0.0);
        let ms = request.ms + handshakes;
        if let Some(blocked) = blocked {
            run.request_waited(request.step, (blocked - handshakes).max(0.0), ms);
        }
        run.ended(request.end_us, ms, request.step, request.outcome);
    }

    /// Ends a file: what was dropped, in requests, and what was checked.
    pub fn finish(mut self, run: &mut Run<'_>) {
        self.flush(run);
        if self.dropped > 0.0 {
            let factor = if self.iterations > 0.0 { self.requests as f64 / self.iterations } else { 1.0 };
            run.cells.settle_dropped(factor);
            run.offered(Offered::Iterations);
            // k6 drops an iteration where no visitor is free to begin it.
            run.caveat(caveat::WORKERS_EXHAUSTED);
            if let Some(us) = self.first_drop_us {
                run.more.insert("workers_exhausted".into(), json!({"unix_ms": us / 1000, "dropped": self.dropped}));
            }
            run.more.insert("requests_per_iteration".into(), json!((factor * 1e3).round() / 1e3));
        } else {
            run.offered(Offered::Achieved);
            run.caveat(caveat::OPEN_UNKNOWN);
        }
        if self.checks == [0, 0] {
            run.caveat(caveat::ASSERTION_FREE);
        } else {
            run.more.insert("checks".into(), json!({"passed": self.checks[0], "failed": self.checks[1]}));
        }
    }
}
