//! PostgreSQL 18: sessions that update a few hot rows.

use super::server::Server;
use super::{Plan, Subject, Work};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Executor};

async fn run(session: &mut PgConnection, statement: &str) {
    let statement = sqlx::AssertSqlSafe(statement.to_owned());
    session.fetch_all(sqlx::raw_sql(statement)).await.expect("the statement runs");
}

/// The server with its hot rows, and the load on them.
pub async fn subject(server: &Server, plan: &Plan, work: &Work) -> Subject {
    let options: PgConnectOptions = server.get("POSTGRES18_URL").parse().expect("a URL");
    let mut session = options.connect().await.expect("the server lets us in");
    run(&mut session, "CREATE TABLE hot (id int PRIMARY KEY, n bigint)").await;
    run(&mut session, &format!("INSERT INTO hot SELECT i, 0 FROM generate_series(0, {}) i", plan.rows - 1)).await;
    let (sessions, rows, counted) = (plan.sessions, plan.rows, work.clone());
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let mut tasks = Vec::new();
            for number in 0..sessions {
                let mut session = options.connect().await.expect("the server lets one more session in");
                let work = counted.clone();
                tasks.push(tokio::spawn(async move {
                    let mut turn = number;
                    while work.did(u64::from(turn > number)) {
                        run(&mut session, "BEGIN").await;
                        run(&mut session, &format!("UPDATE hot SET n = n + 1 WHERE id = {}", turn % rows)).await;
                        run(&mut session, "COMMIT").await;
                        turn += 1;
                    }
                }));
            }
            for task in tasks {
                task.await.expect("a session of the load");
            }
        });
    });
    Subject {
        collector: "postgres",
        url: server.get("POSTGRES18_PROBE_URL").to_owned(),
        load: format!("{sessions} sessions update {rows} hot rows and commit"),
        unit: "commits",
        other: None,
        thread,
    }
}
