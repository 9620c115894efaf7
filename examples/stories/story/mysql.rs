//! Bookings on MySQL and MariaDB: each locks its slot, thinks while it holds the lock, takes a place and commits. And visitors
//! who each bring a connection of their own.

use super::{climb, even, open};
use crate::open_loop::bookings::{answer, book, pool, server};
use crate::open_loop::load::{App, Visit};
use crate::stage::Stage;
use sqlx::mysql::MySqlConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _};
use std::sync::Arc;
use std::time::Duration;

/// While the lock is held, besides a few statements: one row carries some 30 bookings a second.
pub const THINK: Duration = Duration::from_millis(30);

/// A disk that is slow for a moment is not what is told here.
pub const QUICK_DISK: &str = "--innodb-flush-log-at-trx-commit=0 --skip-innodb-doublewrite";

pub fn hot_row(stage: &Stage) -> anyhow::Result<()> {
    let server = stage.server("mysql", &[("MYSQL_ARGS", QUICK_DISK)])?;
    bookings(stage, server.get("MYSQL_URL"), server.get("MYSQL_PROBE_URL"), |_| 17)
}

pub fn many_rows(stage: &Stage) -> anyhow::Result<()> {
    let server = stage.server("mysql", &[("MYSQL_ARGS", QUICK_DISK)])?;
    bookings(stage, server.get("MYSQL_URL"), server.get("MYSQL_PROBE_URL"), |visit| (visit.number % 1000) as u32 + 1)
}

pub fn mariadb_hot_row(stage: &Stage) -> anyhow::Result<()> {
    let server = stage.server("mariadb", &[("MARIADB_ARGS", QUICK_DISK)])?;
    bookings(stage, server.get("MARIADB_URL"), server.get("MARIADB_PROBE_URL"), |_| 17)
}

fn bookings(stage: &Stage, url: &str, probe: &str, slot: fn(Visit) -> u32) -> anyhow::Result<()> {
    stage.sampled(None, &["--mysql", probe], |log| {
        even(climb(3.0, 45.0), log, async {
            let pool = pool(url, 250).await?;
            let app: App = Arc::new(move |visit: Visit| {
                let pool = pool.clone();
                Box::pin(async move { answer(book(&pool, slot(visit), THINK).await) })
            });
            Ok(app)
        })
    })
}

/// How long a visitor keeps the connection that he came with.
const VISIT: Duration = Duration::from_millis(400);

pub fn max_connections(stage: &Stage) -> anyhow::Result<()> {
    let server_of = stage.server("mysql", &[("MYSQL_ARGS", "--max-connections=20")])?;
    stage.sampled(None, &["--mysql", server_of.get("MYSQL_PROBE_URL")], |log| {
        open(climb(4.0, 70.0), None, log, async {
            let root = server(server_of.get("MYSQL_URL"))?;
            // root may have one connection more than the limit; who may not, is refused at it.
            root.connect().await?.execute("CREATE USER visitor@'127.0.0.1'").await?;
            let visitor = root.username("visitor");
            let app: App = Arc::new(move |_| {
                let visitor = visitor.clone();
                Box::pin(async move { answer(visit(&visitor).await) })
            });
            Ok(app)
        })
    })
}

async fn visit(visitor: &MySqlConnectOptions) -> sqlx::Result<()> {
    let connection = visitor.connect().await?;
    tokio::time::sleep(VISIT).await;
    connection.close().await
}
