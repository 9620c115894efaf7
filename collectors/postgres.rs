//! PostgreSQL 12 to 18: sessions and what they wait for, lock waits with table, row and root, checkpoints, WAL, replication.
//!
//! One prepared statement a tick (0.1 to 0.2 ms on 15 and 18; see [`tick`]), always outside a transaction, where the statistics
//! would stand still; while somebody waits for a lock, one more for who waits for whom ([`waits`]). One connection, opened before
//! the load and kept: when every slot is taken it goes on. Privilege: `pg_monitor`. Without it PostgreSQL shows the sessions of
//! others as if they did nothing, without an error, so their columns are then left out and the mend is said.
//!
//! The counters of `pg_stat_database` are up to a second late. A refused connection is counted nowhere: what tells is
//! `sessions_used` at `sessions_usable`. Left unread on purpose: tables of users and their sizes (they block behind
//! `ACCESS EXCLUSIVE`), `pg_stat_statements` (large, and not a wait), `pg_blocking_pids` (the lock table once more a waiter).

mod gauges;
mod session;
mod sight;
mod tick;
mod views;
mod waits;

use crate::api::{Collector, Fault, FaultKind, Gauge, Reading, Section, Spec, Support};
use crate::settings;
use crate::sql::pg::access::{Access, Usual};
use crate::sql::pg::{self, ends_session};
use gauges::{CORES, GAUGES, LOCK_WAIT_AGE, LOCK_WAITING};
use serde::Deserialize;
use session::{Identity, Session, is_limit};
use sight::Sight;
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};
use tick::{Mark, Parsed, Tick};
use waits::Clock;
use waits::names::Names;

/// The registry's entry.
pub const SPEC: Spec = Spec {
    name: "postgres",
    flag: "postgres",
    aliases: &["postgresql", "pg"],
    value: "URL",
    about: "PostgreSQL 12 to 18: sessions, lock waits and who waits for whom, internal waits, checkpoints, WAL, replication",
    needs: "CREATE ROLE probe LOGIN PASSWORD '<password>'; GRANT pg_monitor TO probe;",
    sample_config: r#"[postgres]
url = "postgres://probe@127.0.0.1:5432/shop"   # PostgreSQL itself, not a pooler; the database whose tables are to be named
# password_file = "/etc/whatgives/postgres"    # or password_env = "…", PGPASSWORD, ~/.pgpass
tls = "preferred"                              # disabled, allow, preferred, required, verify-ca, verify-full; tls_ca, tls_cert, tls_key
waits = true                                   # false: lock waits are counted, but not who waits for whom
# cores = 16                                   # of the server's machine, where that is not this one
"#,
    gauges: GAUGES,
    open,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    #[serde(default = "yes")]
    waits: bool,
    cores: Option<f64>,
}

fn yes() -> bool {
    true
}

fn open(section: &Section) -> Result<Box<dyn Collector>, Fault> {
    let (mut access, rest) = Access::take(section, Usual { port: Some(5432), database: None })?;
    let own: Settings = settings::parse(&rest)?;
    if own.cores.is_some_and(|cores| !cores.is_finite() || cores <= 0.0) {
        let message = format!("configuration of {}: cores: expected a number above 0", section.instance);
        return Err(Fault::new(FaultKind::Config, message));
    }
    // Reaches PostgreSQL itself only; a pooler refuses it or keeps it to itself.
    access.options = access.options.options([("whatgives.direct", "1")]);
    let here = || std::thread::available_parallelism().ok().map(|cores| cores.get() as f64);
    let cores = own.cores.or_else(|| if access.local { here() } else { None });
    Ok(Box::new(Postgres { access, wanted: own.waits, cores, timeout: section.timeout, session: None, known: None }))
}

struct Postgres {
    access: Access,
    /// Whether who waits for whom is wanted.
    wanted: bool,
    cores: Option<f64>,
    timeout: Duration,
    session: Option<Session>,
    known: Option<Known>,
}

