//! Who waits for which lock, one entry a waiter: asked only while the tick's statement counts somebody who waits.
//!
//! One statement reads `pg_locks` once: everybody who waits, whoever holds (or is ahead in the queue for) what they wait for, and
//! what a waiter holds that tells where it waits. The first waiter of a hot row waits for a transaction, whose lock names no
//! table; the tuple lock that it holds meanwhile does. Roots are found in this one snapshot ([`graph`]) and not by
//! `pg_blocking_pids`, which takes every partition of the lock table once more for each waiter. Numbers of tables become names by
//! a cache of `pg_class` ([`names`]); no function that locks a relation is called, and no table of a user is touched.
//!
//! PostgreSQL does not tell an index for a wait on a row, nor the key: `row` is `(page,tuple)`, the place in the table's file.

pub mod graph;
pub mod names;

use super::tick::number;
use super::views::Catalogue;
use crate::api::Wait;
use crate::sql::statement::normalise_postgres;
use crate::sql::{Row, cell};
use graph::Graph;
use names::Names;
use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

/// A process of the server.
pub type Pid = u32;

/// One lock that is held or waited for, with its owner's session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lock {
    /// What is locked, as an identity.
    pub key: String,
    /// relation, tuple, transactionid, …
    pub kind: String,
    /// The database's number; 0 for what all share.
    pub database: Option<u32>,
    /// The table's or index' number.
    pub relation: Option<u32>,
    /// The page.
    pub page: Option<String>,
    /// The place on the page.
    pub tuple: Option<String>,
    /// The catalogue of an object, or the upper half of an advisory key.
    pub class: Option<u32>,
    /// The object, or the lower half of an advisory key.
    pub object: Option<u32>,
    /// 1: an advisory key of 64 bits, 2: one of two numbers.
    pub sub: Option<u32>,
    /// Who; a prepared transaction has no process.
    pub pid: Option<Pid>,
    /// `ExclusiveLock`, …
    pub mode: String,
    /// Held, or waited for.
    pub granted: bool,
    /// How long it is waited for, seconds; told from 14 on.
    pub waited_s: Option<f64>,
    /// The session's state.
    pub state: Option<String>,
    /// Its statement, or the last one, as it was sent.
    pub query: Option<String>,
    /// How old its transaction is, seconds.
    pub transaction_s: Option<f64>,
    /// The leader of its parallel workers: they never block each other.
    pub leader: Option<Pid>,
    /// The name of its database.
    pub database_name: Option<String>,
}

/// The statement, by what this server's views have.
pub fn sql(catalogue: &Catalogue) -> String {
    let since = if catalogue.has("pg_locks", &["waitstart"]) { "waitstart" } else { "NULL::timestamptz" };
    let leader = if catalogue.has("pg_stat_activity", &["leader_pid"]) { "a.leader_pid" } else { "NULL" };
    format!(
        "WITH l AS MATERIALIZED (SELECT concat_ws(' ', locktype, database, relation, page, tuple, virtualxid, transactionid, classid, objid, objsubid) AS key, \
         locktype, database, relation, page, tuple, classid, objid, objsubid, pid, mode, granted, {since} AS since \
         FROM pg_catalog.pg_locks WHERE mode <> 'SIReadLock' AND pid IS DISTINCT FROM pg_backend_pid()) \
         SELECT l.key, l.locktype, l.database, l.relation, l.page, l.tuple, l.classid, l.objid, l.objsubid, l.pid, l.mode, l.granted::int, \
         CASE WHEN l.since IS NOT NULL THEN greatest(extract(epoch FROM clock_timestamp() - l.since), 0) END, a.state, a.query, extract(epoch FROM clock_timestamp() - a.xact_start), {leader}, a.datname \
         FROM l LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid \
         WHERE l.key IN (SELECT key FROM l WHERE NOT granted) OR l.granted AND (l.locktype = 'tuple' OR l.mode = 'RowExclusiveLock' AND l.locktype = 'relation') \
         AND l.pid IN (SELECT pid FROM l WHERE NOT granted AND locktype = 'transactionid')"
    )
}

