//! The one connection: opened, guarded, asked; and what its errors mean.

use super::status::Pairs;
use super::target::Target;
use crate::api::{Fault, FaultKind, Lack};
use crate::sql::{Row, breaks_connection, cell, describe, text_cells};
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlDatabaseError, MySqlSslMode};
use sqlx::{Column as _, ConnectOptions as _, Executor as _, Row as _};
use std::time::Duration;

/// How long connecting may take: a host that swallows packets would otherwise cost two minutes.
const CONNECT: Duration = Duration::from_secs(10);

/// Statements of ours are never cut off earlier: at 200 sessions waiting the longest takes some 10 ms on an idle machine,
/// and the machines asked are saturated.
const SHORTEST_LIMIT: Duration = Duration::from_millis(250);

/// Which server it is, told by what it calls itself: numbers do not tell MariaDB 10 and 11 from a MySQL to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    /// MySQL and what keeps its tables: Percona Server.
    MySql,
    /// MariaDB.
    MariaDb,
    /// Something else that speaks the protocol (`TiDB`, `SingleStore`, …): status and settings, no waits.
    Other,
}

impl Product {
    /// By the text of `@@version` and `@@version_comment`.
    pub fn of(version: &str, comment: &str) -> Self {
        let text = format!("{version} {comment}").to_ascii_lowercase();
        if text.contains("mariadb") {
            Self::MariaDb
        } else if ["tidb", "singlestore", "memsql", "oceanbase", "vitess", "starrocks", "doris"]
            .iter()
            .any(|name| text.contains(name))
        {
            Self::Other
        } else {
            Self::MySql
        }
    }

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::MySql => "MySQL",
            Self::MariaDb => "MariaDB",
            Self::Other => "speaks MySQL's protocol",
        }
    }
}

/// Who answered, and its settings.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Which server.
    pub product: Product,
    /// `@@version`.
    pub version: String,
    /// The server's own id, which a copy or another machine does not share. Empty where it has none.
    pub uuid: String,
    /// `SHOW GLOBAL VARIABLES`, the ones that are needed.
    pub settings: Pairs,
    /// The account that the server took us for: `probe@%`.
    pub account: String,
}

/// An open connection.
pub struct Session {
    connection: MySqlConnection,
    /// How many statements were sent.
    pub asked: u64,
    /// Where it leads.
    pub endpoint: String,
    /// The administration port was wanted and is not what this leads to.
    pub lack: Option<Lack>,
}

impl Session {
    /// Connects, by the administration port where one is given and answers, and sets the guards.
    pub async fn open(target: &Target) -> Result<(Self, Identity), Fault> {
        let mut lack = None;
        let (connection, endpoint) = match &target.admin {
            None => (connect(target, &target.options).await?, target.endpoint.clone()),
            Some((port, options)) => match connect(target, options).await {
                Ok(connection) => (connection, format!("{} by port {port}", target.endpoint)),
                Err(fault) => {
                    let user = quoted(target.options.get_username());
                    lack = Some(Lack {
                        what: format!("a connection of its own when max_connections is used up: port {port}: {}", fault.message),
                        mend: Some(format!(
                            "MySQL: admin_address and admin_port in my.cnf, GRANT SERVICE_CONNECTION_ADMIN ON *.* TO '{user}'@'%'; MariaDB: extra_port"
                        )),
                    });
                    (connect(target, &target.options).await?, target.endpoint.clone())
                }
            },
        };
        // sqlx sends one SET of its own.
        let mut session = Self { connection, asked: 1, endpoint, lack };
        let broken = |error: &sqlx::Error| fault(target, "set up the session", error);
        let identity = session.identify().await.map_err(|error| fault(target, "ask who it is", &error))?;
        session.guard(identity.product, target.timeout).await.map_err(|error| broken(&error))?;
        Ok((session, identity))
    }

