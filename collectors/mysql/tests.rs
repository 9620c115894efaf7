use super::*;
use crate::sql::Row;

fn pairs(text: &str) -> Pairs {
    let rows: Vec<Row> = text.lines().map(|line| line.splitn(2, '\t').map(|cell| Some(cell.to_owned())).collect()).collect();
    Pairs::of_rows(&rows)
}

const MYSQL: &str = include_str!("../../fixtures/mysql/9.7.4/global_status.tsv");
const MARIADB: &str = include_str!("../../fixtures/mariadb/10.11.19/global_status.tsv");

fn identity(product: Product, settings: &str) -> Identity {
    Identity { product, version: "x".to_owned(), uuid: String::new(), settings: pairs(settings), account: "probe@%".to_owned() }
}

fn collector(endpoint: &str) -> MySql {
    let section = Section::of("mysql", endpoint, "");
    MySql::new(Target::new(&section, None, None, None).unwrap())
}

fn names(items: &[(Item, Origin)]) -> Vec<&'static str> {
    items.iter().map(|(item, _)| item.gauge.name).collect()
}

fn all_seen() -> Sight {
    Sight { sessions: true, metrics: gauges::METRICS.iter().map(|name| (*name).to_owned()).collect(), ..Sight::default() }
}

#[test]
fn mysql_s_columns_are_those_that_its_status_and_settings_fill() {
    let settings = "max_connections\t151\ninnodb_redo_log_capacity\t104857600\nevent_scheduler\tON\nmax_prepared_stmt_count\t16382";
    let items = collector("db").settle(&identity(Product::MySql, settings), &all_seen(), &pairs(MYSQL));
    let names = names(&items);
    for name in ["redo_age_bytes", "redo_capacity_bytes", "deadlocks_total", "metadata_lock_waiting", "connections_refused_total"] {
        assert!(names.contains(&name), "{name}");
    }
    for name in ["pool_threads", "max_pool_threads", "cores"] {
        assert!(!names.contains(&name), "{name}");
    }
    let threads = items.iter().find(|(item, _)| item.gauge.name == "threads_running").unwrap().0.gauge;
    // The server is elsewhere: its cores are not known, and its event scheduler runs.
    assert_eq!((threads.own, threads.capacity), (2.0, Capacity::None));
    let sql = MySql::status_sql(&items);
    assert!(
        sql.contains("'Innodb_redo_log_checkpoint_lsn'") && sql.contains("'Uptime'") && !sql.contains("Innodb_checkpoint_age"),
        "{sql}"
    );
}

#[test]
fn mariadb_s_columns_take_its_own_names_and_leave_out_what_it_does_not_count() {
    let settings = "max_connections\t151\nevent_scheduler\tOFF\nthread_handling\tone-thread-per-connection";
    let items = collector("localhost").settle(&identity(Product::MariaDb, settings), &all_seen(), &pairs(MARIADB));
    let from = |name: &str| items.iter().find(|(item, _)| item.gauge.name == name).map(|(_, origin)| *origin);
    assert_eq!(from("redo_age_bytes"), Some(Origin::Status("Innodb_checkpoint_age")));
    assert_eq!(from("redo_capacity_bytes"), Some(Origin::Status("Innodb_checkpoint_max_age")));
    assert_eq!(from("deadlocks_total"), Some(Origin::Status("Innodb_deadlocks")));
    assert_eq!(from("lock_timeouts_total"), Some(Origin::Metric("lock_timeouts")));
    assert_eq!((from("connections_refused_total"), from("log_pending_writes"), from("pool_threads")), (None, None, None));
    let threads = items.iter().find(|(item, _)| item.gauge.name == "threads_running").unwrap().0.gauge;
    assert_eq!((threads.own, threads.capacity), (1.0, Capacity::Column("cores")));
}

#[test]
fn each_column_has_one_source_and_no_source_fills_two() {
    for (product, status) in [(Product::MySql, MYSQL), (Product::MariaDb, MARIADB)] {
        let items = collector("localhost").settle(&identity(product, "max_connections\t151"), &all_seen(), &pairs(status));
        let read: Vec<&(Item, Origin)> = items.iter().filter(|(item, _)| item.gauge.is_read()).collect();
        assert!(read.len() > 30, "{}", read.len());
        for (at, (item, from)) in read.iter().enumerate() {
            for (other, origin) in &read[..at] {
                assert!(item.gauge.name != other.gauge.name && from != origin, "{} {}", item.gauge.name, other.gauge.name);
            }
        }
    }
}

#[test]
fn what_an_account_cannot_see_is_no_column() {
    let items = collector("db").settle(&identity(Product::MySql, ""), &Sight::default(), &pairs(MYSQL));
    let names = names(&items);
    for name in [
        "metadata_lock_waiting",
        "table_lock_waiting",
        "deadlocks_total",
        "lock_timeouts_total",
        "history_list_length",
        "max_connections",
    ] {
        assert!(!names.contains(&name), "{name}");
    }
    assert!(names.contains(&"row_lock_waiting"));
}

#[test]
fn our_own_questions_are_taken_off_and_a_reset_takes_ours_with_it() {
    let mut own = OwnQuestions { asked: 10, last: 0 };
    assert_eq!(own.others(1010), 1000.0);
    own.asked += 5;
    assert_eq!(own.others(1020), 1005.0);
    // FLUSH STATUS.
    assert_eq!(own.others(3), 3.0);
    own.asked += 2;
    assert_eq!(own.others(9), 7.0);
}

#[test]
fn a_younger_server_was_restarted_and_one_that_stood_still_was_not() {
    let start = Instant::now();
    let mut known = Known {
        identity: identity(Product::MySql, ""),
        sight: Sight::default(),
        items: vec![],
        status_sql: String::new(),
        uptime: None,
        reconnected: false,
    };
    let mut see = |uptime: u32, after: u64, reconnected: bool| {
        let mut reading = Reading::default();
        known.reconnected = reconnected;
        known.see_uptime(&pairs(&format!("Uptime\t{uptime}")), start + Duration::from_secs(after), &mut reading);
        reading.restarted
    };
    assert_eq!(see(1000, 0, false), None);
    assert_eq!(see(1009, 10, true), None);
    assert_eq!(see(2, 20, true).as_deref(), Some("server restarted"));
    assert_eq!(see(3, 21, false), None);
    // Away for an hour, and restarted in the middle of it.
    assert_eq!(see(1800, 3621, true).as_deref(), Some("server restarted"));
    // The clock of the server's machine was set back by a minute.
    assert_eq!(see(1801, 3682, false), None);
}

#[test]
fn the_sample_section_is_one_that_this_collector_takes() {
    let whole: toml::Table = toml::from_str(SPEC.sample_config).unwrap();
    let mut settings = whole["mysql"].as_table().unwrap().clone();
    let url = settings.remove("url").unwrap();
    let section = Section { settings, ..Section::of("mysql", url.as_str().unwrap(), "") };
    assert_eq!(Target::new(&section, None, None, None).unwrap().endpoint, "127.0.0.1:3306");
}
