//! Numbers of a page in JSON: an application's own counters and pools.
//!
//! Which numbers are read is settled at the start: those whose paths the configuration gives (`[[json.value]]`), else all
//! numbers outside of lists, up to 100, their classes guessed from their names and marked so. Privilege: the page itself.
//! A number that is not there, or is a text, is missing. Left unread on purpose: texts that read like numbers, lists.

mod tree;

use crate::api::{Collector, Fault, FaultKind, Gauge, Lack, Reading, Section, Spec, Support, intern};
use crate::declared::{Declared, settle};
use crate::http::{Answer, Http, Settings, address};
use crate::metrics::plan::column_name;
use crate::metrics::text::Type;
use crate::settings;
use reqwest::Url;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// A page in JSON.
pub const SPEC: Spec = Spec {
    name: "json",
    flag: "json",
    aliases: &[],
    value: "URL",
    about: "numbers of a page in JSON: an application's own counters, pools, queues",
    needs: "nothing but the page; numbers are chosen with [[json.value]]",
    sample_config: r#"[[json]]
url = "http://127.0.0.1:8080/stats"

[[json.value]]
path = "pool.waiting"       # or queues[0].depth, or a JSON pointer: /queues/0/depth
as = "pool_waiting"
class = "queue"
layer = "pool"
resource = "database pool"
"#,
    gauges: &[],
    open,
};

/// Without a choice no more columns than this.
const MOST: usize = 100;

/// The largest page.
const LARGEST: usize = 4 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    #[serde(default)]
    value: Vec<toml::Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    path: String,
    #[serde(rename = "as")]
    column: Option<String>,
}

struct Json {
    section: Section,
    settings: Settings,
    url: Url,
    chosen: Vec<(String, Gauge)>,
    http: Option<Http>,
    columns: Vec<(String, Gauge)>,
    /// Columns whose odd value was noted.
    noted: BTreeSet<&'static str>,
}

fn open(section: &Section) -> Result<Box<dyn Collector>, Fault> {
    let (settings, rest) = Settings::take(section)?;
    let own: Own = settings::parse(&rest)?;
    let url = address::parse(&section.instance, &section.endpoint)?;
    let mut chosen = Vec::new();
    for mut table in own.value {
        let declared = Declared::take(&section.instance, &mut table)?;
        let place: Place = settings::parse(&Section { settings: table, ..section.clone() })?;
        let name = place.column.unwrap_or_else(|| column_name(&[&place.path]));
        if column_name(&[&name]) != name {
            let why = format!("as = {name:?}: a column's name is snake case, for example {}", column_name(&[&name]));
            return Err(Fault::new(FaultKind::Config, format!("configuration of {}: {why}", section.instance)));
        }
        let gauge = declared.gauge(&name, &place.path, kind(&name));
        chosen.push((place.path, gauge));
    }
    named_apart(&section.instance, &mut chosen)?;
    Ok(Box::new(Json {
        section: section.clone(),
        settings,
        url,
        columns: chosen.clone(),
        chosen,
        http: None,
        noted: BTreeSet::new(),
    }))
}

fn named_apart(instance: &str, columns: &mut [(String, Gauge)]) -> Result<(), Fault> {
    let mut gauges: Vec<Gauge> = columns.iter().map(|(_, gauge)| *gauge).collect();
    settle(instance, &mut gauges)?;
    for (column, gauge) in columns.iter_mut().zip(gauges) {
        column.1 = gauge;
    }
    Ok(())
}

/// Whether a number only grows, by its name: JSON does not say. Careful in one direction: what is perhaps a state is one.
fn kind(name: &str) -> Type {
    const GROWS: [&str; 16] = [
        "requests",
        "responses",
        "errors",
        "failures",
        "hits",
        "misses",
        "accepted",
        "handled",
        "served",
        "processed",
        "rejected",
        "timeouts",
        "evictions",
        "retries",
        "total",
        "dropped",
    ];
    const STATE: [&str; 12] =
        ["active", "current", "pending", "waiting", "queued", "flight", "open", "per", "rate", "max", "avg", "ratio"];
    let words: Vec<&str> = name.split('_').collect();
    let grows = words.iter().any(|word| GROWS.contains(word)) && !words.iter().any(|word| STATE.contains(word));
    if grows { Type::Counter } else { Type::Unknown }
}

impl Json {
    async fn page(&mut self) -> Result<Value, Fault> {
        let http = match &mut self.http {
            Some(http) => http,
            None => self.http.insert(Http::new(&self.section, &self.settings, &self.url, "application/json, */*;q=0.1")?),
        };
        let answer: Answer = http.get(&self.url, LARGEST).await?.ok()?;
        tree::parse(&answer.body, answer.framed).ok_or_else(|| answer.nonsense("a page in JSON", "json"))
    }

    fn reading(&mut self, page: &Value) -> Reading {
        let mut reading = Reading::default();
        for (path, gauge) in &self.columns {
            match tree::at(page, path) {
                None | Some(Value::Null) => {}
                Some(value) => match tree::number(value) {
                    Some(number) => reading.put(gauge.name, number),
                    None if self.noted.insert(gauge.name) => {
                        let is = match value {
                            Value::String(_) => "a text",
                            Value::Array(_) => "a list",
                            _ => "an object",
                        };
                        reading.notes.push(format!("{path}: expected a number, found {is}"));
                    }
                    None => {}
                },
            }
        }
        reading
    }
}

#[async_trait::async_trait]
impl Collector for Json {
    fn columns(&self) -> Vec<Gauge> {
        self.columns.iter().map(|(_, gauge)| *gauge).collect()
    }

