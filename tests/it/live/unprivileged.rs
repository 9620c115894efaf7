//! An account that may see too little: the sampler says at its start what is missing and what grants it, and what cannot be
//! seen is no column of the file, so no plausible wrong number either. What such an account sees while something waits
//! stands in each target's own file.

use crate::support::sampler::Folder;
use crate::support::server::Server;

struct Account {
    server: &'static str,
    flag: &'static str,
    url: &'static str,
    /// The statements that grant the rest.
    grants: &'static [&'static str],
    absent: &'static [&'static str],
    /// Columns with a value in the file, and which.
    right: &'static [(&'static str, f64)],
}

const ACCOUNTS: [Account; 6] = [
    Account {
        server: "mysql",
        flag: "mysql",
        url: "MYSQL_BLIND_URL",
        grants: &["GRANT PROCESS ON *.* TO 'blind'@'%';", "GRANT SELECT ON performance_schema.* TO 'blind'@'%';"],
        absent: &["metadata_lock_waiting", "table_lock_waiting", "user_lock_waiting", "lock_timeouts_total"],
        right: &[("threads_connected", 1.0), ("max_connections", 400.0), ("row_lock_waiting", 0.0)],
    },
    Account {
        server: "mariadb",
        flag: "mysql",
        url: "MARIADB_BLIND_URL",
        grants: &["GRANT PROCESS ON *.* TO 'blind'@'%';"],
        absent: &["metadata_lock_waiting", "table_lock_waiting", "user_lock_waiting", "lock_timeouts_total"],
        right: &[("threads_connected", 1.0), ("max_connections", 400.0), ("row_lock_waiting", 0.0)],
    },
    Account {
        server: "postgres15",
        flag: "postgres",
        url: "POSTGRES15_BLIND_URL",
        grants: &["GRANT pg_monitor TO \"blind\";"],
        absent: &["sessions_used", "sessions_active", "lock_waiting", "row_lock_waiting", "transaction_age_seconds"],
        right: &[("sessions_usable", 197.0), ("deadlocks_total", 0.0)],
    },
    Account {
        server: "postgres18",
        flag: "postgres",
        url: "POSTGRES18_BLIND_URL",
        grants: &["GRANT pg_monitor TO \"blind\";"],
        absent: &["sessions_used", "sessions_active", "lock_waiting", "row_lock_waiting", "transaction_age_seconds"],
        right: &[("sessions_usable", 197.0), ("deadlocks_total", 0.0)],
    },
    Account {
        server: "redis",
        flag: "redis",
        url: "REDIS_BLIND_URL",
        grants: &["ACL SETUSER blind +info"],
        absent: &["connected_clients", "used_memory_bytes", "rejected_connections_total", "ops_total"],
        right: &[],
    },
    Account {
        server: "valkey",
        flag: "redis",
        url: "VALKEY_BLIND_URL",
        grants: &["ACL SETUSER blind +info"],
        absent: &["connected_clients", "used_memory_bytes", "rejected_connections_total", "ops_total"],
        right: &[],
    },
];

#[test]
fn each_unprivileged_account_is_told_the_grants_at_the_start_and_gets_no_column_of_what_it_cannot_see() {
    for account in &ACCOUNTS {
        let name = account.server;
        let Some(server) = Server::start(name, &[]) else { continue };
        let folder = Folder::new();
        let flag = format!("--{}=t={}", account.flag, server.get(account.url));
        let ran = folder.run(&[&flag, "--no-host", "--tick=200ms", "--seconds=1"]);
        assert_eq!(ran.code, 0, "{name}: {}", ran.err);
        for grant in account.grants {
            assert!(ran.err.contains("t: not seen: ") && ran.err.contains(&format!("hint: {grant}")), "{name}: {}", ran.err);
        }
        let ticks = folder.ticks();
        for column in account.absent {
            assert!(ticks.column(&format!("t.{column}")).is_none(), "{name}: {column} cannot be seen");
        }
        for (column, value) in account.right {
            let cells = ticks.column(&format!("t.{column}")).unwrap_or_else(|| panic!("{name}: no column {column}"));
            let read: Vec<f64> = cells.iter().copied().filter(|cell| !cell.is_nan()).collect();
            assert!(!read.is_empty() && read.iter().all(|cell| cell == value), "{name}: {column} {cells:?}");
        }
        assert!(ticks.column("t.up").expect("up").contains(&1.0), "{name}");
    }
}
