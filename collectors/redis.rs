//! Redis, Valkey, `KeyDB`, Dragonfly: the main thread, connections, memory and evictions, hits and misses, persistence,
//! replication. Seen on Redis 7.0 and Valkey 9.1; `KeyDB` and Dragonfly by what their sources print.
//!
//! One `INFO` in each tick over one kept connection (and `SLOWLOG LEN` behind it, where the user may). Every command waits
//! behind the same thread, so that the time our own took is the best gauge of all: while a script of 2.5 s runs, nothing
//! else tells. Fields are found by name; sections and fields that a version does not have cost their own gauges only.
//! Rights: `+info`; with `+ping` alone there is the round trip and no more. A cluster's node is read alone, itself.
//!
//! Left unread on purpose: `instantaneous_…` (smoothed over 1.6 s), `mem_fragmentation_ratio` (18 on an idle server),
//! `INFO commandstats` and `latencystats` (large), `SLOWLOG GET`, `CLIENT LIST`, `MONITOR` (users' data, and dear).

mod gauges;
mod info;
mod link;
mod target;

use crate::api::{Capacity, Collector, Fault, FaultKind, Gauge, Lack, Reading, Section, Spec, Support};
use gauges::{FIELDS, HIT_RATIO, Origin, ROUNDTRIP, SLOWLOG};
use info::Info;
use link::{Link, Reply, is_forbidden};
use std::collections::HashSet;
use std::time::Duration;
use target::Target;

/// Redis and its relatives.
pub const SPEC: Spec = Spec {
    name: "redis",
    flag: "redis",
    aliases: &["valkey", "redis-host"],
    value: "URL",
    about: "Redis, Valkey, KeyDB, Dragonfly: round trip, main thread, connections, memory, evictions, hit ratio",
    needs: "ACL SETUSER probe on ><password> -@all +info +ping +auth +client|setname +slowlog|len; before 7.0 also +config|get",
    sample_config: r#"[redis]
url = "redis://127.0.0.1:6379"       # rediss:// for TLS, HOST:PORT, or the path of a Unix socket
# user = "probe"
# password_file = "/etc/whatgives/redis"   # or password_env = "…", or REDISCLI_AUTH in the environment
# tls = true                               # ca_file, cert_file, key_file
# maxclients = 10000                       # where the server does not tell it
"#,
    gauges: gauges::ALL,
    open,
};

fn open(section: &Section) -> Result<Box<dyn Collector>, Fault> {
    let auth = std::env::var("REDISCLI_AUTH").ok().filter(|auth| !auth.is_empty());
    Ok(Box::new(Redis {
        target: target::new(section, auth)?,
        timeout: section.timeout,
        link: None,
        may: May::default(),
        maxclients: None,
        seen: None,
        noted: HashSet::new(),
    }))
}

struct Redis {
    target: Target,
    timeout: Duration,
    link: Option<Link>,
    may: May,
    /// The limit of connections, where `INFO` does not tell it.
    maxclients: Option<f64>,
    seen: Option<Seen>,
    /// Fields whose odd value was noted.
    noted: HashSet<&'static str>,
}

/// What the user may ask.
#[derive(Clone, Copy, Debug, Default)]
struct May {
    info: bool,
    slowlog: bool,
    cluster: bool,
}

/// What tells one life of a server from the next, and a reset of its counters.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    run_id: Option<String>,
    uptime: Option<f64>,
    commands: Option<f64>,
    loading: bool,
}

/// What one tick's commands gave.
struct Asked {
    roundtrip: Duration,
    info: Info,
    slowlog: Option<f64>,
}

