//! `RabbitMQ` by its management API: what waits in the queues, and how far the nodes are from the alarms that block publishers.
//!
//! Two pages a read, each asked for with its columns named, so that the server works out nothing else; a list of all queues
//! is never asked for (on a large broker it takes minutes). Privilege: the tag `monitoring`. The server renews its statistics
//! every five seconds, and so do these. Of several nodes the one nearest to its limit counts, for each limit apart. Its rates
//! are left unread on purpose (they can be absurd): counters are read and differences taken. The Prometheus plugin gives the
//! same and costs less: `--metrics`. Seen: 3.10.

use crate::api::{Class, Collector, Fault, FaultKind, Gauge, Lag, Layer, Reading, Section, Spec, Support, Unit, Worse};
use crate::http::{Answer, Http, Settings, address};
use crate::settings;
use reqwest::Url;
use serde::Deserialize;
use serde_json::Value;

/// The registry's entry.
pub const SPEC: Spec = Spec {
    name: "rabbitmq",
    flag: "rabbitmq",
    aliases: &[],
    value: "URL",
    about: "RabbitMQ by its management API: messages that wait, memory, disk and file handles against the alarms",
    needs: "rabbitmqctl add_user probe '<password>'; rabbitmqctl set_user_tags probe monitoring",
    sample_config: r#"[rabbitmq]
url = "http://127.0.0.1:15672"
user = "probe"
# password_file = "/etc/whatgives/rabbitmq"
every = "5s"               # its statistics are not renewed more often
"#,
    gauges: GAUGES,
    open,
};

const QUEUES: &str = "message queues";
const MEMORY: &str = "rabbitmq memory";
const DISK: &str = "rabbitmq disk";
const NODE: &str = "rabbitmq node";

/// How often the server renews its statistics, seconds.
const RENEWED: Lag = Lag::Refreshed(5.0);

const fn gauge(name: &'static str, class: Class, unit: Unit, resource: &'static str, help: &'static str) -> Gauge {
    Gauge::new(name, class, unit, help).lag(RENEWED).at(Layer::Server, resource)
}

const fn count(name: &'static str, class: Class, help: &'static str) -> Gauge {
    Gauge::counter(name, class, Unit::Count, help).lag(RENEWED).at(Layer::Server, QUEUES)
}

const N: Unit = Unit::Count;

/// All of them.
const GAUGES: &[Gauge] = &[
    gauge("messages_ready", Class::Queue, N, QUEUES, "messages that wait for a consumer"),
    gauge("messages_unacked", Class::Utilisation, N, QUEUES, "messages delivered and not yet acknowledged"),
    count("published_total", Class::Throughput, "messages from publishers"),
    count("confirmed_total", Class::Throughput, "messages confirmed to publishers"),
    count("delivered_total", Class::Throughput, "messages delivered or fetched"),
    count("acknowledged_total", Class::Throughput, "messages acknowledged"),
    count("redelivered_total", Class::Throughput, "messages delivered again").worse(Worse::Up),
    count("unroutable_dropped_total", Class::Event, "messages that no queue took, dropped"),
    count("unroutable_returned_total", Class::Event, "messages that no queue took, returned"),
    gauge("consumers", Class::Level, N, QUEUES, "consumers").worse(Worse::Neither),
    gauge("connections", Class::Level, N, NODE, "open connections"),
    gauge("channels", Class::Level, N, NODE, "open channels"),
    gauge("queues", Class::Level, N, NODE, "queues"),
    gauge("nodes_down", Class::Event, N, NODE, "nodes of the cluster that do not run"),
    gauge("memory_bytes", Class::Level, Unit::Bytes, MEMORY, "memory of the node nearest to its limit").of("memory_limit_bytes"),
    gauge("memory_limit_bytes", Class::Constant, Unit::Bytes, MEMORY, "publishers are blocked above it"),
    gauge("memory_alarms", Class::Event, N, MEMORY, "nodes that block publishers for memory"),
    gauge("disk_free_bytes", Class::Level, Unit::Bytes, DISK, "free disk space of the node nearest to its limit")
        .worse(Worse::Down),
    gauge("disk_limit_bytes", Class::Constant, Unit::Bytes, DISK, "publishers are blocked below it"),
    gauge("disk_alarms", Class::Event, N, DISK, "nodes that block publishers for disk space"),
    gauge("file_handles", Class::Level, N, NODE, "open file handles").of("file_handles_max"),
    gauge("file_handles_max", Class::Constant, N, NODE, "how many may be open"),
    gauge("erlang_processes", Class::Level, N, NODE, "Erlang processes").of("erlang_processes_max"),
    gauge("erlang_processes_max", Class::Constant, N, NODE, "how many there may be"),
    gauge("run_queue", Class::Queue, N, "erlang schedulers", "processes that wait for a scheduler, of all nodes"),
];

