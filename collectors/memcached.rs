//! memcached: connections, memory and evictions, hits and misses, its threads. Seen on 1.6.18.
//!
//! `stats` in each tick over one kept connection of the text protocol; `stats settings` once, at the start, whose failure
//! (mcrouter does not know it) costs only what it tells. Statistics are found by name, so that an old version lacks what it
//! does not tell and a new one may tell more. Needs no privilege, but a server with authentication is not read.
//!
//! A full server answers a new connection `ERROR Too many open connections`: the kept one goes on. `stats reset` sets the
//! counters back while the uptime goes on. Left unread on purpose: `stats items`, `stats slabs`, whose size grows with the
//! slab classes, and `stats sizes`, which locks the cache.

mod gauges;
mod reply;

use crate::address::{self, Address};
use crate::api::{Collector, Fault, FaultKind, Gauge, Lack, Reading, Section, Spec, Support};
use crate::fields::Fields;
use crate::settings;
use crate::stream::{self, Stream};
use gauges::{CPU, CPU_FIELDS, FIELDS, HIT_RATIO};
use reply::{Reply, number};
use serde::Deserialize;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// memcached.
pub const SPEC: Spec = Spec {
    name: "memcached",
    flag: "memcached",
    aliases: &["memcache-host"],
    value: "HOST:PORT",
    about: "memcached: connections, memory, evictions, hit ratio (text protocol; also the path of a Unix socket)",
    needs: "nothing; a server with SASL or -Y authentication is not read",
    sample_config: r#"[memcached]
endpoint = "127.0.0.1:11211"     # or the path of a Unix socket
"#,
    gauges: gauges::ALL,
    open,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {}

fn open(section: &Section) -> Result<Box<dyn Collector>, Fault> {
    let Settings {} = settings::parse(section)?;
    let text = section.endpoint.strip_prefix("memcached://").unwrap_or(&section.endpoint);
    let address = address::parse(text, Some(11211)).map_err(|missing| {
        Fault::new(FaultKind::Config, format!("address of {}: expected {missing}, found {:?}", section.instance, section.endpoint))
            .hint("HOST:PORT, HOST (port 11211), or the path of a Unix socket")
    })?;
    Ok(Box::new(Memcached {
        target: format!("{}@{address}", section.instance),
        address,
        // The caller owns the deadline of a read; a connection over a long way may take longer than a short tick.
        timeout: section.timeout.max(stream::CONNECT),
        connection: None,
        miscounts: false,
        seen: None,
    }))
}

struct Memcached {
    address: Address,
    /// `instance@address`, for messages.
    target: String,
    timeout: Duration,
    connection: Option<Box<dyn Stream>>,
    /// This version counts every connection as refused.
    miscounts: bool,
    /// Process number and uptime of the last answer.
    seen: Option<(Option<f64>, Option<f64>)>,
}

impl Memcached {
    async fn connect(&self) -> Result<Box<dyn Stream>, Fault> {
        let failed = |found: &std::io::Error| {
            Fault::new(FaultKind::Unreachable, format!("connect to {}: {found}", self.target))
                .hint("is memcached running there, and does it listen on that address (-l, -p, -s)?")
        };
        stream::connect(&self.address, self.timeout).await.map_err(|why| failed(&why))
    }

    /// One question and its whole answer. After an error the connection must not be used again: what is left of the answer
    /// would be taken for that of the next question.
    async fn ask(&self, stream: &mut Box<dyn Stream>, question: &str) -> Result<Reply, Fault> {
        let broken = |what: &str| Fault::new(FaultKind::Unreachable, format!("{question} of {}: {what}", self.target));
        // A server that refuses writes its reason and closes: the question may then fail before the reason is read.
        let sent = stream.write_all(format!("{question}\r\n").as_bytes()).await;
        let mut bytes = Vec::with_capacity(8 << 10);
        loop {
            match stream.read_buf(&mut bytes).await {
                Ok(0) if bytes.is_empty() => return Err(broken("the server closed the connection")),
                Ok(0) => return Err(broken("the answer was cut off")),
                Ok(_) => {}
                Err(why) => return Err(broken(&sent.err().unwrap_or(why).to_string())),
            }
            if let Some(reply) = reply::parse(&bytes) {
                return Ok(reply);
            }
        }
    }

    /// The statistics, over a connection that is good for another question.
    async fn stats(&self, stream: &mut Box<dyn Stream>) -> Result<Fields, Fault> {
        match self.ask(stream, "stats").await? {
            Reply::Stats(stats) => Ok(stats),
            Reply::Error(line) if line.contains("Too many open connections") => {
                Err(Fault::new(FaultKind::Refused, format!("stats of {}: it refuses: {line:?}", self.target))
                    .hint("all connections of -c are taken: start the sampler before the load, its connection is kept"))
            }
            Reply::Error(line) if line.contains("unauthenticated") || line.contains("auth") => {
                Err(Fault::new(FaultKind::Refused, format!("stats of {}: it wants authentication: {line:?}", self.target))
                    .hint("a memcached with authentication (-S, -Y) is not read; give it a second, local listener without"))
            }
            Reply::Error(line) => Err(Fault::new(FaultKind::Nonsense, format!("stats of {}: found {line:?}", self.target))),
            Reply::Foreign(begins) => {
                let kind = match &begins {
                    text if text.starts_with("HTTP/") => "a web server",
                    text if text.starts_with("-ERR") || text.starts_with("-NOAUTH") || text.starts_with("-DENIED") => "Redis",
                    _ => "another kind of server",
                };
                Err(Fault::new(
                    FaultKind::Nonsense,
                    format!("stats of {}: expected lines of STAT, found \"{begins}\": {kind} listens there", self.target),
                ))
            }
        }
    }

    /// Whether this version counts accepted connections among the refused ones (1.5.22 does, memcached#619). Where the two
    /// counts are nearly the same, one more connection that is served tells: it must not be counted as refused.
    async fn miscounts(&self, stats: &Fields, stream: &mut Box<dyn Stream>) -> Result<bool, Fault> {
        let get = |stats: &Fields, name: &str| stats.get(name).and_then(number);
        let (Some(refused), Some(total)) = (get(stats, "rejected_connections"), get(stats, "total_connections")) else {
            return Ok(false);
        };
        if refused == 0.0 || (total - refused).abs() > 3.0 {
            return Ok(false);
        }
        let Ok(mut second) = self.connect().await else { return Ok(false) };
        if self.stats(&mut second).await.is_err() {
            return Ok(false);
        }
        let later = self.stats(stream).await?;
        let (refused_then, total_then) = (get(&later, "rejected_connections"), get(&later, "total_connections"));
        Ok(total_then.is_some_and(|then| then > total) && refused_then.is_some_and(|then| then > refused))
    }

    fn reading(&mut self, stats: &Fields) -> Reading {
        let mut reading = Reading::default();
        for (field, gauge) in FIELDS {
            match stats.get(field).map(|text| (text, number(text))) {
                Some((_, Some(_))) if self.miscounts && *field == "rejected_connections" => {}
                Some((_, Some(value))) => reading.put(gauge.name, value),
                Some((text, None)) => reading.notes.push(format!("{field}: expected a number, found {text:?}")),
                None => {}
            }
        }
        let cpu: Option<f64> = CPU_FIELDS.iter().map(|field| stats.get(field).and_then(number)).sum();
        reading.put_some(CPU.name, cpu);

        let get = |name: &str| stats.get(name).and_then(number);
        let now = (get("pid"), get("uptime"));
        // In a container every process has the same number.
        let restarted =
            |(pid, uptime): (Option<f64>, Option<f64>)| pid != now.0 || uptime.zip(now.1).is_some_and(|(was, is)| is < was);
        if self.seen.is_some_and(restarted) {
            reading.restarted = Some("the server was started anew".to_owned());
        }
        self.seen = Some(now);
        reading
    }
}

#[async_trait::async_trait]
impl Collector for Memcached {
    fn columns(&self) -> Vec<Gauge> {
        gauges::ALL.to_vec()
    }

    async fn start(&mut self) -> Result<Support, Fault> {
        self.connection = None;
        self.seen = None;
        let mut stream = self.connect().await?;
        let stats = self.stats(&mut stream).await?;
        self.miscounts = self.miscounts(&stats, &mut stream).await?;
        let reading = self.reading(&stats);
        if reading.values.is_empty() {
            let mut found: Vec<&str> = stats.iter().map(|(name, _)| name).take(8).collect();
            found.sort_unstable();
            return Err(Fault::new(
                FaultKind::Nonsense,
                format!("stats of {}: none of memcached's statistics, found {}", self.target, found.join(", ")),
            ));
        }
        // mcrouter answers an error, another proxy may close: what the statistics told stays.
        let (settings, kept) = match self.ask(&mut stream, "stats settings").await {
            Ok(Reply::Stats(settings)) => (Ok(settings), Some(stream)),
            Ok(Reply::Error(line)) => (Err(format!("found {line:?}")), Some(stream)),
            // Nothing of a strange answer may be left for the next question.
            Ok(Reply::Foreign(begins)) => (Err(format!("found \"{begins}\"")), None),
            Err(fault) => (Err(fault.message), None),
        };
        self.connection = match kept {
            Some(stream) => Some(stream),
            None => Some(self.connect().await?),
        };
        Ok(support(&self.address, &stats, settings, &reading, self.miscounts))
    }

    async fn read(&mut self) -> Result<Reading, Fault> {
        // Taken out for the time of the question: a read that fails or is cancelled half-way leaves no connection behind.
        let mut stream = match self.connection.take() {
            Some(stream) => stream,
            None => self.connect().await?,
        };
        let stats = self.stats(&mut stream).await?;
        self.connection = Some(stream);
        Ok(self.reading(&stats))
    }
}

/// What the first answers say.
fn support(address: &Address, stats: &Fields, settings: Result<Fields, String>, reading: &Reading, miscounts: bool) -> Support {
    let value = |wanted: &str| reading.values.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
    let has = |name: &str| value(name).is_some();
    let mut support = Support {
        product: "memcached".to_owned(),
        version: stats.get("version").unwrap_or_default().to_owned(),
        endpoint: address.to_string(),
        columns: gauges::ALL.iter().filter(|gauge| gauge.is_read() && has(gauge.name)).copied().collect(),
        ..Support::default()
    };
    if has("get_hits_total") && has("get_misses_total") {
        support.columns.push(HIT_RATIO);
    }
    let untold: Vec<&str> =
        gauges::ALL.iter().filter(|gauge| gauge.is_read() && !has(gauge.name)).map(|gauge| gauge.name).collect();
    if miscounts {
        support.lacks.push(Lack {
            what: format!(
                "rejected_connections_total (version {} counts every accepted connection as refused, memcached#619)",
                support.version
            ),
            mend: Some("memcached 1.6 or later".to_owned()),
        });
    }
    let untold: Vec<&str> = untold.into_iter().filter(|name| !(miscounts && *name == "rejected_connections_total")).collect();
    if !untold.is_empty() {
        support.lacks.push(Lack { what: format!("{} (not among its statistics)", untold.join(", ")), mend: None });
    }
    for name in ["max_connections", "limit_bytes", "threads"] {
        if let Some(value) = value(name) {
            support.facts.push((name.to_owned(), (value as u64).into()));
        }
    }
    if let Some(most) = value("max_connections") {
        support.sees.push(format!("{most} connections at most"));
    }
    if let Some(limit) = value("limit_bytes") {
        support.sees.push(format!("{:.0} MiB of memory", limit / f64::from(1 << 20)));
    }
    match settings {
        Ok(settings) => {
            for name in ["maxconns_fast", "evictions", "tcp_backlog", "item_size_max"] {
                if let Some(text) = settings.get(name) {
                    support.facts.push((name.to_owned(), text.into()));
                }
            }
            if settings.get("maxconns_fast").is_some_and(|fast| fast == "no") {
                support.sees.push("at its limit it stops accepting instead of refusing: watch its --listen-queue too".to_owned());
            }
            if settings.get("evictions").is_some_and(|evictions| evictions == "off") {
                support.sees.push("when full it refuses to store (-M) instead of evicting".to_owned());
            }
        }
        Err(why) => support.lacks.push(Lack { what: format!("its settings (stats settings: {why})"), mend: None }),
    }
    support
}

#[cfg(test)]
mod tests;
