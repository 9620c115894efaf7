//! Tables of MySQL that are locked as a whole: by every booking, or by a change of the table that waits for a report.

use super::mysql::{QUICK_DISK, THINK};
use super::{climb, even, open};
use crate::open_loop::bookings::{answer, pool};
use crate::open_loop::load::{App, Visit};
use crate::stage::Stage;
use sqlx::{Acquire as _, Executor as _, MySqlPool};
use std::sync::Arc;
use std::time::Duration;

/// With a few statements besides, the locked table carries some 30 bookings a second.
pub fn locked(stage: &Stage) -> anyhow::Result<()> {
    let server = stage.server("mysql", &[("MYSQL_ARGS", QUICK_DISK)])?;
    stage.sampled(None, &["--mysql", server.get("MYSQL_PROBE_URL")], |log| {
        even(climb(3.0, 45.0), log, async {
            let pool = pool(server.get("MYSQL_URL"), 250).await?;
            let app: App = Arc::new(move |visit: Visit| {
                let pool = pool.clone();
                Box::pin(async move { answer(book(&pool, (visit.number % 1000) + 1).await) })
            });
            Ok(app)
        })
    })
}

async fn book(pool: &MySqlPool, slot: u64) -> sqlx::Result<()> {
    let mut connection = pool.acquire().await?;
    connection.execute(sqlx::raw_sql("LOCK TABLES shop.slot WRITE")).await?;
    tokio::time::sleep(THINK).await;
    let booked = sqlx::query("UPDATE shop.slot SET taken = taken + 1 WHERE id = ?").bind(slot).execute(&mut *connection).await;
    connection.execute(sqlx::raw_sql("UNLOCK TABLES")).await?;
    booked.map(|_| ())
}

/// When the report begins, how much later the table is to be changed, and how long the report lasts: to the end of the load.
const REPORT: Duration = Duration::from_secs(28);
const CHANGE: Duration = Duration::from_secs(2);
const REPORT_LASTS: Duration = Duration::from_secs(17);

/// A report has read a slot in a transaction that stays open. The change of the table waits for it, and all who come later
/// wait behind the change, however few they are.
pub fn migration(stage: &Stage) -> anyhow::Result<()> {
    let server = stage.server("mysql", &[("MYSQL_ARGS", QUICK_DISK)])?;
    stage.sampled(None, &["--mysql", server.get("MYSQL_PROBE_URL")], |log| {
        open(climb(4.0, 24.0), None, log, async {
            let pool = pool(server.get("MYSQL_URL"), 350).await?;
            tokio::spawn(report(pool.clone()));
            tokio::spawn(change(pool.clone()));
            let app: App = Arc::new(move |visit: Visit| {
                let pool = pool.clone();
                Box::pin(async move { answer(look(&pool, (visit.number % 1000) + 1).await) })
            });
            Ok(app)
        })
    })
}

async fn look(pool: &MySqlPool, slot: u64) -> sqlx::Result<()> {
    sqlx::query("SELECT taken FROM shop.slot WHERE id = ?").bind(slot).fetch_one(pool).await?;
    // The rest of the page.
    tokio::time::sleep(Duration::from_millis(40)).await;
    Ok(())
}

async fn report(pool: MySqlPool) -> sqlx::Result<()> {
    let mut connection = pool.acquire().await?;
    tokio::time::sleep(REPORT).await;
    let mut report = connection.begin().await?;
    sqlx::query("SELECT taken FROM shop.slot WHERE id = 1").fetch_one(&mut *report).await?;
    tokio::time::sleep(REPORT_LASTS).await;
    report.commit().await
}

async fn change(pool: MySqlPool) -> sqlx::Result<()> {
    let mut connection = pool.acquire().await?;
    tokio::time::sleep(REPORT + CHANGE).await;
    connection.execute(sqlx::raw_sql("ALTER TABLE shop.slot ADD COLUMN note TEXT")).await.map(|_| ())
}
