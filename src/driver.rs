//! Any load driver's log to the neutral timeline ([`crate::timeline`]): exact, streaming, and honest about what it lacks.
//!
//! A log is recognised by its first bytes, never by its name; [`Options::format`] overrides. Each format is one file with
//! one [`Reader`] in [`REGISTRY`]. A log is one of:
//! - a **timeline**: requests with their times, or intervals;
//! - a **rung**: one row for the whole run, with its rate and latencies (`more.kind` is `rung`);
//! - a **summary**: totals without a rate (`more.kind` is `summary`);
//! - refused, with the reason and what to export instead.
//!
//! A row that cannot be read never aborts: it is counted, the first three are named in `more.bad_rows`; over 1 % of them,
//! or a hole of more than two intervals inside the run, makes the log unusable. A cut last line is normal.
//!
//! `more` of the `#driver` line holds, where there is something to say: `rows` read; `bad_row_count` and the first
//! `bad_rows` (file, line, why); `cut` (where a gzip broke off); `mix` of the steps and `mix_planned`; `reached_of_plan`;
//! `workers_exhausted` (since when); `checks` passed and failed; `waited_ms` (by step, what requests waited in the
//! driver before they were sent); `requests_per_iteration`, by which sessions were made into requests; `aborted`,
//! `transaction_rows`, `synthetic_rows`, `negative_durations`, `earlier_runs_left_out`.
//!
//! What a log lacks is said in `caveats`, as the codes of [`caveat::CAVEATS`]; [`caveat_text`] has the texts.

pub mod caveat;
pub mod live;

mod aggregate;
mod checks;
mod clock;
mod fields;
mod input;
mod merge;
mod outcome;
mod plan;
mod prose;
mod run;
mod steps;
mod table;
mod zone;

mod ab;
mod artillery;
mod autocannon;
mod fortio;
mod gatling;
mod gatling_binary;
mod goose;
mod h2load;
mod hey;
mod hyperfoil;
mod jmeter;
mod jmeter_xml;
mod k6;
mod k6_json;
mod k6_summary;
mod locust;
mod mapped;
mod memtier;
mod neutral;
mod oha;
mod pgbench;
mod pgbench_intervals;
mod phout;
mod redis_benchmark;
mod refused;
mod requests;
mod siege;
mod stats;
mod sysbench;
mod tsung;
mod vegeta;
mod wrk;

pub use caveat::caveat_text;
pub use mapped::Columns;
pub use outcome::{Outcome, Rule};
pub use plan::{Mix, Plan};
pub use steps::StepBy;
pub use zone::Zone;

use crate::text::InputError;
use crate::timeline::Timeline;
use aggregate::Request;
use clock::Clock;
use input::Input;
use run::Run;
use std::path::{Path, PathBuf};

/// How logs are read.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The format by name, where it should not be told from the content.
    pub format: Option<String>,
    /// When the driver was started, for logs with times since their own start only.
    pub start_unix_ms: Option<i64>,
    /// The same for single files: the rungs of a ladder each have their own.
    pub starts: Vec<(PathBuf, i64)>,
    /// The zone of local stamps; this machine's where not given.
    pub zone: Option<Zone>,
    /// What names a step.
    pub step_by: StepBy,
    /// What became of a request, by its code or message; the first rule that fits.
    pub outcomes: Vec<Rule>,
    /// What should have been sent.
    pub plan: Option<Plan>,
    /// The planned shares of the steps.
    pub mix: Option<Mix>,
    /// Which column says what, for a CSV of no format known here.
    pub columns: Option<Columns>,
    /// Whether pauses inside the run were meant.
    pub allow_holes: bool,
}

impl Options {
    /// When the driver of a file was started, in microseconds since 1970.
    fn start_us(&self, path: &Path) -> Option<i64> {
        let own = self.starts.iter().find(|(file, _)| file == path).map(|(_, ms)| *ms);
        own.or(self.start_unix_ms)?.checked_mul(1000)
    }
}

/// A format: how it is recognised, and how it is read.
trait Reader: Sync {
    /// Its name for `--driver-format`.
    fn name(&self) -> &'static str;
    /// Other names.
    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }
    /// What it is and how the driver is made to write it, in one line.
    fn about(&self) -> &'static str;
    /// Whether the first bytes of a log are of this format.
    fn sniff(&self, head: &Head<'_>) -> bool;
    /// Reads a log.
    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError>;
}

