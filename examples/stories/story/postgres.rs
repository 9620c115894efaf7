//! Bookings on PostgreSQL: each takes its lock, thinks while it holds it, takes a place and commits. Reservations of which
//! there can be one at a time. And visitors at the door of PgBouncer, whose pool is small.

use super::{climb, even, open};
use crate::open_loop::load::{Answer, App, Visit};
use crate::open_loop::requests::Outcome;
use crate::server::Server;
use crate::stage::Stage;
use anyhow::Context as _;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgSslMode};
use sqlx::{Acquire as _, ConnectOptions as _, Executor as _};
use std::sync::Arc;
use std::time::Duration;

/// While the lock is held, besides a few statements: one lock carries some 30 bookings a second.
const THINK: Duration = Duration::from_millis(30);

pub fn hot_row(stage: &Stage) -> anyhow::Result<()> {
    bookings(stage, "SELECT taken FROM slot WHERE id = 17 FOR UPDATE", |_| 17)
}

/// All take one lock of the application's own, whichever slot they want.
pub fn advisory_lock(stage: &Stage) -> anyhow::Result<()> {
    bookings(stage, "SELECT pg_advisory_xact_lock(4711)", |chance| (chance * 1000.0).ceil() as i32)
}

fn bookings(stage: &Stage, lock: &'static str, slot: fn(f64) -> i32) -> anyhow::Result<()> {
    let server = stage.server("postgres15", &[])?;
    stage.sampled(None, &["--postgres", server.get("POSTGRES15_PROBE_URL")], |log| {
        even(climb(3.0, 45.0), log, async {
            let pool = pool(server.get("POSTGRES15_URL"), 190).await?;
            let app: App = Arc::new(move |visit: Visit| {
                let pool = pool.clone();
                Box::pin(async move { answer(&book(&pool, lock, slot(visit.chance)).await) })
            });
            Ok(app)
        })
    })
}

/// Connections opened before the load.
pub async fn pool(url: &str, connections: u32) -> anyhow::Result<PgPool> {
    let options = PgPoolOptions::new().max_connections(connections).test_before_acquire(false);
    let server: PgConnectOptions = url.parse()?;
    let pool = options.connect_with(server.ssl_mode(PgSslMode::Disable)).await.context("connect to PostgreSQL")?;
    let mut open = Vec::new();
    for _ in 0..connections {
        open.push(pool.acquire().await?);
    }
    drop(open);
    Ok(pool)
}

async fn book(pool: &PgPool, lock: &'static str, slot: i32) -> sqlx::Result<()> {
    let mut connection = pool.acquire().await?;
    let mut booking = connection.begin().await?;
    sqlx::query(lock).execute(&mut *booking).await?;
    tokio::time::sleep(THINK).await;
    sqlx::query("UPDATE slot SET taken = taken + 1 WHERE id = $1").bind(slot).execute(&mut *booking).await?;
    booking.commit().await
}

/// A seat is reserved by a row whose key is the seat: who wants it too waits for the end of the transaction that wrote it.
pub fn unique_key(stage: &Stage) -> anyhow::Result<()> {
    let server = stage.server("postgres15", &[])?;
    stage.sampled(None, &["--postgres", server.get("POSTGRES15_PROBE_URL")], |log| {
        even(climb(3.0, 45.0), log, async {
            let pool = pool(server.get("POSTGRES15_URL"), 190).await?;
            pool.execute("CREATE TABLE reservation (seat int PRIMARY KEY)").await?;
            let app: App = Arc::new(move |_| {
                let pool = pool.clone();
                Box::pin(async move { answer(&reserve(&pool).await) })
            });
            Ok(app)
        })
    })
}

async fn reserve(pool: &PgPool) -> sqlx::Result<()> {
    let mut connection = pool.acquire().await?;
    let mut reservation = connection.begin().await?;
    sqlx::query("INSERT INTO reservation VALUES (17)").execute(&mut *reservation).await?;
    tokio::time::sleep(THINK).await;
    sqlx::query("DELETE FROM reservation WHERE seat = 17").execute(&mut *reservation).await?;
    reservation.commit().await
}

/// The servers of the pool, each busy for 100 ms a visit: together they carry 100 visits a second.
pub fn small_pool(stage: &Stage) -> anyhow::Result<()> {
    let postgres = stage.server("postgres15", &[])?;
    let bouncer = bouncer(stage, &postgres, 10)?;
    let door = format!("127.0.0.1:{}", bouncer.get("PGBOUNCER_PORT"));
    stage.sampled(None, &["--pgbouncer", &door, "--postgres", postgres.get("POSTGRES15_PROBE_URL")], |log| {
        open(climb(8.0, 150.0), None, log, async {
            let clients = clients(&bouncer).await?;
            let app: App = Arc::new(move |_| {
                let clients = clients.clone();
                Box::pin(async move { answer(&sleep(&clients).await) })
            });
            Ok(app)
        })
    })
}

/// A PgBouncer with a pool of so many connections.
pub fn bouncer(stage: &Stage, postgres: &Server, pool: u32) -> anyhow::Result<Server> {
    let backend = format!("127.0.0.1:{}", postgres.get("POSTGRES15_PORT"));
    stage.server("pgbouncer", &[("PGBOUNCER_BACKEND", &backend), ("PGBOUNCER_POOL", &pool.to_string())])
}

/// Its clients: as many as there are visitors at a time.
pub async fn clients(bouncer: &Server) -> anyhow::Result<PgPool> {
    let clients: PgConnectOptions = bouncer.get("PGBOUNCER_URL").parse()?;
    let clients = clients.ssl_mode(PgSslMode::Disable);
    clients.connect().await.context("connect to PgBouncer")?;
    let options = PgPoolOptions::new().max_connections(350).test_before_acquire(false);
    Ok(options.connect_lazy_with(clients))
}

/// 100 ms of a server of the pool.
pub async fn sleep(clients: &PgPool) -> sqlx::Result<()> {
    // A prepared statement would not find its server again.
    clients.execute(sqlx::raw_sql("SELECT pg_sleep(0.1)")).await.map(|_| ())
}

pub fn answer<T>(ended: &sqlx::Result<T>) -> Answer {
    let outcome = match ended {
        Ok(_) => Outcome::Ok,
        Err(sqlx::Error::PoolTimedOut) => Outcome::Timeout,
        Err(sqlx::Error::Database(_)) => Outcome::Fail,
        Err(_) => Outcome::Transport,
    };
    Answer { step: "book", outcome, code: None }
}
