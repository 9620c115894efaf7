//! nginx: `stub_status`, and the same page of its relatives (Tengine, Angie, freenginx).
//!
//! Privilege: the page must be allowed for the sampler's address. Seen with 1.22.1; Tengine's page from its manual. To know:
//!
//! - A worker that has used up its `worker_connections` accepts a connection and closes it at once. `accepts` and `handled`
//!   drift apart by that, and their difference is `dropped_total`: the one gauge here that rests at exactly 0.
//! - The page needs a connection too, and a kept one that idles is the first that nginx gives up when they run out: then the
//!   read fails at once (`up` = 0, "connected, but no answer"), and what was dropped shows with the next page. Nothing waits
//!   meanwhile, so the accept queue of the port stays empty.
//! - Of `worker_connections` each worker needs some for its own listeners, and a proxied request takes two, of which only
//!   the client's is among the active: requests are dropped well before `active` reaches `connections_max`.
//! - The page says nothing of the upstreams. A worker that was killed leaves its connections counted for ever. A reload
//!   keeps the counters, a restart begins them anew.
//! - The counters are read one after the other while connections come in, so that the difference may be too high by the few
//!   that are between the two at that moment; it is never written lower than before.
//!
//! Left unread on purpose: nothing.

mod status;

use crate::api::{
    Capacity, Class, Collector, Fault, FaultKind, Gauge, Lack, Lag, Layer, Reading, Section, Source, Spec, Support, Unit, Worse,
};
use crate::http::usual::Wanted;
use crate::http::{Http, Settings, address};
use crate::settings;
use reqwest::Url;
use serde::Deserialize;
use status::Status;
use std::collections::BTreeSet;

/// The registry's entry.
pub const SPEC: Spec = Spec {
    name: "nginx",
    flag: "nginx",
    aliases: &[],
    value: "URL",
    about: "nginx' stub_status: connections, dropped ones, requests (also Tengine, Angie)",
    needs: NEEDS,
    sample_config: SAMPLE,
    gauges: GAUGES,
    open,
};

const NEEDS: &str = "location = /nginx_status {
    stub_status;
    allow ADDRESS_OF_THE_SAMPLER;
    deny all;
}";

const SAMPLE: &str = "[[nginx]]
url = \"http://127.0.0.1/nginx_status\"
connections_max = 4096     # worker_processes x worker_connections
";

const PAGE: Wanted<'static, Status> = Wanted {
    what: "stub_status page",
    usual: &["/nginx_status", "/stub_status", "/nginx-status", "/basic_status", "/status"],
    most: 64 << 10,
    needs: NEEDS,
    read: |answer| {
        status::parse(answer.whole_lines()).ok_or_else(|| {
            let fault = answer.nonsense("nginx' stub_status page", "nginx");
            if fault.hint.is_some() { fault } else { fault.hint(format!("the URL must reach stub_status itself:\n{NEEDS}")) }
        })
    },
};

const CONNECTIONS: &str = "nginx connections";

const fn part(name: &'static str, help: &'static str) -> Gauge {
    Gauge::new(name, Class::Utilisation, Unit::Count, help).of("connections_max").at(Layer::Worker, CONNECTIONS)
}

const fn count(name: &'static str, class: Class, help: &'static str) -> Gauge {
    Gauge::counter(name, class, Unit::Count, help).at(Layer::Worker, CONNECTIONS)
}

const GAUGES: &[Gauge] = &[
    part("active", "open client connections, idle ones too; one of them reads this page").own(1.0),
    part("reading", "connections whose request header is being read; many are slow clients"),
    part("writing", "requests being worked on, also those that wait for an upstream; one of them is for this page").own(1.0),
    part("waiting", "idle connections: kept ones, and those that have not sent a request yet").worse(Worse::Neither),
    Gauge::new("connections_max", Class::Constant, Unit::Count, "worker_processes x worker_connections, as configured here")
        .at(Layer::Worker, CONNECTIONS),
    count("accepts_total", Class::Throughput, "connections accepted"),
    count("handled_total", Class::Throughput, "connections accepted and not dropped"),
    count(
        "dropped_total",
        Class::Event,
        "connections accepted and closed at once, for lack of worker_connections: accepts - handled",
    ),
    count("requests_total", Class::Throughput, "requests, one a read by the sampler").own(1.0),
];

/// What only Tengine tells.
const TENGINE: &[Gauge] = &[
    Gauge::counter("request_ms_total", Class::Throughput, Unit::Milliseconds, "time spent in requests that ended")
        .lag(Lag::Completion)
        .at(Layer::Worker, CONNECTIONS),
    Gauge::new("request_ms", Class::Level, Unit::Milliseconds, "mean time of the requests that ended; holds every wait behind it")
        .derived(Source::Of(&["request_ms_total"], &["requests_total"]))
        .lag(Lag::Completion)
        .at(Layer::Worker, CONNECTIONS),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    connections_max: Option<u32>,
}