/// The first bytes of a log.
struct Head<'a> {
    bytes: &'a [u8],
    /// The first line that is not empty, without its end.
    line: &'a [u8],
}

impl<'a> Head<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        let mut lines = bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        Self { bytes, line: lines.find(|line| !line.trim_ascii().is_empty()).unwrap_or_default() }
    }

    fn has(&self, text: &str) -> bool {
        memchr::memmem::find(self.bytes, text.as_bytes()).is_some()
    }

    fn starts_with(&self, prefix: &str) -> bool {
        self.line.starts_with(prefix.as_bytes())
    }
}

/// Every format, in the order in which they are tried.
const REGISTRY: &[&dyn Reader] = &[
    &neutral::Neutral,
    &requests::Requests,
    &gatling_binary::Binary,
    &k6::Csv,
    &k6_json::Json,
    &locust::History,
    &stats::Locust,
    &stats::Taurus,
    &vegeta::Csv,
    &vegeta::Json,
    &vegeta::Report,
    &wrk::Text,
    &oha::Csv,
    &oha::Json,
    &hey::Csv,
    &hey::Text,
    &ab::Gnuplot,
    &ab::Text,
    &h2load::Log,
    &h2load::Text,
    &siege::Log,
    &siege::Verbose,
    &autocannon::Json,
    &artillery::Report,
    &fortio::Json,
    &fortio::Access,
    &goose::Csv,
    &goose::Json,
    &goose::Report,
    &hyperfoil::Series,
    &hyperfoil::Json,
    &memtier::Json,
    &k6_summary::Summary,
    &redis_benchmark::Progress,
    &redis_benchmark::Csv,
    &sysbench::Text,
    &tsung::Log,
    &tsung::Dump,
    &phout::Phout,
    &gatling::Text,
    &jmeter::Csv,
    &jmeter_xml::Xml,
    &pgbench_intervals::Progress,
    &pgbench_intervals::Text,
    &pgbench::Log,
    &pgbench_intervals::Aggregate,
    &mapped::Csv,
];

/// Every format that is read: its name, other names, and how the driver is made to write it.
pub fn formats() -> impl Iterator<Item = (&'static str, &'static [&'static str], &'static str)> {
    REGISTRY.iter().map(|reader| (reader.name(), reader.aliases(), reader.about()))
}

/// Reads the logs of one run: several files are added up.
pub fn read(paths: &[PathBuf], options: &Options) -> Result<Timeline, InputError> {
    let mut run = Run::new(options);
    let mut first = None;
    for path in paths {
        let mut input = Input::open(path)?;
        let reader = choose(&mut input, options)?;
        if let (1, "timeline") = (paths.len(), reader.name())
            && options.plan.is_none()
        {
            // Already neutral: exactly as it stands.
            return neutral::read(&mut input, options);
        }
        run.begin(&input);
        reader.read(&mut input, &mut run)?;
        run.end(&input)?;
        first.get_or_insert(input);
    }
    match first {
        Some(first) => run.finish(&first),
        None => Err(InputError::new(Path::new(""), "no driver's log was given")),
    }
}

fn choose(input: &mut Input, options: &Options) -> Result<&'static dyn Reader, InputError> {
    let wanted = options.format.as_deref().or(options.columns.as_ref().map(|_| "csv"));
    if let Some(wanted) = wanted {
        let reader = REGISTRY.iter().find(|reader| reader.name() == wanted || reader.aliases().contains(&wanted));
        return reader.copied().ok_or_else(|| {
            let names: Vec<&str> = REGISTRY.iter().map(|reader| reader.name()).collect();
            input.error(format!("no driver format is called {wanted:?}")).hint(format!("one of {}", names.join(", ")))
        });
    }
    let head = Head::of(input.head()?);
    if head.line.is_empty() {
        return Err(input.error("is empty").hint("the driver wrote nothing: was it stopped before its first flush?"));
    }
    if let Some((why, hint)) = refused::why(&head) {
        return Err(input.error(why).hint(hint));
    }
    if let Some(reader) = REGISTRY.iter().find(|reader| reader.sniff(&head)) {
        return Ok(*reader);
    }
    let begin = String::from_utf8_lossy(&head.line[..head.line.len().min(80)]).into_owned();
    Err(input
        .error(format!("is of no format known here; it begins with {begin:?}"))
        .hint("--driver-format names the format; `correlate --help` lists them"))
}

#[cfg(test)]
mod tests;