const OVERVIEW: &str = "rabbitmq_version,queue_totals,object_totals,message_stats";
const NODES: &str = "name,running,mem_used,mem_limit,mem_alarm,disk_free,disk_free_limit,disk_free_alarm,fd_used,fd_total,proc_used,proc_total,run_queue";

/// Of the overview: our gauge and where its number is.
const TOTALS: &[(&str, [&str; 2])] = &[
    ("messages_ready", ["queue_totals", "messages_ready"]),
    ("messages_unacked", ["queue_totals", "messages_unacknowledged"]),
    ("published_total", ["message_stats", "publish"]),
    ("confirmed_total", ["message_stats", "confirm"]),
    ("delivered_total", ["message_stats", "deliver_get"]),
    ("acknowledged_total", ["message_stats", "ack"]),
    ("redelivered_total", ["message_stats", "redeliver"]),
    ("unroutable_dropped_total", ["message_stats", "drop_unroutable"]),
    ("unroutable_returned_total", ["message_stats", "return_unroutable"]),
    ("consumers", ["object_totals", "consumers"]),
    ("connections", ["object_totals", "connections"]),
    ("channels", ["object_totals", "channels"]),
    ("queues", ["object_totals", "queues"]),
];

/// Thousands of nodes would not fill it.
const MOST: usize = 4 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {}

struct RabbitMq {
    section: Section,
    settings: Settings,
    overview: Url,
    nodes: Url,
    http: Option<Http>,
}

fn open(section: &Section) -> Result<Box<dyn Collector>, Fault> {
    let (settings, rest) = Settings::take(section)?;
    let Own {} = settings::parse(&rest)?;
    let given = address::parse(&section.instance, &section.endpoint)?;
    let page = |name: &str, columns: &str| {
        let mut url = given.clone();
        let base = url.path().trim_end_matches('/').trim_end_matches("/api").to_owned();
        url.set_path(&format!("{base}/api/{name}"));
        url.set_query(Some(&format!("columns={columns}")));
        url
    };
    Ok(Box::new(RabbitMq {
        section: section.clone(),
        settings,
        overview: page("overview", OVERVIEW),
        nodes: page("nodes", NODES),
        http: None,
    }))
}

/// The numbers of the overview that are there; `None` where it is none.
fn totals(page: &Value) -> Option<Vec<(&'static str, f64)>> {
    page.get("rabbitmq_version")?;
    let number = |[part, name]: &[&str; 2]| page.get(part)?.get(name)?.as_f64();
    Some(TOTALS.iter().filter_map(|(gauge, path)| number(path).map(|value| (*gauge, value))).collect())
}

