//! What this account can see on this server, proven by asking once before the load. A table that answers less than the
//! truth without an error (the process list without PROCESS) is never read unless a stricter one proved the privilege.

use super::further::Further;
use super::session::{Identity, Product, Session, grantee, is_denied, is_goodbye};
use super::target::WaitsWanted;
use crate::api::Lack;
use crate::sql::cell;

/// What can be read.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a privilege of its own, and any mixture of them is met")]
pub struct Sight {
    /// Row-lock waits, with their object.
    pub row_waits: bool,
    /// Sessions of everybody, and what they wait for.
    pub sessions: bool,
    /// MySQL: metadata locks with their object and owner.
    pub metadata: bool,
    /// The statement a session runs or ran last.
    pub statements: bool,
    /// The names of `INNODB_METRICS` that are counted.
    pub metrics: Vec<String>,
    /// Replication, and the queue of the thread pool.
    pub further: Further,
    /// For people: what is seen.
    pub sees: Vec<String>,
    /// For people: what is not, and the mend.
    pub lacks: Vec<Lack>,
}

/// The answer to one probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// Rows, or none where none was expected.
    Seen,
    /// A row was expected and none came: the instrumentation is off.
    Empty,
    /// The privilege is missing.
    Denied,
    /// The server does not know the table.
    Unknown,
}

