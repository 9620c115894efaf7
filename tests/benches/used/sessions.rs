//! Sessions of the SQL servers, each statement by the simple protocol.

use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlSslMode};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Executor, raw_sql};

/// A session of a load.
#[async_trait::async_trait]
pub trait Session: Send {
    /// One statement or several, to their answer; how many rows it has.
    async fn run(&mut self, statement: &str) -> usize;
}

/// Opens one, of the server that the URL is of.
pub async fn connect(url: &str) -> Box<dyn Session> {
    if url.starts_with("mysql") {
        let options: MySqlConnectOptions = url.parse().expect("a URL");
        Box::new(options.ssl_mode(MySqlSslMode::Preferred).connect().await.expect("the server lets one more session in"))
    } else {
        let options: PgConnectOptions = url.parse().expect("a URL");
        Box::new(options.connect().await.expect("the server lets one more session in"))
    }
}

#[async_trait::async_trait]
impl Session for MySqlConnection {
    async fn run(&mut self, statement: &str) -> usize {
        self.fetch_all(raw_sql(AssertSqlSafe(statement.to_owned()))).await.expect("the statement runs").len()
    }
}

#[async_trait::async_trait]
impl Session for PgConnection {
    async fn run(&mut self, statement: &str) -> usize {
        self.fetch_all(raw_sql(AssertSqlSafe(statement.to_owned()))).await.expect("the statement runs").len()
    }
}
