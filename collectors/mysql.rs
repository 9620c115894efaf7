//! MySQL and MariaDB: status, capacities, and who waits for which lock.
//!
//! One statement a tick for the status (`SHOW GLOBAL STATUS` of some 35 names: 1.5 ms on MySQL 9.7, 0.9 ms on MariaDB 10.11; it
//! needs no privilege), and while somebody waits, the waits on a cadence of their own (see [`waits`]). Privileges: PROCESS, and
//! on MySQL SELECT on `performance_schema`, on a replica what [`further`] names; what is missing is said at the start, and its columns are left out. Seen: MySQL 9.7,
//! MariaDB 10.11. Left unread on purpose: `SHOW ENGINE INNODB STATUS` (takes InnoDB's global latch), `information_schema.TABLES`
//! (hangs behind a metadata lock), MySQL's `information_schema.PROCESSLIST` (a global mutex), tables of users.

mod defaults;
mod further;
mod gauges;
mod session;
mod sight;
mod status;
mod target;
mod waits;

pub(crate) use session::is_limit;

use crate::api::{Capacity, Class, Collector, Fault, Gauge, Reading, Section, Spec, Support};
use gauges::{GAUGES, ITEMS, Item, Origin};
use session::{Identity, Product, Session, fault, show};
use sight::Sight;
use status::{Missing, Pairs};
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use target::{Target, WaitsWanted};
use waits::ask::{Gate, Reader};
use waits::cadence::{CHEAP, Cadence};

/// The registry's entry.
pub const SPEC: Spec = Spec {
    name: "mysql",
    flag: "mysql",
    aliases: &["mysql-host"],
    value: "URL",
    about: "MySQL 8 and 9, MariaDB: threads, connections, row and metadata locks and who waits for whom, buffer pool, redo log, replication",
    needs: "CREATE USER 'probe'@'%' IDENTIFIED BY '<password>'; GRANT PROCESS ON *.* TO 'probe'@'%'; GRANT SELECT ON performance_schema.* TO 'probe'@'%';",
    sample_config: r#"[mysql]
url = "mysql://probe@127.0.0.1:3306/"
# password_file = "/etc/whatgives/mysql"   # or password_env = "…", or defaults_file = "~/.my.cnf"
tls = "preferred"                          # disabled, preferred, required, verify-ca, verify-identity; tls_ca, tls_cert, tls_key
waits = true                               # false: none. "force": also on releases that stall while their lock tables are read
waits_every = "150ms"                      # at most so often, and only while somebody waits
# cores = 16                               # of the server's machine, where that is not this one
# admin_port = 33062                       # MySQL's admin_port or MariaDB's extra_port: answers though max_connections is used up
"#,
    gauges: GAUGES,
    open,
};

fn open(section: &Section) -> Result<Box<dyn Collector>, Fault> {
    let text = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let target = Target::new(section, std::env::var_os("HOME").map(PathBuf::from), text("USER"), text("MYSQL_PWD"))?;
    Ok(Box::new(MySql::new(target)))
}

struct MySql {
    target: Target,
    session: Option<Session>,
    known: Option<Known>,
    waits: Reader,
    metrics: Cadence,
    own: OwnQuestions,
    /// Names whose odd value was noted.
    noted: HashSet<String>,
}

/// What the start found out.
struct Known {
    identity: Identity,
    sight: Sight,
    items: Vec<(Item, Origin)>,
    status_sql: String,
    /// Status at the last read: the uptime, and when that was.
    uptime: Option<(i128, Instant)>,
    /// The connection is another than at the last read.
    reconnected: bool,
}

/// How many of the server's `Questions` were ours.
#[derive(Debug, Default)]
struct OwnQuestions {
    asked: u64,
    last: i128,
}

impl OwnQuestions {
    /// The others' questions. Where the number falls (FLUSH STATUS, a restart) ours have gone with it.
    fn others(&mut self, questions: i128) -> f64 {
        if questions < self.last {
            self.asked = 0;
        }
        self.last = questions;
        (questions - i128::from(self.asked)).max(0) as f64
    }
}

impl MySql {
    fn new(target: Target) -> Self {
        let waits = Reader::new(target.waits != WaitsWanted::No, target.waits_every);
        Self {
            target,
            session: None,
            known: None,
            waits,
            metrics: Cadence::new(Duration::ZERO, CHEAP),
            own: OwnQuestions::default(),
            noted: HashSet::new(),
        }
    }

