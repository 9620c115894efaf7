//! PostgreSQL 18: sessions that update a few hot rows.

use super::server::Server;
use super::sessions::connect;
use super::{Plan, Subject, Work, hot_rows};

/// The server with its hot rows, and the load on them.
pub async fn subject(server: &Server, plan: &Plan, work: &Work) -> Subject {
    let url = server.get("POSTGRES18_URL");
    let mut session = connect(url).await;
    session.run("CREATE TABLE hot (id int PRIMARY KEY, n bigint)").await;
    session.run(&format!("INSERT INTO hot SELECT i, 0 FROM generate_series(0, {}) i", plan.rows - 1)).await;
    Subject {
        collector: "postgres",
        url: server.get("POSTGRES18_PROBE_URL").to_owned(),
        load: hot_rows::about(plan),
        unit: "commits",
        other: None,
        thread: hot_rows::load(plan, work, "hot", url.to_owned()),
    }
}
