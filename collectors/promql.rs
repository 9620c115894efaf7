//! An instant query of a Prometheus-compatible server (Prometheus, Mimir, Thanos, `VictoriaMetrics`) as a gauge: what a team
//! has there already.
//!
//! `GET …/api/v1/query` in each tick, evaluated at the server's now. Its value is as old as the last scrape, which the
//! answer does not tell: `lag` says how old (15 s unless given), and a series is gone five minutes after its last scrape at
//! the latest. No series is a missing value, never 0. Privilege: the server's.

//!
//! A series that a preset of `metrics` knows keeps its meaning there, so that Kafka's lag needs no class; `preset:kafka_lag` is the
//! whole query of it, whichever exporter the server scrapes.

mod answer;

use crate::api::{Collector, Fault, FaultKind, Gauge, Kind, Lack, Reading, Section, Spec, Support, intern};
use crate::declared::{Declared, settle, split};
use crate::http::{Http, Settings, address};
use crate::metrics::plan::column_name;
use crate::metrics::presets;
use crate::metrics::text::Type;
use crate::settings;
use answer::{Answer, Series};
use reqwest::Url;
use serde::Deserialize;

/// A query of a Prometheus-compatible server.
pub const SPEC: Spec = Spec {
    name: "promql",
    flag: "promql",
    aliases: &[],
    value: "URL::QUERY",
    about: "an instant query of a Prometheus-compatible server: --promql lag=http://prometheus:9090::preset:kafka_lag",
    needs: "nothing but the server's query API",
    sample_config: r#"[[promql]]
name = "lag"
url = "http://127.0.0.1:9090"
query = "sum(kafka_consumergroup_lag)"   # or "preset:kafka_lag", whatever the exporter
class = "queue"              # known of this one, else guessed
lag = 15                     # the scrape interval there
# label = "topic"            # a column for each of its values, instead of one for all
# aggregate = "max"          # several series: sum (unless said) or max
"#,
    gauges: &[],
    open,
};

const LARGEST: usize = 4 << 20;

/// How old a value is, where nobody says: Prometheus' usual scrape interval.
const LAG: f64 = 15.0;

/// No more columns than this by a label.
const MOST: usize = 50;

/// Queries by name. A lag of -1 is one that the exporter does not know.
const NAMED: &[(&str, &str)] = &[(
    "preset:kafka_lag",
    "sum by (consumergroup) (kafka_consumergroup_lag >= 0) or sum by (group) (kafka_consumergroup_group_lag >= 0) \
     or sum by (group) (kafka_burrow_partition_lag >= 0) or sum by (group_id) (kminion_kafka_consumer_group_topic_lag >= 0)",
)];

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum How {
    #[default]
    Sum,
    Max,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    query: Option<String>,
    label: Option<String>,
    #[serde(default)]
    aggregate: How,
}

struct Promql {
    section: Section,
    settings: Settings,
    declared: Declared,
    url: Url,
    query: String,
    label: Option<String>,
    how: How,
    http: Option<Http>,
    /// The label's value, where one is wanted, and the column.
    columns: Vec<(Option<String>, Gauge)>,
    stranger: bool,
}

fn open(section: &Section) -> Result<Box<dyn Collector>, Fault> {
    let (settings, mut rest) = Settings::take(section)?;
    rest.settings.entry("lag").or_insert(toml::Value::Float(LAG));
    if let Some(toml::Value::Integer(lag)) = rest.settings.get("lag") {
        rest.settings.insert("lag".to_owned(), toml::Value::Float(*lag as f64));
    }
    let declared = Declared::take(&section.instance, &mut rest.settings)?;
    let own: Own = settings::parse(&rest)?;
    let (place, asked) = split(&section.endpoint);
    let query = match (asked, own.query) {
        (Some(_), Some(_)) => return Err(wrong(section, "the query is given twice, behind :: and in the settings")),
        (Some(query), None) => query.to_owned(),
        (None, Some(query)) => query,
        (None, None) => String::new(),
    };
    if query.trim().is_empty() {
        return Err(
            wrong(section, "no query").hint("--promql name=http://prometheus:9090::sum(up), or query = \"…\" in the configuration")
        );
    }
    let query = match NAMED.iter().find(|(name, _)| *name == query.trim()) {
        Some((_, whole)) => (*whole).to_owned(),
        None if query.trim().starts_with("preset:") => {
            let known: Vec<&str> = NAMED.iter().map(|(name, _)| *name).collect();
            return Err(wrong(section, &format!("no query is called {}; there is {}", query.trim(), known.join(", "))));
        }
        None => query,
    };
    let mut url = address::parse(&section.instance, place)?;
    if !url.path().ends_with("/api/v1/query") {
        url.set_path(&format!("{}/api/v1/query", url.path().trim_end_matches('/')));
    }
    url.query_pairs_mut().append_pair("query", &query);
    let mut promql = Promql {
        section: section.clone(),
        settings,
        declared,
        url,
        query,
        label: own.label,
        how: own.aggregate,
        http: None,
        columns: Vec::new(),
        stranger: false,
    };
    if promql.label.is_none() {
        promql.columns = vec![(None, promql.gauge("value"))];
    }
    Ok(Box::new(promql))
}

fn wrong(section: &Section, why: &str) -> Fault {
    Fault::new(FaultKind::Config, format!("configuration of {}: {why}", section.instance))
}

