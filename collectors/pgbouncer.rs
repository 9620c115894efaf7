//! PgBouncer: who waits for a server connection, how long, and how much of the pools is in use. Seen: 1.18 and 1.26.
//!
//! Its console (database `pgbouncer`) over one kept connection, by simple queries only: a prepared one fails and wedges it. Each
//! tick asks SHOW POOLS, DATABASES, STATS and LISTS, and SHOW USERS where users can have pools of their own size. Privilege:
//! `stats_users`. Only totals are read: the `avg_` columns are of a period of a minute. PgBouncer refuses clients beyond
//! `max_client_conn`: a connection opened before the load goes on.
//!
//! A pool appears with its first client, so that columns of single pools are those of the start (at most 20), or the ones that
//! `pools` names. Left unread on purpose: SHOW CLIENTS and SHOW SERVERS, a row for each of thousands.

mod gauges;
mod show;

use crate::api::{Capacity, Collector, Fault, FaultKind, Gauge, Lack, Reading, Section, Spec, Support};
use crate::settings;
use crate::sql::pg::access::{Access, Usual};
use crate::sql::pg::{self, Link, Table, ends_session};
use crate::sql::{cell, describe};
use gauges::{GAUGES, PoolColumns};
use serde::Deserialize;
use show::{OWN, Sizes};
use std::collections::{BTreeMap, HashSet};

/// The registry's entry.
pub const SPEC: Spec = Spec {
    name: "pgbouncer",
    flag: "pgbouncer",
    aliases: &[],
    value: "HOST:PORT",
    about: "PgBouncer: clients that wait for a connection and how long, pools in use, waiting time, statements",
    needs: "[pgbouncer]\nstats_users = probe",
    sample_config: r#"[pgbouncer]
url = "postgres://probe@127.0.0.1:6432/"     # its console: the database is always pgbouncer
# password_file = "/etc/whatgives/pgbouncer" # or password_env = "…", PGPASSWORD, ~/.pgpass
# pools = ["shop/app"]                       # DATABASE/USER: columns of their own also for pools that are not there yet
"#,
    gauges: GAUGES,
    open,
};

/// More pools than this at the start, and only their totals are read.
const MOST_POOLS: usize = 20;

/// Settings for the header.
const FACTS: [&str; 7] = [
    "pool_mode",
    "default_pool_size",
    "reserve_pool_timeout",
    "max_client_conn",
    "max_db_connections",
    "query_wait_timeout",
    "auth_type",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    pools: Option<Vec<String>>,
}

const NAME_THEM: &str = "pools = [\"DATABASE/USER\"] in the target's section of the configuration";

fn open(section: &Section) -> Result<Box<dyn Collector>, Fault> {
    let (mut access, rest) = Access::take(section, Usual { port: Some(6432), database: Some(OWN) })?;
    let own: Settings = settings::parse(&rest)?;
    let mut named = Vec::new();
    for pool in own.pools.unwrap_or_default() {
        let Some((database, user)) = pool.split_once('/').filter(|(database, user)| !database.is_empty() && !user.is_empty())
        else {
            let message = format!("configuration of {}: pools: expected \"DATABASE/USER\", found {pool:?}", section.instance);
            return Err(Fault::new(FaultKind::Config, message));
        };
        named.push((database.to_owned(), user.to_owned()));
    }
    // A start-up option that PgBouncer refuses unless it is told to ignore it.
    access.options = access.options.extra_float_digits(None);
    Ok(Box::new(PgBouncer { access, named, link: None, known: None }))
}

struct PgBouncer {
    access: Access,
    /// Pools that are to have columns, as configured.
    named: Vec<(String, String)>,
    link: Option<Link>,
    known: Option<Known>,
}

#[derive(Default)]
struct Known {
    columns: Vec<Gauge>,
    pools: BTreeMap<(String, String), PoolColumns>,
    /// This version lets users have pools of their own size.
    users: bool,
    max_client_conn: Option<f64>,
    paused: Vec<String>,
    said: HashSet<String>,
    /// To be said with the next reading.
    notes: Vec<String>,
}

/// The answers of one tick. What was not answered is empty.
#[derive(Default)]
struct Answers {
    pools: Table,
    databases: Table,
    users: Table,
    stats: Table,
    lists: Table,
}

impl PgBouncer {
    async fn connect(&self) -> Result<Link, Fault> {
        Link::open(&self.access).await.map_err(|error| {
            if pg::code(&error) == Some("3D000") {
                let message = format!("connect to {}: {}", self.access, describe(&error));
                return Fault::new(FaultKind::Nonsense, message)
                    .hint("that is PostgreSQL itself: --postgres reads it; PgBouncer listens on a port of its own (6432)");
            }
            let user = self.access.user();
            pg::refused(
                &self.access,
                &error,
                &format!("let it see the console: stats_users = {user} in pgbouncer.ini, then RELOAD"),
            )
        })
    }