/// MySQL releases that scan all transactions under InnoDB's global latches while their lock tables are read (bug 112035,
/// mended by 8.0.40, 8.4.3 and 9.1.0): monitoring them stalls the server.
pub fn stalls(version: &str) -> bool {
    let mut parts = version.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
    let (major, minor, patch) = (parts.next().unwrap_or(0), parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    match (major, minor) {
        (8, 0) => patch <= 39,
        (8, 1..=3) | (9, 0) => true,
        (8, 4) => patch <= 2,
        _ => false,
    }
}

async fn probe(session: &mut Session, sql: &str, rows_expected: bool) -> Result<Answer, sqlx::Error> {
    match session.ask(sql).await {
        Ok(rows) if rows.is_empty() && rows_expected => Ok(Answer::Empty),
        Ok(_) => Ok(Answer::Seen),
        Err(error) if is_denied(&error) => Ok(Answer::Denied),
        Err(error) if is_goodbye(&error) => Err(error),
        Err(_) => Ok(Answer::Unknown),
    }
}

impl Sight {
    /// Probes one table after the other.
    pub async fn prove(session: &mut Session, identity: &Identity, wanted: WaitsWanted) -> Result<Self, sqlx::Error> {
        let mut sight = Self::default();
        let to = grantee(&identity.account);
        let transactions = probe(session, "SELECT 1 FROM information_schema.INNODB_TRX LIMIT 1", false).await?;
        if transactions == Answer::Denied {
            let what = match identity.product {
                Product::MariaDb => "lock waits, sessions that wait for metadata, table and user locks, lock timeouts",
                Product::MySql | Product::Other => "row-lock waits, deadlocks, lock timeouts, history list",
            };
            let mend = Some(format!("GRANT PROCESS ON *.* TO {to};"));
            sight.lacks.push(Lack { what: format!("{what}: PROCESS is missing"), mend });
        }
        sight.see_metrics(session).await?;
        match identity.product {
            Product::MySql => sight.prove_mysql(session, identity, wanted, &to, transactions).await?,
            Product::MariaDb => sight.prove_mariadb(session, identity, wanted, transactions).await?,
            Product::Other => {
                sight.lacks.push(Lack { what: format!("lock waits: not known how {} tells them", identity.version), mend: None });
            }
        }
        sight.further = Further::prove(session, identity, &to, &mut sight.lacks).await?;
        if sight.further.has("replication_lag_seconds") {
            sight.sees.push("how far this replica is behind".to_owned());
        }
        if wanted == WaitsWanted::No {
            sight.lacks.push(Lack { what: "lock waits: switched off".to_owned(), mend: Some("waits = true".to_owned()) });
        }
        Ok(sight)
    }

    async fn see_metrics(&mut self, session: &mut Session) -> Result<(), sqlx::Error> {
        // The column that says whether a counter counts has another name in MariaDB since 10.5; a counter that is off shows
        // 0, which would be a plausible wrong number.
        for enabled in ["STATUS = 'enabled'", "ENABLED = 1"] {
            let names = super::gauges::METRICS.join("','");
            let sql = format!("SELECT NAME FROM information_schema.INNODB_METRICS WHERE NAME IN ('{names}') AND {enabled}");
            match session.ask(&sql).await {
                Ok(rows) => {
                    self.metrics = rows.iter().filter_map(|row| cell(row, 0).map(str::to_owned)).collect();
                    return Ok(());
                }
                Err(error) if is_goodbye(&error) => return Err(error),
                Err(_) => {}
            }
        }
        Ok(())
    }

    async fn prove_mysql(
        &mut self,
        session: &mut Session,
        identity: &Identity,
        wanted: WaitsWanted,
        to: &str,
        transactions: Answer,
    ) -> Result<(), sqlx::Error> {
        let grant = Some(format!("GRANT SELECT ON performance_schema.* TO {to};"));
        if identity.settings.text("performance_schema").is_some_and(|state| state.eq_ignore_ascii_case("OFF")) {
            self.lacks.push(Lack {
                what: "lock waits and metadata locks: performance_schema is OFF".to_owned(),
                mend: Some("performance_schema = ON in my.cnf, [mysqld]; restart".to_owned()),
            });
            return Ok(());
        }
        let me = "(SELECT THREAD_ID FROM performance_schema.threads WHERE PROCESSLIST_ID = CONNECTION_ID())";
        let threads =
            probe(session, "SELECT 1 FROM performance_schema.threads WHERE PROCESSLIST_ID = CONNECTION_ID()", true).await?;
        self.sessions = threads == Answer::Seen;
        let statements = format!("SELECT 1 FROM performance_schema.events_statements_current WHERE THREAD_ID = {me}");
        let statements = probe(session, &statements, true).await?;
        self.statements = self.sessions && statements == Answer::Seen;
        let metadata = "SELECT 1 FROM performance_schema.metadata_locks WHERE OBJECT_TYPE = 'TABLE' AND OBJECT_SCHEMA = 'performance_schema' AND OBJECT_NAME = 'metadata_locks'";
        // Reading the table takes a metadata lock on it: a row says that the instrument works.
        let metadata = probe(session, metadata, true).await?;
        self.metadata = self.sessions && metadata == Answer::Seen;
        let mut denied = vec![];
        for (table, answer) in [("threads", threads), ("events_statements_current", statements), ("metadata_locks", metadata)] {
            if answer == Answer::Denied {
                denied.push(table);
            }
        }
        let stalls = stalls(&identity.version) && wanted != WaitsWanted::Force;
        if stalls && wanted == WaitsWanted::Yes {
            self.lacks.push(Lack {
                what: format!(
                    "row-lock waits: MySQL {} stalls while its lock tables are read (bug 112035); the counters are read",
                    identity.version
                ),
                mend: Some("upgrade to 8.0.40, 8.4.3 or 9.1, or set waits = \"force\"".to_owned()),
            });
        }
        if wanted != WaitsWanted::No && !stalls {
            for (table, sql) in [
                ("data_locks", "SELECT 1 FROM performance_schema.data_locks WHERE ENGINE_LOCK_ID = '0' AND ENGINE = 'INNODB'"),
                ("data_lock_waits", "SELECT 1 FROM performance_schema.data_lock_waits WHERE REQUESTING_THREAD_ID = 0"),
            ] {
                match probe(session, sql, false).await? {
                    Answer::Denied => denied.push(table),
                    Answer::Unknown => self
                        .lacks
                        .push(Lack { what: format!("row-lock waits: MySQL {} has no {table}", identity.version), mend: None }),
                    Answer::Seen | Answer::Empty => {}
                }
            }
            self.row_waits = transactions == Answer::Seen
                && self.sessions
                && !denied.iter().any(|table| table.starts_with("data_"))
                && !self.lacks.iter().any(|lack| lack.what.contains("has no data_lock"));
        }
        if !denied.is_empty() {
            self.lacks.push(Lack {
                what: format!("lock waits: SELECT is missing on performance_schema.{}", denied.join(", .")),
                mend: grant,
            });
        }
        if metadata == Answer::Empty {
            self.lacks.push(Lack {
                what: "object and holder of metadata locks: the instrument is off".to_owned(),
                mend: Some(
                    "UPDATE performance_schema.setup_instruments SET ENABLED = 'YES' WHERE NAME = 'wait/lock/metadata/sql/mdl';"
                        .to_owned(),
                ),
            });
        }
        if statements == Answer::Empty {
            self.lacks.push(Lack {
                what: "statements of waiters and holders: the consumer is off".to_owned(),
                mend: Some(
                    "UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' WHERE NAME = 'events_statements_current';"
                        .to_owned(),
                ),
            });
        }
        self.say(wanted);
        Ok(())
    }

    async fn prove_mariadb(
        &mut self,
        session: &mut Session,
        identity: &Identity,
        wanted: WaitsWanted,
        transactions: Answer,
    ) -> Result<(), sqlx::Error> {
        self.lacks.push(Lack {
            what: "connections refused at max_connections: MariaDB counts them among the aborted ones".to_owned(),
            mend: None,
        });
        // Without PROCESS the process list has one row, our own, and no error: the lock tables prove the privilege.
        self.sessions = transactions == Answer::Seen;
        if wanted != WaitsWanted::No {
            let locks = probe(session, "SELECT 1 FROM information_schema.INNODB_LOCKS LIMIT 1", false).await?;
            self.row_waits = self.sessions && locks == Answer::Seen;
        }
        if transactions == Answer::Seen {
            self.lacks.push(Lack {
                what: "object and holder of metadata locks: MariaDB tells only that a session waits".to_owned(),
                mend: None,
            });
        }
        let on = identity.settings.text("performance_schema").is_some_and(|state| state.eq_ignore_ascii_case("ON"));
        let me = "(SELECT THREAD_ID FROM performance_schema.threads WHERE PROCESSLIST_ID = CONNECTION_ID())";
        let statements = format!("SELECT 1 FROM performance_schema.events_statements_current WHERE THREAD_ID = {me}");
        self.statements = on && probe(session, &statements, true).await? == Answer::Seen;
        if self.row_waits && !self.statements {
            let (what, mend) = if on {
                let to = grantee(&identity.account);
                ("SELECT is missing on performance_schema", format!("GRANT SELECT ON performance_schema.* TO {to};"))
            } else {
                ("performance_schema is OFF", "performance_schema = ON in my.cnf, [mariadb]; restart".to_owned())
            };
            self.lacks.push(Lack { what: format!("the last statement of an idle holder: {what}"), mend: Some(mend) });
        }
        self.say(wanted);
        Ok(())
    }

    fn say(&mut self, wanted: WaitsWanted) {
        let waits = wanted != WaitsWanted::No;
        for (seen, what) in [
            (self.row_waits, "row-lock waits: table, index, row, holder"),
            (self.sessions, "sessions that wait for metadata, table and user locks"),
            (waits && self.metadata, "metadata-lock waits: object and holder"),
            (waits && self.statements, "statements of waiters and holders, without their values"),
            (!self.metrics.is_empty(), "deadlocks, lock timeouts, history list"),
        ] {
            if seen {
                self.sees.push(what.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_releases_that_stall_are_known() {
        for version in ["8.0.11", "8.0.37", "8.0.39-30", "8.1.0", "8.3.0", "8.4.0", "8.4.2-debug", "9.0.1"] {
            assert!(stalls(version), "{version}");
        }
        for version in ["8.0.40", "8.0.43-0ubuntu0.24.04.1", "8.4.3", "8.4.11", "9.1.0", "9.7.4-2", "10.11.19-MariaDB", "", "x"] {
            assert!(!stalls(version), "{version}");
        }
    }
}