    /// Asks one statement by the text protocol; every cell comes as text.
    pub async fn ask(&mut self, sql: &str) -> Result<Vec<Row>, sqlx::Error> {
        self.asked += 1;
        let rows = self.connection.fetch_all(sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned()))).await?;
        Ok(rows.iter().map(text_cells).collect())
    }

    /// The same with the names of the columns, where there are rows.
    pub async fn table(&mut self, sql: &str) -> Result<(Vec<String>, Vec<Row>), sqlx::Error> {
        self.asked += 1;
        let rows = self.connection.fetch_all(sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned()))).await?;
        let names = rows.first().map(|row| row.columns().iter().map(|column| column.name().to_owned()).collect());
        Ok((names.unwrap_or_default(), rows.iter().map(text_cells).collect()))
    }

    async fn identify(&mut self) -> Result<Identity, sqlx::Error> {
        let mut names = vec!["version", "version_comment", "server_uuid", "server_uid", "event_scheduler", "performance_schema"];
        names.extend(super::gauges::FACTS);
        names.extend(super::gauges::ITEMS.iter().flat_map(|item| item.from).filter_map(|from| match from {
            super::gauges::Origin::Setting(name) => Some(*name),
            _ => None,
        }));
        let settings = Pairs::of_rows(&self.ask(&show("VARIABLES", &names)).await?);
        let account = self.ask("SELECT CURRENT_USER()").await?;
        let text = |name: &str| settings.text(name).unwrap_or_default().to_owned();
        Ok(Identity {
            product: Product::of(&text("version"), &text("version_comment")),
            version: text("version"),
            uuid: [text("server_uuid"), text("server_uid")].into_iter().find(|id| !id.is_empty()).unwrap_or_default(),
            account: account.first().and_then(|row| cell(row, 0)).unwrap_or_default().to_owned(),
            settings,
        })
    }

    /// Limits on ourselves, so that a server in trouble gets no more of it from us. The ones that a product must have fail
    /// the session; the rest are asked for and may be refused.
    async fn guard(&mut self, product: Product, timeout: Duration) -> Result<(), sqlx::Error> {
        let limit = (timeout / 2).max(SHORTEST_LIMIT).as_millis();
        let mut wanted = vec![
            "SET SESSION autocommit = 1".to_owned(),
            "SET SESSION lock_wait_timeout = 1".to_owned(),
            "SET SESSION innodb_lock_wait_timeout = 1".to_owned(),
            "SET SESSION TRANSACTION READ ONLY".to_owned(),
            // INNODB_TRX gives times in the server's own zone, and quotes in our texts are escaped by backslashes.
            "SET SESSION time_zone = 'SYSTEM', sql_mode = ''".to_owned(),
            // Our reads of small tables without an index are no slow queries of the load.
            "SET SESSION long_query_time = 60, min_examined_row_limit = 4294967295".to_owned(),
        ];
        wanted.push(match product {
            Product::MariaDb => format!("SET SESSION max_statement_time = {}.{:03}", limit / 1000, limit % 1000),
            Product::MySql | Product::Other => format!("SET SESSION max_execution_time = {limit}"),
        });
        for statement in wanted {
            match self.ask(&statement).await {
                Err(error) if breaks_connection(&error) => return Err(error),
                // A product that does not know a guard goes without it.
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    }
}

async fn connect(target: &Target, options: &MySqlConnectOptions) -> Result<MySqlConnection, Fault> {
    match tokio::time::timeout(CONNECT, options.connect()).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(error)) => Err(refused(target, &error)),
        Err(_) => {
            let message = format!("connect to {}@{}: no answer in {} s", target.instance, target.endpoint, CONNECT.as_secs());
            Err(Fault::new(FaultKind::Unreachable, message))
        }
    }
}

/// `SHOW GLOBAL STATUS` or `VARIABLES`, only these names.
pub fn show(what: &str, names: &[&str]) -> String {
    format!("SHOW GLOBAL {what} WHERE Variable_name IN ('{}')", names.join("','"))
}

/// The number of a server's error.
pub fn number(error: &sqlx::Error) -> Option<u16> {
    match error {
        sqlx::Error::Database(why) => why.try_downcast_ref::<MySqlDatabaseError>().map(MySqlDatabaseError::number),
        _ => None,
    }
}

/// The server takes the answer for a missing privilege.
pub fn is_denied(error: &sqlx::Error) -> bool {
    matches!(number(error), Some(1044 | 1142 | 1143 | 1227))
}

/// A statement ran into one of our own limits (time, lock wait): the connection is whole.
pub fn is_limit(error: &sqlx::Error) -> bool {
    matches!(number(error), Some(1205 | 1317 | 1969 | 3024))
}

/// The server says goodbye: shutting down, killed, idle for too long. The connection is gone though it answered.
pub fn is_goodbye(error: &sqlx::Error) -> bool {
    breaks_connection(error) || matches!(number(error), Some(1053 | 1077 | 1079 | 1080 | 1152 | 1158..=1161 | 1927 | 3169 | 4031))
}

/// An error of a statement as the caller's fault: `read the status of mysql@db:3306: …`.
pub fn fault(target: &Target, doing: &str, error: &sqlx::Error) -> Fault {
    let kind = if is_denied(error) {
        FaultKind::Denied
    } else if is_goodbye(error) || is_limit(error) {
        FaultKind::Unreachable
    } else {
        FaultKind::Nonsense
    };
    Fault::new(kind, format!("{doing} of {}@{}: {}", target.instance, target.endpoint, describe(error)))
}

