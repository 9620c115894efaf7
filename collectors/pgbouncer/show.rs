//! The answers of PgBouncer's console, taken apart by the names of their columns, which change with almost every release. A
//! number that cannot be read is missing, and so is every sum that it belongs to: never 0.

use crate::sql::Row;
use crate::sql::pg::Table;
use std::collections::BTreeMap;

/// PgBouncer's own pool and database: the console's.
pub const OWN: &str = "pgbouncer";

/// A cell as a number; NULL, an empty text and an absent column are none. Some versions pad with blanks.
fn number(table: &Table, row: &Row, column: &str) -> Option<f64> {
    table.cell(row, column)?.trim().parse::<f64>().ok().filter(|value| value.is_finite())
}

/// One pool: a database and a user.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pool {
    /// The database's name within PgBouncer.
    pub database: String,
    /// The user.
    pub user: String,
    /// Clients that wait.
    pub waiting: Option<f64>,
    /// Clients that do not.
    pub clients: Option<f64>,
    /// How long the first waits, seconds.
    pub maxwait: Option<f64>,
    /// Servers that serve a client.
    pub active: Option<f64>,
    /// Servers that do not.
    pub idle: Option<f64>,
    /// Servers being opened.
    pub login: Option<f64>,
}

/// `SHOW POOLS`, without PgBouncer's own. None where it is something else.
pub fn pools(table: &Table) -> Option<Vec<Pool>> {
    if table.rows.is_empty() {
        return Some(Vec::new());
    }
    let (_, _) = (table.column("database")?, table.column("cl_waiting")?);
    let pool = |row: &Row| {
        let get = |column: &str| number(table, row, column);
        let database = table.cell(row, "database")?.to_owned();
        // Microseconds are the remainder of the seconds; before 1.8 there were none.
        let micros = if table.column("maxwait_us").is_some() { get("maxwait_us") } else { Some(0.0) };
        Some(Pool {
            user: table.cell(row, "user").unwrap_or_default().to_owned(),
            waiting: get("cl_waiting"),
            clients: get("cl_active"),
            maxwait: get("maxwait").zip(micros).map(|(seconds, micros)| seconds + micros / 1e6),
            active: get("sv_active"),
            idle: ["sv_idle", "sv_used", "sv_tested"].into_iter().map(get).sum(),
            login: get("sv_login"),
            database,
        })
    };
    Some(table.rows.iter().filter_map(pool).filter(|pool| pool.database != OWN).collect())
}

/// The sum of a number over rows; missing where one of them is.
pub fn sum<T>(rows: &[T], get: impl Fn(&T) -> Option<f64>) -> Option<f64> {
    rows.iter().map(get).sum()
}

/// Limits of a database.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Servers of each pool; 0 is no limit.
    pub size: Option<f64>,
    /// More of them after a while.
    pub reserve: Option<f64>,
    /// Servers of all its pools; 0 is no limit.
    pub most: Option<f64>,
}

/// Sizes of pools: by database (`SHOW DATABASES`), and by user where this version has that (`SHOW USERS`, 1.24).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sizes {
    databases: BTreeMap<String, Limits>,
    users: BTreeMap<String, Limits>,
    /// Databases that are paused: their clients wait for somebody's RESUME.
    pub paused: Vec<String>,
}

impl Sizes {
    /// From the two answers; the second may be empty.
    pub fn new(databases: &Table, users: &Table) -> Self {
        let mut found = Self::default();
        for row in &databases.rows {
            let Some(name) = databases.cell(row, "name") else { continue };
            let get = |column: &str| number(databases, row, column);
            let limits = Limits {
                size: get("pool_size"),
                // Renamed in 1.24.
                reserve: get("reserve_pool_size").or_else(|| get("reserve_pool")),
                most: get("max_connections"),
            };
            found.databases.insert(name.to_owned(), limits);
            if get("paused").is_some_and(|paused| paused > 0.0) {
                found.paused.push(name.to_owned());
            }
        }
        for row in &users.rows {
            let Some(name) = users.cell(row, "name") else { continue };
            let get = |column: &str| number(users, row, column);
            let limits = Limits { size: get("pool_size"), reserve: get("reserve_pool_size"), most: get("max_user_connections") };
            found.users.insert(name.to_owned(), limits);
        }
        found
    }

    /// How many servers a pool may have: a size of the user goes before one of the database, as do reserves.
    pub fn of(&self, database: &str, user: &str) -> Option<f64> {
        let (database, user) = (self.databases.get(database)?, self.users.get(user).copied().unwrap_or_default());
        let limit = |most: Option<f64>| most.filter(|most| *most > 0.0).unwrap_or(f64::INFINITY);
        let size = user.size.or(database.size).filter(|size| *size > 0.0);
        let sized = size.map_or(f64::INFINITY, |size| size + user.reserve.or(database.reserve).unwrap_or(0.0));
        Some(sized.min(limit(database.most)).min(limit(user.most))).filter(|servers| servers.is_finite())
    }

    /// How many servers all these pools may have together. None where one has no limit, or where there is none.
    pub fn total(&self, pools: &[Pool]) -> Option<f64> {
        let mut by_database: BTreeMap<&str, f64> = BTreeMap::new();
        for pool in pools {
            *by_database.entry(&pool.database).or_default() += self.of(&pool.database, &pool.user)?;
        }
        let most = |name: &str| self.databases.get(name).and_then(|limits| limits.most).filter(|most| *most > 0.0);
        let total = by_database.iter().map(|(name, servers)| most(name).map_or(*servers, |most| servers.min(most))).sum();
        (!pools.is_empty()).then_some(total)
    }
}

/// Where a counter stands in `SHOW STATS`.
const STATS: [(&str, &str); 8] = [
    ("wait_us_total", "total_wait_time"),
    ("transactions_total", "total_xact_count"),
    ("queries_total", "total_query_count"),
    ("transaction_us_total", "total_xact_time"),
    ("query_us_total", "total_query_time"),
    ("server_assignments_total", "total_server_assignment_count"),
    ("received_bytes_total", "total_received"),
    ("sent_bytes_total", "total_sent"),
];

/// `SHOW STATS`: sums over the databases, PgBouncer's own apart. Before the first client there is none, and that is 0.
pub fn stats(table: &Table) -> Vec<(&'static str, f64)> {
    let others: Vec<&Row> = table.rows.iter().filter(|row| table.cell(row, "database").is_some_and(|name| name != OWN)).collect();
    STATS
        .iter()
        .filter(|(_, column)| table.column(column).is_some())
        .filter_map(|(gauge, column)| sum(&others, |row| number(table, row, column)).map(|value| (*gauge, value)))
        .collect()
}

/// Two columns, a name and a value: `SHOW LISTS`, `SHOW CONFIG`.
pub fn pairs(table: &Table, name: &str, value: &str) -> BTreeMap<String, String> {
    let pair = |row: &Row| Some((table.cell(row, name)?.to_owned(), table.cell(row, value)?.trim().to_owned()));
    table.rows.iter().filter_map(pair).collect()
}

#[cfg(test)]
mod tests;
