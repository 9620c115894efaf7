//! A job on the same database that comes at a fixed time, whatever the visitors do.

use super::{climb, open, postgres};
use crate::open_loop::load::{App, Visit};
use crate::stage::Stage;
use sqlx::{Acquire as _, Executor as _, PgPool};
use std::sync::Arc;
use std::time::Duration;

/// From the end of one pass to the begin of the next, how many do it, and for how long each has the table for itself.
const EVERY: Duration = Duration::from_millis(6500);
const WORKERS: usize = 5;
const TURN: Duration = Duration::from_millis(300);

/// Five workers go through a table of their own one after the other, 1.5 s out of 8: four of them wait, then three, and so on.
/// Visitors look for a seat in another table, and feel nothing of it.
pub fn nightly(stage: &Stage) -> anyhow::Result<()> {
    let server = stage.server("postgres15", &[])?;
    stage.sampled(None, &["--postgres", server.get("POSTGRES15_PROBE_URL")], |log| {
        open(climb(8.0, 80.0), None, log, async {
            let pool = postgres::pool(server.get("POSTGRES15_URL"), 20).await?;
            pool.execute("CREATE TABLE audit (day int)").await?;
            tokio::spawn(job(postgres::pool(server.get("POSTGRES15_URL"), WORKERS as u32).await?));
            let app: App = Arc::new(move |visit: Visit| {
                let pool = pool.clone();
                Box::pin(async move { postgres::answer(&look(&pool, (visit.chance * 1000.0).ceil() as i32).await) })
            });
            Ok(app)
        })
    })
}

async fn look(pool: &PgPool, seat: i32) -> sqlx::Result<()> {
    sqlx::query("SELECT taken FROM slot WHERE id = $1").bind(seat).fetch_one(pool).await?;
    // The rest of the page.
    tokio::time::sleep(Duration::from_millis(40)).await;
    Ok(())
}

async fn job(pool: PgPool) -> sqlx::Result<()> {
    loop {
        tokio::time::sleep(EVERY).await;
        let workers: Vec<_> = (0..WORKERS).map(|_| tokio::spawn(turn(pool.clone()))).collect();
        for worker in workers {
            worker.await.ok();
        }
    }
}

async fn turn(pool: PgPool) -> sqlx::Result<()> {
    let mut connection = pool.acquire().await?;
    let mut turn = connection.begin().await?;
    turn.execute("LOCK TABLE audit IN ACCESS EXCLUSIVE MODE").await?;
    tokio::time::sleep(TURN).await;
    turn.commit().await
}
