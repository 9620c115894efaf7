use super::*;
use crate::damaged::{every_change, hold, is_written};
use crate::http::whole_lines;
use proptest::prelude::*;

macro_rules! fixture {
    ($path:literal) => {
        table(include_str!(concat!("../../../fixtures/pgbouncer/", $path)))
    };
}

fn table(text: &str) -> Table {
    let cell = |text: &str| (text != "\\N" && !text.is_empty()).then(|| text.to_owned());
    let mut lines = text.lines();
    let columns = lines.next().unwrap_or_default().split('\t').map(str::to_owned).collect();
    Table { columns, rows: lines.map(|line| line.split('\t').map(cell).collect()).collect() }
}

#[test]
fn pools_of_both_versions_are_read_without_pgbouncers_own() {
    let old = pools(&fixture!("1.18/pools.tsv")).unwrap();
    assert_eq!(old.len(), 1);
    assert_eq!(
        (old[0].database.as_str(), old[0].waiting, old[0].maxwait, old[0].idle),
        ("postgres", Some(0.0), Some(0.0), Some(2.0))
    );
    let new = pools(&fixture!("1.26.1/pools.tsv")).unwrap();
    assert_eq!(
        new.iter().map(|pool| (pool.database.as_str(), pool.waiting)).collect::<Vec<_>>(),
        [("other", Some(2.0)), ("shop", Some(3.0))]
    );
    assert_eq!(new[1].maxwait, Some(1.349_665), "seconds and their remainder");
    assert_eq!(sum(&new, |pool| pool.active), Some(7.0));
}

#[test]
fn a_pools_limit_is_its_size_and_reserve_within_the_limits_of_database_and_user() {
    let sizes = Sizes::new(&fixture!("1.26.1/databases.tsv"), &fixture!("1.26.1/users.tsv"));
    assert_eq!(sizes.of("shop", "postgres"), Some(4.0), "3 and a reserve of 1");
    assert_eq!(sizes.of("shop", "app"), Some(3.0), "the user's own size of 2, and the database's reserve");
    assert_eq!(sizes.of("other", "postgres"), Some(4.0), "10, but max_db_connections is 4");
    assert_eq!(sizes.of("nowhere", "x"), None);
    let pools = pools(&fixture!("1.26.1/pools.tsv")).unwrap();
    assert_eq!(sizes.total(&pools), Some(8.0));
    assert_eq!(sizes.total(&[]), None, "no pool, no limit: not 0");
    let old = Sizes::new(&fixture!("1.18/databases.tsv"), &Table::default());
    assert_eq!(old.of("postgres", "postgres"), Some(2.0), "reserve_pool, as it was called");
}

#[test]
fn a_pool_without_a_limit_makes_the_total_unlimited_and_not_wrong() {
    let databases = table("name\tpool_size\treserve_pool\tmax_connections\na\t0\t0\t0\nb\t5\t0\t0");
    let sizes = Sizes::new(&databases, &Table::default());
    let pool = |database: &str| Pool { database: database.to_owned(), ..Pool::default() };
    assert_eq!((sizes.of("a", "u"), sizes.total(&[pool("a"), pool("b")])), (None, None));
    assert_eq!(sizes.total(&[pool("b"), pool("b")]), Some(10.0));
}

#[test]
fn counters_are_summed_over_databases_without_pgbouncers_own() {
    let old = stats(&fixture!("1.18/stats.tsv"));
    assert!(old.contains(&("queries_total", 18.0)) && old.contains(&("wait_us_total", 18_099_516.0)));
    assert!(!old.iter().any(|(name, _)| *name == "server_assignments_total"), "what a version does not tell is not 0");
    let new = stats(&fixture!("1.26.1/stats.tsv"));
    assert!(new.contains(&("queries_total", 12.0)) && new.contains(&("server_assignments_total", 7.0)));
}

#[test]
fn a_number_that_cannot_be_read_is_missing_and_so_is_the_sum() {
    let table = table("database\tuser\tcl_waiting\tmaxwait\tsv_active\na\tu\t3\t1\tmany\nb\tu\t\t0\t2");
    let pools = pools(&table).unwrap();
    assert_eq!((pools[0].waiting, pools[1].waiting), (Some(3.0), None));
    assert_eq!((sum(&pools, |pool| pool.waiting), sum(&pools, |pool| pool.active)), (None, None));
    assert_eq!(sum(&pools, |pool| pool.maxwait), Some(1.0), "without maxwait_us, as before 1.8");
    assert_eq!(sum(&pools, |pool| pool.login), None, "a column that is not there");
}

