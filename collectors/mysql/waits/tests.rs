use super::*;
use proptest::prelude::*;

fn waits(pairs: &[(Id, &str)]) -> HashMap<Id, String> {
    pairs.iter().map(|(id, lock)| (*id, (*lock).to_owned())).collect()
}

fn held(pairs: &[(&str, &[Id])]) -> Holders {
    pairs.iter().map(|(lock, ids)| ((*lock).to_owned(), ids.to_vec())).collect()
}

#[test]
fn the_root_of_a_chain_is_the_session_that_waits_for_nothing() {
    // 3 waits for b held by 2, which waits for a held by 1.
    let (holders, waits) = (held(&[("a", &[1]), ("b", &[2])]), waits(&[(2, "a"), (3, "b")]));
    assert_eq!(roots("b", &holders, &waits), [1]);
    assert_eq!(roots("a", &holders, &waits), [1]);
}

#[test]
fn a_circle_has_no_root_and_ends() {
    let (holders, waits) = (held(&[("a", &[1]), ("b", &[2])]), waits(&[(2, "a"), (1, "b")]));
    assert_eq!(roots("a", &holders, &waits), Vec::<Id>::new());
}

#[test]
fn a_holder_that_an_older_reply_calls_a_waiter_of_the_same_lock_has_just_got_it() {
    assert_eq!(roots("a", &held(&[("a", &[5])]), &waits(&[(5, "a"), (6, "a")])), [5]);
}

#[test]
fn a_lock_whose_holder_was_not_told_has_no_root() {
    assert_eq!(roots("a", &Holders::new(), &waits(&[(1, "a")])), Vec::<Id>::new());
}

#[test]
fn of_several_holders_the_idle_one_is_named_then_the_oldest() {
    let holder = |session: &str, idle, seconds| Holder { session: session.to_owned(), idle, seconds, ..Holder::default() };
    let found = HashMap::from([(1, holder("a", false, 99.0)), (2, holder("b", true, 3.0)), (3, holder("c", true, 5.0))]);
    assert_eq!(worst(&[1, 2, 3], &found).map(|holder| holder.session.as_str()), Some("c"));
    assert_eq!(worst(&[1], &found).map(|holder| holder.session.as_str()), Some("a"));
    assert_eq!(worst(&[9], &found), None);
}

#[test]
fn states_are_told_apart_from_those_that_wait_for_no_lock() {
    assert_eq!(kind_of_state("Waiting for table metadata lock"), Some("metadata"));
    assert_eq!(kind_of_state("Waiting for global read lock"), Some("metadata"));
    assert_eq!(kind_of_state("Waiting for backup lock"), Some("metadata"));
    assert_eq!(kind_of_state("Waiting for table flush"), Some("metadata"));
    assert_eq!(kind_of_state("Waiting for table level lock"), Some("table"));
    assert_eq!(kind_of_state("User lock"), Some("advisory"));
    for state in ["waiting for handler commit", "Waiting for next activation", "Waiting on empty queue", "updating", "Updating", ""]
    {
        assert_eq!(kind_of_state(state), None, "{state}");
    }
}

#[test]
fn every_waiter_is_one_row_with_the_root_of_its_lock() {
    let waiter = |id: Id, lock: &str| Waiter {
        id: Some(id),
        session: id.to_string(),
        kind: "row",
        lock: lock.to_owned(),
        ..Waiter::default()
    };
    let waiters: Vec<_> = (10..210).map(|id| waiter(id, "innodb a")).chain([waiter(300, "innodb b")]).collect();
    let mut clock = Clock::default();
    clock.tick(std::time::Instant::now(), &waiters);
    let root = Holder { session: "7".to_owned(), state: Some("idle in transaction".to_owned()), ..Holder::default() };
    let rows = assemble(waiters, &HashMap::from([("innodb a".to_owned(), root)]), &clock);
    assert_eq!(rows.len(), 201);
    assert_eq!(rows.iter().filter(|row| row.blocker.as_deref() == Some("7")).count(), 200);
    assert_eq!((rows[200].blocker.as_deref(), rows[200].waited_ms), (None, Some(0.0)));
}

proptest! {
    #[test]
    fn any_graph_ends_and_names_only_holders(locks in proptest::collection::btree_map("[a-e]", proptest::collection::vec(0_u64..8, 0..4), 0..5), waiting in proptest::collection::hash_map(0_u64..8, "[a-e]", 0..8)) {
        for lock in locks.keys() {
            let heads = roots(lock, &locks, &waiting);
            prop_assert!(heads.iter().all(|head| locks.values().flatten().any(|id| id == head)));
        }
    }
}
