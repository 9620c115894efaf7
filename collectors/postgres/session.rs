//! The one connection: opened, proved to lead to the server itself, guarded.

use super::views::Catalogue;
use crate::api::{Fault, FaultKind};
use crate::sql::pg::access::Access;
use crate::sql::pg::{self, Link, Table, code};
use crate::sql::{Row, cell, describe};
use std::time::Duration;

/// Statements of ours are never cut off earlier: the machines asked are saturated.
const SHORTEST_LIMIT: Duration = Duration::from_millis(250);

/// No lock that we ask for is worth waiting longer: it is the catalogue's, and who holds it shuts everybody out.
const LONGEST_LOCK: Duration = Duration::from_millis(200);

/// The oldest server whose statistics are read.
const OLDEST: u32 = 120_000;

/// Who answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// `server_version_num`: 150018.
    pub number: u32,
    /// `server_version`: `15.18 (Debian …)`.
    pub version: String,
    /// `version()`, which forks fill with their own name.
    pub product: String,
    /// The role.
    pub user: String,
    /// The database, and its number.
    pub database: String,
    /// Its number: what `pg_locks` calls it.
    pub database_oid: Option<u32>,
    /// The role sees the sessions of all.
    pub reads_all: bool,
    /// The role is a member of the one that does, but does not inherit from it.
    pub member_only: bool,
    /// It is a standby.
    pub standby: bool,
    /// `track_activities`, `track_counts`, `track_io_timing`.
    pub tracks: [bool; 3],
    /// How many sessions the database takes, where that is limited.
    pub database_limit: Option<i64>,
    /// Names and settings for the header of the file.
    pub facts: Vec<(String, String)>,
}

/// Settings for the header.
const FACTS: [&str; 8] = [
    "max_connections",
    "superuser_reserved_connections",
    "reserved_connections",
    "max_wal_size",
    "checkpoint_timeout",
    "shared_buffers",
    "deadlock_timeout",
    "synchronous_commit",
];

/// An open connection.
pub struct Session {
    link: Link,
}

impl Session {
    /// Connects, makes sure that no pooler stands between, and sets the guards.
    pub async fn open(access: &Access, timeout: Duration) -> Result<(Self, Identity, Catalogue), Fault> {
        let account = account(access.user());
        let link = Link::open(access).await.map_err(|error| match () {
            () if error.to_string().contains("startup parameter") => pooled(access, &describe(&error)),
            () => pg::refused(access, &error, &account),
        })?;
        let mut session = Self { link };
        let doing = |doing: &'static str| move |error: sqlx::Error| pg::fault(access, doing, &error);
        // Before anything is set: behind a pooler a setting would stay in the server's session and meet others.
        let first = session
            .ask("SELECT current_setting('whatgives.direct', true), current_setting('server_version_num'), current_setting('server_version')")
            .await
            .map_err(doing("ask who it is"))?;
        let row = first.rows.first().cloned().unwrap_or_default();
        if cell(&row, 0) != Some("1") {
            return Err(pooled(access, "the server did not get our start-up options"));
        }
        let number = cell(&row, 1).and_then(|text| text.parse().ok()).unwrap_or(0);
        if number < OLDEST {
            let found = cell(&row, 2).unwrap_or("nothing").to_owned();
            return Err(Fault::new(
                FaultKind::Nonsense,
                format!("version of {access}: expected PostgreSQL 12 or later, found {found}"),
            ));
        }
        session.ask(&guards(timeout)).await.map_err(doing("set up the session"))?;
        let told = session.ask(&identity_sql()).await.map_err(doing("ask who it is"))?;
        let identity = identity(told.rows.first().unwrap_or(&Row::new()));
        let columns = session.ask(&Catalogue::sql()).await.map_err(doing("ask which statistics it has"))?;
        Ok((session, identity, Catalogue::of_rows(&columns.rows)))
    }

    /// Asks one statement, on its own: never inside a transaction, where the statistics stand still.
    pub async fn ask(&mut self, sql: &str) -> Result<Table, sqlx::Error> {
        self.link.ask(sql).await
    }
}

/// The role that a sampler needs.
pub fn account(user: &str) -> String {
    format!("make a role for the sampler: CREATE ROLE \"{user}\" LOGIN PASSWORD '<password>'; GRANT pg_monitor TO \"{user}\";")
}

/// What would let a role that does not see everything see it.
pub fn grant(identity: &Identity) -> String {
    let user = identity.user.replace('"', "\"\"");
    match identity.member_only {
        true if identity.number >= 160_000 => format!("GRANT pg_monitor TO \"{user}\" WITH INHERIT TRUE;"),
        true => format!("ALTER ROLE \"{user}\" INHERIT;"),
        false => format!("GRANT pg_monitor TO \"{user}\";"),
    }
}

