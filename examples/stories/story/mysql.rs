//! Bookings on MySQL: each locks its slot, thinks while it holds the lock, takes a place and commits.

use crate::load::{self, Answer, App, Visit};
use crate::open_loop::course::{Course, Leg};
use crate::open_loop::requests::Outcome;
use crate::stage::Stage;
use sqlx::Acquire as _;
use sqlx::mysql::{MySqlConnectOptions, MySqlPool, MySqlPoolOptions, MySqlSslMode};
use std::sync::Arc;
use std::time::Duration;

/// While the lock is held, besides a few statements: one row carries some 45 bookings a second.
const THINK: Duration = Duration::from_millis(20);

pub fn hot_row(stage: &Stage) -> anyhow::Result<()> {
    bookings(stage, |_| 17)
}

pub fn many_rows(stage: &Stage) -> anyhow::Result<()> {
    bookings(stage, |chance| (chance * 1000.0).ceil() as u32)
}

fn bookings(stage: &Stage, slot: fn(f64) -> u32) -> anyhow::Result<()> {
    let server = stage.server("mysql", &[])?;
    let course = Course(vec![Leg::flat(5.0, 10), Leg::slope(5.0, 70.0, 35)]);
    stage.sampled(None, &["--mysql", server.get("MYSQL_PROBE_URL")], |log| {
        load::runtime()?.block_on(async {
            let pool = pool(server.get("MYSQL_URL"), 250).await?;
            let app: App = Arc::new(move |visit: Visit| {
                let pool = pool.clone();
                Box::pin(async move { answer(book(&pool, slot(visit.chance)).await) })
            });
            load::open(course, 1, None, app, log).await?;
            Ok(())
        })
    })
}

/// Connections opened before the load.
async fn pool(url: &str, connections: u32) -> anyhow::Result<MySqlPool> {
    let server: MySqlConnectOptions = url.parse()?;
    let options = MySqlPoolOptions::new().max_connections(connections).test_before_acquire(false);
    let pool = options.connect_with(server.ssl_mode(MySqlSslMode::Disabled)).await?;
    let mut open = Vec::new();
    for _ in 0..connections {
        open.push(pool.acquire().await?);
    }
    drop(open);
    Ok(pool)
}

async fn book(pool: &MySqlPool, slot: u32) -> sqlx::Result<()> {
    let mut connection = pool.acquire().await?;
    let mut booking = connection.begin().await?;
    sqlx::query("SELECT taken FROM shop.slot WHERE id = ? FOR UPDATE").bind(slot).fetch_one(&mut *booking).await?;
    tokio::time::sleep(THINK).await;
    sqlx::query("UPDATE shop.slot SET taken = taken + 1 WHERE id = ?").bind(slot).execute(&mut *booking).await?;
    booking.commit().await
}

fn answer(ended: sqlx::Result<()>) -> Answer {
    let (outcome, code) = match ended {
        Ok(()) => (Outcome::Ok, None),
        Err(sqlx::Error::PoolTimedOut) => (Outcome::Timeout, None),
        Err(sqlx::Error::Database(why)) => {
            let number = why.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>().map(sqlx::mysql::MySqlDatabaseError::number);
            (Outcome::Fail, number)
        }
        Err(_) => (Outcome::Transport, None),
    };
    Answer { step: "book", outcome, code }
}
