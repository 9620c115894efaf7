//! What this role may see on this server, proved once at the start; what would be plausible and wrong is left out, and said.

use super::gauges::When;
use super::session::{Identity, Session, grant};
use super::tick::{Features, Tick, number, settle};
use super::views::{Catalogue, View};
use super::waits;
use crate::api::{Gauge, Lack};
use crate::sql::pg::{code, ends_session};
use crate::sql::{cell, describe};

/// The outcome.
pub struct Sight {
    /// The columns of the run.
    pub columns: Vec<Gauge>,
    /// The tick's statement.
    pub tick: Tick,
    /// The statement for who waits for whom, where it is read.
    pub waits: Option<String>,
    /// For people.
    pub sees: Vec<String>,
    /// What stays unseen, and the mend.
    pub lacks: Vec<Lack>,
}

/// Others' sessions of which nothing is shown, and those of which something is.
const VISIBLE: &str = "SELECT count(*) FILTER (WHERE datid IS NOT NULL AND usesysid IS NOT NULL AND query = '<insufficient privilege>'), \
     count(*) FILTER (WHERE backend_type = 'client backend') FROM pg_catalog.pg_stat_activity WHERE pid <> pg_backend_pid()";

impl Sight {
    /// Asks everything once.
    pub async fn prove(
        session: &mut Session,
        identity: &Identity,
        catalogue: &Catalogue,
        wanted: bool,
        cores: Option<f64>,
    ) -> Result<Self, sqlx::Error> {
        let mut features = Features::default();
        let mut lacks = Vec::new();
        let seen = session.ask(VISIBLE).await?;
        let count = |at: usize| seen.rows.first().and_then(|row| cell(row, at)).and_then(number).unwrap_or(0.0);
        judge_role(identity, [count(0), count(1)], &mut features, &mut lacks);
        judge_settings(identity, &mut features, &mut lacks);
        if identity.standby {
            features.holds.push(When::Standby);
        }
        if cores.is_some() {
            features.holds.push(When::Cores);
        }
        for (view, when) in [(View::Replication, When::Replicas), (View::Slots, When::Slots)] {
            let asked = format!("SELECT count(*){}", view.from());
            if any(session, &asked).await? {
                features.holds.push(when);
            }
        }
        let waits = waits::sql(catalogue);
        let sessions = !features.without.contains(&View::Sessions);
        let mut read_waits = wanted && sessions;
        if read_waits && let Some(why) = refused(session, &waits).await? {
            lacks.push(Lack { what: format!("who waits for whom: {why}"), mend: None });
            read_waits = false;
        }
        if read_waits {
            features.holds.push(When::Waits);
        }
        // A view that cannot be read must not cost the others.
        let whole = Tick::new(&settle(catalogue, &features), catalogue);
        for view in whole.views() {
            let Some(part) = whole.part(view) else { continue };
            if let Some(why) = refused(session, &part).await? {
                lacks.push(Lack { what: format!("{}: {why}", view.shows()), mend: None });
                features.without.push(view);
            }
        }
        let chosen = settle(catalogue, &features);
        let tick = Tick::new(&chosen, catalogue);
        let mut sees = vec![format!("counters of all databases; names of tables in database {}", identity.database)];
        if sessions {
            sees.push("sessions by state and by what they wait for".to_owned());
        }
        if read_waits {
            sees.push("lock waits: table, page and tuple, root blocker (PostgreSQL tells no index and no key)".to_owned());
        }
        if identity.standby {
            sees.push("it is a standby".to_owned());
        }
        if let Some(limit) = identity.database_limit {
            sees.push(format!("database {} takes {limit} sessions at most, whatever max_connections says", identity.database));
        }
        if read_waits && !catalogue.has("pg_locks", &["waitstart"]) {
            lacks.push(Lack {
                what: "how long a lock wait had lasted before it was first seen (PostgreSQL 14 or later tells)".to_owned(),
                mend: None,
            });
        }
        let columns = chosen.iter().map(|chosen| chosen.gauge).collect();
        Ok(Self { columns, tick, waits: read_waits.then_some(waits), sees, lacks })
    }
}