fn pooled(access: &Access, found: &str) -> Fault {
    Fault::new(FaultKind::Nonsense, format!("{access}: a connection pooler answers there, not PostgreSQL itself: {found}")).hint(
        "connect direct, to PostgreSQL's own port (5432): the sampler would take the pool's connections and see one of them; the pooler has a collector of its own: --pgbouncer HOST:6432",
    )
}

/// Limits on ourselves, as far as the server knows them and lets us set them; one statement.
fn guards(timeout: Duration) -> String {
    let limit = (timeout / 2).max(SHORTEST_LIMIT);
    let lock = LONGEST_LOCK.min(limit / 2);
    let wanted = [
        ("statement_timeout", limit.as_millis().to_string()),
        ("lock_timeout", lock.as_millis().to_string()),
        // We never stay inside a transaction; should it happen, the server ends it and vacuum goes on.
        ("idle_in_transaction_session_timeout", "10000".to_owned()),
        // Our connection is kept, however long the ticks.
        ("idle_session_timeout", "0".to_owned()),
        ("default_transaction_read_only", "on".to_owned()),
        ("search_path", "pg_catalog".to_owned()),
        ("client_min_messages", "error".to_owned()),
        // Nothing of ours is worth compiling or sharing out.
        ("jit", "off".to_owned()),
        ("max_parallel_workers_per_gather", "0".to_owned()),
        ("plan_cache_mode", "force_generic_plan".to_owned()),
    ];
    let wanted: Vec<String> = wanted.iter().map(|(name, value)| format!("('{name}', '{value}')")).collect();
    format!(
        "SELECT set_config(s.name, w.value, false) FROM pg_catalog.pg_settings s JOIN (VALUES {}) AS w(name, value) ON w.name = s.name WHERE s.context = 'user'",
        wanted.join(", ")
    )
}

fn identity_sql() -> String {
    let role = |how: &str| {
        format!(
            "(SELECT bool_or(pg_has_role(current_user, oid, '{how}')) FROM pg_catalog.pg_roles WHERE rolname = 'pg_read_all_stats')::int"
        )
    };
    let facts: Vec<String> = FACTS.iter().map(|name| format!("current_setting('{name}', true)")).collect();
    format!(
        "SELECT current_setting('server_version_num'), current_setting('server_version'), version(), current_user, current_database(), \
         (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()), \
         (SELECT datconnlimit FROM pg_catalog.pg_database WHERE datname = current_database()), \
         {}, {}, pg_is_in_recovery()::int, current_setting('track_activities'), current_setting('track_counts'), current_setting('track_io_timing'), {}",
        role("USAGE"),
        role("MEMBER"),
        facts.join(", ")
    )
}

fn identity(row: &Row) -> Identity {
    let text = |at: usize| cell(row, at).unwrap_or_default().to_owned();
    let yes = |at: usize| matches!(cell(row, at), Some("1" | "on"));
    Identity {
        number: text(0).parse().unwrap_or(0),
        version: text(1),
        product: text(2),
        user: text(3),
        database: text(4),
        database_oid: text(5).parse().ok(),
        database_limit: text(6).parse().ok().filter(|limit| *limit >= 0),
        reads_all: yes(7),
        member_only: yes(8) && !yes(7),
        standby: yes(9),
        tracks: [yes(10), yes(11), yes(12)],
        facts: FACTS
            .iter()
            .enumerate()
            .filter_map(|(at, name)| {
                cell(row, 13 + at).filter(|text| !text.is_empty()).map(|text| ((*name).to_owned(), text.to_owned()))
            })
            .collect(),
    }
}

/// Our own limits cut the statement off: the server is slow, and the connection is whole.
pub fn is_limit(error: &sqlx::Error) -> bool {
    matches!(code(error), Some("57014" | "55P03"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Row {
        cells.iter().map(|text| (!text.is_empty()).then(|| (*text).to_owned())).collect()
    }

    #[test]
    fn a_member_that_does_not_inherit_is_told_so() {
        let member = row(&["150018", "15.18", "PostgreSQL 15.18", "pr\"obe", "shop", "5", "-1", "0", "1", "0", "on", "on", "off"]);
        let found = identity(&member);
        assert!(!found.reads_all && found.member_only);
        assert_eq!(grant(&found), "ALTER ROLE \"pr\"\"obe\" INHERIT;");
        assert_eq!(grant(&Identity { number: 180_000, ..found }), "GRANT pg_monitor TO \"pr\"\"obe\" WITH INHERIT TRUE;");
    }

    #[test]
    fn what_the_server_did_not_tell_is_not_taken_for_a_yes() {
        let found = identity(&row(&[]));
        assert!(!found.reads_all && found.tracks == [false; 3]);
        assert_eq!((found.database_oid, found.database_limit), (None, None));
    }

    #[test]
    fn the_limits_follow_the_reads_deadline_and_have_a_floor() {
        assert!(guards(Duration::from_secs(2)).contains("('statement_timeout', '1000'), ('lock_timeout', '200')"));
        assert!(guards(Duration::from_millis(80)).contains("('statement_timeout', '250'), ('lock_timeout', '125')"));
    }
}
