use super::*;
use crate::api::Class;
use crate::damaged::{every_change, every_cut};
use proptest::prelude::*;

/// What real servers answered while 40 sessions waited for one row.
const SERVERS: [(&str, &str, &str); 4] = [
    (
        "13",
        include_str!("../../../fixtures/postgres/13.16/catalogue.tsv"),
        include_str!("../../../fixtures/postgres/13.16/tick_40_waiters.tsv"),
    ),
    (
        "15",
        include_str!("../../../fixtures/postgres/15.18/catalogue.tsv"),
        include_str!("../../../fixtures/postgres/15.18/tick_40_waiters.tsv"),
    ),
    (
        "17",
        include_str!("../../../fixtures/postgres/17.12/catalogue.tsv"),
        include_str!("../../../fixtures/postgres/17.12/tick_40_waiters.tsv"),
    ),
    (
        "18",
        include_str!("../../../fixtures/postgres/18.6/catalogue.tsv"),
        include_str!("../../../fixtures/postgres/18.6/tick_40_waiters.tsv"),
    ),
];

fn lines(text: &str) -> Vec<Row> {
    let cell = |text: &str| (text != "\\N").then(|| text.to_owned());
    text.lines().map(|line| line.split('\t').map(cell).collect()).collect()
}

fn catalogue(text: &str) -> Catalogue {
    Catalogue::of_rows(&lines(text)[1..])
}

fn everything() -> Features {
    let holds = vec![When::IoTiming, When::Standby, When::Replicas, When::Slots, When::Waits, When::Cores];
    Features { holds, ..Features::default() }
}

/// The statement for these columns, and the recorded row in the order of its cells.
fn recorded(catalogue_text: &str, row: &str, features: &Features) -> (Vec<Chosen>, Tick, Row) {
    let catalogue = catalogue(catalogue_text);
    let chosen = settle(&catalogue, features);
    let tick = Tick::new(&chosen, &catalogue);
    let rows = lines(row);
    let at = |cell: &Cell| rows[0].iter().position(|name| name.as_deref() == Some(cell.alias().as_str()));
    let row = tick.cells.iter().map(|cell| at(cell).and_then(|at| rows[1][at].clone())).collect();
    (chosen, tick, row)
}

#[test]
fn every_version_gives_every_value_that_it_has() {
    for (version, catalogue, row) in SERVERS {
        let (chosen, tick, row) = recorded(catalogue, row, &Features { holds: vec![When::Waits], ..Features::default() });
        let parsed = tick.parse(&[row]);
        assert_eq!(parsed.odd, []);
        for (name, value) in [
            ("sessions_usable", 197.0),
            ("sessions_active", 40.0),
            ("sessions_idle_in_transaction", 1.0),
            ("lock_waiting", 40.0),
            ("row_lock_waiting", 40.0),
            ("relation_lock_waiting", 0.0),
            ("sessions_on_cpu", 0.0),
            ("max_wal_size_bytes", 1_073_741_824.0),
            ("deadlocks_total", 0.0),
        ] {
            assert_eq!(parsed.value(name), Some(value), "{name} of {version}");
        }
        let sum = |names: &[&str]| names.iter().map(|name| parsed.value(name).unwrap()).sum::<f64>();
        let states = ["sessions_active", "sessions_idle", "sessions_idle_in_transaction"];
        assert_eq!(sum(&["sessions_used"]), 1.0 + sum(&states), "ours is one of them, and in none of the states");
        assert!(parsed.value("idle_in_transaction_age_seconds").is_some_and(|age| age > 1.0 && age < 60.0));
        for one in chosen.iter().filter(|one| one.gauge.is_read() && one.origin.is_some()) {
            assert!(parsed.value(one.gauge.name).is_some(), "{} of {version}", one.gauge.name);
        }
        let has = |name: &str| chosen.iter().any(|one| one.gauge.name == name);
        assert!(has("checkpoints_requested_total") && has("session_fsyncs_total") && has("wal_bytes_total"), "{version}");
        assert_eq!(has("wal_buffers_full_total"), version != "13", "moved in with 14");
    }
}

#[test]
fn checkpoints_and_own_writes_come_from_where_each_version_has_them() {
    for (version, text, _) in SERVERS {
        let sql = Tick::new(&settle(&catalogue(text), &everything()), &catalogue(text)).sql();
        assert_eq!(sql.contains("pg_stat_checkpointer"), ["17", "18"].contains(&version), "{version}");
        assert_eq!(sql.contains("max(checkpoints_req)"), ["13", "15"].contains(&version), "{version}");
        assert_eq!(sql.contains("op_bytes"), version == "17", "{version}");
        assert_eq!(sql.contains("extend_bytes"), version == "18", "{version}");
        assert!(!sql.contains("pg_relation_size") && !sql.contains("regclass"));
    }
}

#[test]
fn every_capacity_is_a_column_of_the_same_run_and_no_two_columns_share_a_name() {
    for features in [everything(), Features::default(), Features { without: vec![View::Server, View::Sessions], ..everything() }] {
        for (_, text, _) in SERVERS {
            let chosen = settle(&catalogue(text), &features);
            let names: HashSet<&str> = chosen.iter().map(|one| one.gauge.name).collect();
            assert_eq!(names.len(), chosen.len());
            for one in &chosen {
                if let Capacity::Column(column) = one.gauge.capacity {
                    assert!(names.contains(column), "{column}");
                }
            }
        }
    }
}