/// What the start found out, and what the last read left.
struct Known {
    identity: Identity,
    columns: Vec<Gauge>,
    tick: Tick,
    /// The statement for the waits, where they are read.
    waits: Option<String>,
    names: Names,
    clock: Clock,
    marks: BTreeMap<Mark, String>,
    /// Reading the waits was dear: not again before.
    waits_after: Option<Instant>,
    said: HashSet<String>,
    /// To be said with the next reading.
    notes: Vec<String>,
}

impl Known {
    fn say_once(&mut self, reading: &mut Reading, note: String) {
        if self.said.insert(note.clone()) {
            reading.notes.push(note);
        }
    }

    /// The tick's row as a reading, with what changed since the last.
    fn take(&mut self, parsed: Parsed) -> Reading {
        let (restarted, changes) = (parsed.restarted(&self.marks), parsed.changes(&self.marks));
        let Parsed { mut reading, marks, hidden, odd } = parsed;
        reading.restarted = restarted;
        reading.notes.append(&mut self.notes);
        reading.notes.extend(changes);
        // A mark that could not be read keeps its last value.
        self.marks.extend(marks);
        if hidden > 0.0 {
            let note = format!("sessions of other roles are hidden: {}", session::grant(&self.identity));
            self.say_once(&mut reading, note);
        }
        for (name, text) in odd {
            self.say_once(&mut reading, format!("{name}: expected a number, found {text:?}"));
        }
        reading
    }
}

impl Postgres {
    /// A connection again, after one broke: guards, and whether it is still the same server.
    async fn reconnect(&mut self) -> Result<(), Fault> {
        let (mut session, identity, _) = Session::open(&self.access, self.timeout).await?;
        if let Some(known) = &mut self.known {
            let prepared = session.ask(&known.tick.prepare()).await;
            prepared.map_err(|error| pg::fault(&self.access, "prepare the tick's statement", &error))?;
            known.notes.push("connected again".to_owned());
            if known.identity.number != identity.number {
                known.notes.push(format!("another version answers: {}", identity.version));
            }
            if known.identity.database_oid != identity.database_oid {
                known.names = Names::default();
            }
            known.identity = identity;
        }
        self.session = Some(session);
        Ok(())
    }
}

