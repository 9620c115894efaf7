//! Apache: `mod_status`, the page `/server-status?auto`.
//!
//! Privilege: the page must be allowed for the sampler's address, and `ExtendedStatus On` (the default) for the counters.
//! Seen with 2.4.71, MPM event and prefork. Two things to know:
//!
//! - The page is served by the very workers that it counts. When all are busy it is silent: the read hangs, the tick gets an
//!   empty cell with its reason, and the accept queue of the port (`--listen-queue`) is what still tells.
//!   That holds for a new connection. On prefork a kept one owns its worker, so that the sampler's goes on answering under
//!   saturation, until the server closes it; it takes one worker from the site, the one that it counts.
//! - The scoreboard shows one place per worker that the server may have (`MaxRequestWorkers`), also where fewer run, and some
//!   more while processes of before a graceful restart end (measured on both MPMs; `ServerLimit` does not show). So its
//!   smallest length is the number of workers, and neither busy + idle, which grows with the load, nor the largest.
//!
//! Left unread on purpose: `Load1…` (smoothed over a minute, see the host), CPU times (cumulated per process in some MPMs and
//! per thread in others), `ReqPerSec` and its like (means since the start).

mod status;

use crate::api::{Class, Collector, Fault, FaultKind, Gauge, Lack, Layer, Reading, Section, Source, Spec, Support, Unit, Worse};
use crate::http::usual::Wanted;
use crate::http::{Http, Settings, address};
use crate::settings;
use reqwest::Url;
use serde::Deserialize;
use status::Status;
use std::collections::BTreeSet;

/// The registry's entry.
pub const SPEC: Spec = Spec {
    name: "apache",
    flag: "apache",
    aliases: &[],
    value: "URL",
    about: "Apache's mod_status: busy and idle workers, the scoreboard, connections, accesses",
    needs: NEEDS,
    sample_config: "[[apache]]\nurl = \"http://127.0.0.1/server-status?auto\"\n",
    gauges: GAUGES,
    open,
};

const NEEDS: &str = "<Location \"/server-status\">
    SetHandler server-status
    Require ip ADDRESS_OF_THE_SAMPLER
</Location>
ExtendedStatus On";

/// Where the page usually is.
const USUAL: [&str; 5] =
    ["/server-status?auto", "/apache-status?auto", "/status?auto", "/whm-server-status?auto", "/apache2-status?auto"];

/// No real page comes near.
const MOST: usize = 4 << 20;

const WORKERS: &str = "apache workers";

const fn state(name: &'static str, help: &'static str) -> Gauge {
    Gauge::new(name, Class::Utilisation, Unit::Count, help).of("workers").at(Layer::Worker, WORKERS)
}

/// A share of the workers that shrinks under load: without capacity, since reaching it means rest.
const fn spare(name: &'static str, help: &'static str) -> Gauge {
    Gauge::new(name, Class::Utilisation, Unit::Count, help).worse(Worse::Down).at(Layer::Worker, WORKERS)
}

const fn conns(name: &'static str, help: &'static str) -> Gauge {
    Gauge::new(name, Class::Level, Unit::Count, help).at(Layer::Worker, "apache connections")
}

const fn constant(name: &'static str, unit: Unit, help: &'static str) -> Gauge {
    Gauge::new(name, Class::Constant, unit, help).at(Layer::Worker, WORKERS)
}

