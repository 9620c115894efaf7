//! What takes a statement of its own, and is asked only of servers that have it: how far a replica is behind, and what waits
//! for a thread of MariaDB's pool.
//!
//! Privileges: REPLICATION CLIENT on MySQL, SLAVE MONITOR on MariaDB (10.5.1 on); none for the pool. Of a replica with
//! several channels the one that is most behind counts. Seconds behind are NULL while a thread is stopped: then there is no
//! value, and the number of running threads tells why.

use super::session::{Identity, Product, Session, is_denied, is_goodbye};
use crate::api::Lack;
use crate::sql::{Row, cell};

const REPLICA: &str = "SHOW REPLICA STATUS";
const CHANNELS: &str = "SHOW ALL SLAVES STATUS";
const POOL: &str = "SELECT SUM(QUEUE_LENGTH) FROM information_schema.THREAD_POOL_GROUPS";

/// What this server has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Further {
    /// The statement that tells of replication, on a replica.
    replica: Option<&'static str>,
    /// The pool's queue can be read.
    pool: bool,
}

/// Values by the names of their gauges.
pub type Values = Vec<(&'static str, f64)>;

impl Further {
    /// Asks once what there is.
    pub async fn prove(session: &mut Session, identity: &Identity, to: &str, lacks: &mut Vec<Lack>) -> Result<Self, sqlx::Error> {
        let mut further = Self::default();
        let (statement, privilege) = match identity.product {
            Product::MariaDb => (CHANNELS, "SLAVE MONITOR"),
            Product::MySql => (REPLICA, "REPLICATION CLIENT"),
            Product::Other => return Ok(further),
        };
        match session.table(statement).await {
            Ok((_, rows)) => further.replica = (!rows.is_empty()).then_some(statement),
            Err(error) if is_goodbye(&error) => return Err(error),
            Err(error) if is_denied(&error) && may_be_replica(session, identity.product).await? => {
                let mend = Some(format!("GRANT {privilege} ON *.* TO {to};"));
                lacks.push(Lack { what: format!("how far this replica is behind: {privilege} is missing"), mend });
            }
            Err(_) => {}
        }
        if identity.settings.text("thread_handling").is_some_and(|how| how == "pool-of-threads") {
            match session.ask(POOL).await {
                Ok(rows) => further.pool = first_number(&rows).is_some(),
                Err(error) if is_goodbye(&error) => return Err(error),
                Err(_) => {}
            }
        }
        Ok(further)
    }

    /// Whether a gauge has its value from here.
    pub fn has(&self, gauge: &str) -> bool {
        if gauge == "pool_waiting" { self.pool } else { self.replica.is_some() }
    }

    /// Everything of one tick.
    pub async fn read(&self, session: &mut Session) -> Result<Values, sqlx::Error> {
        let mut values = Values::new();
        if let Some(statement) = self.replica {
            let (names, rows) = session.table(statement).await?;
            values.extend(replica(&names, &rows));
        }
        if self.pool {
            values.extend(first_number(&session.ask(POOL).await?).map(|waiting| ("pool_waiting", waiting)));
        }
        Ok(values)
    }
}

/// Whether the server replicates from another, as far as it tells that without the privilege.
async fn may_be_replica(session: &mut Session, product: Product) -> Result<bool, sqlx::Error> {
    let sql = match product {
        Product::MariaDb => "SHOW GLOBAL STATUS WHERE Variable_name = 'Slaves_running' AND Value > 0",
        Product::MySql | Product::Other => "SELECT 1 FROM performance_schema.replication_connection_configuration LIMIT 1",
    };
    match session.ask(sql).await {
        Ok(rows) => Ok(!rows.is_empty()),
        Err(error) if is_goodbye(&error) => Err(error),
        Err(_) => Ok(false),
    }
}

fn first_number(rows: &[Row]) -> Option<f64> {
    number(cell(rows.first()?, 0))
}

fn number(text: Option<&str>) -> Option<f64> {
    text?.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)
}