    /// The columns of this server: what its first status, settings and privileges can fill.
    fn settle(&self, identity: &Identity, sight: &Sight, status: &Pairs) -> Vec<(Item, Origin)> {
        let pooled = identity.settings.text("thread_handling").is_some_and(|how| how == "pool-of-threads");
        let has = |from: &Origin| match from {
            Origin::Status(name) => status.has(name),
            Origin::Less(a, b) => status.has(a) && status.has(b),
            Origin::Questions => status.has("Questions"),
            Origin::Metric(name) => sight.metrics.iter().any(|known| known == name),
            Origin::Setting(name) => identity.settings.number(name).is_ok(),
            Origin::Sessions(_) => sight.sessions,
            Origin::Cores => self.target.cores.is_some(),
            Origin::Further(name) => sight.further.has(name),
        };
        let of_the_pool = |item: &Item| matches!(item.gauge.name, "pool_threads" | "pool_idle_threads" | "max_pool_threads");
        let mut items: Vec<(Item, Origin)> = ITEMS
            .iter()
            .filter(|item| pooled || !of_the_pool(item))
            // MariaDB refuses and leaves this at 0 (measured on 10.11); it counts them among the aborted attempts.
            .filter(|item| identity.product != Product::MariaDb || item.gauge.name != gauges::REFUSED)
            .filter_map(|item| item.from.iter().find(|from| has(from)).map(|from| (*item, *from)))
            .collect();
        let names: HashSet<&str> = items.iter().map(|(item, _)| item.gauge.name).collect();
        for (item, _) in &mut items {
            if matches!(item.gauge.capacity, Capacity::Column(column) if !names.contains(column)) {
                item.gauge.capacity = Capacity::None;
            }
            if item.gauge.name == gauges::THREADS_RUNNING {
                item.gauge.own = own_threads(identity);
            }
        }
        items
    }

    /// Everything that the status needs to say for these columns.
    fn status_sql(items: &[(Item, Origin)]) -> String {
        let mut names: Vec<&str> = gauges::ALWAYS.to_vec();
        for (_, from) in items {
            match from {
                Origin::Status(name) => names.push(name),
                Origin::Less(a, b) => names.extend([a, b]),
                _ => {}
            }
        }
        let mut seen = HashSet::new();
        names.retain(|name| seen.insert(*name));
        show("STATUS", &names)
    }

    /// A connection again, after one broke: guards, capacities, and whether it is still the same server.
    async fn reconnect(&mut self, notes: &mut Vec<String>) -> Result<Session, Fault> {
        let (session, identity) = Session::open(&self.target).await?;
        let Some(known) = &mut self.known else { return Ok(session) };
        known.reconnected = true;
        notes.push("connected again".to_owned());
        if known.identity.uuid != identity.uuid || known.identity.version != identity.version {
            notes.push(format!("another server answers: {} {}", identity.product.name(), identity.version));
        }
        if known.identity.product == identity.product {
            known.identity = identity;
        }
        Ok(session)
    }

    async fn read_all(&mut self, session: &mut Session, reading: &mut Reading) -> Result<(), Fault> {
        let Some(known) = &mut self.known else { return Ok(()) };
        let began = Instant::now();
        let rows = session.ask(&known.status_sql).await.map_err(|error| fault(&self.target, "read the status", &error))?;
        let status = Pairs::of_rows(&rows);
        known.see_uptime(&status, began, reading);
        let further = match known.sight.further.read(session).await {
            Ok(values) => values,
            Err(error) if session::is_goodbye(&error) => return Err(fault(&self.target, "read the replication", &error)),
            Err(error) => {
                reading.notes.push(format!("replication and thread pool not read: {}", crate::sql::describe(&error)));
                further::Values::new()
            }
        };
        let mut metrics = Pairs::default();
        if !known.sight.metrics.is_empty() && self.metrics.due(began) {
            let asked = Instant::now();
            let sql = format!(
                "SELECT NAME, COUNT FROM information_schema.INNODB_METRICS WHERE NAME IN ('{}')",
                known.sight.metrics.join("','")
            );
            match session.ask(&sql).await {
                Ok(rows) => metrics = Pairs::of_rows(&rows),
                Err(error) if session::is_goodbye(&error) => return Err(fault(&self.target, "read InnoDB's counters", &error)),
                Err(error) => reading.notes.push(format!("InnoDB's counters not read: {}", crate::sql::describe(&error))),
            }
            self.metrics.done(began, asked.elapsed());
        }
        let gate = Gate {
            waiting: status.number("Innodb_row_lock_current_waits").ok(),
            begun: status.number("Innodb_row_lock_waits").ok(),
            running: status.number("Threads_running").ok(),
        };
        let found = self
            .waits
            .read(session, known.identity.product, &known.sight, gate)
            .await
            .map_err(|error| fault(&self.target, "read the lock waits", &error))?;
        reading.waits = found.waits;
        reading.notes.extend(found.notes);
        for (item, from) in &known.items {
            let value = match from {
                Origin::Status(name) => status.number(name),
                Origin::Less(a, b) => status.less(a, b),
                Origin::Questions => status.whole("Questions").map(|questions| self.own.others(questions)),
                Origin::Metric(_) if metrics.is_empty() => continue,
                Origin::Metric(name) => metrics.number(name),
                Origin::Setting(name) => known.identity.settings.number(name),
                Origin::Sessions(kind) => match found.sessions {
                    Some(counts) => Ok(counts[["metadata", "table", "advisory"].iter().position(|name| name == kind).unwrap_or(0)]),
                    None => continue,
                },
                Origin::Cores => self.target.cores.ok_or(Missing::Absent),
                Origin::Further(name) => match further.iter().find(|(known, _)| known == name) {
                    Some((_, value)) => Ok(*value),
                    None => continue,
                },
            };
            match value {
                Ok(value) if item.gauge.is_read() => reading.put(item.gauge.name, value),
                Ok(_) => {}
                Err(missing) => {
                    let what = match missing {
                        Missing::Absent => "is no longer told".to_owned(),
                        Missing::Unusable(text) => format!("is {text:?}, not a usable number"),
                    };
                    if self.noted.insert(item.gauge.name.to_owned()) {
                        reading.notes.push(format!("{} {what}", from.name()));
                    }
                }
            }
        }
        Ok(())
    }
}