impl Redis {
    /// The commands of one tick. The inner error is the server's own, on a connection that goes on.
    async fn ask(&self, link: &mut Link) -> Result<Result<Asked, Fault>, Fault> {
        let what = if self.may.info { "INFO" } else { "PING" };
        let reply = link.ask(&self.target, &redis::cmd(what)).await?;
        // On a new connection the sign-in may have waited in its place.
        let roundtrip = link.slowest;
        let mut info = match reply {
            Reply::Text(_) if !self.may.info => Info::default(),
            Reply::Text(text) => Info::parse(&text),
            Reply::Error(why) => return Ok(Err(self.fault(what, &why))),
            Reply::Pairs(_) => return Err(Fault::new(FaultKind::Nonsense, format!("{what} of {}: a list", self.target.name))),
        };
        let mut slowlog = None;
        if self.may.slowlog
            && let Reply::Text(text) = link.ask(&self.target, redis::cmd("SLOWLOG").arg("LEN")).await?
        {
            slowlog = std::str::from_utf8(&text).ok().and_then(|text| text.parse::<u32>().ok()).map(f64::from);
        }
        if self.may.cluster
            && let Reply::Text(text) = link.ask(&self.target, redis::cmd("CLUSTER").arg("INFO")).await?
        {
            info.join(&Info::parse(&text));
        }
        link.slowest = Duration::ZERO;
        Ok(Ok(Asked { roundtrip, info, slowlog }))
    }

    /// The server's error, as a fault.
    fn fault(&self, what: &str, error: &str) -> Fault {
        let text = format!("{what} of {}: {error}", self.target.name);
        let user = self.target.user.as_deref().unwrap_or("default");
        if error.starts_with("NOAUTH") {
            Fault::new(FaultKind::Refused, text).hint("the server wants a password: password_file, password_env, or REDISCLI_AUTH")
        } else if is_forbidden(error) {
            Fault::new(FaultKind::Denied, text).hint(format!("ACL SETUSER {user} +info +ping"))
        } else if error.starts_with("BUSY") {
            Fault::new(FaultKind::Unreachable, text)
                .hint("a script holds the main thread; SCRIPT KILL ends one that has not written")
        } else {
            Fault::new(FaultKind::Nonsense, text)
        }
    }

    fn reading(&mut self, asked: &Asked) -> Reading {
        let mut reading = Reading::default();
        reading.put(ROUNDTRIP.name, asked.roundtrip.as_secs_f64() * 1e3);
        reading.put_some(SLOWLOG.name, asked.slowlog);
        for (gauge, from) in FIELDS {
            match from.iter().find_map(|from| from.value(&asked.info)) {
                Some(value) => reading.put(gauge.name, value),
                None if gauge.name == "maxclients" => reading.put_some(gauge.name, self.maxclients),
                None => {}
            }
            if let Some((field, text)) = from.iter().find_map(|from| from.unreadable(&asked.info))
                && self.noted.insert(field)
            {
                reading.notes.push(format!("{field}: expected a number, found {text:?}"));
            }
        }
        self.see(&asked.info, &mut reading);
        reading
    }

    /// What happened to the server since the last answer.
    fn see(&mut self, info: &Info, reading: &mut Reading) {
        if info.is_empty() {
            return;
        }
        let now = Seen {
            run_id: info.text("run_id").map(str::to_owned),
            uptime: info.number("uptime_in_seconds"),
            commands: info.number("total_commands_processed"),
            loading: info.number("loading").is_some_and(|loading| loading > 0.0),
        };
        let fell = |before: Option<f64>, now: Option<f64>| before.zip(now).is_some_and(|(before, now)| now < before);
        if let Some(before) = &self.seen {
            // Dragonfly has no run_id.
            if before.run_id != now.run_id || fell(before.uptime, now.uptime) {
                reading.restarted = Some("the server was started anew".to_owned());
            } else if fell(before.commands, now.commands) {
                reading.restarted = Some("counters reset (CONFIG RESETSTAT)".to_owned());
            }
        }
        if now.loading && !self.seen.as_ref().is_some_and(|before| before.loading) {
            reading.notes.push("the server loads its data".to_owned());
        }
        self.seen = Some(now);
    }