#[test]
fn what_counts_waiting_sessions_is_a_queue_and_what_must_rest_at_0_an_event() {
    let class = |name: &str| ITEMS.iter().find(|item| item.gauge.name == name).map(|item| item.gauge.class);
    for name in ["lock_waiting", "row_lock_waiting", "lwlock_waiting", "io_waiting", "sync_rep_waiting"] {
        assert_eq!(class(name), Some(Class::Queue), "{name}");
    }
    for name in ["deadlocks_total", "checkpoints_requested_total", "wal_buffers_full_total", "conflicts_total"] {
        assert_eq!(class(name), Some(Class::Event), "{name}");
    }
    assert_eq!(class("sessions_used"), Some(Class::Utilisation));
    assert_eq!(class("transaction_age_seconds"), Some(Class::Age));
}

#[test]
fn sessions_that_are_hidden_cost_the_sessions_values_and_no_others() {
    let (_, tick, mut row) = recorded(SERVERS[1].1, SERVERS[1].2, &everything());
    let hidden = tick.cells.iter().position(|cell| *cell == Cell::Mark(Mark::Hidden)).unwrap();
    row[hidden] = Some("3".to_owned());
    let parsed = tick.parse(&[row]);
    assert_eq!((parsed.value("sessions_used"), parsed.value("lock_waiting"), parsed.hidden), (None, None, 3.0));
    assert!(parsed.value("commits_total").is_some() && parsed.value("sessions_usable").is_some());
}

#[test]
fn a_text_that_is_no_number_is_missing_and_told() {
    let (_, tick, mut row) = recorded(SERVERS[1].1, SERVERS[1].2, &everything());
    let at = tick.cells.iter().position(|cell| cell.alias() == "deadlocks_total").unwrap();
    row[at] = Some("NaN".to_owned());
    let parsed = tick.parse(&[row.clone()]);
    assert_eq!((parsed.value("deadlocks_total"), parsed.odd), (None, vec![("deadlocks_total", "NaN".to_owned())]));
    row[at] = None;
    let parsed = tick.parse(&[row]);
    assert_eq!((parsed.value("deadlocks_total"), parsed.odd), (None, vec![]));
}

#[test]
fn resets_restarts_and_promotions_are_told_once() {
    let marks = |reset: &str, started: &str, standby: &str| {
        let of = [(Mark::Reset(View::Databases), reset), (Mark::Started, started), (Mark::Standby, standby)];
        of.into_iter().filter(|(_, text)| !text.is_empty()).map(|(mark, text)| (mark, text.to_owned())).collect::<BTreeMap<_, _>>()
    };
    let changes =
        |now: BTreeMap<Mark, String>, last: &BTreeMap<Mark, String>| Parsed { marks: now, ..Parsed::default() }.changes(last);
    assert_eq!(changes(marks("5", "1", "0"), &BTreeMap::new()), Vec::<String>::new(), "the first row is no change");
    assert_eq!(changes(marks("5", "1", "0"), &marks("5", "1", "0")), Vec::<String>::new());
    assert_eq!(changes(marks("5", "1", "0"), &marks("", "1", "0")), ["statistics were reset: counters of the databases"]);
    assert_eq!(
        changes(marks("5", "2", "0"), &marks("5", "1", "1")),
        ["the server was started anew", "the server is a primary now"]
    );
}

#[test]
fn real_rows_changed_at_any_byte_give_what_is_written_there_or_nothing() {
    for (_, catalogue, row) in SERVERS {
        let (_, tick, whole) = recorded(catalogue, row, &everything());
        let places: BTreeMap<String, usize> = tick.cells.iter().enumerate().map(|(at, cell)| (cell.alias(), at)).collect();
        for at in 0..whole.len() {
            let Some(text) = &whole[at] else { continue };
            for damaged in every_cut(text.as_bytes()).map(<[u8]>::to_vec).chain(every_change(text.as_bytes())) {
                let mut row = whole.clone();
                row[at] = Some(String::from_utf8_lossy(&damaged).into_owned());
                for (name, value) in tick.parse(std::slice::from_ref(&row)).reading.values {
                    let cell = row[places[name]].as_deref();
                    assert_eq!(cell.and_then(number), Some(value), "{name} in {cell:?}");
                }
            }
        }
    }
}

proptest! {
    /// Real rows, cut at every byte of every cell.
    #[test]
    fn a_row_cut_anywhere_never_panics_and_never_turns_into_other_names(server in 0_usize..4, keep in 0_usize..4000) {
        let (_, catalogue, row) = SERVERS[server];
        let cut: String = row.chars().take(keep).collect();
        if cut.lines().count() == 2 {
            let rows = lines(&cut);
            let (chosen, tick, _) = recorded(catalogue, row, &everything());
            let parsed = tick.parse(&rows[1..]);
            prop_assert!(parsed.reading.values.iter().all(|(name, value)| value.is_finite() && chosen.iter().any(|one| one.gauge.name == *name)));
        }
    }

    #[test]
    fn any_row_is_read_without_a_panic_and_nothing_unreadable_becomes_a_number(cells in proptest::collection::vec(proptest::option::of("\\PC{0,12}"), 0..90)) {
        let (_, tick, _) = recorded(SERVERS[3].1, SERVERS[3].2, &everything());
        let parsed = tick.parse(std::slice::from_ref(&cells));
        for (name, value) in &parsed.reading.values {
            let at = tick.cells.iter().position(|cell| cell.alias() == *name).unwrap();
            prop_assert_eq!(cells[at].as_deref().and_then(number), Some(*value));
        }
    }

    #[test]
    fn any_catalogue_settles_into_a_statement(rows in proptest::collection::vec(proptest::collection::vec(proptest::option::of("[a-z_]{0,9}"), 0..3), 0..20)) {
        let catalogue = Catalogue::of_rows(&rows);
        let chosen = settle(&catalogue, &everything());
        prop_assert!(Tick::new(&chosen, &catalogue).sql().starts_with("SELECT * FROM ("));
    }
}