struct Nginx {
    section: Section,
    settings: Settings,
    given: Url,
    connections_max: Option<f64>,
    link: Option<(Http, Url)>,
    /// Counters of the last page, to notice that they began anew.
    last: Option<Status>,
    dropped: Option<f64>,
    said: BTreeSet<String>,
}

fn open(section: &Section) -> Result<Box<dyn Collector>, Fault> {
    let (settings, rest) = Settings::take(section)?;
    let own: Own = settings::parse(&rest)?;
    Ok(Box::new(Nginx {
        section: section.clone(),
        settings,
        given: address::parse(&section.instance, &section.endpoint)?,
        connections_max: own.connections_max.map(f64::from),
        link: None,
        last: None,
        dropped: None,
        said: BTreeSet::new(),
    }))
}

impl Nginx {
    fn reading(&mut self, status: Status) -> Reading {
        let mut reading = Reading::default();
        let fell = |name: &str| {
            let (was, is) = (self.last.as_ref().and_then(|last| last.value(name)), status.value(name));
            was.zip(is).is_some_and(|(was, is)| is < was)
        };
        if ["accepts_total", "handled_total", "requests_total"].into_iter().any(fell) {
            reading.restarted = Some("restarted, counters begin again".to_owned());
            self.dropped = None;
        }
        for (name, value) in &status.values {
            reading.put(name, *value);
        }
        if let (Some(accepts), Some(handled)) = (status.value("accepts_total"), status.value("handled_total")) {
            self.dropped = Some((accepts - handled).max(self.dropped.unwrap_or(0.0)));
            reading.put_some("dropped_total", self.dropped);
        }
        reading.put_some("connections_max", self.connections_max);
        for oddity in &status.oddities {
            // A text that changes with every read would be said for ever.
            if self.said.insert(oddity.split([':', ',']).next().unwrap_or_default().to_owned()) {
                reading.notes.push(oddity.clone());
            }
        }
        self.last = Some(status);
        reading
    }

    fn support(&self, url: &Url, status: &Status) -> Support {
        let tengine = status.value("request_ms_total").is_some();
        let known = self.connections_max.is_some();
        let mut columns: Vec<Gauge> = GAUGES.iter().filter(|gauge| known || gauge.name != "connections_max").copied().collect();
        if !known {
            for gauge in &mut columns {
                gauge.capacity = Capacity::None;
            }
        }
        if tengine {
            columns.extend_from_slice(TENGINE);
        }
        let mut support = Support {
            product: if tengine { "Tengine" } else { "nginx" }.to_owned(),
            endpoint: address::shown(url),
            columns,
            ..Support::default()
        };
        support.sees.push("connections, dropped ones, requests".to_owned());
        if let Some(most) = self.connections_max {
            support.facts.push(("connections_max".to_owned(), most.into()));
            support.sees.push(format!("{most} connections at most (as configured)"));
        } else {
            support.lacks.push(Lack {
                what: "how many connections there may be: the page does not say".to_owned(),
                mend: Some("connections_max = worker_processes x worker_connections in the target's section".to_owned()),
            });
        }
        for name in ["accepts_total", "handled_total", "requests_total"] {
            if status.value(name).is_none() {
                support.lacks.push(Lack { what: format!("{name}: not on this page"), mend: None });
            }
        }
        support.lacks.push(Lack {
            what: "the page itself while worker_connections are used up: nginx then closes every new connection".to_owned(),
            mend: Some("what was dropped meanwhile shows with the next page; until then `up` is 0".to_owned()),
        });
        support
    }
}

#[async_trait::async_trait]
impl Collector for Nginx {
    fn columns(&self) -> Vec<Gauge> {
        GAUGES.to_vec()
    }

    async fn start(&mut self) -> Result<Support, Fault> {
        let mut http = Http::new(&self.section, &self.settings, &self.given, "text/plain")?;
        let (url, status) = PAGE.find(&mut http, &self.given).await?;
        let support = self.support(&url, &status);
        self.link = Some((http, url));
        self.last = Some(status);
        self.dropped = None;
        Ok(support)
    }

    async fn read(&mut self) -> Result<Reading, Fault> {
        let Some((http, url)) = &mut self.link else {
            return Err(Fault::new(FaultKind::Unreachable, format!("{} was not reached yet", address::shown(&self.given))));
        };
        let status = PAGE.page(http, url).await.map_err(|fault| match fault.kind {
            FaultKind::Unreachable if fault.hint.is_none() => {
                fault.hint("if nginx runs and closes what it accepts, its worker_connections are used up: see its error log")
            }
            _ => fault,
        })?;
        Ok(self.reading(status))
    }
}

#[cfg(test)]
mod tests;
