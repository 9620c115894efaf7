//! php-fpm: the status page of one pool, over HTTP or straight over FastCGI.
//!
//! Privilege: `pm.status_path`, and for FastCGI `listen.allowed_clients`. Seen with PHP 8.2. To know:
//!
//! - Through the pool's own listener the page needs a child like every request: when all are busy it waits behind the same
//!   queue and the read is late. `pm.status_listen` (PHP 8.0) answers beside them. Which of the two it is shows once, at the
//!   start, in the list of the pool's processes: through the pool one of them is at our request, and then one active process
//!   and one accepted connection a read are our own.
//! - A child is busy for a moment longer than its answer takes: reads that follow each other at once may see two of our own.
//! - `listen queue` is what the master last saw, about once a second, and on a Unix socket it is always 0 of 0: there it is
//!   missing here. The kernel's own queue of the listener (`--listen-queue`) is exact and at once.
//! - The page does not tell `pm.max_children`, except that a static pool always has that many processes. `max active
//!   processes` and `max listen queue` are high-water marks, no limits, and are left unread.
//! - `max children reached` counts times, not requests: one for a whole saturation, and none with `pm = static`. That a pool
//!   is full now is `idle_processes` 0 with `total_processes` at the limit.
//!
//! Over FastCGI each read makes a connection of its own: php-fpm ties a child to a kept one, and that child would be
//! missing in the pool that is watched. Also left unread on purpose, but for that once: the
//! list of processes (`full`), long and full of URIs.

mod ask;
mod fastcgi;
mod gauges;
mod place;
mod status;

use crate::address::Address;
use crate::api::{Capacity, Collector, Fault, FaultKind, Gauge, Lack, Reading, Section, Spec, Support};
use crate::http::usual::Wanted;
use crate::http::{self, Answer, Http};
use crate::{settings, stream};
use ask::ask;
use gauges::ALL as GAUGES;
use place::Place;
use reqwest::Url;
use serde::Deserialize;
use status::Status;
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

/// The registry's entry.
pub const SPEC: Spec = Spec {
    name: "phpfpm",
    flag: "phpfpm",
    aliases: &["php-fpm"],
    value: "ADDRESS",
    about: "php-fpm's status page: the pool's queue and children (FastCGI HOST:PORT/PATH, unix:SOCKET:/PATH, or http://…)",
    needs: NEEDS,
    sample_config: SAMPLE,
    gauges: GAUGES,
    open,
};

/// The second line from PHP 8.0 on: it answers also when every child is busy.
const NEEDS: &str = "pm.status_path = /status
pm.status_listen = 127.0.0.1:9001";

const SAMPLE: &str = "[[phpfpm]]
endpoint = \"127.0.0.1:9001/status\"     # or unix:/run/php/php-fpm.sock:/status, http://127.0.0.1/status
max_children = 50                      # pm.max_children; a static pool tells it
";

const WANTED: &str = "php-fpm's status page";

const PAGE: Wanted<'static, Status> = Wanted {
    what: "status page of php-fpm",
    usual: &["/status?json", "/fpm-status?json", "/php-fpm-status?json", "/fpm_status?json", "/php_status?json"],
    most: MOST,
    needs: NEEDS,
    read: |answer| {
        let json = answer.body.trim_ascii_start().first() == Some(&b'{');
        status::parse(if json { &answer.body } else { answer.whole_lines() }).ok_or_else(|| {
            let fault = answer.nonsense(WANTED, "phpfpm");
            if fault.hint.is_some() { fault } else { fault.hint(format!("the URL must reach the pool's pm.status_path:\n{NEEDS}")) }
        })
    },
};

/// Over FastCGI, where no path is given.
const USUAL: [&str; 4] = ["/status", "/fpm-status", "/php-fpm-status", "/fpm_status"];

/// A pool of thousands of children with `full` stays below.
const MOST: usize = 4 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    max_children: Option<u32>,
}

struct PhpFpm {
    section: Section,
    settings: http::Settings,
    place: Place,
    /// How long a connection straight to it may take.
    connect: Duration,
    max_children: Option<f64>,
    link: Option<Link>,
    last: Option<Status>,
    /// The most processes of a static pool since its start: it has lost one only for a moment.
    processes: Option<f64>,
    said: BTreeSet<String>,
}

/// The page, once it was found.
enum Link {
    Http(Box<Http>, Url),
    FastCgi(Address, String),
}

