//! Who waits for whom, one entry a waiter: what is common to row locks and metadata locks, MySQL and MariaDB.
//!
//! The queries are in the modules below; here their rows, already taken apart, become chains with one root each. The cost
//! is bounded by the number of waiters: the pairs of waiter and blocker, n²/2 of them in a convoy, are never asked for.

pub mod ask;
pub mod cadence;
pub mod mariadb;
pub mod metadata;
pub mod rows;

use crate::api::Wait;
use cadence::Clock;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A session as the server's lock tables number it (MySQL: the thread, MariaDB: the connection); 0 is a transaction that no
/// session has any more: prepared, or recovered.
pub type Id = u64;

/// A session that waits, as one read found it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waiter {
    /// Who; `None` where the tables had no more than its connection.
    pub id: Option<Id>,
    /// The connection's number, as people know it.
    pub session: String,
    /// row, table, metadata, advisory.
    pub kind: &'static str,
    /// What it waits for, as an identity: waiters on the same lock have the same.
    pub lock: String,
    /// What makes this wait another than an earlier one of the same session for the same lock.
    pub begun: String,
    /// `schema.table`.
    pub object: Option<String>,
    /// The index.
    pub index: Option<String>,
    /// The row.
    pub row: Option<String>,
    /// The mode asked for.
    pub mode: Option<String>,
    /// How long ago the wait began by the server's clock, in whole seconds rounded up: the truth is up to 1 s less.
    pub since_ms: Option<f64>,
    /// How long the statement has run, exactly: an upper bound, and mostly the wait itself.
    pub statement_ms: Option<f64>,
    /// The statement, without its values.
    pub statement: Option<String>,
}

/// A session that holds what others wait for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Holder {
    /// The connection's number, as people know it.
    pub session: String,
    /// `idle in transaction`, `running`, …
    pub state: Option<String>,
    /// It does nothing.
    pub idle: bool,
    /// How long it has been in this state.
    pub seconds: f64,
    /// The statement it runs, or ran last.
    pub statement: Option<String>,
}

/// The holders of each lock, as far as they were told.
pub type Holders = BTreeMap<String, Vec<Id>>;

/// At most so many candidates for a root are looked at, of a lock that many share.
const CANDIDATES: usize = 50;

/// The heads of the chain behind `lock`: sessions that hold what somebody waits for and themselves wait for nothing, as far
/// as is known. Follows a holder that itself waits for another lock; a holder said to wait for this very lock has just got
/// it (the two replies are some milliseconds apart) and is the head.
pub fn roots(lock: &str, holders: &Holders, waits_for: &HashMap<Id, String>) -> Vec<Id> {
    let mut heads = Vec::new();
    let mut seen = HashSet::from([lock.to_owned()]);
    let mut open = vec![lock.to_owned()];
    while let Some(at) = open.pop() {
        for &holder in holders.get(&at).into_iter().flatten() {
            match waits_for.get(&holder).filter(|next| **next != at) {
                Some(next) if seen.insert(next.clone()) => open.push(next.clone()),
                None if heads.len() < CANDIDATES && !heads.contains(&holder) => heads.push(holder),
                _ => {}
            }
        }
    }
    heads
}

/// Which session waits for which lock. A session in both lists of one read waits for the later one.
pub fn waits_for(waiters: &[Waiter]) -> HashMap<Id, String> {
    waiters.iter().filter_map(|waiter| Some((waiter.id?, waiter.lock.clone()))).collect()
}

/// The distinct locks with the session that has waited longest for each, and the one that came last.
pub fn first_and_last<'w>(waiters: &'w [Waiter], clock: &Clock) -> BTreeMap<&'w str, (Id, Id)> {
    let mut by_age: Vec<(f64, Id, &str)> =
        waiters.iter().filter_map(|waiter| Some((clock.waited_ms(waiter)?, waiter.id?, waiter.lock.as_str()))).collect();
    by_age.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut spans = BTreeMap::new();
    for (_, id, lock) in by_age {
        spans.entry(lock).or_insert((id, id)).1 = id;
    }
    spans
}

/// Of several heads the one to name: idle before running, then the one longest so.
pub fn worst<'h>(heads: &[Id], found: &'h HashMap<Id, Holder>) -> Option<&'h Holder> {
    let known = heads.iter().filter_map(|id| found.get(id));
    known.max_by(|a, b| (a.idle, a.seconds).partial_cmp(&(b.idle, b.seconds)).unwrap_or(std::cmp::Ordering::Equal))
}

/// The rows for the file: every waiter with how long it waits and the root of its chain.
pub fn assemble(waiters: Vec<Waiter>, roots: &HashMap<String, Holder>, clock: &Clock) -> Vec<Wait> {
    waiters
        .into_iter()
        .map(|waiter| {
            let waited_ms = clock.waited_ms(&waiter);
            let root = roots.get(&waiter.lock);
            Wait {
                kind: waiter.kind,
                waited_ms,
                object: waiter.object,
                index: waiter.index,
                row: waiter.row,
                mode: waiter.mode,
                waiter: waiter.session,
                statement: waiter.statement,
                blocker: root.map(|root| root.session.clone()),
                blocker_state: root.and_then(|root| root.state.clone()),
                blocker_statement: root.and_then(|root| root.statement.clone()),
            }
        })
        .collect()
}

/// What one read of the waits found.
#[derive(Debug, Default)]
pub struct Found {
    /// One entry a waiter.
    pub waits: Vec<Wait>,
    /// Sessions by the lock above the engine that they wait for, where they were counted: metadata, table, advisory.
    pub sessions: Option<[f64; 3]>,
    /// What a reader of the row should know.
    pub notes: Vec<String>,
}

/// The kind of lock above the storage engine that a session's state tells of.
pub fn kind_of_state(state: &str) -> Option<&'static str> {
    let state = state.to_ascii_lowercase();
    match state.as_str() {
        "user lock" => Some("advisory"),
        "waiting for table level lock" => Some("table"),
        "waiting for table flush" => Some("metadata"),
        _ if state.starts_with("waiting for ") && state.ends_with(" lock") => Some("metadata"),
        _ => None,
    }
}

/// The condition of [`kind_of_state`] in SQL, for a column with the state.
pub fn state_waits(column: &str) -> String {
    format!("({column} LIKE 'Waiting for %lock' OR {column} IN ('Waiting for table flush', 'User lock'))")
}

/// Counts waiters for the three gauges, in the order metadata, table, advisory.
pub fn count_kinds(waiters: &[Waiter]) -> [f64; 3] {
    ["metadata", "table", "advisory"].map(|kind| waiters.iter().filter(|waiter| waiter.kind == kind).count() as f64)
}

/// The rows of a capture: cells between tabs, `NULL` for what is none.
#[cfg(test)]
fn rows_of(text: &str) -> Vec<crate::sql::Row> {
    let cell = |cell: &str| if cell == "NULL" { None } else { Some(cell.to_owned()) };
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').map(cell).collect()).collect()
}

#[cfg(test)]
mod tests;
