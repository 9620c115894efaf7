//! Who is in whose way, from one snapshot of the lock table.

use super::{Lock, Pid};
use std::collections::{HashMap, HashSet};

/// At most so many sessions are looked at on the way to a root.
const STEPS: usize = 10_000;

/// The modes, weakest first, each with a bit for every mode that it conflicts with.
const MODES: [(&str, u8); 8] = [
    ("AccessShareLock", 0b1000_0000),
    ("RowShareLock", 0b1100_0000),
    ("RowExclusiveLock", 0b1111_0000),
    ("ShareUpdateExclusiveLock", 0b1111_1000),
    ("ShareLock", 0b1110_1100),
    ("ShareRowExclusiveLock", 0b1111_1100),
    ("ExclusiveLock", 0b1111_1110),
    ("AccessExclusiveLock", 0b1111_1111),
];

/// Whether two modes exclude each other. A mode that is not known excludes all.
fn conflict(one: &str, other: &str) -> bool {
    let find = |mode: &str| MODES.iter().position(|(name, _)| *name == mode);
    match (find(one), find(other)) {
        (Some(one), Some(other)) => MODES[one].1 & (1 << other) != 0,
        _ => true,
    }
}

/// The locks by what they lock and by who waits.
pub struct Graph<'l> {
    locks: &'l [Lock],
    by_key: HashMap<&'l str, Vec<&'l Lock>>,
    waiting: HashMap<Pid, &'l Lock>,
}

impl<'l> Graph<'l> {
    /// Sorts the locks.
    pub fn new(locks: &'l [Lock]) -> Self {
        let mut by_key: HashMap<&str, Vec<&Lock>> = HashMap::new();
        let mut waiting = HashMap::new();
        for lock in locks {
            by_key.entry(&lock.key).or_default().push(lock);
            if let (false, Some(pid)) = (lock.granted, lock.pid) {
                waiting.insert(pid, lock);
            }
        }
        Self { locks, by_key, waiting }
    }

