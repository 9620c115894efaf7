//! A connection that speaks PostgreSQL's protocol: PostgreSQL itself and PgBouncer's console. Simple queries only (a prepared
//! one wedges the console), every cell as text, and what the errors mean.

pub mod access;

use super::{Row, breaks_connection, describe};
use crate::api::{Fault, FaultKind};
use access::Access;
use sqlx::postgres::{PgConnection, PgDatabaseError, PgRow, PgSeverity};
use sqlx::{Column as _, ConnectOptions as _, Executor as _, Row as _, ValueRef as _};
use std::time::Duration;

/// How long connecting may take: a host that swallows packets would otherwise cost two minutes.
const CONNECT: Duration = Duration::from_secs(10);

/// After a read that was given up (30 s without an answer) the connection gets this long to go on; a way that is broken for
/// good would otherwise be waited for at every tick.
const PATIENCE: Duration = Duration::from_secs(5);

/// A reply. Without rows the names of the columns are not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The rows, each with a cell a column.
    pub rows: Vec<Row>,
}

impl Table {
    /// Where the column is.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// The cell of a row by the column's name, where there is one and it is not NULL.
    pub fn cell<'t>(&self, row: &'t Row, name: &str) -> Option<&'t str> {
        super::cell(row, self.column(name)?)
    }
}

/// The cells of a row of a simple query, as the server wrote them.
pub fn cells(row: &PgRow) -> Row {
    (0..row.columns().len())
        .map(|at| {
            let raw = row.try_get_raw(at).ok()?;
            if raw.is_null() { None } else { raw.as_bytes().ok().map(|bytes| String::from_utf8_lossy(bytes).into_owned()) }
        })
        .collect()
}

/// An open connection.
pub struct Link {
    connection: PgConnection,
    /// A question is under way. Still set at the next one, its read was given up.
    asking: bool,
}

impl Link {
    /// Connects, and does nothing else.
    pub async fn open(access: &Access) -> Result<Self, sqlx::Error> {
        match tokio::time::timeout(CONNECT, access.options.connect()).await {
            Ok(connection) => Ok(Self { connection: connection?, asking: false }),
            Err(_) => Err(silent(CONNECT)),
        }
    }

    /// Asks one statement. It stays usable when the future is dropped: the answer that comes late is skipped.
    pub async fn ask(&mut self, sql: &str) -> Result<Table, sqlx::Error> {
        let given_up = std::mem::replace(&mut self.asking, true);
        let answer = self.connection.fetch_all(sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())));
        let answer = if given_up {
            tokio::time::timeout(PATIENCE, answer).await.unwrap_or_else(|_| Err(silent(PATIENCE)))
        } else {
            answer.await
        };
        self.asking = false;
        let rows = answer?;
        let columns = rows.first().map(|row| row.columns().iter().map(|column| column.name().to_owned()).collect());
        Ok(Table { columns: columns.unwrap_or_default(), rows: rows.iter().map(cells).collect() })
    }
}

fn silent(after: Duration) -> sqlx::Error {
    sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, format!("no answer in {} s", after.as_secs())))
}

/// The server's five characters for an error.
pub fn code(error: &sqlx::Error) -> Option<&str> {
    match error {
        sqlx::Error::Database(why) => why.try_downcast_ref::<PgDatabaseError>().map(PgDatabaseError::code),
        _ => None,
    }
}

/// The connection is of no more use after this error.
pub fn ends_session(error: &sqlx::Error) -> bool {
    let fatal = match error {
        sqlx::Error::Database(why) => why
            .try_downcast_ref::<PgDatabaseError>()
            .is_some_and(|why| matches!(why.severity(), PgSeverity::Fatal | PgSeverity::Panic)),
        _ => false,
    };
    fatal || breaks_connection(error)
}

/// An error of a statement as the caller's fault: `read the sessions of postgres@db:5432: …`.
pub fn fault(access: &Access, doing: &str, error: &sqlx::Error) -> Fault {
    let kind = match code(error) {
        Some("42501") => FaultKind::Denied,
        // Cut off by our own limits (57014, 55P03), shut down, out of resources.
        Some(code) if code.starts_with("57") || code.starts_with("53") || code == "55P03" => FaultKind::Unreachable,
        Some(_) => FaultKind::Nonsense,
        None => FaultKind::Unreachable,
    };
    Fault::new(kind, format!("{doing} of {access}: {}", describe(error)))
}

/// A connection that did not come about. `hint` is the target's own advice for a user that is not let in.
pub fn refused(access: &Access, error: &sqlx::Error, account: &str) -> Fault {
    let place = format!("connect to {access}: {}", describe(error));
    let user = access.user();
    let unreachable = |text: String| Fault::new(FaultKind::Unreachable, text);
    match (code(error), error) {
        (Some("28P01"), _) => Fault::new(FaultKind::Refused, place).hint(if access.password_from == access::NOWHERE {
            format!("no password was given (password_file, PGPASSWORD or ~/.pgpass); {account}")
        } else {
            format!("the password came from {}; check it, or {account}", access.password_from)
        }),
        (Some("28000"), _) => Fault::new(FaultKind::Refused, place)
            .hint(format!("pg_hba.conf must let {user:?} in from this machine (line: host all {user} <this machine>/32 scram-sha-256), and {account}")),
        (Some("3D000"), _) => Fault::new(FaultKind::Refused, place).hint("name a database that exists: postgres://user@host/DATABASE"),
        (Some("53300"), _) => Fault::new(FaultKind::Refused, place).hint(format!(
            "every usable slot is taken: start the sampler before the load, its connection is kept; from PostgreSQL 16 on, GRANT pg_use_reserved_connections TO \"{user}\"; with reserved_connections set"
        )),
        (Some("57P03"), _) => unreachable(place),
        (Some(_), _) => Fault::new(FaultKind::Refused, place).hint(account.to_owned()),
        (None, sqlx::Error::Tls(_)) => unreachable(place)
            .hint("tls = \"disabled\" does without; tls_ca = \"ca.pem\" names the authority that signed the server's certificate"),
        (None, _) => unreachable(place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_found_by_the_name_of_its_column_wherever_it_stands() {
        let row = vec![None, Some("7".to_owned())];
        let table = Table { columns: vec!["a".to_owned(), "b".to_owned()], rows: vec![row.clone()] };
        assert_eq!((table.cell(&row, "b"), table.cell(&row, "a"), table.cell(&row, "c")), (Some("7"), None, None));
    }

    #[test]
    fn a_broken_pipe_ends_the_session_and_is_no_denial() {
        let error = sqlx::Error::Io(std::io::ErrorKind::BrokenPipe.into());
        assert!(ends_session(&error));
        assert_eq!(code(&error), None);
    }
}
