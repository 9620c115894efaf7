//! PostgreSQL 18: sessions that update a few hot rows.

use super::server::Server;
use super::{Plan, Subject, Work, hot_rows};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Executor};

async fn run(session: &mut PgConnection, statement: &str) {
    let statement = sqlx::AssertSqlSafe(statement.to_owned());
    session.fetch_all(sqlx::raw_sql(statement)).await.expect("the statement runs");
}

#[async_trait::async_trait]
impl hot_rows::Session for PgConnection {
    async fn run(&mut self, statement: &str) {
        run(self, statement).await;
    }
}

/// The server with its hot rows, and the load on them.
pub async fn subject(server: &Server, plan: &Plan, work: &Work) -> Subject {
    let options: PgConnectOptions = server.get("POSTGRES18_URL").parse().expect("a URL");
    let mut session = options.connect().await.expect("the server lets us in");
    run(&mut session, "CREATE TABLE hot (id int PRIMARY KEY, n bigint)").await;
    run(&mut session, &format!("INSERT INTO hot SELECT i, 0 FROM generate_series(0, {}) i", plan.rows - 1)).await;
    let connect = async move || options.connect().await.expect("the server lets one more session in");
    let thread = hot_rows::load(plan, work, "hot", connect);
    Subject {
        collector: "postgres",
        url: server.get("POSTGRES18_PROBE_URL").to_owned(),
        load: hot_rows::about(plan),
        unit: "commits",
        other: None,
        thread,
    }
}
