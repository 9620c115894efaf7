//! The one connection of a query, to MySQL, MariaDB or PostgreSQL: read only, with limits on itself.

use crate::api::{Fault, FaultKind, Section};
use crate::mysql::is_limit;
use crate::settings::{self, Secret};
use crate::sql::address::{Address, redact};
use crate::sql::{Row, breaks_connection, describe, text_cells};
use serde::Deserialize;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlSslMode};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgRow, PgSslMode};
use sqlx::{Column as _, ConnectOptions as _, Executor as _, Row as _, ValueRef as _};
use std::path::PathBuf;
use std::time::Duration;

/// How long connecting may take at least, however short the tick.
const CONNECT: Duration = Duration::from_secs(3);

/// The keys that say who asks, and where.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Who {
    user: Option<String>,
    password: Option<Secret>,
    password_file: Option<PathBuf>,
    password_env: Option<String>,
    tls: Option<String>,
    tls_ca: Option<PathBuf>,
}

impl Who {
    /// Takes these keys out of a table.
    pub fn take(what: &str, table: &mut toml::Table) -> Result<Self, Fault> {
        let mut ours = toml::Table::new();
        for key in ["user", "password", "password_file", "password_env", "tls", "tls_ca"] {
            if let Some(value) = table.remove(key) {
                ours.insert(key.to_owned(), value);
            }
        }
        Self::deserialize(toml::Value::Table(ours))
            .map_err(|why| Fault::new(FaultKind::Config, format!("configuration of {what}: {}", why.message().trim())))
    }
}

/// Which server.
#[derive(Clone)]
enum Options {
    MySql(MySqlConnectOptions),
    Postgres(PgConnectOptions),
}

/// What is needed to connect.
#[derive(Clone)]
pub(super) struct Target {
    /// `instance@endpoint`, for messages.
    pub name: String,
    /// `db:3306`, or a socket's path.
    pub endpoint: String,
    /// MySQL or PostgreSQL.
    pub product: &'static str,
    options: Options,
    limit: Duration,
    connect: Duration,
}

const MYSQL: [&str; 2] = ["mysql", "mariadb"];
const POSTGRES: [&str; 2] = ["postgres", "postgresql"];

impl Target {
    /// Works everything out. No I/O but the file with the password.
    pub fn new(section: &Section, place: &str, who: Who) -> Result<Self, Fault> {
        let wrong = |why: String| Fault::new(FaultKind::Config, format!("configuration of {}: {why}", section.instance));
        let scheme = place.split_once("://").map_or("", |(scheme, _)| scheme);
        let is_mysql = MYSQL.contains(&scheme);
        if !is_mysql && !POSTGRES.contains(&scheme) {
            return Err(wrong("the address: expected mysql://… or postgres://…".to_owned())
                .hint("--query name=postgres://USER@HOST/DATABASE::SELECT count(*) FROM outbox"));
        }
        let mut address =
            Address::parse(place, &[&MYSQL[..], &POSTGRES[..]].concat()).map_err(|why| wrong(format!("the address: {why}")))?;
        let what = format!("password of {}", section.instance);
        let explicit = settings::secret(&what, who.password.as_ref(), who.password_file.as_deref(), who.password_env.as_deref())?;
        let password = explicit.or(address.password.take());
        let user = who.user.or(address.user.take());
        let mut tls = who.tls;
        for (key, value) in &address.options {
            match key.as_str() {
                "tls" | "sslmode" | "ssl-mode" => tls = tls.or(Some(value.clone())),
                _ => return Err(wrong(format!("the URL's option {key:?} is not known; known are socket and tls"))),
            }
        }
        let tls = tls.unwrap_or_else(|| "preferred".to_owned()).to_ascii_lowercase();
        let known = ["disabled", "preferred", "required", "verify-ca", "verify-full"];
        let tls = match tls.as_str() {
            "disable" | "off" => "disabled",
            "prefer" => "preferred",
            "require" => "required",
            "verify-identity" => "verify-full",
            other => known
                .into_iter()
                .find(|known| *known == other)
                .ok_or_else(|| wrong(format!("tls: expected {}, found {other:?}", known.join(", "))))?,
        };
        let ca = who.tls_ca.map(|path| settings::expand_home(&path));
        let (options, endpoint) = if is_mysql {
            mysql(&address, user.as_deref(), password.as_ref(), tls, ca)
        } else {
            postgres(&address, user.as_deref(), password.as_ref(), tls, ca)
        };
        Ok(Self {
            name: format!("{}@{}", section.instance, redact(&endpoint)),
            endpoint,
            product: if is_mysql { "MySQL" } else { "PostgreSQL" },
            options,
            // The server gives up before we do, and what it gives up is not left behind.
            limit: (section.timeout / 2).max(Duration::from_millis(250)),
            connect: section.timeout.max(CONNECT),
        })
    }
}

