//! HAProxy: the statistics of its proxies, over the page `/stats;csv` or the runtime socket, which also tells of the process.
//!
//! Privilege: the page, or a `stats socket` of level user. Seen with 2.6. To know:
//!
//! - A request that finds every server at its `maxconn` waits in the **backend's** queue; one that is bound to a server (a
//!   cookie, a hash) waits in that **server's**. A backend's row has the first alone, so the two are columns apart, and their
//!   sum is what waits. The limit is the sum of the servers' `maxconn`; what the backend's row calls its limit is `fullconn`,
//!   a tenth of the frontends', and no limit at all.
//! - `qtime`, `ctime`, `rtime` and `ttime` are means of the last 1024 requests, however long ago: evidence, and late.
//! - The page takes a connection of its frontend and of the process: with `maxconn` of either reached a new one waits like
//!   everybody's, and only the kept one goes on, until HAProxy closes it. The runtime socket is not counted and goes on.
//! - The proxy of the page counts our own reads: it is found at the start by asking twice, and left out where it serves
//!   nothing else.
//! - A reload begins another process with counters of its own; `clear counters` sets them back. Both are noted.
//!
//! The runtime socket closes after each line of commands, so each read makes a connection of its own; it does not count
//! among those of the process. Left unread on purpose: high-water marks (`qmax`, `smax`), rates of the last second, sizes.

mod gauges;
mod info;
mod place;
mod plan;
mod table;

use crate::address::Address;
use crate::api::{Collector, Fault, FaultKind, Gauge, Lack, Reading, Section, Spec, Support};
use crate::http::usual::Wanted;
use crate::http::{self, Http, sniff};
use crate::{settings, stream};
use gauges::{ALL, PROCESS};
use info::Info;
use place::Place;
use plan::Plan;
use reqwest::Url;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::time::Duration;
use table::{Kind, Table};
use tokio::io::AsyncWriteExt;

/// The registry's entry.
pub const SPEC: Spec = Spec {
    name: "haproxy",
    flag: "haproxy",
    aliases: &[],
    value: "URL|SOCKET",
    about: "HAProxy: queues and sessions of its proxies, errors, servers (page /stats;csv, unix:SOCKET or tcp:HOST:PORT)",
    needs: NEEDS,
    sample_config: SAMPLE,
    gauges: ALL,
    open,
};

const NEEDS: &str = "stats socket /run/haproxy/sampler.sock mode 660 level user
# or, in a frontend
stats enable
stats uri /stats";

const SAMPLE: &str = "[[haproxy]]
endpoint = \"/run/haproxy/sampler.sock\"     # or http://127.0.0.1:8404/stats;csv
proxies = [\"web\", \"app\"]                  # all, up to 20, if left out
";

const WANTED: &str = "HAProxy's statistics (CSV)";

const PAGE: Wanted<'static, Table> = Wanted {
    what: "statistics of HAProxy",
    usual: &["/stats;csv", "/haproxy?stats;csv", "/haproxy_stats;csv", "/haproxy-status;csv", "/admin?stats;csv", "/;csv"],
    most: MOST,
    needs: NEEDS,
    read: |answer| {
        table::parse(answer.whole_lines()).ok_or_else(|| {
            let fault = answer.nonsense(WANTED, "haproxy");
            if fault.hint.is_some() { fault } else { fault.hint(format!("the URL must reach `stats uri`:\n{NEEDS}")) }
        })
    },
};

/// Thousands of servers.
const MOST: usize = 16 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    #[serde(default)]
    proxies: Vec<String>,
}

struct Haproxy {
    section: Section,
    settings: http::Settings,
    place: Place,
    own: Own,
    link: Option<Link>,
    plan: Plan,
    /// The columns of the process that it has.
    process: Vec<Gauge>,
    last: Option<Last>,
    said: BTreeSet<String>,
}

enum Link {
    Page(Box<Http>, Url),
    Socket(Address),
}

/// What the last answer had, to notice that counters began anew.
struct Last {
    process: Option<(String, String)>,
    counters: Vec<Option<f64>>,
}

fn open(section: &Section) -> Result<Box<dyn Collector>, Fault> {
    let place = Place::parse(&section.instance, &section.endpoint)?;
    // A socket has no credentials and no certificates: such keys are unknown there.
    let (settings, rest) = match &place {
        Place::Page(_) => http::Settings::take(section)?,
        Place::Socket(_) => (http::Settings::default(), section.clone()),
    };
    Ok(Box::new(Haproxy {
        section: section.clone(),
        settings,
        place,
        own: settings::parse(&rest)?,
        link: None,
        plan: Plan::default(),
        process: Vec::new(),
        last: None,
        said: BTreeSet::new(),
    }))
}