/// Its answer. A row without what identifies it is left out.
pub fn locks(rows: &[Row]) -> Vec<Lock> {
    let text = |row: &Row, at: usize| cell(row, at).map(str::to_owned);
    let oid = |row: &Row, at: usize| cell(row, at).and_then(|text| text.parse().ok());
    let parse = |row: &Row| {
        Some(Lock {
            key: text(row, 0)?,
            kind: text(row, 1)?,
            database: oid(row, 2),
            relation: oid(row, 3),
            page: text(row, 4),
            tuple: text(row, 5),
            class: oid(row, 6),
            object: oid(row, 7),
            sub: oid(row, 8),
            pid: oid(row, 9),
            mode: text(row, 10)?,
            granted: cell(row, 11)? == "1",
            waited_s: cell(row, 12).and_then(number),
            state: text(row, 13),
            query: text(row, 14).filter(|query| !query.is_empty()),
            transaction_s: cell(row, 15).and_then(number),
            leader: oid(row, 16),
            database_name: text(row, 17),
        })
    };
    rows.iter().filter_map(parse).collect()
}

/// How long waits have lasted, by when they were first seen: for servers that do not tell (before 14), and for the moment
/// in which a wait has begun and its time is not yet written.
#[derive(Debug, Default)]
pub struct Clock {
    seen: HashMap<(Option<Pid>, String), Instant>,
}

impl Clock {
    /// Fills in what the server did not tell; waits that are gone are forgotten.
    pub fn fill(&mut self, now: Instant, locks: &mut [Lock]) {
        let mut seen = HashMap::new();
        for lock in locks.iter_mut().filter(|lock| !lock.granted) {
            let key = (lock.pid, lock.key.clone());
            let since = self.seen.get(&key).copied().unwrap_or(now);
            lock.waited_s = lock.waited_s.or(Some(now.saturating_duration_since(since).as_secs_f64()));
            seen.insert(key, since);
        }
        self.seen = seen;
    }
}

/// Relations of these locks whose names are needed, of this database and of what all share.
pub fn relations(locks: &[Lock], database: Option<u32>) -> BTreeSet<u32> {
    let ours = |lock: &&Lock| lock.database.is_some_and(|number| number == 0 || Some(number) == database);
    let mut wanted: BTreeSet<u32> = locks.iter().filter(ours).filter_map(|lock| lock.relation).collect();
    // A lock on an object names the catalogue that the object stands in.
    wanted.extend(locks.iter().filter(|lock| lock.kind == "object").filter_map(|lock| lock.class));
    wanted
}

/// The rows for the file: one a waiter.
pub fn assemble(locks: &[Lock], names: &Names, database: Option<u32>) -> Vec<Wait> {
    let graph = Graph::new(locks);
    // Waiters of a convoy mostly sent the same text.
    let mut statements: HashMap<String, String> = HashMap::new();
    let mut normal = |query: Option<&String>| {
        query.map(|query| statements.entry(query.clone()).or_insert_with_key(|query| statement(query)).clone())
    };
    let place = Place { locks, names, database };
    graph
        .waiters()
        .map(|waiter| {
            let root = graph.root(waiter);
            let at = place.of(waiter);
            Wait {
                kind: at.kind,
                object: at.object,
                index: at.index,
                row: at.row,
                mode: Some(waiter.mode.clone()),
                waiter: waiter.pid.map(|pid| pid.to_string()).unwrap_or_default(),
                waited_ms: waiter.waited_s.map(|seconds| seconds * 1e3),
                statement: normal(waiter.query.as_ref()),
                blocker: root.map(|root| root.pid.map_or_else(|| "prepared transaction".to_owned(), |pid| pid.to_string())),
                blocker_state: root.and_then(|root| match root.pid {
                    None => Some("prepared transaction".to_owned()),
                    Some(_) => root.state.clone(),
                }),
                blocker_statement: root.and_then(|root| normal(root.query.as_ref())),
            }
        })
        .collect()
}

/// A statement without its values; the semicolon of an interactive client makes it no other.
fn statement(query: &str) -> String {
    let text = normalise_postgres(query);
    text.trim_end_matches([';', ' ']).to_owned()
}

/// Where a waiter waits.
#[derive(Debug, Default, PartialEq)]
struct At {
    kind: &'static str,
    object: Option<String>,
    index: Option<String>,
    row: Option<String>,
}

