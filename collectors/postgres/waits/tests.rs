use super::*;
use crate::damaged::every_change;
use proptest::prelude::*;

const SERVERS: [(&str, &str); 4] = [
    (include_str!("../../../fixtures/postgres/13.16/waits_40.tsv"), include_str!("../../../fixtures/postgres/13.16/names.tsv")),
    (include_str!("../../../fixtures/postgres/15.18/waits_40.tsv"), include_str!("../../../fixtures/postgres/15.18/names.tsv")),
    (include_str!("../../../fixtures/postgres/17.12/waits_40.tsv"), include_str!("../../../fixtures/postgres/17.12/names.tsv")),
    (include_str!("../../../fixtures/postgres/18.6/waits_40.tsv"), include_str!("../../../fixtures/postgres/18.6/names.tsv")),
];

fn rows(text: &str) -> Vec<Row> {
    let cell = |text: &str| (text != "\\N").then(|| text.to_owned());
    text.lines().skip(1).map(|line| line.split('\t').map(cell).collect()).collect()
}

fn names(text: &str) -> Names {
    let mut names = Names::default();
    names.learn(&rows(text));
    names
}

#[test]
fn forty_waiters_of_one_row_are_forty_entries_with_the_row_and_the_root() {
    for (waits, catalogue) in SERVERS {
        let locks = locks(&rows(waits));
        let database = locks.iter().find_map(|lock| lock.database);
        let found = assemble(&locks, &names(catalogue), database);
        assert_eq!(found.len(), 40);
        let root = found[0].blocker.clone();
        assert!(root.is_some());
        for wait in &found {
            assert_eq!((wait.kind, wait.object.as_deref(), wait.row.as_deref()), ("row", Some("public.slot"), Some("(5,116)")));
            assert_eq!((wait.index.as_deref(), &wait.blocker), (None, &root));
            assert_eq!(wait.blocker_state.as_deref(), Some("idle in transaction"));
            assert_eq!(wait.statement.as_deref(), Some("update slot set taken = taken + ? where id = ? and ? <> ?"));
            assert_eq!(wait.blocker_statement.as_deref(), Some("update slot set taken=taken+? where id=?"));
        }
        // One waits for the transaction and holds the tuple, the others for the tuple.
        assert_eq!(found.iter().filter(|wait| wait.mode.as_deref() == Some("ShareLock")).count(), 1);
    }
}

#[test]
fn how_long_each_waits_is_told_from_14_on_and_else_counted_from_when_it_was_first_seen() {
    let mut told = locks(&rows(SERVERS[3].0));
    let start = Instant::now();
    let mut clock = Clock::default();
    clock.fill(start, &mut told);
    assert!(told.iter().filter(|lock| !lock.granted).all(|lock| lock.waited_s.is_some_and(|seconds| seconds > 0.1)));
    for ms in [0, 250, 1000] {
        let mut untold = locks(&rows(SERVERS[0].0));
        assert!(untold.iter().all(|lock| lock.waited_s.is_none()));
        clock.fill(start + std::time::Duration::from_millis(ms), &mut untold);
        let waited: BTreeSet<String> =
            untold.iter().filter(|lock| !lock.granted).map(|lock| format!("{:?}", lock.waited_s)).collect();
        assert_eq!(waited, BTreeSet::from([format!("{:?}", Some(ms as f64 / 1e3))]));
    }
}

fn waiter(kind: &str) -> Lock {
    Lock {
        key: "k".to_owned(),
        kind: kind.to_owned(),
        database: Some(5),
        pid: Some(2),
        mode: "ShareLock".to_owned(),
        ..Lock::default()
    }
}

fn holder(of: &Lock) -> Lock {
    Lock { pid: Some(1), granted: true, mode: "ExclusiveLock".to_owned(), state: Some("active".to_owned()), ..of.clone() }
}

fn writes(relation: u32) -> Lock {
    Lock {
        key: format!("relation {relation}"),
        kind: "relation".to_owned(),
        database: Some(5),
        relation: Some(relation),
        pid: Some(2),
        mode: "RowExclusiveLock".to_owned(),
        granted: true,
        ..Lock::default()
    }
}

fn some_names() -> Names {
    let mut names = Names::default();
    let row = |cells: [Option<&str>; 6]| cells.into_iter().map(|cell| cell.map(str::to_owned)).collect::<Row>();
    names.learn(&[
        row([Some("10"), Some("public"), Some("slot"), Some("r"), None, None]),
        row([Some("11"), Some("public"), Some("slot_pkey"), Some("i"), Some("slot"), Some("public")]),
        row([Some("12"), Some("public"), Some("audit"), Some("r"), None, None]),
        row([Some("13"), Some("public"), Some("events"), Some("p"), None, None]),
        row([Some("14"), Some("public"), Some("events_2026"), Some("r"), None, None]),
    ]);
    names
}