fn mysql(address: &Address, user: Option<&str>, password: Option<&Secret>, tls: &str, ca: Option<PathBuf>) -> (Options, String) {
    let mut options = MySqlConnectOptions::new().timezone(None).statement_cache_capacity(0).disable_statement_logging();
    options = options.username(user.unwrap_or("root")).ssl_mode(match tls {
        "disabled" => MySqlSslMode::Disabled,
        "required" => MySqlSslMode::Required,
        "verify-ca" => MySqlSslMode::VerifyCa,
        "verify-full" => MySqlSslMode::VerifyIdentity,
        _ => MySqlSslMode::Preferred,
    });
    if let Some(password) = password {
        options = options.password(password.reveal());
    }
    if let Some(database) = &address.database {
        options = options.database(database);
    }
    if let Some(ca) = ca {
        options = options.ssl_ca(ca);
    }
    if let Some(socket) = &address.socket {
        return (Options::MySql(options.socket(socket)), socket.display().to_string());
    }
    let (host, port) = (address.host.as_deref().unwrap_or("127.0.0.1"), address.port.unwrap_or(3306));
    (Options::MySql(options.host(host).port(port)), shown(host, port))
}

fn postgres(address: &Address, user: Option<&str>, password: Option<&Secret>, tls: &str, ca: Option<PathBuf>) -> (Options, String) {
    let mut options = PgConnectOptions::new_without_pgpass().statement_cache_capacity(0).disable_statement_logging();
    options = options.application_name("whatgives-sampler").ssl_mode(match tls {
        "disabled" => PgSslMode::Disable,
        "required" => PgSslMode::Require,
        "verify-ca" => PgSslMode::VerifyCa,
        "verify-full" => PgSslMode::VerifyFull,
        _ => PgSslMode::Prefer,
    });
    if let Some(user) = user {
        options = options.username(user);
    }
    if let Some(password) = password {
        options = options.password(password.reveal());
    }
    if let Some(database) = &address.database {
        options = options.database(database);
    }
    if let Some(ca) = ca {
        options = options.ssl_root_cert(ca);
    }
    let port = address.port.unwrap_or(5432);
    if let Some(socket) = &address.socket {
        return (Options::Postgres(options.socket(socket).port(port)), socket.display().to_string());
    }
    let host = address.host.as_deref().unwrap_or("127.0.0.1");
    (Options::Postgres(options.host(host).port(port)), shown(host, port))
}