/// What is known of the first series that a query names and a preset knows. Of a counter nothing: what a query makes of it
/// is something else.
fn known_in(query: &str) -> Option<Gauge> {
    let mut words = query.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    words.find_map(presets::find).filter(|known| known.kind == Kind::Gauge)
}

impl Promql {
    fn gauge(&self, name: &str) -> Gauge {
        // The name that people gave says more than the query, whose functions hide what its series are.
        let mut gauge = self.declared.gauge(name, &self.section.instance, Type::Gauge);
        if let Some(known) = known_in(&self.query)
            && gauge.guessed
        {
            (gauge.class, gauge.unit, gauge.worse, gauge.help) = (known.class, known.unit, known.worse, known.help);
            (gauge.layer, gauge.guessed) = (gauge.layer.or(known.layer), false);
        }
        if gauge.resource.is_empty() {
            gauge.resource = intern(&self.section.instance);
        }
        gauge
    }

    async fn ask(&mut self) -> Result<Vec<Series>, Fault> {
        let http = match &mut self.http {
            Some(http) => http,
            None => self.http.insert(Http::new(&self.section, &self.settings, &self.url, "application/json")?),
        };
        let answer = http.get(&self.url, LARGEST).await?;
        let what = format!("query {:?} of {}", self.query, self.section.instance);
        match answer::parse(&answer.body) {
            Some(Answer::Series(series)) if answer.status == 200 => Ok(series),
            Some(Answer::Error(why)) => Err(Fault::new(FaultKind::Nonsense, format!("{what}: {why}"))),
            Some(Answer::Other(kind)) => {
                Err(Fault::new(FaultKind::Nonsense, format!("{what}: expected a vector or a scalar, found a {kind}"))
                    .hint("a range such as [5m] belongs in a function: rate(x[5m])"))
            }
            _ => {
                let answer = answer.ok()?;
                Err(answer
                    .nonsense("an answer of Prometheus' query API", "promql")
                    .hint("URL is the server's own, without /api/v1/query"))
            }
        }
    }

    fn reading(&mut self, series: &[Series]) -> Reading {
        let mut reading = Reading::default();
        for (wanted, gauge) in &self.columns {
            let fits = |one: &&Series| match (&self.label, wanted) {
                (Some(label), Some(value)) => one.labels.get(label) == Some(value),
                _ => true,
            };
            // A sum without one of its parts is another number.
            let values: Option<Vec<f64>> = series.iter().filter(fits).map(|one| one.value).collect();
            let all = values.into_iter().flatten();
            let value = match self.how {
                How::Sum => all.reduce(|a, b| a + b),
                How::Max => all.reduce(f64::max),
            };
            reading.put_some(gauge.name, value);
        }
        if let Some(label) = &self.label
            && !self.stranger
            && let Some(new) = series
                .iter()
                .filter_map(|one| one.labels.get(label))
                .find(|value| !self.columns.iter().any(|(known, _)| known.as_ref() == Some(value)))
        {
            self.stranger = true;
            reading.notes.push(format!("came after the start and has no column: {label}={new:?}"));
        }
        reading
    }
}

#[async_trait::async_trait]
impl Collector for Promql {
    fn columns(&self) -> Vec<Gauge> {
        self.columns.iter().map(|(_, gauge)| *gauge).collect()
    }

    fn unsettled(&self) -> Option<Lack> {
        self.label.as_ref().map(|label| Lack {
            what: format!("its columns: which values {label} has the answer tells at the start"),
            mend: Some(format!("a query for each value, without label = {label:?}")),
        })
    }

    async fn start(&mut self) -> Result<Support, Fault> {
        self.stranger = false;
        let series = self.ask().await?;
        let mut support = Support { product: "Prometheus".to_owned(), ..Support::default() };
        let mut shown = self.url.clone();
        shown.set_query(None);
        support.endpoint = address::shown(&shown);
        support.facts.push(("query".to_owned(), self.query.as_str().into()));
        if let Some(label) = &self.label {
            let mut values: Vec<String> = series.iter().filter_map(|one| one.labels.get(label).cloned()).collect();
            values.sort();
            values.dedup();
            if values.is_empty() {
                let message = format!("query {:?} of {}: no series has the label {label}", self.query, self.section.instance);
                return Err(Fault::new(FaultKind::Nonsense, message));
            }
            if values.len() > MOST {
                support
                    .lacks
                    .push(Lack { what: format!("{} values of {label} past the bound of {MOST}", values.len() - MOST), mend: None });
                values.truncate(MOST);
            }
            let mut gauges: Vec<Gauge> = values.iter().map(|value| self.gauge(&column_name(&[value]))).collect();
            settle(&self.section.instance, &mut gauges)?;
            self.columns = values.into_iter().map(Some).zip(gauges).collect();
            support.sees.push(format!("{} values of {label}", self.columns.len()));
        } else if series.len() > 1 {
            let how = if self.how == How::Sum { "sum" } else { "largest" };
            support.sees.push(format!("the {how} of {} series", series.len()));
        } else if series.is_empty() {
            support.lacks.push(Lack { what: "value (no series matches yet)".to_owned(), mend: None });
        }
        support.columns = self.columns();
        if support.columns.iter().any(|gauge| gauge.guessed) {
            support.sees.push("its class is guessed; say it with class = \"…\"".to_owned());
        }
        Ok(support)
    }

    async fn read(&mut self) -> Result<Reading, Fault> {
        let series = self.ask().await?;
        Ok(self.reading(&series))
    }
}

#[cfg(test)]
mod tests;