fn open(section: &Section) -> Result<Box<dyn Collector>, Fault> {
    let place = Place::parse(&section.instance, &section.endpoint)?;
    // FastCGI has no credentials and no certificates: such keys are unknown there.
    let (settings, rest) = match &place {
        Place::Http(_) => http::Settings::take(section)?,
        Place::FastCgi { .. } => (http::Settings::default(), section.clone()),
    };
    let own: Own = settings::parse(&rest)?;
    let place = match place {
        Place::Http(url) if !http::address::is_bare(&url) => Place::Http(as_json(url)),
        place => place,
    };
    Ok(Box::new(PhpFpm {
        section: section.clone(),
        settings,
        place,
        connect: section.timeout.max(stream::CONNECT),
        max_children: own.max_children.map(f64::from),
        link: None,
        last: None,
        processes: None,
        said: BTreeSet::new(),
    }))
}

fn as_json(mut url: Url) -> Url {
    let query = url.query().unwrap_or_default().to_owned();
    if !query.split('&').any(|part| part == "json") {
        url.set_query(Some(&if query.is_empty() { "json".to_owned() } else { format!("{query}&json") }));
    }
    url
}

impl PhpFpm {
    async fn page(&mut self) -> Result<Status, Fault> {
        match &mut self.link {
            Some(Link::Http(http, url)) => PAGE.page(http, url).await,
            Some(Link::FastCgi(address, path)) => ask(address, path, "json", self.connect).await.map(|found| found.status),
            None => Err(Fault::new(FaultKind::Unreachable, format!("{} was not reached yet", self.place))),
        }
    }

    /// Finds the page; gives also what PHP it says it is.
    async fn find(&mut self) -> Result<(Status, String), Fault> {
        match self.place.clone() {
            Place::Http(given) => {
                let mut http = Http::new(&self.section, &self.settings, &given, "application/json,text/plain")?;
                let (url, status) = PAGE.find(&mut http, &given).await?;
                self.link = Some(Link::Http(Box::new(http), url));
                Ok((status, String::new()))
            }
            Place::FastCgi { address, path } => {
                let paths = path.as_ref().map_or(USUAL.to_vec(), |path| vec![path.as_str()]);
                let mut tried = Vec::new();
                for path in &paths {
                    match ask(&address, path, "json", self.connect).await {
                        Ok(found) => {
                            self.link = Some(Link::FastCgi(address, (*path).to_owned()));
                            return Ok((found.status, found.powered_by));
                        }
                        Err(fault) if paths.len() == 1 || fault.kind != FaultKind::Nonsense => return Err(fault),
                        Err(fault) => tried.push(fault.message),
                    }
                }
                let message = format!("no status page of php-fpm at {}: tried\n  {}", self.place, tried.join("\n  "));
                Err(Fault::new(FaultKind::Nonsense, message).hint(format!("give its path behind the address:\n{NEEDS}")))
            }
        }
    }