    /// The settings that the ticks do not tell; a failure costs only what they tell.
    async fn settings(&self, link: &mut Link) -> Result<BTreeMap<String, String>, Fault> {
        match link.ask("SHOW CONFIG").await {
            Ok(table) => Ok(show::pairs(&table, "key", "value")),
            Err(error) if ends_session(&error) => Err(pg::fault(&self.access, "SHOW CONFIG", &error)),
            Err(_) => Ok(BTreeMap::new()),
        }
    }

    async fn reconnect(&mut self) -> Result<(), Fault> {
        let mut link = self.connect().await?;
        let settings = self.settings(&mut link).await?;
        if let Some(known) = &mut self.known {
            known.notes.push("connected again".to_owned());
            known.max_client_conn = limit(&settings).or(known.max_client_conn);
        }
        self.link = Some(link);
        Ok(())
    }

    fn nonsense(&self, table: &Table) -> Fault {
        let message =
            format!("SHOW POOLS of {}: expected columns database and cl_waiting, found {}", self.access, table.columns.join(", "));
        Fault::new(FaultKind::Nonsense, message)
    }
}

fn limit(settings: &BTreeMap<String, String>) -> Option<f64> {
    settings.get("max_client_conn").and_then(|text| text.parse().ok())
}

/// Asks everything of a tick. Without the pools there is no reading; another answer that fails is noted.
async fn ask(link: &mut Link, users: bool, notes: &mut Vec<String>) -> Result<Answers, (&'static str, sqlx::Error)> {
    let mut answers = Answers { pools: link.ask("SHOW POOLS").await.map_err(|error| ("SHOW POOLS", error))?, ..Answers::default() };
    for (question, answer) in [
        ("SHOW DATABASES", &mut answers.databases),
        ("SHOW STATS", &mut answers.stats),
        ("SHOW LISTS", &mut answers.lists),
        ("SHOW USERS", &mut answers.users),
    ] {
        if question == "SHOW USERS" && !users {
            continue;
        }
        match link.ask(question).await {
            Ok(table) => *answer = table,
            Err(error) if ends_session(&error) => return Err((question, error)),
            Err(error) => notes.push(format!("{question}: {}", describe(&error))),
        }
    }
    Ok(answers)
}

/// The values of one tick's answers; none where the first is no list of pools.
fn reading(answers: &Answers, known: &mut Known) -> Option<Reading> {
    let pools = show::pools(&answers.pools)?;
    let sizes = Sizes::new(&answers.databases, &answers.users);
    let mut reading = Reading { notes: std::mem::take(&mut known.notes), ..Reading::default() };
    reading.put_some("clients_waiting", show::sum(&pools, |pool| pool.waiting));
    reading.put_some(
        "maxwait_seconds",
        show::sum(&pools, |pool| pool.maxwait).map(|_| pools.iter().filter_map(|pool| pool.maxwait).fold(0.0, f64::max)),
    );
    reading.put_some("servers_active", show::sum(&pools, |pool| pool.active));
    reading.put_some("servers_max", sizes.total(&pools));
    reading.put_some("servers_idle", show::sum(&pools, |pool| pool.idle));
    reading.put_some("servers_login", show::sum(&pools, |pool| pool.login));
    reading.put_some("clients_active", show::sum(&pools, |pool| pool.clients));
    let lists = show::pairs(&answers.lists, "list", "items");
    let list = |name: &str| lists.get(name).and_then(|text| text.parse::<f64>().ok());
    reading.put_some("clients_used", list("used_clients"));
    reading.put_some("max_client_conn", known.max_client_conn);
    reading.put_some("clients_login", list("login_clients"));
    for (name, value) in show::stats(&answers.stats) {
        reading.put(name, value);
    }
    for pool in &pools {
        let Some(columns) = known.pools.get(&(pool.database.clone(), pool.user.clone())) else { continue };
        reading.put_some(columns.waiting.name, pool.waiting);
        reading.put_some(columns.maxwait.name, pool.maxwait);
        reading.put_some(columns.active.name, pool.active);
        reading.put_some(columns.max.name, sizes.of(&pool.database, &pool.user));
    }
    for pool in pools.iter().filter(|pool| pool.waiting.is_none() || pool.active.is_none()) {
        let note = format!("pool {}/{} cannot be read", pool.database, pool.user);
        if known.said.insert(note.clone()) {
            reading.notes.push(note);
        }
    }
    if sizes.paused != known.paused {
        let note = if sizes.paused.is_empty() {
            "no database is paused any more".to_owned()
        } else {
            format!("paused: {}", sizes.paused.join(", "))
        };
        reading.notes.push(note);
        known.paused.clone_from(&sizes.paused);
    }
    Some(reading)
}

#[async_trait::async_trait]
impl Collector for PgBouncer {
    fn columns(&self) -> Vec<Gauge> {
        if let Some(known) = &self.known {
            return known.columns.clone();
        }
        let mut taken = Vec::new();
        let named = self.named.iter().map(|(database, user)| PoolColumns::new(database, user, &mut taken));
        GAUGES.iter().copied().chain(named.flat_map(|pool| pool.all())).collect()
    }

