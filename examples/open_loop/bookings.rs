//! Bookings on MySQL or MariaDB, in the table `shop.slot (id INT PRIMARY KEY, taken INT, …)`.

use super::load::Answer;
use super::requests::Outcome;
use anyhow::Context as _;
use sqlx::Acquire as _;
use sqlx::mysql::{MySqlConnectOptions, MySqlDatabaseError, MySqlPool, MySqlPoolOptions, MySqlSslMode};
use std::time::Duration;

/// The server, without TLS.
pub fn server(url: &str) -> anyhow::Result<MySqlConnectOptions> {
    Ok(url.parse::<MySqlConnectOptions>()?.ssl_mode(MySqlSslMode::Disabled))
}

/// Connections opened before the load.
pub async fn pool(url: &str, connections: u32) -> anyhow::Result<MySqlPool> {
    let options = MySqlPoolOptions::new().max_connections(connections).test_before_acquire(false);
    let pool = options.connect_with(server(url)?).await.context("connect to MySQL")?;
    let mut open = Vec::new();
    for _ in 0..connections {
        open.push(pool.acquire().await?);
    }
    drop(open);
    Ok(pool)
}

/// Locks a slot, thinks while it holds the lock, takes a place and commits.
pub async fn book(pool: &MySqlPool, slot: u32, think: Duration) -> sqlx::Result<()> {
    let mut connection = pool.acquire().await?;
    let mut booking = connection.begin().await?;
    sqlx::query("SELECT taken FROM shop.slot WHERE id = ? FOR UPDATE").bind(slot).fetch_one(&mut *booking).await?;
    tokio::time::sleep(think).await;
    sqlx::query("UPDATE shop.slot SET taken = taken + 1 WHERE id = ?").bind(slot).execute(&mut *booking).await?;
    booking.commit().await
}

/// As the log tells it.
pub fn answer(ended: sqlx::Result<()>) -> Answer {
    let (outcome, code) = match ended {
        Ok(()) => (Outcome::Ok, None),
        Err(sqlx::Error::PoolTimedOut) => (Outcome::Timeout, None),
        Err(sqlx::Error::Database(why)) => {
            (Outcome::Fail, why.try_downcast_ref::<MySqlDatabaseError>().map(MySqlDatabaseError::number))
        }
        Err(_) => (Outcome::Transport, None),
    };
    Answer { step: "book", outcome, code }
}