    /// Everybody who waits.
    pub fn waiters(&self) -> impl Iterator<Item = &'l Lock> {
        self.locks.iter().filter(|lock| !lock.granted)
    }

    /// Who is in this waiter's way: those that hold the lock in a mode that excludes its own; where nobody does, those that
    /// are ahead of it in the queue.
    fn blockers(&self, waiter: &Lock) -> Vec<&'l Lock> {
        let group = |lock: &Lock| lock.leader.or(lock.pid);
        let others = || {
            self.by_key
                .get(waiter.key.as_str())
                .into_iter()
                .flatten()
                .copied()
                .filter(|other| conflict(&waiter.mode, &other.mode) && (other.pid.is_none() || group(other) != group(waiter)))
        };
        let holders: Vec<&Lock> = others().filter(|other| other.granted).collect();
        if !holders.is_empty() {
            return holders;
        }
        // Without the time of the wait (before 14) whoever else waits may be ahead.
        let ahead = |other: &&Lock| other.waited_s.zip(waiter.waited_s).is_none_or(|(theirs, ours)| theirs >= ours);
        others().filter(|other| !other.granted).filter(ahead).collect()
    }

    /// The session at the head of the chain, which itself waits for nothing: of several the one that is idle inside its
    /// transaction, then the one with the oldest. None where the chain is a circle (a deadlock about to be broken), or its
    /// head was gone when the locks were read.
    pub fn root(&self, waiter: &'l Lock) -> Option<&'l Lock> {
        let mut open = vec![waiter];
        let mut seen: HashSet<Pid> = waiter.pid.into_iter().collect();
        let mut best: Option<&Lock> = None;
        let rank = |lock: &Lock| {
            let idle = lock.pid.is_none() || lock.state.as_deref().is_some_and(|state| state.starts_with("idle"));
            (idle, lock.transaction_s.unwrap_or(0.0))
        };
        for _ in 0..STEPS {
            let Some(at) = open.pop() else { break };
            for blocker in self.blockers(at) {
                match blocker.pid {
                    Some(pid) if !seen.insert(pid) => {}
                    Some(pid) if self.waiting.contains_key(&pid) => open.extend(self.waiting.get(&pid)),
                    _ if best.is_none_or(|best| rank(blocker) > rank(best)) => best = Some(blocker),
                    _ => {}
                }
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lock(key: &str, pid: Pid, mode: &str, granted: bool) -> Lock {
        Lock { key: key.to_owned(), kind: "relation".to_owned(), pid: Some(pid), mode: mode.to_owned(), granted, ..Lock::default() }
    }

    fn root(locks: &[Lock], pid: Pid) -> Option<Pid> {
        let graph = Graph::new(locks);
        let waiter = graph.waiters().find(|lock| lock.pid == Some(pid)).unwrap();
        graph.root(waiter).and_then(|root| root.pid)
    }

    #[test]
    fn the_table_of_conflicts_is_that_of_the_manual_and_symmetric() {
        let conflicts: Vec<usize> =
            MODES.iter().map(|(one, _)| MODES.iter().filter(|(other, _)| conflict(one, other)).count()).collect();
        assert_eq!(conflicts, [1, 2, 4, 5, 5, 6, 7, 8]);
        for (one, _) in MODES {
            for (other, _) in MODES {
                assert_eq!(conflict(one, other), conflict(other, one), "{one} {other}");
            }
        }
        assert!(!conflict("ShareLock", "ShareLock") && conflict("ShareUpdateExclusiveLock", "ShareUpdateExclusiveLock"));
    }

    #[test]
    fn a_reader_queued_behind_an_alter_is_blocked_by_the_idle_reader_before_it() {
        let mut locks = vec![
            lock("t", 1, "AccessShareLock", true),
            lock("t", 2, "AccessExclusiveLock", false),
            lock("t", 3, "AccessShareLock", false),
        ];
        locks[1].waited_s = Some(5.0);
        locks[2].waited_s = Some(2.0);
        assert_eq!((root(&locks, 2), root(&locks, 3)), (Some(1), Some(1)));
    }

    #[test]
    fn the_first_waiter_of_a_row_is_no_root_for_those_that_queue_behind_it() {
        let locks = [
            lock("xid 7", 1, "ExclusiveLock", true),
            lock("xid 7", 2, "ShareLock", false),
            lock("row", 2, "ExclusiveLock", true),
            lock("row", 3, "ExclusiveLock", false),
            lock("row", 4, "ExclusiveLock", false),
        ];
        assert_eq!([root(&locks, 2), root(&locks, 3), root(&locks, 4)], [Some(1); 3]);
    }

    #[test]
    fn workers_of_one_statement_do_not_block_each_other() {
        let mut locks = vec![
            lock("t", 1, "AccessShareLock", true),
            lock("t", 11, "AccessExclusiveLock", false),
            lock("t", 2, "AccessShareLock", true),
        ];
        locks[1].leader = Some(1);
        assert_eq!(root(&locks, 11), Some(2));
    }

    #[test]
    fn of_several_holders_the_idle_one_is_named_and_a_circle_has_no_root() {
        let mut locks =
            vec![lock("t", 1, "RowExclusiveLock", true), lock("t", 2, "RowExclusiveLock", true), lock("t", 3, "ShareLock", false)];
        locks[0].transaction_s = Some(50.0);
        locks[1].state = Some("idle in transaction".to_owned());
        assert_eq!(root(&locks, 3), Some(2));
        let circle = [
            lock("a", 1, "ExclusiveLock", true),
            lock("b", 2, "ExclusiveLock", true),
            lock("a", 2, "ExclusiveLock", false),
            lock("b", 1, "ExclusiveLock", false),
        ];
        assert_eq!((root(&circle, 1), root(&circle, 2)), (None, None));
    }

    proptest! {
        #[test]
        fn any_locks_have_roots_that_wait_for_nothing(
            some in proptest::collection::vec((0_u8..4, 0_u32..6, 0_usize..9, any::<bool>(), proptest::option::of(0.0..9.0)), 0..24)
        ) {
            let locks: Vec<Lock> = some
                .into_iter()
                .map(|(key, pid, mode, granted, waited_s)| {
                    let mode = MODES.get(mode).map_or("NewLock", |(name, _)| name);
                    let mut lock = lock(&key.to_string(), pid, mode, granted);
                    lock.pid = (pid > 0).then_some(pid);
                    lock.waited_s = waited_s;
                    lock
                })
                .collect();
            let graph = Graph::new(&locks);
            for waiter in graph.waiters() {
                if let Some(root) = graph.root(waiter) {
                    prop_assert!(root.pid.is_none_or(|pid| !locks.iter().any(|lock| lock.pid == Some(pid) && !lock.granted)));
                }
            }
        }
    }
}