fn one(locks: &[Lock]) -> Wait {
    let found = assemble(locks, &some_names(), Some(5));
    assert_eq!(found.len(), 1);
    found[0].clone()
}

#[test]
fn an_insert_that_meets_an_uncommitted_key_names_its_table_as_likely() {
    let waits = waiter("transactionid");
    let wait = one(&[waits.clone(), holder(&waits), writes(10), writes(11)]);
    assert_eq!((wait.kind, wait.object.as_deref(), wait.row), ("transaction", Some("public.slot (likely: unique key)"), None));
    assert_eq!((wait.blocker.as_deref(), wait.blocker_state.as_deref()), (Some("1"), Some("active")));
    // Of two tables the one that the statement names; without that, nothing is claimed.
    let both = [waits.clone(), holder(&waits), writes(10), writes(12)];
    assert_eq!(one(&both).object, None);
    let mut named = both.clone();
    named[0].query = Some("INSERT INTO Audit VALUES (1)".to_owned());
    assert_eq!(one(&named).object.as_deref(), Some("public.audit (likely: unique key)"));
    // Rows are in the partition.
    assert_eq!(one(&[waits, writes(13), writes(14)]).object.as_deref(), Some("public.events_2026 (likely: unique key)"));
}

#[test]
fn each_kind_of_lock_says_what_it_tells() {
    let wait = |lock: Lock| {
        let found = one(&[lock.clone(), holder(&lock)]);
        (found.kind, found.object, found.index, found.row)
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(wait(Lock { relation: Some(10), ..waiter("relation") }), ("relation", text("public.slot"), None, None));
    assert_eq!(wait(Lock { relation: Some(11), ..waiter("extend") }), ("extend", text("public.slot"), text("slot_pkey"), None));
    assert_eq!(wait(Lock { relation: Some(99), ..waiter("relation") }), ("relation", text("oid 99"), None, None));
    let elsewhere = Lock { relation: Some(10), database: Some(7), database_name: text("other"), ..waiter("relation") };
    assert_eq!(wait(elsewhere), ("relation", text("other.oid 10"), None, None));
    let advisory = |class, object, sub| Lock { class: Some(class), object: Some(object), sub: Some(sub), ..waiter("advisory") };
    assert_eq!(wait(advisory(0, 42, 1)), ("advisory", None, None, text("42")));
    assert_eq!(wait(advisory(u32::MAX, u32::MAX, 1)), ("advisory", None, None, text("-1")));
    assert_eq!(wait(advisory(7, 8, 2)), ("advisory", None, None, text("(7,8)")));
    assert_eq!(
        wait(Lock { class: Some(10), object: Some(3), ..waiter("object") }),
        ("object", text("public.slot"), None, text("3"))
    );
    assert_eq!(wait(waiter("virtualxid")).0, "virtualxid");
    assert_eq!(wait(waiter("something new")).0, "other");
}

#[test]
fn a_prepared_transaction_is_a_root_without_a_process() {
    let waits = waiter("transactionid");
    let found = one(&[waits.clone(), Lock { pid: None, state: None, ..holder(&waits) }]);
    assert_eq!(found.blocker.as_deref(), Some("prepared transaction"));
}

#[test]
fn only_relations_of_this_database_and_shared_ones_are_looked_up() {
    let lock = |database, relation| Lock { database: Some(database), relation: Some(relation), ..waiter("relation") };
    let wanted = relations(&[lock(5, 10), lock(0, 1262), lock(7, 10_000), Lock { class: Some(2615), ..waiter("object") }], Some(5));
    assert_eq!(wanted, BTreeSet::from([10, 1262, 2615]));
}

#[test]
fn real_rows_changed_at_any_byte_never_panic_and_never_give_more_waiters() {
    // The first rows; all forty look alike.
    for (text, names_text) in SERVERS {
        let few: String = text.split_inclusive('\n').take(4).collect();
        let most = rows(&few).len();
        for changed in every_change(few.as_bytes()) {
            let found = locks(&rows(&String::from_utf8_lossy(&changed)));
            // A line end in the middle makes one row two.
            assert!(assemble(&found, &names(names_text), Some(5)).len() <= most + 1);
        }
    }
}

proptest! {
    #[test]
    fn rows_cut_anywhere_never_panic_and_never_give_more_waiters(server in 0_usize..4, keep in 0_usize..9000) {
        let cut: String = SERVERS[server].0.chars().take(keep).collect();
        let locks = locks(&rows(&cut));
        prop_assert!(assemble(&locks, &names(SERVERS[server].1), Some(5)).len() <= 40);
    }

    #[test]
    fn any_rows_are_taken_apart_without_a_panic(some in proptest::collection::vec(proptest::collection::vec(proptest::option::of("\\PC{0,9}"), 0..19), 0..9)) {
        let found = locks(&some);
        prop_assert!(assemble(&found, &some_names(), Some(5)).len() <= some.len());
    }
}
