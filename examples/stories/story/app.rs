//! Applications with something of their own that gives way, told on their own pages.

use super::{climb, even, open, page, postgres};
use crate::open_loop::course::{Course, Leg};
use crate::open_loop::load::{Answer, App};
use crate::open_loop::requests::Outcome;
use crate::stage::Stage;
use sqlx::{Connection as _, PgPool};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{RwLock, Semaphore};

const PROMETHEUS: &str = "text/plain; version=0.0.4";

/// Connections of the application's pool.
const CONNECTIONS: u32 = 8;
/// How long the payment takes, during which a booking keeps its connection: the pool carries 80 bookings a second.
const PAYMENT: Duration = Duration::from_millis(100);

/// A pool of connections to PostgreSQL, as an application has one: who comes first is served first.
struct Pool {
    connections: PgPool,
    free: Semaphore,
    told: Arc<PoolTold>,
}

/// What it tells.
#[derive(Default)]
struct PoolTold {
    in_use: AtomicU64,
    waiting: AtomicU64,
    acquires: AtomicU64,
    waited_us: AtomicU64,
}

impl Pool {
    async fn booking(&self) -> sqlx::Result<()> {
        let begin = Instant::now();
        self.told.waiting.fetch_add(1, Relaxed);
        let turn = self.free.acquire().await;
        self.told.waiting.fetch_sub(1, Relaxed);
        self.told.acquires.fetch_add(1, Relaxed);
        self.told.waited_us.fetch_add(begin.elapsed().as_micros() as u64, Relaxed);
        self.told.in_use.fetch_add(1, Relaxed);
        let booked = self.book().await;
        self.told.in_use.fetch_sub(1, Relaxed);
        drop(turn);
        booked
    }

    async fn book(&self) -> sqlx::Result<()> {
        let mut connection = self.connections.acquire().await?;
        let mut booking = connection.begin().await?;
        sqlx::query("INSERT INTO booking VALUES (1)").execute(&mut *booking).await?;
        tokio::time::sleep(PAYMENT).await;
        booking.commit().await
    }
}

impl PoolTold {
    fn page(&self) -> String {
        let line = |name: &str, kind: &str, value: f64| format!("# TYPE {name} {kind}\n{name} {value}\n");
        let of = |number: &AtomicU64| number.load(Relaxed) as f64;
        [
            line("pool_connections_max", "gauge", f64::from(CONNECTIONS)),
            line("pool_connections_in_use", "gauge", of(&self.in_use)),
            line("pool_acquire_waiting", "gauge", of(&self.waiting)),
            line("pool_acquires_total", "counter", of(&self.acquires)),
            line("pool_acquire_wait_seconds_total", "counter", of(&self.waited_us) / 1e6),
        ]
        .concat()
    }
}

pub fn small_pool(stage: &Stage) -> anyhow::Result<()> {
    let server = stage.server("postgres15", &[])?;
    let told = Arc::new(PoolTold::default());
    let page = page::serve(PROMETHEUS, {
        let told = told.clone();
        move || told.page()
    })?;
    let targets = ["--metrics", &format!("app=http://{page}/metrics"), "--postgres", server.get("POSTGRES15_PROBE_URL")];
    stage.sampled(None, &targets, |log| {
        open(climb(6.0, 120.0), None, log, async {
            let connections = postgres::pool(server.get("POSTGRES15_URL"), CONNECTIONS).await?;
            sqlx::query("CREATE TABLE booking (seats int)").execute(&connections).await?;
            let pool = Arc::new(Pool { connections, free: Semaphore::new(CONNECTIONS as usize), told });
            let app: App = Arc::new(move |_| {
                let pool = pool.clone();
                Box::pin(async move { postgres::answer(&pool.booking().await) })
            });
            Ok(app)
        })
    })
}

/// An application that keeps what it is given, and from time to time goes through all of it.
#[derive(Default)]
struct Keeper {
    requests: AtomicU64,
    kept: Mutex<Vec<Vec<u8>>>,
    /// Closed to visitors during a maintenance pass.
    door: RwLock<()>,
}

impl Keeper {
    async fn visit(&self, bytes: usize) -> Answer {
        self.requests.fetch_add(1, Relaxed);
        let door = self.door.read().await;
        tokio::time::sleep(Duration::from_millis(15)).await;
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(vec![1; bytes]);
        drop(door);
        Answer { step: "keep", outcome: Outcome::Ok, code: None }
    }

    fn records(&self) -> usize {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Every two seconds, 50 µs for each record there is.
    async fn maintain(&self) {
        loop {
            tokio::time::sleep(Duration::from_secs(2)).await;
            let _closed = self.door.write().await;
            tokio::time::sleep(Duration::from_micros(50) * self.records() as u32).await;
        }
    }
}

/// A low rate for ten seconds, then the rate that stays.
fn plateau(rate: f64, seconds: u64) -> Course {
    Course(vec![Leg::flat(rate / 8.0, 10), Leg::flat(rate, seconds)])
}

pub fn soak(stage: &Stage) -> anyhow::Result<()> {
    let keeper = Arc::new(Keeper::default());
    let page = page::serve("application/json", {
        let keeper = keeper.clone();
        move || format!(r#"{{"requests":{},"records":{}}}"#, keeper.requests.load(Relaxed), keeper.records())
    })?;
    stage.sampled(None, &["--json", &format!("app=http://{page}/stats")], |log| {
        even(plateau(30.0, 240), log, async {
            let maintained = keeper.clone();
            tokio::spawn(async move { maintained.maintain().await });
            let app: App = Arc::new(move |_| {
                let keeper = keeper.clone();
                Box::pin(async move { keeper.visit(100).await })
            });
            Ok(app)
        })
    })
}

/// What a session takes that is never given back.
const SESSION: usize = 4096;

pub fn leak(stage: &Stage) -> anyhow::Result<()> {
    let keeper = Arc::new(Keeper::default());
    let page = page::serve(PROMETHEUS, {
        let keeper = keeper.clone();
        move || format!("# TYPE session_memory_bytes gauge\nsession_memory_bytes {}\n", keeper.records() * SESSION)
    })?;
    stage.sampled(None, &["--metrics", &format!("app=http://{page}/metrics")], |log| {
        even(plateau(40.0, 120), log, async {
            let app: App = Arc::new(move |_| {
                let keeper = keeper.clone();
                Box::pin(async move { keeper.visit(SESSION).await })
            });
            Ok(app)
        })
    })
}
