//! The shop's connections to its database: who comes first is served first, and the wait is told.

use super::single;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgSslMode};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

pub struct Pool {
    connections: PgPool,
    max: u32,
    statement: f64,
    waiting: AtomicU64,
    acquires: AtomicU64,
    waited_us: AtomicU64,
}

impl Pool {
    /// So many connections, all opened now; a statement takes so many ms.
    pub async fn open(url: &str, max: u32, statement_ms: u64) -> anyhow::Result<Self> {
        let server: PgConnectOptions = url.parse()?;
        let options = PgPoolOptions::new().max_connections(max).test_before_acquire(false);
        let options = options.acquire_timeout(Duration::from_mins(1));
        let connections = options.connect_with(server.ssl_mode(PgSslMode::Disable)).await?;
        let mut open = Vec::new();
        for _ in 0..max {
            open.push(connections.acquire().await?);
        }
        drop(open);
        let zero = || AtomicU64::new(0);
        let statement = Duration::from_millis(statement_ms).as_secs_f64();
        Ok(Self { connections, max, statement, waiting: zero(), acquires: zero(), waited_us: zero() })
    }

    /// Waits for a connection and holds it while the database works on one statement.
    pub async fn statement(&self) -> anyhow::Result<()> {
        let begin = Instant::now();
        self.waiting.fetch_add(1, Relaxed);
        let connection = self.connections.acquire().await;
        self.waiting.fetch_sub(1, Relaxed);
        self.acquires.fetch_add(1, Relaxed);
        self.waited_us.fetch_add(begin.elapsed().as_micros() as u64, Relaxed);
        sqlx::query("SELECT pg_sleep($1)").bind(self.statement).execute(&mut *connection?).await?;
        Ok(())
    }

    pub fn metrics(&self) -> String {
        let of = |counter: &AtomicU64| counter.load(Relaxed) as f64;
        let in_use = f64::from(self.connections.size()) - self.connections.num_idle() as f64;
        [
            single("pool_connections_max", "gauge", f64::from(self.max)),
            single("pool_connections_in_use", "gauge", in_use),
            single("pool_acquire_waiting", "gauge", of(&self.waiting)),
            single("pool_acquires_total", "counter", of(&self.acquires)),
            single("pool_acquire_wait_seconds_total", "counter", of(&self.waited_us) / 1e6),
        ]
        .concat()
    }
}
