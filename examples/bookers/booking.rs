//! Bookings on MySQL or MariaDB: each locks its slot, thinks while it holds the lock, takes a place and commits.

use crate::open_loop::course::uniform;
use crate::open_loop::pace::pace;
use crate::open_loop::ramp::Ramp;
use crate::open_loop::requests::{Log, Outcome, Request};
use anyhow::Context as _;
use sqlx::Acquire as _;
use sqlx::mysql::{MySqlConnectOptions, MySqlPool, MySqlPoolOptions};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Which slots the bookers want.
#[derive(Clone, Copy, Debug)]
pub enum Slots {
    /// All the same one.
    One(u32),
    /// Any of 1 to this, with equal chance.
    Any(u32),
}

/// What is to be sent.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The rates.
    pub ramp: Ramp,
    /// Evenly spaced, or with the chance of this seed.
    pub seed: Option<u64>,
    /// Which slots.
    pub slots: Slots,
    /// How long a booker holds the lock before going on.
    pub think: Duration,
    /// Connections, opened before the load. A booker for whom none is free waits in the driver.
    pub connections: u32,
}

/// What became of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Bookings sent.
    pub sent: usize,
    /// Bookings committed.
    pub ok: usize,
}

/// Sends the whole ramp, waits for every booking to end, and writes the log. Needs the table
/// `shop.slot (id INT PRIMARY KEY, taken INT, …)` with a row for every slot.
pub async fn run(server: MySqlConnectOptions, plan: Plan, log: &Path) -> anyhow::Result<Summary> {
    let pool = connect(server, plan.connections).await?;
    let mut log = Log::create(log).with_context(|| format!("create the log {}", log.display()))?;
    let (ended, mut done) = mpsc::unbounded_channel();
    let due: Box<dyn Iterator<Item = Duration> + Send> = match plan.seed {
        Some(seed) => Box::new(plan.ramp.course().random(seed)),
        None => Box::new(plan.ramp.course().even()),
    };
    // A moment for the pacer's thread to be there before the first one is due.
    let mut due = pace(Instant::now() + Duration::from_millis(20), due);
    let mut chance = plan.seed.unwrap_or_default();
    let bookers = pool.clone();
    tokio::spawn(async move {
        while let Some(scheduled) = due.recv().await {
            let slot = match plan.slots {
                Slots::One(slot) => slot,
                Slots::Any(slots) => (uniform(&mut chance) * f64::from(slots)).ceil() as u32,
            };
            let (pool, ended) = (bookers.clone(), ended.clone());
            // Only a reader that is gone would not take it.
            tokio::spawn(async move { ended.send(visit(&pool, slot, plan.think, scheduled).await).ok() });
        }
    });
    let mut summary = Summary::default();
    while let Some(request) = done.recv().await {
        log.write(&request)?;
        summary.sent += 1;
        summary.ok += usize::from(request.outcome == Outcome::Ok);
    }
    log.finish()?;
    pool.close().await;
    Ok(summary)
}

async fn connect(server: MySqlConnectOptions, connections: u32) -> anyhow::Result<MySqlPool> {
    let pool = MySqlPoolOptions::new()
        .min_connections(connections)
        .max_connections(connections)
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
        .acquire_timeout(Duration::from_mins(1))
        .connect_with(server)
        .await
        .context("connect to the server")?;
    let mut open = Vec::new();
    for n in 0..connections {
        open.push(pool.acquire().await.with_context(|| format!("open connection {} of {connections}", n + 1))?);
    }
    Ok(pool)
}

async fn visit(pool: &MySqlPool, slot: u32, think: Duration, scheduled: Instant) -> Request {
    let mut started = Instant::now();
    let booked = async {
        let mut connection = pool.acquire().await?;
        // What comes before is the driver's own wait, not the server's.
        started = Instant::now();
        let mut booking = connection.begin().await?;
        sqlx::query("SELECT taken FROM shop.slot WHERE id = ? FOR UPDATE").bind(slot).fetch_one(&mut *booking).await?;
        tokio::time::sleep(think).await;
        sqlx::query("UPDATE shop.slot SET taken = taken + 1 WHERE id = ?").bind(slot).execute(&mut *booking).await?;
        booking.commit().await
    }
    .await;
    let (outcome, code) = match booked {
        Ok(()) => (Outcome::Ok, None),
        Err(sqlx::Error::PoolTimedOut) => (Outcome::Timeout, None),
        Err(sqlx::Error::Database(why)) => {
            let number = why.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>().map(sqlx::mysql::MySqlDatabaseError::number);
            (Outcome::Fail, number)
        }
        Err(_) => (Outcome::Transport, None),
    };
    Request { step: "book", scheduled, started, ended: Instant::now(), outcome, code }
}