    /// What the user may do, and the limit of connections where `INFO` does not tell it.
    async fn prove(&mut self, link: &mut Link, lacks: &mut Vec<Lack>) -> Result<(), Fault> {
        let user = self.target.user.as_deref().unwrap_or("default").to_owned();
        self.may = May { info: true, ..May::default() };
        let known = match link.ask(&self.target, &redis::cmd("INFO")).await? {
            Reply::Error(why) if is_forbidden(&why) => {
                // A refused PING as well is a refusal of everything.
                if let Reply::Error(_) = link.ask(&self.target, &redis::cmd("PING")).await? {
                    return Err(self.fault("INFO", &why));
                }
                self.may.info = false;
                lacks.push(Lack {
                    what: format!("everything but the round trip (INFO: {why})"),
                    mend: Some(format!("ACL SETUSER {user} +info")),
                });
                return Ok(());
            }
            Reply::Error(why) => return Err(self.fault("INFO", &why)),
            Reply::Text(text) => Info::parse(&text),
            Reply::Pairs(_) => Info::default(),
        };
        match link.ask(&self.target, redis::cmd("SLOWLOG").arg("LEN")).await? {
            Reply::Text(_) => self.may.slowlog = true,
            Reply::Error(why) if why.starts_with("NOPERM") => lacks.push(Lack {
                what: format!("{} (SLOWLOG LEN: {why})", SLOWLOG.name),
                mend: Some(format!("ACL SETUSER {user} +slowlog|len")),
            }),
            // A server without a slow log.
            Reply::Error(_) | Reply::Pairs(_) => {}
        }
        if known.text("cluster_enabled") == Some("1") {
            match link.ask(&self.target, redis::cmd("CLUSTER").arg("INFO")).await? {
                Reply::Text(_) => self.may.cluster = true,
                Reply::Error(why) => lacks.push(Lack {
                    what: format!("whether the cluster serves every slot (CLUSTER INFO: {why})"),
                    mend: Some(format!("ACL SETUSER {user} +cluster|info")),
                }),
                Reply::Pairs(_) => {}
            }
        }
        self.maxclients = self.target.maxclients;
        let told = ["maxclients", "max_clients"].iter().any(|name| known.number(name).is_some());
        if !told && self.maxclients.is_none() {
            match link.ask(&self.target, redis::cmd("CONFIG").arg("GET").arg("maxclients")).await? {
                Reply::Pairs(pairs) => {
                    self.maxclients = pairs.get(1).and_then(|limit| limit.parse().ok()).filter(|limit| *limit > 0.0);
                }
                Reply::Error(why) => lacks.push(Lack {
                    what: format!("maxclients (CONFIG GET maxclients: {why})"),
                    mend: Some(format!("ACL SETUSER {user} +config|get, or maxclients = … in the configuration")),
                }),
                Reply::Text(_) => {}
            }
        }
        Ok(())
    }
}

#[async_trait::async_trait]
impl Collector for Redis {
    fn columns(&self) -> Vec<Gauge> {
        gauges::ALL.to_vec()
    }

    async fn start(&mut self) -> Result<Support, Fault> {
        (self.link, self.seen) = (None, None);
        self.noted.clear();
        let mut link = Link::open(&self.target, self.timeout).await?;
        let mut lacks = Vec::new();
        self.prove(&mut link, &mut lacks).await?;
        let asked = self.ask(&mut link).await??;
        let reading = self.reading(&asked);
        if self.may.info && asked.info.number("uptime_in_seconds").is_none() && reading.values.len() < 3 {
            return Err(Fault::new(FaultKind::Nonsense, format!("INFO of {}: none of Redis' fields", self.target.name)));
        }
        self.link = Some(link);
        Ok(self.support(&asked.info, &reading, lacks))
    }