    fn unsettled(&self) -> Option<Lack> {
        self.named.is_empty().then(|| Lack {
            what: "each pool by itself: which there are it tells at the start; their totals are read".to_owned(),
            mend: Some(NAME_THEM.to_owned()),
        })
    }

    async fn start(&mut self) -> Result<Support, Fault> {
        self.link = None;
        let mut link = self.connect().await?;
        let fault = |(doing, error): (&str, sqlx::Error)| pg::fault(&self.access, doing, &error);
        let settings = self.settings(&mut link).await?;
        let mut known = Known { max_client_conn: limit(&settings), ..Known::default() };
        // Before 1.12 the version came as a notice.
        let version = match link.ask("SHOW VERSION").await {
            Ok(table) => table.rows.first().and_then(|row| cell(row, 0)).unwrap_or_default().to_owned(),
            Err(error) if ends_session(&error) => return Err(fault(("SHOW VERSION", error))),
            Err(_) => String::new(),
        };
        let mut notes = Vec::new();
        let answers = ask(&mut link, true, &mut notes).await.map_err(fault)?;
        known.users = answers.users.column("pool_size").is_some();
        let pools = show::pools(&answers.pools).ok_or_else(|| self.nonsense(&answers.pools))?;
        let mut wanted = self.named.clone();
        let mut support = Support {
            product: "PgBouncer".to_owned(),
            version: version.trim_start_matches("PgBouncer").trim().to_owned(),
            endpoint: self.access.endpoint.clone(),
            ..Support::default()
        };
        if pools.len() <= MOST_POOLS {
            wanted.extend(pools.iter().map(|pool| (pool.database.clone(), pool.user.clone())));
        } else {
            let what = format!("each of the {} pools: their totals are read", pools.len());
            support.lacks.push(Lack { what, mend: Some(NAME_THEM.to_owned()) });
        }
        let mut taken = Vec::new();
        for pool in wanted {
            let (database, user) = pool.clone();
            known.pools.entry(pool).or_insert_with(|| PoolColumns::new(&database, &user, &mut taken));
        }
        let first = reading(&answers, &mut known).ok_or_else(|| self.nonsense(&answers.pools))?;
        known.notes.extend(notes.iter().cloned());
        settle(&mut known, &first, &mut support);
        for name in FACTS {
            if let Some(text) = settings.get(name) {
                support.facts.push((name.to_owned(), text.as_str().into()));
            }
        }
        support.sees.push(format!(
            "{} of all pools, and of {} by themselves",
            "clients that wait, servers in use",
            known.pools.len()
        ));
        if let Some(database) = self.access.named_database.as_ref().filter(|name| *name != OWN) {
            support.sees.push(format!("its console; {database} of the address is not needed"));
        }
        for note in notes {
            support.lacks.push(Lack { what: note, mend: None });
        }
        support.columns.clone_from(&known.columns);
        self.known = Some(known);
        self.link = Some(link);
        Ok(support)
    }

    async fn read(&mut self) -> Result<Reading, Fault> {
        if self.known.is_none() {
            self.start().await?;
        }
        if self.link.is_none() {
            self.reconnect().await?;
        }
        // The connection stays where it is while it is asked: a read that is given up in the middle must not cost it.
        let (Some(link), Some(known)) = (&mut self.link, &mut self.known) else { return Ok(Reading::default()) };
        let mut notes = Vec::new();
        let answers = match ask(link, known.users, &mut notes).await {
            Ok(answers) => answers,
            Err((doing, error)) => {
                self.link = None;
                return Err(pg::fault(&self.access, doing, &error));
            }
        };
        known.notes.extend(notes);
        reading(&answers, known).ok_or_else(|| self.nonsense(&answers.pools))
    }
}

/// The columns of the run: what this version tells. Servers and their limit come with the first pool.
fn settle(known: &mut Known, first: &Reading, support: &mut Support) {
    let has = |name: &str| first.values.iter().any(|(known, _)| *known == name);
    let (told, untold): (Vec<&Gauge>, Vec<&Gauge>) =
        GAUGES.iter().filter(|gauge| gauge.is_read()).partition(|gauge| has(gauge.name) || gauge.name == "servers_max");
    known.columns = told.into_iter().copied().collect();
    if has("query_us_total") && has("queries_total") {
        known.columns.extend(GAUGES.iter().filter(|gauge| !gauge.is_read()));
    }
    let untold: Vec<&str> = untold.iter().map(|gauge| gauge.name).filter(|name| *name != "server_assignments_total").collect();
    if !untold.is_empty() {
        support.lacks.push(Lack { what: format!("{} (this version does not tell)", untold.join(", ")), mend: None });
    }
    for gauge in &mut known.columns {
        if matches!(gauge.capacity, Capacity::Column("max_client_conn")) && known.max_client_conn.is_none() {
            gauge.capacity = Capacity::None;
        }
    }
    known.columns.extend(known.pools.values().flat_map(PoolColumns::all));
}

#[cfg(test)]
mod tests;