struct Place<'l> {
    locks: &'l [Lock],
    names: &'l Names,
    database: Option<u32>,
}

impl Place<'_> {
    fn of(&self, waiter: &Lock) -> At {
        match waiter.kind.as_str() {
            "tuple" => self.row(waiter),
            "transactionid" => match self.held(waiter).find(|lock| lock.kind == "tuple") {
                Some(tuple) => self.row(tuple),
                None => At { kind: "transaction", object: self.likely(waiter), ..At::default() },
            },
            "relation" => self.relation("relation", waiter, None),
            "extend" => self.relation("extend", waiter, None),
            "page" => self.relation("page", waiter, waiter.page.as_ref().map(|page| format!("({page})"))),
            "advisory" | "userlock" => At { kind: "advisory", row: advisory(waiter), ..At::default() },
            "object" => At {
                kind: "object",
                object: waiter.class.and_then(|class| self.names.get(class)).map(|name| name.table.clone()),
                row: waiter.object.map(|object| object.to_string()),
                ..At::default()
            },
            "virtualxid" => At { kind: "virtualxid", ..At::default() },
            "spectoken" => At { kind: "speculative", object: self.likely(waiter), ..At::default() },
            "frozenid" => At { kind: "frozenid", ..At::default() },
            "applytransaction" => At { kind: "applytransaction", ..At::default() },
            _ => At { kind: "other", ..At::default() },
        }
    }

    fn row(&self, lock: &Lock) -> At {
        let row = lock.page.as_ref().zip(lock.tuple.as_ref()).map(|(page, tuple)| format!("({page},{tuple})"));
        self.relation("row", lock, row)
    }

    fn relation(&self, kind: &'static str, lock: &Lock, row: Option<String>) -> At {
        let ours = lock.database.is_some_and(|number| number == 0 || Some(number) == self.database);
        let name = lock.relation.filter(|_| ours).and_then(|number| self.names.get(number));
        let unnamed = || {
            // Names are in the catalogue of each database, and ours is another.
            let number = lock.relation?;
            Some(match &lock.database_name {
                Some(database) if !ours => format!("{database}.oid {number}"),
                _ => format!("oid {number}"),
            })
        };
        At {
            kind,
            object: name.map(|name| name.table.clone()).or_else(unnamed),
            index: name.and_then(|name| name.index.clone()),
            row,
        }
    }

    fn held(&self, waiter: &Lock) -> impl Iterator<Item = &Lock> {
        let pid = waiter.pid;
        self.locks.iter().filter(move |lock| lock.granted && lock.pid == pid)
    }

    /// The table that a waiter without a tuple lock writes to: an insert that meets a key of a transaction not yet ended. All
    /// that tells is what it has locked for writing; of several tables the one that its statement names.
    fn likely(&self, waiter: &Lock) -> Option<String> {
        let writes = self.held(waiter).filter(|lock| lock.kind == "relation" && lock.mode == "RowExclusiveLock");
        let tables: Vec<_> = writes.filter_map(|lock| self.names.get(lock.relation?)).filter(|name| name.index.is_none()).collect();
        let query = waiter.query.as_deref().unwrap_or_default().to_lowercase();
        // A partition and the table that it is of: the rows are in the partition.
        let leaves: Vec<_> = tables.iter().filter(|name| !name.partitioned).collect();
        let named: Vec<_> = leaves.iter().filter(|name| query.contains(&name.relation.to_lowercase())).collect();
        let table = match (leaves.as_slice(), named.as_slice()) {
            ([only], _) => only,
            (_, [only]) => only,
            _ => return None,
        };
        Some(format!("{} (likely: unique key)", table.table))
    }
}

/// The key as the application gave it: one number of 64 bits, or two of 32.
fn advisory(lock: &Lock) -> Option<String> {
    let (upper, lower) = (lock.class?, lock.object?);
    match lock.sub {
        Some(1) => Some(((u64::from(upper) << 32 | u64::from(lower)) as i64).to_string()),
        _ => Some(format!("({},{})", upper as i32, lower as i32)),
    }
}

#[cfg(test)]
mod tests;