    async fn read(&mut self) -> Result<Reading, Fault> {
        // Taken out for the time of the question: a read that fails or is cancelled half-way leaves no connection behind.
        let mut link = match self.link.take() {
            Some(link) => link,
            None => Link::open(&self.target, self.timeout).await?,
        };
        let answered = self.ask(&mut link).await?;
        self.link = Some(link);
        answered.map(|asked| self.reading(&asked))
    }
}

impl Redis {
    /// What the first answers say.
    fn support(&self, info: &Info, reading: &Reading, lacks: Vec<Lack>) -> Support {
        let value = |wanted: &str| reading.values.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
        // Missing while there is none, and a column all the same.
        let later = |from: &[Origin]| info.text("redis_version").is_some() && from.iter().any(|from| matches!(from, Origin::Keys));
        let mut columns = vec![ROUNDTRIP];
        columns.extend(FIELDS.iter().filter(|(gauge, from)| value(gauge.name).is_some() || later(from)).map(|(gauge, _)| *gauge));
        if self.may.slowlog {
            columns.push(SLOWLOG);
        }
        let has = |columns: &[Gauge], name: &str| columns.iter().any(|gauge| gauge.name == name);
        if has(&columns, HIT_RATIO_NEEDS[0]) && has(&columns, HIT_RATIO_NEEDS[1]) {
            columns.push(HIT_RATIO);
        }
        let names: HashSet<&str> = columns.iter().map(|gauge| gauge.name).collect();
        for gauge in &mut columns {
            if matches!(gauge.capacity, Capacity::Column(column) if !names.contains(column)) {
                gauge.capacity = Capacity::None;
            }
            if gauge.visits.is_some_and(|(column, _)| !names.contains(column)) {
                gauge.visits = None;
            }
            if gauge.name == "ops_total" {
                gauge.own += f64::from(u8::from(self.may.slowlog) + u8::from(self.may.cluster));
            }
        }
        let (product, version) = product(info);
        let mut support =
            Support { product, version, endpoint: self.target.endpoint.clone(), columns, lacks, ..Support::default() };
        for (name, column) in [("maxclients", "maxclients"), ("maxmemory", "maxmemory_bytes")] {
            if let Some(value) = value(column) {
                support.facts.push((name.to_owned(), (value as u64).into()));
            }
        }
        for name in ["maxmemory_policy", "redis_mode", "server_mode", "role", "io_threads_active", "server_threads", "thread_count"]
        {
            if let Some(text) = info.text(name) {
                support.facts.push((name.to_owned(), text.into()));
            }
        }
        if let Some(limit) = value("maxclients") {
            support.sees.push(format!("{limit} connections at most"));
        }
        match value("maxmemory_bytes") {
            Some(limit) => {
                let policy = info.text("maxmemory_policy").unwrap_or("no policy told");
                support.sees.push(format!("{:.0} MiB of memory, {policy}", limit / f64::from(1 << 20)));
            }
            None if self.may.info => support.sees.push("no limit of memory".to_owned()),
            None => support.sees.push("the round trip".to_owned()),
        }
        if info.text("cluster_enabled") == Some("1") {
            support.sees.push("a node of a cluster, read alone: one --redis for each node".to_owned());
        }
        if info.text("role") == Some("slave") {
            support.sees.push("a replica".to_owned());
        }
        support
    }
}

const HIT_RATIO_NEEDS: [&str; 2] = ["keyspace_hits_total", "keyspace_misses_total"];

/// Which of the relatives it is: all of them tell a `redis_version` too, for the sake of clients.
fn product(info: &Info) -> (String, String) {
    let told = |name: &str| info.text(name).map(str::to_owned);
    let (product, version) = if let Some(version) = told("valkey_version") {
        ("Valkey", version)
    } else if let Some(version) = told("dragonfly_version") {
        ("Dragonfly", version)
    } else if let Some(version) = told("redis_version") {
        (if info.text("server_threads").is_some() { "KeyDB" } else { "Redis" }, version)
    } else {
        ("Redis", String::new())
    };
    (product.to_owned(), version)
}

#[cfg(test)]
mod tests;
