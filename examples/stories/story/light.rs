//! Nothing on the servers gives way: a light load, and a driver that cannot send what it should.

use super::{climb, open, postgres};
use crate::open_loop::load::{Answer, App, Visit};
use crate::open_loop::requests::Outcome;
use crate::stage::Stage;
use sqlx::{Executor as _, PgPool};
use std::sync::Arc;

/// Lookups of a seat in memcached and then in PostgreSQL, some of a millisecond each.
pub fn nothing(stage: &Stage) -> anyhow::Result<()> {
    let (memcached, server) = (stage.server("memcached", &[])?, stage.server("postgres15", &[])?);
    let cache = memcached.get("MEMCACHED_ADDRESS");
    stage.sampled(None, &["--memcached", cache, "--postgres", server.get("POSTGRES15_PROBE_URL")], |log| {
        open(climb(5.0, 80.0), None, log, async {
            let pool = postgres::pool(server.get("POSTGRES15_URL"), 20).await?;
            let cache = memcache::Client::with_pool_size(format!("memcache://{cache}"), 8)?;
            for slot in 1..=1000 {
                cache.set(&slot.to_string(), "a hall", 0)?;
            }
            let app: App = Arc::new(move |visit: Visit| {
                let (pool, cache) = (pool.clone(), cache.clone());
                Box::pin(async move { look(&pool, cache, (visit.chance * 1000.0).ceil() as i32).await })
            });
            Ok(app)
        })
    })
}

async fn look(pool: &PgPool, cache: memcache::Client, slot: i32) -> Answer {
    let cached = tokio::task::spawn_blocking(move || cache.get::<String>(&slot.to_string())).await;
    if !matches!(cached, Ok(Ok(Some(_)))) {
        return Answer { step: "book", outcome: Outcome::Fail, code: None };
    }
    postgres::answer(&sqlx::query("SELECT taken FROM slot WHERE id = $1").bind(slot).fetch_one(pool).await)
}

/// Workers of the driver: with four visits of 100 ms under way it sends 40 a second and no more.
const WORKERS: usize = 4;

pub fn small_driver(stage: &Stage) -> anyhow::Result<()> {
    let server = stage.server("postgres15", &[])?;
    stage.sampled(None, &["--postgres", server.get("POSTGRES15_PROBE_URL")], |log| {
        open(climb(4.0, 60.0), Some(WORKERS), log, async {
            let pool = postgres::pool(server.get("POSTGRES15_URL"), 20).await?;
            let app: App = Arc::new(move |_| {
                let pool = pool.clone();
                Box::pin(async move { postgres::answer(&pool.execute("SELECT pg_sleep(0.1)").await) })
            });
            Ok(app)
        })
    })
}