    fn unsettled(&self) -> Option<Lack> {
        self.chosen.is_empty().then(|| Lack {
            what: "its numbers: which there are the page tells at the start".to_owned(),
            mend: Some("[[json.value]] path = \"…\" chooses one".to_owned()),
        })
    }

    async fn start(&mut self) -> Result<Support, Fault> {
        self.noted.clear();
        let page = self.page().await?;
        let mut support = Support { product: "JSON".to_owned(), endpoint: address::shown(&self.url), ..Support::default() };
        if self.chosen.is_empty() {
            let (paths, more) = tree::numbers(&page, MOST);
            if paths.is_empty() {
                let message = format!("GET {}: JSON without a number outside of lists", address::shown(&self.url));
                return Err(
                    Fault::new(FaultKind::Nonsense, message).hint("[[json.value]] path = \"queues[0].depth\" reads one in a list")
                );
            }
            self.columns = paths
                .into_iter()
                .map(|path| {
                    let name = column_name(&[&path]);
                    let gauge = Declared::default().gauge(&name, &name, kind(&name));
                    (path, gauge)
                })
                .collect();
            named_apart(&self.section.instance, &mut self.columns)?;
            support.sees.push(format!(
                "{} numbers, their classes guessed; declare the ones that matter with [[json.value]]",
                self.columns.len()
            ));
            if more {
                support.lacks.push(Lack {
                    what: format!("numbers past the bound of {MOST}"),
                    mend: Some("choose the ones that matter with [[json.value]]".to_owned()),
                });
            }
        } else {
            self.columns.clone_from(&self.chosen);
            support.sees.push(format!("{} numbers", self.columns.len()));
        }
        let reading = self.reading(&page);
        for (path, gauge) in &self.columns {
            if !reading.values.iter().any(|(name, _)| *name == gauge.name) {
                support.lacks.push(Lack { what: format!("{} (no number at {path} yet)", gauge.name), mend: None });
            }
        }
        for (_, gauge) in &mut self.columns {
            if gauge.resource.is_empty() {
                gauge.resource = intern(&self.section.instance);
            }
        }
        support.columns = self.columns();
        Ok(support)
    }

    async fn read(&mut self) -> Result<Reading, Fault> {
        let page = self.page().await?;
        Ok(self.reading(&page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Class, Kind};
    use crate::http::fake;

    fn opened(url: &Url, settings: &str) -> Result<Box<dyn Collector>, Fault> {
        open(&Section::of("app", url.as_str(), settings))
    }

    fn serving(body: &'static str) -> Url {
        fake::pages(move |_| ("200 OK", body.to_owned()))
    }

    #[test]
    fn without_a_choice_every_number_is_a_column_whose_class_is_marked_as_guessed() {
        let url = serving(r#"{"requests": 120, "records": 7, "pool": {"waiting": 3, "active": 2}, "list": [1], "version": "1.2"}"#);
        fake::run(async {
            let mut json = opened(&url, "").unwrap();
            let support = json.start().await.unwrap();
            let told: Vec<_> = support.columns.iter().map(|gauge| (gauge.name, gauge.class, gauge.kind)).collect();
            assert_eq!(
                told,
                [
                    ("requests", Class::Throughput, Kind::Counter),
                    ("records", Class::Level, Kind::Gauge),
                    ("pool_waiting", Class::Queue, Kind::Gauge),
                    ("pool_active", Class::Utilisation, Kind::Gauge),
                ]
            );
            assert!(support.columns.iter().all(|gauge| gauge.guessed));
            assert_eq!(json.read().await.unwrap().values[2], ("pool_waiting", 3.0));
        });
    }

    #[test]
    fn chosen_numbers_have_what_was_declared_and_what_is_no_number_is_missing() {
        let url = serving(r#"{"q": [{"depth": 4}], "limit": 50, "odd": "17", "gone": null}"#);
        let settings = "[[value]]\npath = \"q[0].depth\"\nas = \"depth\"\nclass = \"queue\"\ncapacity = \"limit\"\n\
            [[value]]\npath = \"limit\"\nclass = \"constant\"\n[[value]]\npath = \"odd\"\n[[value]]\npath = \"gone\"\n";
        fake::run(async {
            let mut json = opened(&url, settings).unwrap();
            let support = json.start().await.unwrap();
            assert_eq!((support.columns[0].class, support.columns[0].guessed), (Class::Queue, false));
            assert_eq!(support.lacks.len(), 2, "{:?}", support.lacks);
            let reading = json.read().await.unwrap();
            assert_eq!(reading.values, [("depth", 4.0), ("limit", 50.0)]);
        });
    }

    #[test]
    fn another_kind_of_page_is_named_and_a_wrong_choice_refused() {
        let html = serving("<html><title>Sign in</title></html>");
        let fault = fake::run(async { opened(&html, "").unwrap().start().await.unwrap_err() });
        assert!(fault.message.contains("JSON") && fault.message.contains("Sign in"), "{fault}");
        let empty = serving("{\"a\": []}");
        assert_eq!(fake::run(async { opened(&empty, "").unwrap().start().await.unwrap_err() }).kind, FaultKind::Nonsense);
        for text in
            ["[[value]]\npath = \"a\"\nas = \"A b\"", "[[value]]\npth = \"a\"", "[[value]]\npath = \"a\"\ncapacity = \"no\""]
        {
            assert_eq!(opened(&empty, text).err().unwrap().kind, FaultKind::Config, "{text}");
        }
    }
}
