//! Any page in the Prometheus text format: an application's own pools, queues and requests.
//!
//! Privilege: the page itself. Which series are read is settled at the start: those that the configuration chooses
//! (`[[metrics.series]]`), else all of the page that mean something, up to 200 columns; well-known ones are declared
//! (`presets`), the others' classes are guessed and marked so. A label becomes part of the column's name.
//!
//! The time of our own read is the time of the values: timestamps on the page are dropped, and what an exporter caches cannot
//! be told from here. Left unread on purpose: buckets and quantiles (their windows are the exporter's), `_info` and
//! `_created`, what the exporter says of itself.

pub(crate) mod guess;
mod node;
pub(crate) mod plan;
pub(crate) mod presets;
mod select;
mod settle;
pub(crate) mod text;

use crate::api::{Collector, Fault, FaultKind, Gauge, Lack, Reading, Section, Spec, Support};
use crate::http::{Answer, Http, Settings, address, sniff};
use crate::settings;
use plan::Plan;
use reqwest::Url;
use select::Series;
use serde::Deserialize;
use std::collections::BTreeSet;

/// The registry's entry.
pub const SPEC: Spec = Spec {
    name: "metrics",
    flag: "metrics",
    aliases: &[],
    value: "URL",
    about: "a page in the Prometheus text format: pools, queues, requests of an application",
    needs: "nothing but the page; series are chosen with [[metrics.series]]",
    sample_config: SAMPLE,
    gauges: presets::ALL,
    open,
};

const SAMPLE: &str = r#"[[metrics]]
url = "http://127.0.0.1:8080/metrics"

[[metrics.series]]
name = "hikaricp_connections_pending"
labels = { pool = "main" }
as = "pool_pending"
class = "queue"
layer = "pool"
resource = "main pool"

[[metrics.series]]
name = "hikaricp_connections_active"
labels = { pool = "main" }
as = "pool_active"
capacity = "pool_max"

[[metrics.series]]
name = "hikaricp_connections_max"
labels = { pool = "main" }
as = "pool_max"
"#;

/// Where the page usually is.
const USUAL: [&str; 5] = ["/metrics", "/actuator/prometheus", "/q/metrics", "/prometheus", "/stats/prometheus"];

/// Pages of thousands of series are large.
const MOST: usize = 16 << 20;

const ACCEPT: &str = "text/plain;version=0.0.4,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    #[serde(default)]
    series: Vec<Series>,
    /// Beside the chosen series, also what a page without a choice would give.
    #[serde(default)]
    others: bool,
}

struct Metrics {
    section: Section,
    settings: Settings,
    given: Url,
    own: Own,
    link: Option<(Http, Url)>,
    plan: Plan,
    started: Option<f64>,
    /// Kinds of remarks that were made already: each is made once.
    said: BTreeSet<&'static str>,
}

fn open(section: &Section) -> Result<Box<dyn Collector>, Fault> {
    let (settings, rest) = Settings::take(section)?;
    let own: Own = settings::parse(&rest)?;
    select::check(&section.instance, &own.series, own.others)?;
    let given = address::parse(&section.instance, &section.endpoint)?;
    let mut metrics = Metrics {
        section: section.clone(),
        settings,
        given,
        own,
        link: None,
        plan: Plan::default(),
        started: None,
        said: BTreeSet::new(),
    };
    let mut columns: Vec<_> = metrics.own.series.iter().map(|series| series.column(text::Type::Unknown, "")).collect();
    settle::finish(&mut columns);
    metrics.plan = Plan::new(columns, BTreeSet::new());
    Ok(Box::new(metrics))
}

impl Metrics {
    async fn page(http: &mut Http, url: &Url) -> Result<Answer, Fault> {
        let answer = http.get(url, MOST).await?.ok()?;
        // One look at the kind of page, since HTML may hold lines that read like samples.
        let is = sniff::page(&answer.body);
        let readable = matches!(is, sniff::Page::Prometheus | sniff::Page::Unknown)
            && text::lines(answer.whole_lines()).any(|(_, line)| matches!(line, text::Line::Sample(_)));
        if readable {
            return Ok(answer);
        }
        let fault = answer.nonsense("a page in the Prometheus text format", "metrics");
        Err(if fault.hint.is_some() {
            fault
        } else {
            fault.hint("the page is usually /metrics, of Spring Boot /actuator/prometheus")
        })
    }

    async fn search(&self, http: &mut Http) -> Result<(Url, Answer), Fault> {
        if !address::is_bare(&self.given) {
            return Self::page(http, &self.given).await.map(|answer| (self.given.clone(), answer));
        }
        let mut tried = Vec::new();
        for path in USUAL {
            let mut url = self.given.clone();
            url.set_path(path);
            match Self::page(http, &url).await {
                Ok(answer) => return Ok((url, answer)),
                Err(fault) if fault.kind == FaultKind::Nonsense => tried.push(fault.message),
                Err(fault) => return Err(fault),
            }
        }
        let message = format!("no page of metrics at {}: tried\n  {}", address::shown(&self.given), tried.join("\n  "));
        Err(Fault::new(FaultKind::Nonsense, message).hint("give the page's full URL"))
    }

    /// Settles the plan by the first page; names the series for which there was no room.
    fn settle(&mut self, body: &[u8]) -> Vec<String> {
        if self.own.series.is_empty() {
            let settled = settle::settle(body, &BTreeSet::new());
            self.plan = settled.plan;
            return settled.left_out;
        }
        let mut columns: Vec<_> = self
            .own
            .series
            .iter()
            .map(|series| {
                let (kind, help) = settle::said_of(body, &series.name);
                series.column(kind, &help)
            })
            .collect();
        let mut left_out = Vec::new();
        let mut whole = BTreeSet::new();
        if self.own.others {
            let taken = self.own.series.iter().map(|series| series.name.clone()).collect();
            let settled = settle::settle(body, &taken);
            (whole, left_out) = (settled.plan.whole().clone(), settled.left_out);
            columns.extend(settled.plan.columns.into_iter().filter(|column| column.pick.is_some()));
        }
        settle::finish(&mut columns);
        self.plan = Plan::new(columns, whole);
        left_out
    }

