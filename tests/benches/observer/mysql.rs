//! MySQL and MariaDB: sessions that update a few hot rows; and the plain join of the lock tables as another watcher.

use super::server::Server;
use super::sessions::{Session, connect};
use super::{Other, Plan, Subject, Work, hot_rows};

const JOIN_MYSQL: &str = "SELECT r.THREAD_ID, r.OBJECT_SCHEMA, r.OBJECT_NAME, r.INDEX_NAME, r.LOCK_DATA, b.THREAD_ID \
     FROM performance_schema.data_lock_waits w \
     JOIN performance_schema.data_locks r ON r.ENGINE_LOCK_ID = w.REQUESTING_ENGINE_LOCK_ID \
     JOIN performance_schema.data_locks b ON b.ENGINE_LOCK_ID = w.BLOCKING_ENGINE_LOCK_ID";
const JOIN_MARIADB: &str = "SELECT r.lock_trx_id, r.lock_table, r.lock_index, r.lock_data, b.lock_trx_id \
     FROM information_schema.INNODB_LOCK_WAITS w \
     JOIN information_schema.INNODB_LOCKS r ON r.lock_id = w.requested_lock_id \
     JOIN information_schema.INNODB_LOCKS b ON b.lock_id = w.blocking_lock_id";

struct Join {
    session: Box<dyn Session>,
    sql: &'static str,
}

#[async_trait::async_trait(?Send)]
impl Other for Join {
    async fn read(&mut self) -> usize {
        self.session.run(self.sql).await
    }
}

/// The server with its hot rows, and the load on them.
pub async fn subject(server: &Server, name: &str, plan: &Plan, work: &Work) -> Subject {
    let mariadb = name == "mariadb";
    let url = server.get(if mariadb { "MARIADB_URL" } else { "MYSQL_URL" }).to_owned();
    let mut session = connect(&url).await;
    session.run("CREATE DATABASE whatgives_observer").await;
    session.run("CREATE TABLE whatgives_observer.hot (id INT PRIMARY KEY, n BIGINT) ENGINE = InnoDB").await;
    for row in 0..plan.rows {
        session.run(&format!("INSERT INTO whatgives_observer.hot VALUES ({row}, 0)")).await;
    }
    let thread = hot_rows::load(plan, work, "whatgives_observer.hot", url.clone());
    let sql = if mariadb { JOIN_MARIADB } else { JOIN_MYSQL };
    Subject {
        collector: "mysql",
        url,
        load: hot_rows::about(plan),
        unit: "commits",
        other: Some(("the plain join", Box::new(Join { session, sql }))),
        thread,
    }
}