/// Without the privilege PostgreSQL shows others' sessions as doing nothing. Where all that are there belong to roles that this
/// one may look into (the application's own role), the counts are right as long as that stays so, which each tick checks.
fn judge_role(identity: &Identity, [hidden, shown]: [f64; 2], features: &mut Features, lacks: &mut Vec<Lack>) {
    if identity.reads_all {
        return;
    }
    features.without.push(View::Replication);
    features.hidden.push("autovacuum_workers");
    let mend = Some(grant(identity));
    if hidden == 0.0 && shown > 0.0 {
        let what =
            "sessions of other roles, autovacuum, replicas: pg_monitor is missing; a tick with such sessions has no session values";
        lacks.push(Lack { what: what.to_owned(), mend });
    } else {
        features.without.push(View::Sessions);
        let what = "sessions of other roles: used slots, states, what they wait for, lock waits, ages, autovacuum, replicas: pg_monitor is missing";
        lacks.push(Lack { what: what.to_owned(), mend });
    }
}

fn judge_settings(identity: &Identity, features: &mut Features, lacks: &mut Vec<Lack>) {
    let on = |name: &str| Some(format!("ALTER SYSTEM SET {name} = on; SELECT pg_reload_conf();"));
    let [activities, counts, timing] = identity.tracks;
    if !activities {
        features.without.push(View::Sessions);
        lacks.push(Lack { what: "sessions: track_activities is off".to_owned(), mend: on("track_activities") });
    }
    if !counts {
        features.without.push(View::Databases);
        lacks.push(Lack { what: "counters of the databases: track_counts is off".to_owned(), mend: on("track_counts") });
    }
    if timing {
        features.holds.push(When::IoTiming);
    } else {
        lacks.push(Lack {
            what: "time waited for reads and writes: track_io_timing is off".to_owned(),
            mend: on("track_io_timing"),
        });
    }
}

/// Why the server does not answer this statement; an error that ends the connection is the caller's.
async fn refused(session: &mut Session, sql: &str) -> Result<Option<String>, sqlx::Error> {
    match session.ask(sql).await {
        Ok(_) => Ok(None),
        Err(error) if ends_session(&error) => Err(error),
        Err(error) => Ok(Some(format!("{} ({})", describe(&error), code(&error).unwrap_or("no code")))),
    }
}

/// Whether a count is above 0; a view that does not exist has none.
async fn any(session: &mut Session, sql: &str) -> Result<bool, sqlx::Error> {
    match session.ask(sql).await {
        Ok(table) => Ok(table.rows.first().and_then(|row| cell(row, 0)).and_then(number).is_some_and(|count| count > 0.0)),
        Err(error) if ends_session(&error) => Err(error),
        Err(_) => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(identity: &Identity, hidden: f64, shown: f64) -> (Features, Vec<Lack>) {
        let (mut features, mut lacks) = (Features::default(), Vec::new());
        judge_role(identity, [hidden, shown], &mut features, &mut lacks);
        judge_settings(identity, &mut features, &mut lacks);
        (features, lacks)
    }

    #[test]
    fn a_role_that_sees_all_lacks_nothing() {
        let identity = Identity { reads_all: true, tracks: [true; 3], ..Identity::default() };
        let (features, lacks) = judged(&identity, 0.0, 0.0);
        assert_eq!((features.without, lacks), (vec![], vec![]));
        assert_eq!(features.holds, [When::IoTiming]);
    }

    #[test]
    fn a_blind_role_gets_no_sessions_and_the_grant_and_the_applications_own_role_gets_those_it_sees() {
        let identity = Identity { user: "blind".to_owned(), tracks: [true; 3], ..Identity::default() };
        for (hidden, shown) in [(3.0, 0.0), (0.0, 0.0), (2.0, 5.0)] {
            let (features, lacks) = judged(&identity, hidden, shown);
            assert!(features.without.contains(&View::Sessions));
            assert_eq!(lacks[0].mend.as_deref(), Some("GRANT pg_monitor TO \"blind\";"));
        }
        let (features, lacks) = judged(&identity, 0.0, 5.0);
        assert!(!features.without.contains(&View::Sessions) && features.hidden.contains(&"autovacuum_workers"));
        assert_eq!(lacks.len(), 1);
    }

    #[test]
    fn a_server_that_does_not_track_is_told_how_to() {
        let identity = Identity { reads_all: true, ..Identity::default() };
        let (features, lacks) = judged(&identity, 0.0, 0.0);
        assert!(features.without.contains(&View::Sessions) && features.without.contains(&View::Databases));
        assert_eq!(lacks.len(), 3);
        assert!(lacks.iter().all(|lack| lack.mend.as_deref().is_some_and(|mend| mend.starts_with("ALTER SYSTEM SET track_"))));
    }
}
