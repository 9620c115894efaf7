//! oha, `--output-format csv`: one line a request, sorted by its start in seconds since the run's. Requests that failed to
//! connect or timed out are not in it. `--output-format json` is a summary of the run: a rung, with all errors. Its
//! `SQLite` file is not read here.

use super::input::Input;
use super::outcome::is_good_status;
use super::run::Run;
use super::steps::UNNAMED;
use super::table::Table;
use super::{Head, Outcome, Reader, caveat};
use crate::text::InputError;
use crate::timeline::{Interval, Offered};

/// oha's CSV.
pub(super) struct Csv;
/// oha's JSON summary.
pub(super) struct Json;

impl Reader for Csv {
    fn name(&self) -> &'static str {
        "oha"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["oha-csv"]
    }

    fn about(&self) -> &'static str {
        "oha --no-tui --output-format csv -o FILE"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.starts_with("request-start,")
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("oha");
        run.offered(Offered::Achieved);
        for code in [caveat::OPEN_UNKNOWN, caveat::COORDINATED_OMISSION, caveat::FAILURES_MISSING, caveat::ASSERTION_FREE] {
            run.caveat(code);
        }
        let origin = run.origin_us(input);
        let mut table = Table::with_header(input, b',')?.dropping_tail();
        let (start, time, status) =
            (table.needed(input, "request-start")?, table.needed(input, "request-duration")?, table.needed(input, "status")?);
        let id = run.steps.id(UNNAMED.as_bytes());
        while let Some(line) = table.next(input, run)? {
            let (Some(start), Some(time)) = (table.number(run, line, start), table.number(run, line, time)) else { continue };
            let code = table.fields.get(status);
            let outcome = run.judge(is_good_status(code), code, b"");
            run.started(origin + (start * 1e6) as i64, time * 1e3, id, outcome);
        }
        if run.cells.is_empty() {
            return Err(input
                .error("holds no request: oha's CSV has only those that were answered, so none was")
                .hint("oha --output-format json tells the errors"));
        }
        Ok(())
    }
}

impl Reader for Json {
    fn name(&self) -> &'static str {
        "oha-json"
    }

    fn about(&self) -> &'static str {
        "oha --no-tui --output-format json: a rung"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.starts_with("{") && head.has("\"summary\"") && head.has("\"successRate\"")
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("oha");
        run.offered(Offered::Achieved);
        for code in [caveat::OPEN_UNKNOWN, caveat::COORDINATED_OMISSION, caveat::PERCENTILES_COARSE, caveat::ASSERTION_FREE] {
            run.caveat(code);
        }
        let document = input.json()?;
        let mut counts = [0.0; 4];
        let mut count = |outcome: Outcome, n: f64| {
            let place = [Outcome::Ok, Outcome::Failed, Outcome::Refused].iter().position(|one| *one == outcome);
            counts[place.unwrap_or(3)] += n;
        };
        for (code, n) in document["statusCodeDistribution"].as_object().into_iter().flatten() {
            count(run.judge(is_good_status(code.as_bytes()), code.as_bytes(), b""), n.as_f64().unwrap_or(0.0));
        }
        for (error, n) in document["errorDistribution"].as_object().into_iter().flatten() {
            let outcome =
                if error == "aborted due to deadline" { Outcome::Aborted } else { run.judge(false, b"", error.as_bytes()) };
            count(outcome, n.as_f64().unwrap_or(0.0));
        }
        let [ok, failed, refused, aborted] = counts;
        let ms = |key: &str| document["latencyPercentiles"][key].as_f64().map(|seconds| seconds * 1e3);
        let row = Interval {
            dur_ms: document["summary"]["total"].as_f64().unwrap_or(0.0) * 1e3,
            offered: Some(ok + failed + refused),
            started: Some(ok + failed + refused + aborted),
            ok: Some(ok),
            failed: Some(failed),
            refused: Some(refused),
            p50_ms: ms("p50"),
            p95_ms: ms("p95"),
            p99_ms: ms("p99"),
            max_ms: document["summary"]["slowest"].as_f64().map(|seconds| seconds * 1e3),
            ..Interval::default()
        };
        if aborted > 0.0 {
            run.caveat(caveat::ABORTED_AT_END);
            run.more.insert("aborted".into(), aborted.into());
        }
        run.rung(input, None, [row]);
        Ok(())
    }
}
