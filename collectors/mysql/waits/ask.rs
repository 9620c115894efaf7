//! Asks for the waits of one tick: when, and in which order; the statements of each product are in the modules below.

mod mariadb;
mod mysql;

use super::cadence::{CHEAP, Cadence, Clock, DEAR};
use super::{Found, Holder, Holders, Id, Waiter, assemble};
use crate::mysql::session::{Product, Session, is_goodbye};
use crate::mysql::sight::Sight;
use crate::sql::{Row, describe};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

/// What the tick's status said that decides whether anything is asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gate {
    /// Sessions that wait for a row lock now.
    pub waiting: Option<f64>,
    /// Waits for row locks begun since the server's start.
    pub begun: Option<f64>,
    /// Sessions that run, ours among them.
    pub running: Option<f64>,
}

impl Gate {
    /// Whoever waits for a lock runs: where only we run, nobody waits.
    fn nobody_else_runs(self) -> bool {
        self.running.is_some_and(|running| running <= 1.0)
    }
}

/// What is asked in one read.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// Who waits for whom; otherwise only the counts of sessions.
    waits: bool,
    /// Row locks among them.
    rows: bool,
    /// The counts of sessions.
    counts: bool,
}

/// What one read of the tables gave, before it becomes chains.
#[derive(Debug, Default)]
struct Read {
    waiters: Vec<Waiter>,
    /// Holders of locks above the engine (MySQL), of all locks (MariaDB).
    holders: Holders,
    /// Holders that keep the lock until they give it back.
    explicit: HashSet<Id>,
    /// What is known of sessions (MariaDB).
    sessions: HashMap<Id, Holder>,
}

/// The state between two reads.
#[derive(Debug)]
pub struct Reader {
    wanted: bool,
    waits: Cadence,
    counts: Cadence,
    clock: Clock,
    begun: Option<f64>,
    frozen: Frozen,
}

/// So many reads in a row that show the very same waiters, and clearly not as many as wait, mean that InnoDB's copy of its
/// transactions is not renewed.
const FROZEN: u32 = 5;

#[derive(Debug, Default)]
struct Frozen {
    last: BTreeSet<(String, String)>,
    same: u32,
}

impl Frozen {
    /// Whether the answer has been the same for too long; told once each time that it begins.
    fn see(&mut self, waiters: &[Waiter], waiting: Option<f64>) -> bool {
        let rows = waiters.iter().filter(|waiter| waiter.lock.starts_with("innodb "));
        let now: BTreeSet<_> = rows.map(|waiter| (waiter.session.clone(), waiter.begun.clone())).collect();
        let differs = waiting.is_some_and(|waiting| (waiting - now.len() as f64).abs() > (0.2 * waiting).max(2.0));
        let stale = now == self.last && differs;
        self.last = now;
        self.same = if stale { self.same + 1 } else { 0 };
        self.same == FROZEN
    }
}

type Asked<T> = Result<T, sqlx::Error>;

/// Asks; an error after which the connection is whole becomes a note and nothing.
async fn ask(session: &mut Session, found: &mut Found, what: &str, sql: &str) -> Asked<Option<Vec<Row>>> {
    match session.ask(sql).await {
        Ok(rows) => Ok(Some(rows)),
        Err(error) if is_goodbye(&error) => Err(error),
        Err(error) => {
            found.notes.push(format!("{what} not read: {}", describe(&error)));
            Ok(None)
        }
    }
}

impl Reader {
    /// At most once in `every`, if at all.
    pub fn new(wanted: bool, every: Duration) -> Self {
        Self {
            wanted,
            waits: Cadence::new(every, DEAR),
            counts: Cadence::new(Duration::ZERO, CHEAP),
            clock: Clock::default(),
            begun: None,
            frozen: Frozen::default(),
        }
    }

    /// Counts the sessions that wait above the engine and, where something waits and it is time, reads who waits for whom.
    pub async fn read(&mut self, session: &mut Session, product: Product, sight: &Sight, gate: Gate) -> Asked<Found> {
        let mut found = Found::default();
        let began = Instant::now();
        let due = self.wanted && self.waits.due(began);
        let grew = matches!((self.begun, gate.begun), (Some(before), Some(now)) if now > before);
        let plan = Plan {
            waits: due,
            rows: due && sight.row_waits && (gate.waiting != Some(0.0) || grew),
            counts: sight.sessions && (due || self.counts.due(began)),
        };
        if plan.counts && gate.nobody_else_runs() {
            found.sessions = Some([0.0; 3]);
        }
        let read = match product {
            Product::MySql => mysql::read(session, sight, gate, plan, &mut found).await?,
            Product::MariaDb => mariadb::read(session, gate, plan, &mut found).await?,
            Product::Other => return Ok(found),
        };
        if plan.counts && !gate.nobody_else_runs() {
            self.counts.done(began, began.elapsed());
        }
        if !due {
            return Ok(found);
        }
        if plan.rows && found.notes.is_empty() && self.frozen.see(&read.waiters, gate.waiting) {
            found.notes.push(
                "waits: InnoDB's list of transactions does not change; something else reads it more than 10 times a second, and these waits are old"
                    .to_owned(),
            );
        }
        self.begun = gate.begun.or(self.begun);
        self.clock.tick(began, &read.waiters);
        let asked = plan.rows || !read.waiters.is_empty();
        if !read.waiters.is_empty() {
            let roots = match product {
                Product::MariaDb => mariadb::roots(session, sight, &read, &mut found).await?,
                _ => mysql::roots(session, sight, &read, &self.clock, &mut found).await?,
            };
            found.waits = assemble(read.waiters, &roots, &self.clock);
        }
        if asked {
            self.waits.done(began, began.elapsed());
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_never_changes_and_never_fits_is_told_once() {
        let waiter = Waiter { session: "7".to_owned(), lock: "innodb 1".to_owned(), ..Waiter::default() };
        let told = |waiters: &[Waiter], waiting: f64| {
            let mut frozen = Frozen::default();
            (0..20).filter(|_| frozen.see(waiters, Some(waiting))).count()
        };
        assert_eq!(told(std::slice::from_ref(&waiter), 30.0), 1);
        assert_eq!(told(&[], 5.0), 1);
        // A long wait, and beside it short ones that no read happens to meet, are no frozen list.
        assert_eq!(told(std::slice::from_ref(&waiter), 1.0), 0);
        assert_eq!(told(std::slice::from_ref(&waiter), 3.0), 0);
        assert_eq!(told(&[], 2.0), 0);
    }

    #[test]
    fn where_only_we_run_nobody_waits_and_an_unknown_number_says_nothing() {
        assert!(Gate { running: Some(1.0), ..Gate::default() }.nobody_else_runs());
        assert!(!Gate { running: Some(2.0), ..Gate::default() }.nobody_else_runs());
        assert!(!Gate::default().nobody_else_runs());
    }
}