fn shown(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// An open connection.
pub(super) enum Session {
    MySql(MySqlConnection),
    Postgres(PgConnection),
}

impl Session {
    /// Connects and sets the limits. They are not optional: without them nothing is asked.
    pub async fn open(target: &Target) -> Result<Self, Fault> {
        let connecting = async {
            Ok::<_, sqlx::Error>(match &target.options {
                Options::MySql(options) => Self::MySql(options.connect().await?),
                Options::Postgres(options) => Self::Postgres(options.connect().await?),
            })
        };
        let mut session = match tokio::time::timeout(target.connect, connecting).await {
            Ok(Ok(session)) => session,
            Ok(Err(error)) => return Err(refused(target, &error)),
            Err(_) => {
                let message = format!("connect to {}: no answer in {} ms", target.name, target.connect.as_millis());
                return Err(Fault::new(FaultKind::Unreachable, message));
            }
        };
        let limit = target.limit.as_millis();
        match &mut session {
            Self::MySql(_) => {
                for sql in ["SET SESSION TRANSACTION READ ONLY", "SET SESSION lock_wait_timeout = 1, innodb_lock_wait_timeout = 1"]
                {
                    session.ask(sql).await.map_err(|error| fault(target, "make the session read only", &error))?;
                }
                // MySQL's and MariaDB's own name of the same; one of them is refused.
                let first = session.ask(&format!("SET SESSION max_execution_time = {limit}")).await;
                if first.is_err() {
                    let second = format!("SET SESSION max_statement_time = {}.{:03}", limit / 1000, limit % 1000);
                    session.ask(&second).await.map_err(|error| fault(target, "limit the time of a query", &error))?;
                }
            }
            Self::Postgres(_) => {
                let sql = format!(
                    "SET default_transaction_read_only = on; SET statement_timeout = {limit}; SET lock_timeout = {}",
                    (limit / 2).max(1)
                );
                session.ask(&sql).await.map_err(|error| fault(target, "make the session read only", &error))?;
            }
        }
        Ok(session)
    }

    /// One statement by the text protocol: the columns' names, and every cell as text.
    pub async fn ask(&mut self, sql: &str) -> Result<(Vec<String>, Vec<Row>), sqlx::Error> {
        let sql = sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned()));
        Ok(match self {
            Self::MySql(connection) => {
                let rows = connection.fetch_all(sql).await?;
                let names = rows.first().map(|row| row.columns().iter().map(|column| column.name().to_owned()).collect());
                (names.unwrap_or_default(), rows.iter().map(text_cells).collect())
            }
            Self::Postgres(connection) => {
                let rows = connection.fetch_all(sql).await?;
                let names = rows.first().map(|row| row.columns().iter().map(|column| column.name().to_owned()).collect());
                (names.unwrap_or_default(), rows.iter().map(pg_cells).collect())
            }
        })
    }
}

/// The same as [`text_cells`]: PostgreSQL's bytes cannot be had unchecked, since its text form of them is escaped.
fn pg_cells(row: &PgRow) -> Row {
    (0..row.columns().len())
        .map(|at| {
            let raw = row.try_get_raw(at).ok().filter(|raw| !raw.is_null())?;
            raw.as_str().ok().map(str::to_owned)
        })
        .collect()
}

/// Whether the connection is of no more use: broken, or the server said goodbye (shutting down, killed) in its last words.
pub(super) fn is_goodbye(error: &sqlx::Error) -> bool {
    let last_words = |code: &str| ["08", "57P", "70100"].iter().any(|class| code.starts_with(class));
    // MariaDB says of a statement that ran into its limit what it says of a session that was killed; only the number differs.
    breaks_connection(error)
        || !is_limit(error)
            && error.as_database_error().and_then(sqlx::error::DatabaseError::code).is_some_and(|code| last_words(&code))
}

/// A statement's error.
pub(super) fn fault(target: &Target, doing: &str, error: &sqlx::Error) -> Fault {
    let text = describe(error);
    let kind = match error {
        sqlx::Error::Database(_) if text.contains("denied") => FaultKind::Denied,
        sqlx::Error::Database(why) if why.code().is_some_and(|code| code.starts_with("57") || code.starts_with("55P")) => {
            FaultKind::Unreachable
        }
        // MySQL and MariaDB tell it by number only.
        _ if is_limit(error) => FaultKind::Unreachable,
        sqlx::Error::Database(_) => FaultKind::Nonsense,
        _ => FaultKind::Unreachable,
    };
    Fault::new(kind, format!("{doing} of {}: {text}", target.name))
}

fn refused(target: &Target, error: &sqlx::Error) -> Fault {
    let kind = if matches!(error, sqlx::Error::Database(_)) { FaultKind::Refused } else { FaultKind::Unreachable };
    Fault::new(kind, format!("connect to {}: {}", target.name, describe(error)))
}