const GAUGES: &[Gauge] = &[
    state("busy_workers", "workers that serve a request; one of them serves this page").own(1.0),
    Gauge::new("graceful_workers", Class::Level, Unit::Count, "workers that end gracefully").at(Layer::Worker, WORKERS),
    spare("idle_workers", "workers that wait for a connection"),
    constant("workers", Unit::Count, "workers that the server may have: MaxRequestWorkers"),
    state("scoreboard_starting", "S: starting up"),
    state("scoreboard_reading", "R: reading a request; many are slow clients"),
    state("scoreboard_writing", "W: working on a request or sending the reply; one of them serves this page").own(1.0),
    state("scoreboard_keepalive", "K: held by an idle kept connection; many on prefork are workers wasted"),
    state("scoreboard_dns", "D: looking up a name"),
    state("scoreboard_closing", "C: closing the connection"),
    state("scoreboard_logging", "L: writing the log"),
    state("scoreboard_graceful", "G: ending gracefully"),
    state("scoreboard_idle_cleanup", "I: idle, being ended"),
    spare("scoreboard_waiting", "_: waiting for a connection"),
    spare("scoreboard_open", ".: no worker started here yet"),
    Gauge::counter(
        "accesses_total",
        Class::Throughput,
        Unit::Count,
        "requests that ended, one a read by the sampler (ExtendedStatus)",
    )
    .own(1.0)
    .at(Layer::Worker, WORKERS),
    Gauge::counter("sent_bytes_total", Class::Throughput, Unit::Bytes, "bytes sent (ExtendedStatus)").at(Layer::Worker, WORKERS),
    Gauge::counter(
        "duration_ms_total",
        Class::Throughput,
        Unit::Milliseconds,
        "time spent in requests that ended (ExtendedStatus)",
    )
    .lag(crate::api::Lag::Completion)
    .at(Layer::Worker, WORKERS),
    Gauge::new("request_ms", Class::Level, Unit::Milliseconds, "mean time of the requests that ended; holds every wait behind it")
        .derived(Source::Of(&["duration_ms_total"], &["accesses_total"]))
        .lag(crate::api::Lag::Completion)
        .at(Layer::Worker, WORKERS),
    constant("uptime_seconds", Unit::Seconds, "since the start; a graceful restart keeps it"),
    constant("generation", Unit::Count, "graceful restarts since the start"),
];

/// What only the MPMs event and worker tell.
const ASYNC: &[Gauge] = &[
    conns("conns", "open connections"),
    conns("conns_async_wait_io", "connections that wait for the backend's or the client's data without a worker"),
    conns("conns_async_writing", "connections whose reply waits for the client to take it"),
    conns("conns_async_keepalive", "idle kept connections, without a worker"),
    conns("conns_async_closing", "connections being closed"),
    conns("processes", "child processes").worse(Worse::Neither),
    conns("stopping", "child processes that end and take no more connections"),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    max_request_workers: Option<u32>,
}

struct Apache {
    section: Section,
    settings: Settings,
    /// As given, with `?auto`; where it names no page, the usual ones are tried.
    given: Url,
    added_auto: bool,
    max_request_workers: Option<f64>,
    link: Option<(Http, Url)>,
    last: Option<Status>,
    /// The scoreboard's smallest length since the server's start.
    slots: Option<f64>,
    said: BTreeSet<String>,
}

fn open(section: &Section) -> Result<Box<dyn Collector>, Fault> {
    let (settings, rest) = Settings::take(section)?;
    let own: Own = settings::parse(&rest)?;
    let given = address::parse(&section.instance, &section.endpoint)?;
    let (given, added_auto) = if address::is_bare(&given) { (given, false) } else { with_auto(given) };
    Ok(Box::new(Apache {
        section: section.clone(),
        settings,
        given,
        added_auto,
        max_request_workers: own.max_request_workers.map(f64::from),
        link: None,
        last: None,
        slots: None,
        said: BTreeSet::new(),
    }))
}

/// Without `?auto` the page is HTML for people.
fn with_auto(mut url: Url) -> (Url, bool) {
    let query = url.query().unwrap_or_default().to_owned();
    if query.split('&').any(|part| part == "auto" || part.starts_with("auto=")) {
        return (url, false);
    }
    url.set_query(Some(&if query.is_empty() { "auto".to_owned() } else { format!("{query}&auto") }));
    (url, true)
}

const PAGE: Wanted<'static, Status> = Wanted {
    what: "status page",
    usual: &USUAL,
    most: MOST,
    needs: NEEDS,
    read: |answer| {
        status::parse(answer.whole_lines()).ok_or_else(|| {
            let fault = answer.nonsense("Apache's mod_status page for machines", "apache");
            if fault.hint.is_some() { fault } else { fault.hint(format!("the URL must reach mod_status itself:\n{NEEDS}")) }
        })
    },
};