/// One question to the runtime socket.
async fn ask(address: &Address, within: Duration) -> Result<(Info, Table), Fault> {
    const QUESTION: &str = "show info;show stat";
    let at = Place::Socket(address.clone());
    let fault = |kind, found: &str| Fault::new(kind, format!("{QUESTION} of {at}: {found}"));
    let unreachable = |why: std::io::Error| fault(FaultKind::Unreachable, &why.to_string());
    let mut stream = stream::connect(address, within).await.map_err(|why| {
        let fault = fault(FaultKind::Unreachable, &format!("cannot connect: {why}"));
        match why.kind() {
            std::io::ErrorKind::PermissionDenied => fault.hint("`stats socket … mode` or `group` must let the sampler's user in"),
            _ => fault,
        }
    })?;
    stream.write_all(format!("{QUESTION}\n").as_bytes()).await.map_err(unreachable)?;
    let bytes = stream::read_to_end(&mut *stream, MOST).await.map_err(unreachable)?;
    // Each command's answer ends with an empty line.
    let found = memchr::memmem::find(&bytes, b"\n\n").map(|end| (info::parse(&bytes[..=end]), &bytes[end + 2..]));
    match found {
        _ if bytes.is_empty() => Err(fault(FaultKind::Unreachable, "it closed the connection without an answer")),
        Some((Some(info), rest)) if rest.ends_with(b"\n\n") => match table::parse(rest) {
            Some(table) => Ok((info, table)),
            None => Err(fault(FaultKind::Nonsense, &format!("expected {WANTED}, found {}", sniff::excerpt(rest)))),
        },
        Some((Some(_), _)) => Err(fault(FaultKind::Unreachable, "the answer was cut off")),
        _ => {
            let found = format!("expected HAProxy's runtime socket, found {}", sniff::excerpt(&bytes));
            Err(fault(FaultKind::Nonsense, &found).hint(place::FORMS))
        }
    }
}

impl Haproxy {
    async fn ask(&mut self) -> Result<(Option<Info>, Table), Fault> {
        match &mut self.link {
            Some(Link::Page(http, url)) => Ok((None, PAGE.page(http, url).await?)),
            Some(Link::Socket(address)) => {
                ask(address, self.section.timeout.max(stream::CONNECT)).await.map(|(info, table)| (Some(info), table))
            }
            None => Err(Fault::new(FaultKind::Unreachable, format!("{} was not reached yet", self.place))),
        }
    }

    /// The proxy whose page we read, and whether it serves nothing else: the only one that answers itself with every read.
    async fn ours(&mut self, first: &Table) -> Result<Option<(String, bool)>, Fault> {
        if !matches!(self.link, Some(Link::Page(..))) {
            return Ok(None);
        }
        let intercepted = |table: &Table| -> Vec<(String, Option<f64>, bool)> {
            let frontends = table.rows.iter().filter(|row| row.kind == Kind::Frontend);
            frontends
                .map(|row| (row.proxy.clone(), row.value("intercepted"), row.value("intercepted") == row.value("req_tot")))
                .collect()
        };
        let mut before = intercepted(first);
        let mut candidates: Option<Vec<(String, bool)>> = None;
        for _ in 0..2 {
            let after = intercepted(&self.ask().await?.1);
            let grown: Vec<(String, bool)> = after
                .iter()
                .zip(&before)
                .filter(|(now, was)| now.0 == was.0 && now.1.zip(was.1).is_some_and(|(now, was)| now > was))
                .map(|(now, _)| (now.0.clone(), now.2))
                .collect();
            candidates = Some(match candidates {
                Some(candidates) => grown.into_iter().filter(|(name, _)| candidates.iter().any(|(old, _)| old == name)).collect(),
                None => grown,
            });
            before = after;
        }
        Ok(candidates.filter(|candidates| candidates.len() == 1).and_then(|mut candidates| candidates.pop()))
    }

    fn reading(&mut self, info: Option<&Info>, table: &Table) -> Reading {
        let mut reading = Reading::default();
        for (name, value) in info.iter().flat_map(|info| &info.values) {
            if self.process.iter().any(|gauge| gauge.name == *name) {
                reading.put(name, *value);
            }
        }
        let values = self.plan.read(table);
        for (column, value) in self.plan.columns.iter().zip(&values) {
            reading.put_some(column.gauge.name, *value);
        }
        let is_counter = |at: usize| self.plan.columns[at].gauge.kind == crate::api::Kind::Counter;
        let counters: Vec<Option<f64>> = values.iter().enumerate().map(|(at, value)| value.filter(|_| is_counter(at))).collect();
        if let Some(last) = &self.last {
            let fell = last.counters.iter().zip(&counters).any(|(was, is)| was.zip(*is).is_some_and(|(was, is)| is < was));
            let another = info.is_some_and(|info| last.process.as_ref().is_some_and(|process| *process != info.process));
            if another {
                reading.restarted = Some("another process answers (restarted or reloaded), counters begin again".to_owned());
            } else if fell {
                reading.restarted = Some("counters begin again (restarted, reloaded or cleared)".to_owned());
            }
        }
        reading.process = info.map(|info| format!("{} {}", info.process.0, info.process.1));
        let there = plan::proxies(table);
        let gone = self.plan.own.iter().filter(|proxy| !there.contains(&proxy.as_str()));
        let mut oddities: Vec<String> = gone.map(|proxy| format!("proxy {proxy} is gone")).collect();
        oddities.extend(table.oddities.iter().chain(info.iter().flat_map(|info| &info.oddities)).cloned());
        for oddity in oddities {
            if self.said.insert(oddity.split(':').next().unwrap_or_default().to_owned()) {
                reading.notes.push(oddity);
            }
        }
        self.last = Some(Last { process: info.map(|info| info.process.clone()), counters });
        reading
    }

