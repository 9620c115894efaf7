//! The load of the SQL servers: sessions that each update one of a few hot rows and commit.

use super::sessions::connect;
use super::{Plan, Work};
use std::thread::JoinHandle;

/// What the load is, for the heading.
pub fn about(plan: &Plan) -> String {
    format!("{} sessions update {} hot rows and commit", plan.sessions, plan.rows)
}

/// Starts it in a thread of its own: every session counts a commit when it is done.
pub fn load(plan: &Plan, work: &Work, table: &'static str, url: String) -> JoinHandle<()> {
    let (sessions, rows, counted) = (plan.sessions, plan.rows, work.clone());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let mut tasks = Vec::new();
            for number in 0..sessions {
                let mut session = connect(&url).await;
                let work = counted.clone();
                tasks.push(tokio::spawn(async move {
                    let mut turn = number;
                    while work.did(u64::from(turn > number)) {
                        session.run("BEGIN").await;
                        session.run(&format!("UPDATE {table} SET n = n + 1 WHERE id = {}", turn % rows)).await;
                        session.run("COMMIT").await;
                        turn += 1;
                    }
                }));
            }
            for task in tasks {
                task.await.expect("a session of the load");
            }
        });
    })
}
