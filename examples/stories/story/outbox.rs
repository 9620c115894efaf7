//! A worker that falls behind: what visitors order is written into a table, and one worker sends it out by and by.

use crate::open_loop::course::{Course, Leg};
use crate::open_loop::load::{self, Answer, App, Visit};
use crate::open_loop::requests::Outcome;
use crate::stage::Stage;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgSslMode};
use std::sync::Arc;
use std::time::Duration;

/// How long it takes to send one.
const SENDING: Duration = Duration::from_millis(20);

const BEHIND: &str = "SELECT count(*) AS depth, \
    coalesce(extract(epoch FROM clock_timestamp() - min(created)), 0)::float8 AS oldest_age_seconds FROM outbox";

/// 20 ms and two statements for each: up to 50 orders a second are sent. No visitor feels that more of them stay behind.
pub fn falls_behind(stage: &Stage) -> anyhow::Result<()> {
    let server = stage.server("postgres15", &[])?;
    let course = Course(vec![Leg::flat(8.0, 10), Leg::slope(8.0, 75.0, 50)]);
    load::runtime()?.block_on(async {
        let database = open(server.get("POSTGRES15_URL")).await?;
        let table = "CREATE TABLE outbox (id bigserial PRIMARY KEY, created timestamptz NOT NULL DEFAULT clock_timestamp())";
        for statement in [table, "GRANT SELECT ON outbox TO probe"] {
            sqlx::query(statement).execute(&database).await?;
        }
        anyhow::Ok(())
    })?;
    let query = format!("outbox={}::{BEHIND}", server.get("POSTGRES15_PROBE_URL"));
    stage.sampled(None, &["--query", &query, "--postgres", server.get("POSTGRES15_PROBE_URL")], |log| {
        load::runtime()?.block_on(async {
            let database = open(server.get("POSTGRES15_URL")).await?;
            let worker = tokio::spawn(work(database.clone()));
            let app: App = Arc::new(move |_: Visit| {
                let database = database.clone();
                Box::pin(async move {
                    let written = sqlx::query("INSERT INTO outbox DEFAULT VALUES").execute(&database).await;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    let outcome = if written.is_ok() { Outcome::Ok } else { Outcome::Fail };
                    Answer { step: "order", outcome, code: None }
                })
            });
            load::open(course, 1, None, app, log).await?;
            worker.abort();
            Ok(())
        })
    })
}

async fn open(url: &str) -> anyhow::Result<PgPool> {
    let server: PgConnectOptions = url.parse()?;
    let options = PgPoolOptions::new().min_connections(12).max_connections(12).test_before_acquire(false);
    Ok(options.connect_with(server.ssl_mode(PgSslMode::Disable)).await?)
}

/// One after the other, oldest first.
async fn work(database: PgPool) -> sqlx::Result<()> {
    loop {
        let oldest = sqlx::query_scalar::<_, i64>("SELECT id FROM outbox ORDER BY id LIMIT 1").fetch_optional(&database).await?;
        tokio::time::sleep(SENDING).await;
        if let Some(id) = oldest {
            sqlx::query("DELETE FROM outbox WHERE id = $1").bind(id).execute(&database).await?;
        }
    }
}