    fn support(&self, url: &Url, body: &[u8], left_out: &[String]) -> Support {
        let read = self.plan.read(body);
        let gauges: Vec<Gauge> = self.plan.columns.iter().map(|column| column.gauge).collect();
        let guessed = gauges.iter().filter(|gauge| gauge.guessed).count();
        let (product, version) = product(body);
        let mut support = Support { product, version, endpoint: address::shown(url), ..Support::default() };
        support.sees.push(format!("{} of {} series in {} columns", self.plan.matched(body), read.samples, gauges.len()));
        if guessed > 0 {
            support.sees.push(format!(
                "{guessed} columns with a class guessed from the name; declare the ones that matter with [[metrics.series]]"
            ));
        }
        for (column, value) in self.plan.columns.iter().zip(&read.values) {
            if let (None, Some(pick)) = (value, &column.pick)
                && !self.own.series.is_empty()
                && self.own.series.iter().any(|series| series.name == pick.series)
            {
                support.lacks.push(Lack {
                    what: format!("{}: no finite value of {} matches yet", column.gauge.name, pick.series),
                    mend: None,
                });
            }
        }
        if !left_out.is_empty() {
            let some = left_out.iter().take(20).map(String::as_str).collect::<Vec<_>>().join(", ");
            let more = if left_out.len() > 20 { ", …" } else { "" };
            support.lacks.push(Lack {
                what: format!("{} columns past the bound of {}: {some}{more}", left_out.len(), settle::MOST),
                mend: Some("choose the ones that matter with [[metrics.series]]".to_owned()),
            });
        }
        if let Some((line, why, count)) = read.bad {
            support.lacks.push(Lack {
                what: format!("{count} lines of the page that cannot be read, the first is line {line}: {why}"),
                mend: None,
            });
        }
        support.columns = gauges;
        support
    }

    fn reading(&mut self, body: &[u8], framed_end: bool) -> Reading {
        let mut read = self.plan.read(body);
        let mut reading = Reading::default();
        for (column, value) in self.plan.columns.iter().zip(std::mem::take(&mut read.values)) {
            reading.put_some(column.gauge.name, value);
        }
        reading.process = read.started.map(|started| started.to_string());
        if let (Some(before), Some(now)) = (self.started, read.started)
            && now != before
        {
            reading.restarted = Some("the process restarted, counters begin again".to_owned());
        }
        self.started = read.started.or(self.started);
        let mut once = |kind, text: String| {
            if self.said.insert(kind) {
                reading.notes.push(text);
            }
        };
        if let Some((line, why, count)) = read.bad {
            once("bad", format!("{count} lines of the page cannot be read, the first is line {line}: {why}"));
        }
        if let Some(series) = read.repeated {
            once("repeated", format!("stands twice on the page, the first counts: {series}"));
        }
        if let Some(series) = read.stranger {
            once("stranger", format!("came after the start and has no column: {series}"));
        }
        if !framed_end {
            once("end", "the page has no `# EOF`: it may be cut".to_owned());
        }
        reading
    }
}

/// What says its own name by a `NAME_build_info{version="…"}`, or `NAME_version="…"`.
fn product(body: &[u8]) -> (String, String) {
    const LIBRARIES: [&str; 4] = ["go_build_info", "python_info", "promhttp_build_info", "jvm_build_info"];
    for (_, line) in text::lines(body) {
        let text::Line::Sample(sample) = line else { continue };
        if !LIBRARIES.contains(&sample.name.as_ref())
            && let Some(name) = sample.name.strip_suffix("_build_info")
            && let Some((_, version)) =
                sample.labels().into_iter().find(|(label, _)| label == "version" || label.strip_suffix("_version") == Some(name))
        {
            return (name.to_owned(), version.into_owned());
        }
    }
    ("metrics".to_owned(), String::new())
}

#[async_trait::async_trait]
impl Collector for Metrics {
    fn columns(&self) -> Vec<Gauge> {
        self.plan.columns.iter().map(|column| column.gauge).collect()
    }

    fn unsettled(&self) -> Option<Lack> {
        (self.own.series.is_empty() || self.own.others).then(|| Lack {
            what: "series that are not chosen: which there are the page tells at the start".to_owned(),
            mend: Some("[[metrics.series]] name = \"…\" chooses one".to_owned()),
        })
    }

    async fn start(&mut self) -> Result<Support, Fault> {
        let mut http = Http::new(&self.section, &self.settings, &self.given, ACCEPT)?;
        let (url, answer) = self.search(&mut http).await?;
        let left_out = self.settle(answer.whole_lines());
        let support = self.support(&url, answer.whole_lines(), &left_out);
        self.started = self.plan.read(answer.whole_lines()).started;
        self.link = Some((http, url));
        Ok(support)
    }

    async fn read(&mut self) -> Result<Reading, Fault> {
        let Some((http, url)) = &mut self.link else {
            return Err(Fault::new(FaultKind::Unreachable, format!("{} was not reached yet", address::shown(&self.given))));
        };
        let answer = Self::page(http, url).await?;
        let ends =
            !answer.content_type.starts_with("application/openmetrics-text") || answer.body.trim_ascii_end().ends_with(b"# EOF");
        Ok(self.reading(answer.whole_lines(), ends))
    }
}

#[cfg(test)]
mod tests;
