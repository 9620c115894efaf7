//! What the tests of PostgreSQL and PgBouncer share: sessions that make load.

use sqlx::postgres::{PgConnectOptions, PgConnection, PgRow};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _, Row as _};
use tokio::task::JoinHandle;

/// A session of the load.
pub async fn session(url: &str) -> PgConnection {
    try_session(url).await.unwrap_or_else(|error| panic!("connect to {url}: {error}"))
}

/// A session, or why there is none.
pub async fn try_session(url: &str) -> Result<PgConnection, sqlx::Error> {
    let options: PgConnectOptions = url.parse().expect("a URL");
    options.extra_float_digits(None).statement_cache_capacity(0).disable_statement_logging().connect().await
}

/// One or several statements by the simple protocol.
pub async fn run(session: &mut PgConnection, sql: &str) -> Vec<PgRow> {
    try_run(session, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// The same, or why not.
pub async fn try_run(session: &mut PgConnection, sql: &str) -> Result<Vec<PgRow>, sqlx::Error> {
    session.fetch_all(sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))).await
}

/// The first column of the rows.
pub async fn texts(session: &mut PgConnection, sql: &str) -> Vec<String> {
    run(session, sql).await.iter().map(|row| row.get_unchecked::<String, _>(0)).collect()
}

/// Statements, each in a session of its own; they go on until they are answered or dropped.
pub async fn load(url: &str, statements: Vec<String>) -> Vec<JoinHandle<Result<(), String>>> {
    let mut tasks = Vec::with_capacity(statements.len());
    for statement in statements {
        let mut session = session(url).await;
        tasks.push(tokio::spawn(
            async move { try_run(&mut session, &statement).await.map(|_| ()).map_err(|error| error.to_string()) },
        ));
    }
    tasks
}

/// Waits for the answers, which must be good.
pub async fn answered(tasks: Vec<JoinHandle<Result<(), String>>>) {
    for task in tasks {
        task.await.expect("the task ends").expect("the statement is answered");
    }
}