impl Known {
    /// A server that is younger than it should be has been started anew.
    fn see_uptime(&mut self, status: &Pairs, now: Instant, reading: &mut Reading) {
        let Ok(uptime) = status.whole("Uptime") else { return };
        if let Some((before, at)) = self.uptime {
            let expected = before + i128::from(now.saturating_duration_since(at).as_secs());
            // Without a new connection only a number that falls is a restart (behind a proxy). Whole seconds, and clocks that
            // were set: a little less than expected is none.
            if uptime < before || (self.reconnected && uptime + 5 < expected) {
                reading.restarted = Some("server restarted".to_owned());
            }
        }
        self.reconnected = false;
        self.uptime = Some((uptime, now));
    }
}

/// Our session, and the event scheduler's thread, which MySQL and MariaDB count as running.
fn own_threads(identity: &Identity) -> f64 {
    let scheduler = identity.settings.text("event_scheduler").is_some_and(|state| state.eq_ignore_ascii_case("ON"));
    if scheduler { 2.0 } else { 1.0 }
}

#[async_trait::async_trait]
impl Collector for MySql {
    fn columns(&self) -> Vec<Gauge> {
        match &self.known {
            Some(known) => known.items.iter().map(|(item, _)| item.gauge).collect(),
            None => GAUGES.to_vec(),
        }
    }

    async fn start(&mut self) -> Result<Support, Fault> {
        self.session = None;
        let (mut session, identity) = Session::open(&self.target).await?;
        let doing = |doing: &'static str| move |error: sqlx::Error| (doing, error);
        let asked: Result<_, (&str, sqlx::Error)> = async {
            let sight = Sight::prove(&mut session, &identity, self.target.waits).await.map_err(doing("ask what can be seen"))?;
            let rows = session.ask("SHOW GLOBAL STATUS").await.map_err(doing("read the status"))?;
            Ok((sight, Pairs::of_rows(&rows)))
        }
        .await;
        let (sight, status) = asked.map_err(|(doing, error)| fault(&self.target, doing, &error))?;
        let items = self.settle(&identity, &sight, &status);
        let fact = |name: &&str| identity.settings.text(name).map(|value| ((*name).to_owned(), plain(value)));
        let constants = items.iter().filter(|(item, _)| item.gauge.class == Class::Constant);
        let constants = constants.filter_map(|(item, from)| {
            let value = match from {
                Origin::Setting(name) => identity.settings.number(name).ok(),
                Origin::Status(name) => status.number(name).ok(),
                Origin::Cores => self.target.cores,
                _ => None,
            };
            value.map(|value| (item.gauge.name.to_owned(), serde_json::json!(value)))
        });
        let support = Support {
            product: identity.product.name().to_owned(),
            version: identity.version.clone(),
            endpoint: session.endpoint.clone(),
            columns: items.iter().map(|(item, _)| item.gauge).collect(),
            facts: constants.chain(gauges::FACTS.iter().filter_map(fact)).collect(),
            sees: std::iter::once("status and settings".to_owned()).chain(sight.sees.iter().cloned()).collect(),
            lacks: session.lack.iter().chain(&sight.lacks).cloned().collect(),
            ..Support::default()
        };
        self.own.asked += session.asked;
        session.asked = 0;
        let status_sql = Self::status_sql(&items);
        self.known = Some(Known { identity, sight, items, status_sql, uptime: None, reconnected: false });
        self.session = Some(session);
        Ok(support)
    }

    async fn read(&mut self) -> Result<Reading, Fault> {
        let mut reading = Reading::default();
        if self.known.is_none() {
            self.start().await?;
        }
        // The session is taken out while it is in use: a read that is cancelled in the middle leaves none behind that is
        // waiting for an old answer.
        let mut session = match self.session.take() {
            Some(session) => session,
            None => self.reconnect(&mut reading.notes).await?,
        };
        let outcome = self.read_all(&mut session, &mut reading).await;
        self.own.asked += std::mem::take(&mut session.asked);
        outcome?;
        self.session = Some(session);
        Ok(reading)
    }
}

/// A setting for the header: a number where it is one.
fn plain(text: &str) -> serde_json::Value {
    text.parse::<i64>().map_or_else(|_| serde_json::json!(text), |number| serde_json::json!(number))
}

#[cfg(test)]
mod tests;