/// One row a channel. MySQL and MariaDB name the same columns differently, and so do their releases.
fn replica(names: &[String], rows: &[Row]) -> Values {
    let find = |row: &Row, wanted: [&str; 2]| -> Option<String> {
        let at = names.iter().position(|name| wanted.iter().any(|wanted| name.eq_ignore_ascii_case(wanted)))?;
        cell(row, at).map(str::to_owned)
    };
    let lags = rows.iter().map(|row| number(find(row, ["Seconds_Behind_Source", "Seconds_Behind_Master"]).as_deref()));
    // One channel that does not know makes the largest a lie.
    let lag = lags.collect::<Option<Vec<f64>>>().and_then(|lags| lags.into_iter().reduce(f64::max));
    let threads = [["Replica_IO_Running", "Slave_IO_Running"], ["Replica_SQL_Running", "Slave_SQL_Running"]];
    let states = rows.iter().flat_map(|row| threads.map(|wanted| find(row, wanted)));
    let running =
        states.map(|state| state.map(|state| f64::from(u8::from(state.eq_ignore_ascii_case("yes"))))).sum::<Option<f64>>();
    let relay = rows.iter().map(|row| number(find(row, ["Relay_Log_Space", "Relay_Log_Space"]).as_deref())).sum::<Option<f64>>();
    let channels = rows.len() as f64;
    [
        ("replication_lag_seconds", lag),
        ("replica_threads_running", running.filter(|_| channels > 0.0)),
        ("replica_threads", Some(2.0 * channels)),
        ("relay_log_bytes", relay.filter(|_| channels > 0.0)),
    ]
    .into_iter()
    .filter_map(|(name, value)| value.map(|value| (name, value)))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reply(text: &str) -> (Vec<String>, Vec<Row>) {
        let mut lines = text.lines().map(|line| line.split('\t').map(str::to_owned).collect::<Vec<_>>());
        let names = lines.next().unwrap_or_default();
        let cells = |line: Vec<String>| line.into_iter().map(|cell| Some(cell).filter(|cell| cell != "NULL")).collect();
        (names, lines.map(cells).collect())
    }

    fn read(text: &str) -> Values {
        let (names, rows) = reply(text);
        replica(&names, &rows)
    }

    const MYSQL: &str = include_str!("../../fixtures/mysql/9.7.4/replica_status.tsv");
    const MARIADB: &str = include_str!("../../fixtures/mariadb/10.11.19/all_slaves_status.tsv");

    #[test]
    fn real_replies_of_both_tell_the_lag_and_the_threads() {
        for (name, text) in [("mysql", MYSQL), ("mariadb", MARIADB)] {
            let values = read(text);
            let get = |gauge: &str| values.iter().find(|(known, _)| *known == gauge).map(|(_, value)| *value);
            assert!(get("replication_lag_seconds").is_some_and(|lag| (1.0..60.0).contains(&lag)), "{name}: {values:?}");
            assert_eq!((get("replica_threads_running"), get("replica_threads")), (Some(2.0), Some(2.0)), "{name}");
            assert!(get("relay_log_bytes").is_some_and(|bytes| bytes > 100.0), "{name}: {values:?}");
        }
    }

    #[test]
    fn a_stopped_thread_leaves_the_lag_empty_and_of_several_channels_the_worst_counts() {
        let head = "Channel_Name\tReplica_IO_Running\tReplica_SQL_Running\tSeconds_Behind_Source\tRelay_Log_Space\n";
        let stopped = read(&format!("{head}\tYes\tNo\tNULL\t500\n"));
        assert_eq!(stopped, [("replica_threads_running", 1.0), ("replica_threads", 2.0), ("relay_log_bytes", 500.0)]);
        let two = read(&format!("{head}a\tYes\tYes\t3\t500\nb\tConnecting\tYes\t9\t200\n"));
        assert_eq!(
            two,
            [
                ("replication_lag_seconds", 9.0),
                ("replica_threads_running", 3.0),
                ("replica_threads", 4.0),
                ("relay_log_bytes", 700.0)
            ]
        );
        assert_eq!(read(head), [("replica_threads", 0.0)]);
    }

    proptest! {
        #[test]
        fn a_reply_cut_anywhere_never_panics_and_gives_no_lag_of_its_own(keep in 0_usize..MYSQL.len()) {
            let cut: String = MYSQL.chars().take(keep).collect();
            let _ = read(&cut);
            let lag = |values: &Values| values.iter().find(|(name, _)| *name == "replication_lag_seconds").map(|(_, lag)| *lag);
            prop_assert!(lag(&read(&cut)).is_none_or(|found| found <= lag(&read(MYSQL)).unwrap()));
        }
    }
}