    fn support(&self, info: Option<&Info>, table: &Table, ours: Option<&(String, bool)>) -> Support {
        let endpoint = match &self.link {
            Some(Link::Page(_, url)) => http::address::shown(url),
            _ => self.place.to_string(),
        };
        let mut support = Support {
            product: "HAProxy".to_owned(),
            version: info.map(|info| info.version.clone()).unwrap_or_default(),
            endpoint,
            columns: self.process.clone(),
            ..Support::default()
        };
        support.columns.extend(self.plan.columns.iter().map(|column| column.gauge));
        support.sees.push(format!("proxies {}", self.plan.own.join(", ")));
        if !self.plan.others.is_empty() {
            support
                .sees
                .push(format!("{} other proxies in sums; name the ones that matter with proxies = […]", self.plan.others.len()));
        }
        match ours {
            Some((proxy, true)) if !self.plan.own.contains(proxy) => {
                support.sees.push(format!("proxy {proxy} is left out: it serves this page and nothing else"));
            }
            Some((proxy, _)) => support.sees.push(format!("one session of {proxy} is our own: it serves this page")),
            None => {}
        }
        let limits = self.plan.columns.iter().zip(self.plan.read(table));
        for (column, _) in limits.filter(|(column, limit)| column.gauge.name.ends_with("_servers_sessions_max") && limit.is_none())
        {
            support.lacks.push(Lack {
                what: format!("{}: a server in use has no limit, or only backups are up", column.gauge.name),
                mend: Some("maxconn N on the server's line: without one nothing waits in HAProxy".to_owned()),
            });
        }
        let unchecked = self.plan.unchecked(table);
        if !unchecked.is_empty() {
            support.lacks.push(Lack {
                what: format!("whether a server of {} is down: none is checked", unchecked.join(", ")),
                mend: Some("check on the server's line".to_owned()),
            });
        }
        if info.is_none() {
            support.lacks.push(Lack {
                what: "the process's own connections and processor time; and the page, once maxconn is reached and its kept connection is closed".to_owned(),
                mend: Some("stats socket /run/haproxy/sampler.sock mode 660 level user, and --haproxy with that path".to_owned()),
            });
        }
        support
    }
}

#[async_trait::async_trait]
impl Collector for Haproxy {
    /// Before it answered: of the process, where the socket tells of it, and of the proxies that the configuration names.
    fn columns(&self) -> Vec<Gauge> {
        let process = match self.place {
            Place::Socket(_) => PROCESS.iter().map(|(_, gauge, _)| *gauge).collect(),
            Place::Page(_) => Vec::new(),
        };
        [process, plan::of_named(&self.own.proxies)].concat()
    }

    fn unsettled(&self) -> Option<Lack> {
        self.own.proxies.is_empty().then(|| Lack {
            what: "queues, sessions and errors of its proxies: which there are it tells at the start".to_owned(),
            mend: Some("proxies = [\"web\", \"app\"] in the target's section of the configuration names them".to_owned()),
        })
    }

    async fn start(&mut self) -> Result<Support, Fault> {
        let (info, table) = match self.place.clone() {
            Place::Page(given) => {
                let mut http = Http::new(&self.section, &self.settings, &given, "text/plain,text/csv")?;
                let (url, table) = PAGE.find(&mut http, &given).await?;
                self.link = Some(Link::Page(Box::new(http), url));
                (None, table)
            }
            Place::Socket(address) => {
                self.link = Some(Link::Socket(address));
                self.ask().await?
            }
        };
        let ours = self.ours(&table).await?;
        let about_ours = ours.as_ref().map(|(proxy, idle)| (proxy.as_str(), *idle));
        self.plan = Plan::new(&table, &self.own.proxies, about_ours)
            .map_err(|why| Fault::new(FaultKind::Config, format!("configuration of {}: proxies: {why}", self.section.instance)))?;
        let has = |name: &str| info.as_ref().is_some_and(|info| info.values.iter().any(|(gauge, _)| *gauge == name));
        self.process = PROCESS.iter().map(|(_, gauge, _)| *gauge).filter(|gauge| has(gauge.name)).collect();
        self.last = None;
        Ok(self.support(info.as_ref(), &table, ours.as_ref()))
    }

    async fn read(&mut self) -> Result<Reading, Fault> {
        let (info, table) = self.ask().await?;
        Ok(self.reading(info.as_ref(), &table))
    }
}

#[cfg(test)]
mod tests;