/// The numbers of the nodes; `None` where it is no list of them.
fn nodes(page: &Value) -> Option<Vec<(&'static str, f64)>> {
    let all = page.as_array()?;
    all.first()?.get("name")?;
    let up: Vec<&Value> = all.iter().filter(|node| node["running"] == true).collect();
    let pair = |node: &&Value, used: &str, most: &str| node[used].as_f64().zip(node[most].as_f64().filter(|most| *most > 0.0));
    // The one that has the least left, as a share of its limit.
    let nearest = |used: &str, most: &str| {
        let pairs = up.iter().filter_map(|node| pair(node, used, most));
        pairs.max_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)))
    };
    let least = |left: &str, limit: &str| {
        let pairs = up.iter().filter_map(|node| pair(node, left, limit));
        pairs.min_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)))
    };
    let alarms = |name: &str| up.iter().map(|node| node[name].as_bool().map(|on| f64::from(u8::from(on)))).sum::<Option<f64>>();
    let mut values = vec![("nodes_down", (all.len() - up.len()) as f64)];
    for (gauge, limit, found) in [
        ("memory_bytes", "memory_limit_bytes", nearest("mem_used", "mem_limit")),
        ("disk_free_bytes", "disk_limit_bytes", least("disk_free", "disk_free_limit")),
        ("file_handles", "file_handles_max", nearest("fd_used", "fd_total")),
        ("erlang_processes", "erlang_processes_max", nearest("proc_used", "proc_total")),
    ] {
        values.extend(found.into_iter().flat_map(|(value, most)| [(gauge, value), (limit, most)]));
    }
    let queue = up.iter().map(|node| node["run_queue"].as_f64()).sum::<Option<f64>>();
    for (gauge, found) in [("memory_alarms", alarms("mem_alarm")), ("disk_alarms", alarms("disk_free_alarm")), ("run_queue", queue)]
    {
        // Of no running node a sum would be 0.
        values.extend(found.filter(|_| !up.is_empty()).map(|value| (gauge, value)));
    }
    Some(values)
}

fn parsed(answer: &Answer) -> Result<Value, Fault> {
    serde_json::from_slice(&answer.body).map_err(|_| answer.nonsense("RabbitMQ's management API", "rabbitmq"))
}

impl RabbitMq {
    async fn page(&mut self, url: &Url) -> Result<Answer, Fault> {
        let http = match &mut self.http {
            Some(http) => http,
            None => self.http.insert(Http::new(&self.section, &self.settings, url, "application/json")?),
        };
        http.get(url, MOST).await?.ok().map_err(|fault| match fault.kind {
            FaultKind::Refused | FaultKind::Denied => fault.hint(SPEC.needs),
            _ => fault,
        })
    }

    async fn ask(&mut self) -> Result<(Reading, Value), Fault> {
        let (overview, list) = (self.overview.clone(), self.nodes.clone());
        let answer = self.page(&overview).await?;
        let page = parsed(&answer)?;
        let mut values = totals(&page).ok_or_else(|| answer.nonsense("RabbitMQ's management API", "rabbitmq"))?;
        let answer = self.page(&list).await?;
        values.extend(nodes(&parsed(&answer)?).ok_or_else(|| answer.nonsense("RabbitMQ's list of nodes", "rabbitmq"))?);
        Ok((Reading { values, ..Reading::default() }, page))
    }
}

#[async_trait::async_trait]
impl Collector for RabbitMq {
    fn columns(&self) -> Vec<Gauge> {
        GAUGES.to_vec()
    }

    async fn start(&mut self) -> Result<Support, Fault> {
        let (reading, page) = self.ask().await?;
        let mut support = Support {
            product: "RabbitMQ".to_owned(),
            version: page["rabbitmq_version"].as_str().unwrap_or_default().to_owned(),
            columns: GAUGES.to_vec(),
            ..Support::default()
        };
        let mut shown = self.overview.clone();
        shown.set_query(None);
        support.endpoint = address::shown(&shown);
        if reading.get("messages_ready").is_none() {
            support.lacks.push(crate::api::Lack {
                what: "messages in the queues: there is no queue yet, or the server keeps no statistics".to_owned(),
                mend: Some("management_agent.disable_metrics_collector = false".to_owned()),
            });
        }
        support.sees.push("statistics that are renewed every 5 s".to_owned());
        Ok(support)
    }

