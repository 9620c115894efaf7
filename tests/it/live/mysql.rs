//! The MySQL collector against real servers, MySQL 9 and MariaDB.

mod galera;
mod harm;
mod privileges;
mod replica;
mod waits;

use crate::support::collector::{begun, collector};
use crate::support::declared::declared;
use crate::support::server::Server;
use collectors::api::{Class, Collector, Fault, Gauge, Reading, Support};
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlSslMode};
use sqlx::{ConnectOptions, Executor, Row};
use std::time::Duration;
use tokio::task::JoinHandle;

pub(super) const PRODUCTS: [&str; 2] = ["mysql", "mariadb"];

/// A started server and its accounts.
pub(super) struct Target {
    server: Server,
    name: &'static str,
}

impl Target {
    fn start(name: &'static str, options: &[(&str, &str)]) -> Option<Self> {
        Server::start(name, options).map(|server| Self { server, name })
    }

    /// With options of the server program.
    pub(super) fn with(name: &'static str, args: &str) -> Option<Self> {
        Self::start(name, &[(if name == "mysql" { "MYSQL_ARGS" } else { "MARIADB_ARGS" }, args)])
    }

    fn is_mysql(&self) -> bool {
        self.name == "mysql"
    }

    pub(super) fn url(&self, kind: &str) -> &str {
        let key = format!("{}_{kind}URL", self.name.to_uppercase());
        self.server.get(&key)
    }

    /// A session of the load, as root.
    pub(super) async fn session(&self) -> MySqlConnection {
        connect(self.url("")).await
    }

    /// A session in which a statement waits; it ends when its lock is given, or with the test.
    pub(super) async fn waiting(&self, statement: &'static str) -> JoinHandle<Result<(), sqlx::Error>> {
        let mut session = self.session().await;
        tokio::spawn(async move { session.execute(sqlx::raw_sql(statement)).await.map(|_| ()) })
    }
}

pub(super) async fn connect(url: &str) -> MySqlConnection {
    let options: MySqlConnectOptions = url.parse().expect("the server's URL");
    options.ssl_mode(MySqlSslMode::Disabled).connect().await.expect("root connects")
}

pub(super) async fn run(session: &mut MySqlConnection, statement: &str) {
    let statement = sqlx::AssertSqlSafe(statement.to_owned());
    session.execute(sqlx::raw_sql(statement)).await.expect("the statement runs");
}

pub(super) async fn number(session: &mut MySqlConnection, statement: &str) -> u64 {
    let statement = sqlx::AssertSqlSafe(statement.to_owned());
    let row = session.fetch_one(sqlx::raw_sql(statement)).await.expect("one row");
    let text: String = row.try_get_unchecked(0).expect("a value");
    text.parse().expect("a number")
}

fn collector_with(url: &str, settings: &str) -> Box<dyn Collector> {
    collector("mysql", url, settings)
}

async fn started(url: &str) -> (Box<dyn Collector>, Support) {
    begun(collector_with(url, "")).await
}

async fn refused(url: &str) -> Fault {
    collector_with(url, "").start().await.expect_err("this start must fail")
}

fn column<'s>(support: &'s Support, name: &str) -> Option<&'s Gauge> {
    support.columns.iter().find(|gauge| gauge.name == name)
}

/// Reads every 160 ms until `seen`, for at most 10 s.
async fn until(collector: &mut dyn Collector, what: &str, seen: impl Fn(&Reading) -> bool) -> Reading {
    let mut last = Reading::default();
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_millis(160)).await;
        last = collector.read().await.expect("the server answers");
        if seen(&last) {
            return last;
        }
    }
    panic!("never seen: {what}; the last reading: {last:?}");
}

#[tokio::test]
async fn at_rest_every_column_has_a_value_and_threads_running_is_all_our_own() {
    for (name, args) in [("mysql", ""), ("mysql", "--event-scheduler=OFF"), ("mariadb", ""), ("mariadb", "--event-scheduler=ON")] {
        let Some(target) = Target::with(name, args) else { return };
        let (mut collector, support) = started(target.url("PROBE_")).await;
        assert_eq!(support.product, if target.is_mysql() { "MySQL" } else { "MariaDB" });
        assert!(!support.version.is_empty() && support.endpoint.starts_with("127.0.0.1:"), "{support:?}");
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let reading = collector.read().await.expect("the server answers");
        for gauge in support.columns.iter().filter(|gauge| gauge.is_read()) {
            assert!(reading.get(gauge.name).is_some(), "{name}: no {} in {reading:?}", gauge.name);
        }
        for (value, _) in &reading.values {
            assert!(column(&support, value).is_some(), "{name}: {value} is no column");
        }
        let own = column(&support, "threads_running").expect("threads_running").own;
        assert_eq!(reading.get("threads_running"), Some(own), "{name} {args}");
        assert_eq!(reading.get("threads_connected"), Some(1.0), "{name}");
        assert_eq!((reading.get("row_lock_waiting"), reading.get("metadata_lock_waiting")), (Some(0.0), Some(0.0)));
        assert_eq!(reading.get("max_connections"), Some(400.0));
        declared(
            &support,
            &[
                ("threads_connected", Class::Utilisation, Some("max_connections")),
                ("row_lock_waiting", Class::Queue, None),
                ("metadata_lock_waiting", Class::Queue, None),
                ("table_lock_waiting", Class::Queue, None),
                ("user_lock_waiting", Class::Queue, None),
                ("aborted_connects_total", Class::Event, None),
            ],
        );
        assert!(reading.notes.is_empty() && reading.waits.is_empty(), "{reading:?}");
        let questions = |reading: &Reading| reading.get("questions_total").expect("questions");
        let before = questions(&reading);
        for _ in 0..5 {
            collector.read().await.expect("the server answers");
        }
        let after = questions(&collector.read().await.expect("the server answers"));
        assert!((after - before).abs() <= 1.0, "{name}: our own statements are counted: {before} then {after}");
        let slow = reading.get("slow_queries_total");
        assert_eq!(slow, collector.read().await.expect("the server answers").get("slow_queries_total"), "{name}");
    }
}