impl Apache {
    /// Values of one page; `workers` is settled here.
    fn reading(&mut self, status: Status) -> Reading {
        let mut reading = Reading::default();
        if let Some(last) = &self.last {
            let generation = |status: &Status| status.value("generation");
            if status.restart_time != last.restart_time {
                reading.restarted = Some("restarted, counters begin again".to_owned());
                self.slots = None;
            } else if generation(&status) != generation(last) {
                reading.notes.push("graceful restart".to_owned());
            }
        }
        reading.process.clone_from(&status.restart_time);
        self.learn_slots(&status);
        for (name, value) in &status.values {
            reading.put(name, *value);
        }
        reading.put_some("workers", self.max_request_workers.or(self.slots));
        for oddity in &status.oddities {
            // A text that changes with every read would be said for ever.
            let kind = oddity.split([':', ',']).next().unwrap_or_default().trim_start_matches(|c: char| c.is_ascii_digit());
            if self.said.insert(kind.to_owned()) {
                reading.notes.push(oddity.clone());
            }
        }
        self.last = Some(status);
        reading
    }

    fn learn_slots(&mut self, status: &Status) {
        let Some(now) = status.slots else { return };
        let working = status.value("busy_workers").unwrap_or(0.0) + status.value("idle_workers").unwrap_or(0.0);
        // Where more work than the places ever shown, the limit was raised by a reload.
        self.slots = Some(self.slots.filter(|least| *least <= now && *least >= working).unwrap_or(now));
    }

    fn support(&self, url: &Url, status: &Status) -> Support {
        let version = status.version.as_deref().unwrap_or_default();
        let asynchronous = status.value("conns").is_some();
        let mut columns = GAUGES.to_vec();
        if asynchronous {
            columns.extend_from_slice(ASYNC);
        }
        let mut support = Support {
            product: "Apache".to_owned(),
            version: version.strip_prefix("Apache/").unwrap_or(if version == "Apache" { "" } else { version }).to_owned(),
            endpoint: address::shown(url),
            columns,
            ..Support::default()
        };
        if let Some(mpm) = &status.mpm {
            support.facts.push(("mpm".to_owned(), mpm.as_str().into()));
            support.sees.push(format!("MPM {mpm}"));
        }
        if let Some(workers) = self.max_request_workers.or(self.slots) {
            support.facts.push(("workers".to_owned(), (workers as u64).into()));
            let source = if self.max_request_workers.is_some() { "as configured" } else { "places of the scoreboard" };
            support.sees.push(format!("{workers} workers at most ({source})"));
        } else {
            support.lacks.push(Lack {
                what: "how many workers there may be".to_owned(),
                mend: Some("max_request_workers = N in the target's section of the configuration".to_owned()),
            });
        }
        support.sees.push("busy and idle workers, the scoreboard's states".to_owned());
        if asynchronous {
            support.sees.push("connections without a worker".to_owned());
        } else if status.mpm.as_deref() == Some("prefork") {
            support.sees.push("one of the workers is held by the sampler's own kept connection".to_owned());
        }
        if status.value("accesses_total").is_some() {
            support.sees.push("accesses, bytes, mean request time".to_owned());
        } else {
            support.lacks.push(Lack {
                what: "accesses, bytes and request time: ExtendedStatus is Off".to_owned(),
                mend: Some("ExtendedStatus On".to_owned()),
            });
        }
        if self.added_auto {
            support.sees.push("?auto was added to the URL: without it the page is HTML".to_owned());
        }
        support.lacks.push(Lack {
            what: "anything while every worker is busy: the page needs a worker too".to_owned(),
            mend: Some("on the same machine: --listen-queue PORT, the queue in front of the workers".to_owned()),
        });
        support
    }
}

#[async_trait::async_trait]
impl Collector for Apache {
    fn columns(&self) -> Vec<Gauge> {
        GAUGES.to_vec()
    }

    async fn start(&mut self) -> Result<Support, Fault> {
        let mut http = Http::new(&self.section, &self.settings, &self.given, "text/plain")?;
        let (url, status) = PAGE.find(&mut http, &self.given).await?;
        self.slots = None;
        self.learn_slots(&status);
        let support = self.support(&url, &status);
        self.link = Some((http, url));
        self.last = Some(status);
        Ok(support)
    }

    async fn read(&mut self) -> Result<Reading, Fault> {
        let Some((http, url)) = &mut self.link else {
            return Err(Fault::new(FaultKind::Unreachable, format!("{} was not reached yet", address::shown(&self.given))));
        };
        let status = PAGE.page(http, url).await?;
        Ok(self.reading(status))
    }
}

#[cfg(test)]
mod tests;