    async fn read(&mut self) -> Result<Reading, Fault> {
        self.ask().await.map(|(reading, _)| reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::fake::{collector, pages, run, started};

    const REAL: &str = include_str!("../fixtures/rabbitmq/3.10.8/overview.json");
    const REAL_NODES: &str = include_str!("../fixtures/rabbitmq/3.10.8/nodes.json");

    fn told(list: &str) -> Vec<(&'static str, f64)> {
        nodes(&serde_json::from_str(list).unwrap()).unwrap()
    }

    fn get(values: &[(&'static str, f64)], name: &str) -> Option<f64> {
        values.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    #[test]
    fn real_pages_give_what_waits_and_how_far_the_alarms_are() {
        let url = pages(|path| match path {
            _ if path.starts_with("/api/overview?columns=rabbitmq_version,") => ("200 OK", REAL.to_owned()),
            _ if path.starts_with("/api/nodes?columns=name,") => ("200 OK", REAL_NODES.to_owned()),
            _ => ("404 Not Found", String::new()),
        });
        let (mut collector, support) = started(collector(&SPEC, "rabbitmq", url.as_str(), ""));
        let support = support.unwrap();
        assert_eq!((support.product.as_str(), support.version.as_str()), ("RabbitMQ", "3.10.8"));
        let reading = run(collector.read()).unwrap();
        assert_eq!((reading.get("messages_ready"), reading.get("published_total")), (Some(30.0), Some(30.0)));
        assert_eq!((reading.get("memory_limit_bytes"), reading.get("file_handles")), (Some(10_110_423_859.0), Some(36.0)));
        assert_eq!((reading.get("memory_alarms"), reading.get("nodes_down")), (Some(0.0), Some(0.0)));
        assert_eq!(reading.get("acknowledged_total"), None, "what never happened is not told, and is no 0");
    }

    #[test]
    fn of_several_nodes_the_one_nearest_to_its_limit_counts_and_those_that_are_down_are_counted() {
        let values = told(
            r#"[{"name":"a","running":true,"mem_used":10,"mem_limit":100,"mem_alarm":false,"disk_free":900,"disk_free_limit":50,"disk_free_alarm":false,"run_queue":1},
                {"name":"b","running":true,"mem_used":90,"mem_limit":100,"mem_alarm":true,"disk_free":60,"disk_free_limit":50,"disk_free_alarm":false,"run_queue":4},
                {"name":"c","running":false}]"#,
        );
        assert_eq!((get(&values, "memory_bytes"), get(&values, "memory_alarms")), (Some(90.0), Some(1.0)));
        assert_eq!((get(&values, "disk_free_bytes"), get(&values, "run_queue")), (Some(60.0), Some(5.0)));
        assert_eq!((get(&values, "nodes_down"), get(&values, "file_handles")), (Some(1.0), None));
        assert_eq!(told(r#"[{"name":"c","running":false}]"#), [("nodes_down", 1.0)]);
    }

    #[test]
    fn a_page_cut_anywhere_is_none_and_other_pages_are_named() {
        for end in 0..REAL.trim_end().len() {
            assert!(serde_json::from_str::<Value>(&REAL[..end]).is_err(), "{end}");
        }
        for (status, body, says) in [
            ("200 OK", "<html><title>Shop</title></html>", "an HTML page titled \"Shop\""),
            ("200 OK", "{\"a\": 1}", "RabbitMQ's management API"),
            ("401 Unauthorized", "{\"error\":\"not_authorised\"}", "401"),
        ] {
            let url = pages(move |_| (status, body.to_owned()));
            let fault = started(collector(&SPEC, "rabbitmq", url.as_str(), "")).1.unwrap_err();
            assert!(fault.message.contains(says), "{fault}");
            assert_eq!(fault.hint.as_deref().is_some_and(|hint| hint.contains("set_user_tags")), status.starts_with("401"));
        }
    }
}