#[test]
fn another_answer_is_no_list_of_pools_and_an_empty_one_has_none() {
    assert_eq!(pools(&fixture!("1.18/lists.tsv")), None);
    assert_eq!(pools(&Table::default()), Some(vec![]));
}

#[test]
fn a_paused_database_is_told() {
    let databases = table("name\tpool_size\tpaused\nshop\t5\t1\nother\t5\t0");
    assert_eq!(Sizes::new(&databases, &Table::default()).paused, ["shop"]);
}

const REAL: [&str; 6] = [
    include_str!("../../../fixtures/pgbouncer/1.18/pools.tsv"),
    include_str!("../../../fixtures/pgbouncer/1.18/databases.tsv"),
    include_str!("../../../fixtures/pgbouncer/1.18/stats.tsv"),
    include_str!("../../../fixtures/pgbouncer/1.26.1/pools.tsv"),
    include_str!("../../../fixtures/pgbouncer/1.26.1/databases.tsv"),
    include_str!("../../../fixtures/pgbouncer/1.26.1/users.tsv"),
];

#[test]
fn real_answers_cut_or_changed_at_any_byte_give_what_is_written_there_or_nothing() {
    let texts = |bytes: &[u8]| String::from_utf8_lossy(whole_lines(bytes)).into_owned();
    for text in [REAL[0], REAL[3]] {
        let values = |bytes: &[u8]| {
            let found = pools(&table(&texts(bytes))).unwrap_or_default();
            let numbers = found.into_iter().flat_map(|pool| {
                let key = format!("{}/{}", pool.database, pool.user);
                [pool.waiting, pool.clients, pool.active, pool.login]
                    .into_iter()
                    .enumerate()
                    .map(move |(at, one)| ((key.clone(), at), one))
            });
            numbers.filter_map(|(name, number)| Some((name, number?))).collect::<Vec<_>>()
        };
        hold(text.as_bytes(), values, is_written);
    }
    for text in REAL {
        for changed in every_change(text.as_bytes()) {
            let table = table(&texts(&changed));
            let _ = (Sizes::new(&table, &table).of("shop", "app"), pairs(&table, "list", "items"));
            assert!(stats(&table).into_iter().all(|(_, value)| value.is_finite()));
        }
    }
}

proptest! {
    #[test]
    fn any_answer_cut_anywhere_never_panics_and_never_gives_zeros_for_what_is_missing(which in 0_usize..6, keep in 0_usize..1600) {
        let cut: String = REAL[which].chars().take(keep).collect();
        let table = table(&cut);
        if let Some(pools) = pools(&table) {
            let whole = super::pools(&self::table(REAL[which])).unwrap_or_default();
            prop_assert!(pools.len() <= whole.len());
            for pool in &pools {
                prop_assert!(pool.login.is_none() || table.column("sv_login").is_some());
            }
        }
        let sizes = Sizes::new(&table, &table);
        let _ = sizes.of("shop", "app");
        for (_, value) in stats(&table) {
            prop_assert!(value.is_finite());
        }
        let _ = pairs(&table, "list", "items");
    }

    #[test]
    fn columns_in_any_order_with_any_others_between_them_give_the_same(order in Just((0..16).collect::<Vec<usize>>()).prop_shuffle()) {
        let table = fixture!("1.18/pools.tsv");
        let pick = |cells: &[Option<String>]| order.iter().map(|at| cells[*at].clone()).collect::<Row>();
        let mut shuffled = Table {
            columns: order.iter().map(|at| table.columns[*at].clone()).collect(),
            rows: table.rows.iter().map(|row| pick(row)).collect(),
        };
        shuffled.columns.insert(3, "new_in_1_30".to_owned());
        for row in &mut shuffled.rows {
            row.insert(3, None);
        }
        prop_assert_eq!(pools(&shuffled), pools(&table));
    }
}