/// A connection that did not come about.
fn refused(target: &Target, error: &sqlx::Error) -> Fault {
    let place = format!("connect to {}@{}: {}", target.instance, target.endpoint, describe(error));
    let user = target.options.get_username();
    let account = "<password>";
    let grants = format!(
        "CREATE USER '{user}'@'%' IDENTIFIED BY '{account}'; GRANT PROCESS ON *.* TO '{user}'@'%'; GRANT SELECT ON performance_schema.* TO '{user}'@'%';",
        user = quoted(user)
    );
    match (number(error), error) {
        (Some(1045 | 1698), _) => Fault::new(FaultKind::Refused, place).hint(if target.has_password {
            format!(
                "the password came from {}; check it, or make an account of its own for the sampler: {grants}",
                target.password_from
            )
        } else {
            format!("no password was given (password_file, .my.cnf or MYSQL_PWD); an account for the sampler: {grants}")
        }),
        (Some(1040), _) => Fault::new(FaultKind::Refused, place).hint(
            "max_connections is used up: start the sampler before the load, its connection is kept; an account with CONNECTION_ADMIN has one connection in reserve",
        ),
        (Some(1203 | 1226), _) => Fault::new(FaultKind::Refused, place)
            .hint(format!("the account '{user}' is at its limit of connections; one of its own for the sampler: {grants}")),
        (Some(1129), _) => Fault::new(FaultKind::Refused, place).hint("TRUNCATE TABLE performance_schema.host_cache (MySQL) or FLUSH HOSTS (MariaDB)"),
        (Some(1130), _) => Fault::new(FaultKind::Refused, place).hint(format!("no account may come from this machine: {grants}")),
        (Some(_), _) => Fault::new(FaultKind::Refused, place),
        (None, sqlx::Error::Protocol(why)) if why.contains("authentication") => Fault::new(FaultKind::Refused, place).hint(format!(
            "{}; an account that signs in by password: {grants}",
            if target.has_password { "this account signs in by a way that is not supported" } else { "no password was given" }
        )),
        (None, sqlx::Error::Configuration(_)) => {
            let message = format!(
                "connect to {}@{}: the account signs in by caching_sha2_password, which needs TLS the first time",
                target.instance, target.endpoint
            );
            Fault::new(FaultKind::Refused, message).hint(if matches!(target.options.get_ssl_mode(), MySqlSslMode::Disabled) {
                "tls = \"preferred\""
            } else {
                "the server offers none: leave its automatic certificates on (auto_generate_certs), or give it some (ssl_cert, ssl_key)"
            })
        }
        (None, sqlx::Error::Tls(_)) => Fault::new(FaultKind::Unreachable, place)
            .hint("tls = \"preferred\" does without where the server has none, and trusts any certificate; tls_ca = \"ca.pem\" names the authority that signed the server's certificate"),
        (None, _) => Fault::new(FaultKind::Unreachable, place),
    }
}

/// A text for use between single quotes in a statement, where backslashes escape.
pub fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\'', "''")
}

/// `probe@%` as grants name it: `'probe'@'%'`.
pub fn grantee(account: &str) -> String {
    let (user, host) = account.rsplit_once('@').unwrap_or((account, "%"));
    format!("'{}'@'{}'", quoted(user), quoted(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_told_by_what_they_call_themselves() {
        assert_eq!(Product::of("10.11.19-MariaDB-0+deb12u1", "Debian 12"), Product::MariaDb);
        assert_eq!(Product::of("11.4.2", "MariaDB Server"), Product::MariaDb);
        assert_eq!(Product::of("9.7.4-2", "(Debian)"), Product::MySql);
        assert_eq!(Product::of("8.0.39-30", "Percona Server (GPL), Release 30"), Product::MySql);
        assert_eq!(Product::of("8.0.11-TiDB-v7.5.1", "TiDB Server"), Product::Other);
    }

    #[test]
    fn an_account_is_quoted_as_grants_name_it() {
        assert_eq!(grantee("probe@%"), "'probe'@'%'");
        assert_eq!(grantee("o'neil@a@10.0.0.%"), "'o''neil@a'@'10.0.0.%'");
    }

    #[test]
    fn a_statement_asks_for_the_names_given_and_no_more() {
        assert_eq!(show("STATUS", &["Uptime", "Questions"]), "SHOW GLOBAL STATUS WHERE Variable_name IN ('Uptime','Questions')");
    }

    #[test]
    fn a_broken_pipe_is_a_goodbye_and_no_denial() {
        let error = sqlx::Error::Io(std::io::ErrorKind::BrokenPipe.into());
        assert!(is_goodbye(&error) && !is_denied(&error) && !is_limit(&error));
    }
}
