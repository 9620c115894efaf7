//! MySQL and MariaDB: sessions that update a few hot rows; and the plain join of the lock tables as another watcher.

use super::server::Server;
use super::{Other, Plan, Subject, Work, hot_rows};
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlSslMode};
use sqlx::{ConnectOptions, Executor};

const JOIN_MYSQL: &str = "SELECT r.THREAD_ID, r.OBJECT_SCHEMA, r.OBJECT_NAME, r.INDEX_NAME, r.LOCK_DATA, b.THREAD_ID \
     FROM performance_schema.data_lock_waits w \
     JOIN performance_schema.data_locks r ON r.ENGINE_LOCK_ID = w.REQUESTING_ENGINE_LOCK_ID \
     JOIN performance_schema.data_locks b ON b.ENGINE_LOCK_ID = w.BLOCKING_ENGINE_LOCK_ID";
const JOIN_MARIADB: &str = "SELECT r.lock_trx_id, r.lock_table, r.lock_index, r.lock_data, b.lock_trx_id \
     FROM information_schema.INNODB_LOCK_WAITS w \
     JOIN information_schema.INNODB_LOCKS r ON r.lock_id = w.requested_lock_id \
     JOIN information_schema.INNODB_LOCKS b ON b.lock_id = w.blocking_lock_id";

async fn run(session: &mut MySqlConnection, statement: &str) -> usize {
    let statement = sqlx::AssertSqlSafe(statement.to_owned());
    session.fetch_all(sqlx::raw_sql(statement)).await.expect("the statement runs").len()
}

#[async_trait::async_trait]
impl hot_rows::Session for MySqlConnection {
    async fn run(&mut self, statement: &str) {
        run(self, statement).await;
    }
}

struct Join {
    session: MySqlConnection,
    sql: &'static str,
}

#[async_trait::async_trait(?Send)]
impl Other for Join {
    async fn read(&mut self) -> usize {
        run(&mut self.session, self.sql).await
    }
}

/// The server with its hot rows, and the load on them.
pub async fn subject(server: &Server, name: &str, plan: &Plan, work: &Work) -> Subject {
    let mariadb = name == "mariadb";
    let url = server.get(if mariadb { "MARIADB_URL" } else { "MYSQL_URL" }).to_owned();
    let options: MySqlConnectOptions = url.parse().expect("a URL");
    let options = options.ssl_mode(MySqlSslMode::Preferred);
    let mut session = options.connect().await.expect("the server lets us in");
    run(&mut session, "CREATE DATABASE whatgives_observer").await;
    run(&mut session, "CREATE TABLE whatgives_observer.hot (id INT PRIMARY KEY, n BIGINT) ENGINE = InnoDB").await;
    for row in 0..plan.rows {
        run(&mut session, &format!("INSERT INTO whatgives_observer.hot VALUES ({row}, 0)")).await;
    }
    let connect = async move || options.connect().await.expect("the server lets one more session in");
    let thread = hot_rows::load(plan, work, "whatgives_observer.hot", connect);
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