/// What was done when an error came.
struct Doing(&'static str, sqlx::Error);

/// Everything of one tick.
async fn read_all(session: &mut Session, known: &mut Known, cores: Option<f64>) -> Result<Reading, Doing> {
    let row = session.ask(Tick::EXECUTE).await.map_err(|error| Doing("read the statistics", error))?;
    let parsed = known.tick.parse(&row.rows);
    let (waiting, hidden) = (parsed.reading.get(LOCK_WAITING), parsed.hidden);
    let mut reading = known.take(parsed);
    if known.columns.iter().any(|gauge| gauge.name == CORES) {
        reading.put_some(CORES, cores);
    }
    match (known.waits.clone(), waiting) {
        (Some(_), Some(0.0)) => reading.put(LOCK_WAIT_AGE, 0.0),
        (Some(sql), Some(_)) if hidden == 0.0 && known.waits_after.is_none_or(|after| Instant::now() >= after) => {
            read_waits(known, session, &sql, &mut reading).await.map_err(|error| Doing("read the lock waits", error))?;
        }
        _ => {}
    }
    Ok(reading)
}

/// Who waits for whom. Where our own limits cut it off, the tick keeps what it has.
async fn read_waits(known: &mut Known, session: &mut Session, sql: &str, reading: &mut Reading) -> Result<(), sqlx::Error> {
    let began = Instant::now();
    let mut locks = match session.ask(sql).await {
        Ok(table) => waits::locks(&table.rows),
        Err(error) if is_limit(&error) => {
            reading.notes.push(format!("lock waits not read: {}", crate::sql::describe(&error)));
            known.waits_after = Some(began + 5 * began.elapsed());
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    known.clock.fill(began, &mut locks);
    let wanted = waits::relations(&locks, known.identity.database_oid);
    if let Some(sql) = known.names.sql(&wanted) {
        match session.ask(&sql).await {
            Ok(table) => known.names.learn(&table.rows),
            Err(error) if is_limit(&error) => reading.notes.push("names of tables not read: the catalogue is locked".to_owned()),
            Err(error) => return Err(error),
        }
    }
    reading.waits = waits::assemble(&locks, &known.names, known.identity.database_oid);
    let longest = reading
        .waits
        .iter()
        .filter_map(|wait| wait.waited_ms)
        .fold(None, |most: Option<f64>, ms| Some(most.map_or(ms, |most| most.max(ms))));
    reading.put_some(LOCK_WAIT_AGE, longest.map(|ms| ms / 1e3));
    let ours = known.identity.database_oid;
    let elsewhere = |lock: &&waits::Lock| {
        !lock.granted && lock.relation.is_some() && lock.database.is_some_and(|number| number != 0 && Some(number) != ours)
    };
    if let Some(name) = locks.iter().find(elsewhere).and_then(|lock| lock.database_name.clone()) {
        known.say_once(reading, format!("locks in database {name} are named by number: names come from the database connected to"));
    }
    // Never more than a fifth of the time.
    known.waits_after = Some(began + 5 * began.elapsed());
    Ok(())
}

#[async_trait::async_trait]
impl Collector for Postgres {
    fn columns(&self) -> Vec<Gauge> {
        self.known.as_ref().map_or_else(|| GAUGES.to_vec(), |known| known.columns.clone())
    }

    async fn start(&mut self) -> Result<Support, Fault> {
        self.session = None;
        let (mut session, identity, catalogue) = Session::open(&self.access, self.timeout).await?;
        let sight = Sight::prove(&mut session, &identity, &catalogue, self.wanted, self.cores)
            .await
            .map_err(|error| pg::fault(&self.access, "ask what can be seen", &error))?;
        session
            .ask(&sight.tick.prepare())
            .await
            .map_err(|error| pg::fault(&self.access, "prepare the tick's statement", &error))?;
        // Planned at its first use, 20 ms: not in the first tick.
        session.ask(Tick::EXECUTE).await.map_err(|error| pg::fault(&self.access, "read the statistics", &error))?;
        let Sight { columns, tick, waits, sees, lacks } = sight;
        let support = Support {
            product: product(&identity),
            version: identity.version.clone(),
            endpoint: self.access.endpoint.clone(),
            columns: columns.clone(),
            facts: identity.facts.iter().map(|(name, text)| (name.clone(), plain(text))).collect(),
            sees,
            lacks,
            ..Support::default()
        };
        self.known = Some(Known {
            identity,
            columns,
            tick,
            waits,
            names: Names::default(),
            clock: Clock::default(),
            marks: BTreeMap::new(),
            waits_after: None,
            said: HashSet::new(),
            notes: Vec::new(),
        });
        self.session = Some(session);
        Ok(support)
    }

    async fn read(&mut self) -> Result<Reading, Fault> {
        if self.known.is_none() {
            self.start().await?;
        }
        if self.session.is_none() {
            self.reconnect().await?;
        }
        // The session stays where it is while it is asked: a read that is given up in the middle must not cost the connection,
        // for with every slot taken there would be no other.
        let (Some(session), Some(known)) = (&mut self.session, &mut self.known) else { return Ok(Reading::default()) };
        match read_all(session, known, self.cores).await {
            Ok(reading) => Ok(reading),
            Err(Doing(doing, error)) => {
                // Whatever our own limits did not end: the next read connects anew, with everything that belongs to it.
                if ends_session(&error) || !is_limit(&error) {
                    self.session = None;
                }
                Err(pg::fault(&self.access, doing, &error))
            }
        }
    }
}

/// PostgreSQL, or what a fork calls itself: `version()` begins with it.
fn product(identity: &Identity) -> String {
    let forks =
        ["EnterpriseDB", "Greenplum", "YugaByte", "YB-", "CockroachDB", "Redshift", "Aurora", "AlloyDB", "Citus", "Percona"];
    let text = identity.product.to_lowercase();
    match forks.iter().find(|fork| text.contains(&fork.to_lowercase())) {
        Some(fork) => format!("PostgreSQL ({})", fork.trim_end_matches('-')),
        None => "PostgreSQL".to_owned(),
    }
}

/// A setting for the header: a number where it is one.
fn plain(text: &str) -> serde_json::Value {
    text.parse::<i64>().map_or_else(|_| serde_json::json!(text), |number| serde_json::json!(number))
}

#[cfg(test)]
mod tests;