    /// Whether the page is served by the pool's own children: then the one that serves it shows our request. Where the list
    /// of processes cannot be had (a web server that drops the query), each read through the pool is one more accepted
    /// connection, and one active process: a read without either settles it, and until then it is the pool.
    async fn through_the_pool(&mut self, first: &Status) -> Result<bool, Fault> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mark = format!("w{}{}", std::process::id(), now.as_nanos());
        let asked = match &mut self.link {
            Some(Link::Http(http, url)) => {
                let mut full = url.clone();
                full.set_query(Some(&format!("{mark}&full&{}", url.query().unwrap_or("json"))));
                http.get(&full, MOST).await.and_then(Answer::ok).map(|answer| answer.body)
            }
            Some(Link::FastCgi(address, path)) => {
                ask(address, path, &format!("{mark}&full&json"), self.connect).await.map(|found| found.body)
            }
            None => Ok(Vec::new()),
        };
        // A web server may let this one query through and no other.
        let body = asked.unwrap_or_default();
        if let Some(known) = status::served_by_the_pool(&body, &mark) {
            return Ok(known);
        }
        let mut before = first.value("accepted_total");
        for _ in 0..3 {
            let page = self.page().await?;
            let after = page.value("accepted_total");
            if page.value("active_processes") == Some(0.0) || before.zip(after).is_some_and(|(before, after)| after <= before) {
                return Ok(false);
            }
            before = after;
        }
        Ok(true)
    }

    fn reading(&mut self, status: Status) -> Reading {
        let mut reading = Reading::default();
        if let Some(last) = &self.last {
            let accepted = |status: &Status| status.value("accepted_total");
            if status.started != last.started || accepted(&status) < accepted(last) {
                reading.restarted = Some("restarted, counters begin again".to_owned());
                self.processes = None;
            }
        }
        reading.process.clone_from(&status.started);
        self.learn_processes(&status);
        // 0 of 0 on a Unix socket says nothing of what waits.
        let tells_queue = status.value("listen_queue_max").is_some_and(|most| most > 0.0);
        for (name, value) in &status.values {
            if tells_queue || !name.starts_with("listen_queue") {
                reading.put(name, *value);
            }
        }
        reading.put_some("max_children", self.max_children.or(self.processes));
        for oddity in &status.oddities {
            if self.said.insert(oddity.split(':').next().unwrap_or_default().to_owned()) {
                reading.notes.push(oddity.clone());
            }
        }
        self.last = Some(status);
        reading
    }

    fn learn_processes(&mut self, status: &Status) {
        if let (true, Some(now)) = (status.manager == "static", status.value("total_processes")) {
            self.processes = Some(self.processes.unwrap_or(0.0).max(now));
        }
    }

    fn support(&self, status: &Status, powered_by: &str, through_the_pool: bool) -> Support {
        let most = self.max_children.or(self.processes);
        let mut columns: Vec<Gauge> =
            GAUGES.iter().filter(|gauge| most.is_some() || gauge.name != "max_children").copied().collect();
        for gauge in &mut columns {
            if !through_the_pool {
                gauge.own = 0.0;
            }
            if most.is_none() && gauge.capacity == Capacity::Column("max_children") {
                gauge.capacity = Capacity::None;
            }
        }
        let endpoint = match &self.link {
            Some(Link::Http(_, url)) => http::address::shown(url),
            Some(Link::FastCgi(address, path)) => Place::FastCgi { address: address.clone(), path: Some(path.clone()) }.to_string(),
            None => self.place.to_string(),
        };
        let mut support = Support {
            product: "php-fpm".to_owned(),
            version: powered_by.strip_prefix("PHP/").unwrap_or_default().to_owned(),
            endpoint,
            columns,
            ..Support::default()
        };
        support.facts.push(("pool".to_owned(), status.pool.as_str().into()));
        support.facts.push(("process_manager".to_owned(), status.manager.as_str().into()));
        support.sees.push(format!("pool {}, pm = {}", status.pool, status.manager));
        if let Some(most) = most {
            support.facts.push(("max_children".to_owned(), most.into()));
            let source = if self.max_children.is_some() { "as configured" } else { "all of a static pool" };
            support.sees.push(format!("{most} children at most ({source})"));
        } else {
            support.lacks.push(Lack {
                what: "how many children there may be: the page does not say".to_owned(),
                mend: Some("max_children = N (pm.max_children) in the target's section of the configuration".to_owned()),
            });
        }
        if through_the_pool {
            support.lacks.push(Lack {
                what:
                    "anything while every child is busy: the page is served by the pool itself, and one active process is our own"
                        .to_owned(),
                mend: Some("pm.status_listen = 127.0.0.1:9001, and --phpfpm 127.0.0.1:9001/PATH".to_owned()),
            });
        } else {
            support.sees.push("asked beside the pool's children (pm.status_listen): it answers while they are all busy".to_owned());
        }
        if status.value("listen_queue_max").is_none_or(|most| most == 0.0) {
            support.lacks.push(Lack {
                what: "the listen queue: php-fpm does not tell it for a Unix socket, nor in its first second".to_owned(),
                mend: Some("on the same machine: --listen-queue SOCKET, the kernel's own".to_owned()),
            });
        }
        support
    }
}

#[async_trait::async_trait]
impl Collector for PhpFpm {
    fn columns(&self) -> Vec<Gauge> {
        GAUGES.to_vec()
    }

    async fn start(&mut self) -> Result<Support, Fault> {
        let (status, powered_by) = self.find().await?;
        let through_the_pool = self.through_the_pool(&status).await?;
        self.processes = None;
        self.learn_processes(&status);
        let support = self.support(&status, &powered_by, through_the_pool);
        self.last = Some(status);
        Ok(support)
    }

    async fn read(&mut self) -> Result<Reading, Fault> {
        let status = self.page().await?;
        Ok(self.reading(status))
    }
}

#[cfg(test)]
mod tests;
