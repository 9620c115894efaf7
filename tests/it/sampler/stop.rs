//! A run that a gate stops: with a real driver against a real server.

use crate::support::postgres;
use crate::support::sampler::{Folder, Ran, until};
use crate::support::server::Server;
use std::time::Duration;

/// Runs pgbench behind the sampler; once it sends, a table that every transaction needs is locked. What the sampler said, when
/// the lock was taken, and the run's files.
fn locked_while_pgbench_runs(gate: &str, more: &[&str]) -> Option<(Ran, i64, Folder)> {
    let server = Server::start("postgres15", &[])?;
    let folder = Folder::new();
    let url = server.get("POSTGRES15_URL");
    let pgbench = "/usr/lib/postgresql/15/bin/pgbench";
    let made = std::process::Command::new(pgbench).args(["--initialize", "--quiet", url]).output().expect("pgbench runs");
    assert!(made.status.success(), "{made:?}");
    // 60 s bound what a gate that never breaks can cost.
    let driver = format!("exec {pgbench} --no-vacuum --client=4 --rate=200 --time=60 --progress=1 '{url}' 2> pgbench.log");
    let (probe, begun) = (server.get("POSTGRES15_PROBE_URL"), folder.path("pgbench.log"));
    let args = ["--postgres", probe, "--tick=200ms", "--rest=600ms", "--cool=0", "--stop-when", gate];
    let child = folder.start(&[&args[..], more, &["--", "sh", "-c", &driver]].concat());
    until("pgbench sends", || std::fs::read_to_string(&begun).is_ok_and(|log| log.lines().count() >= 3));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let locker = runtime.block_on(async {
        let mut locker = postgres::session(url).await;
        postgres::run(&mut locker, "BEGIN; LOCK TABLE pgbench_accounts IN ACCESS EXCLUSIVE MODE").await;
        locker
    });
    let locked_ms = whatgives::time::unix_ms() as i64;
    let ran = Ran::end(child);
    drop(locker);
    Some((ran, locked_ms, folder))
}

/// The driver must have ended this long after the lock, at the latest.
fn is_stopped(ran: &Ran, locked_ms: i64, folder: &Folder, told: &str, within: Duration) {
    assert_eq!(ran.code, 6, "{}", ran.err);
    assert!(ran.err.contains(told) && ran.err.contains("the driver was told to stop"), "{}", ran.err);
    let ticks = folder.ticks();
    let ended = ticks.children.iter().find_map(|child| child.end_unix_ms).expect("the driver's end is recorded");
    let after = Duration::from_millis(u64::try_from(ended - locked_ms).expect("it ended after the lock"));
    assert!(after < within, "pgbench ended {after:?} after the lock");
    // The files are whole: every row has its cells, and the reason stands in the notes once.
    let notes: Vec<_> = ticks.notes.iter().filter(|(_, notes)| notes.contains(told)).collect();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(folder.text("ticks.tsv").ends_with('\n') && folder.text("waits.tsv").ends_with('\n'));
}

#[test]
fn a_gate_on_a_column_stops_the_driver_and_says_why_in_the_notes() {
    let gate = "postgres.relation_lock_waiting <= 0 for 1s";
    let Some((ran, locked_ms, folder)) = locked_while_pgbench_runs(gate, &[]) else { return };
    // A second for the gate, two for the driver.
    is_stopped(&ran, locked_ms, &folder, "postgres.relation_lock_waiting <= 0 for 1s\" broke: found 4", Duration::from_secs(3));
}

#[test]
fn a_gate_on_requests_sees_the_drivers_log_as_it_grows() {
    let gate = "completed >= 50/s over 2s";
    let Some((ran, locked_ms, folder)) = locked_while_pgbench_runs(gate, &["--driver-log", "pgbench.log"]) else { return };
    // pgbench writes a line a second; the window needs two that are empty, and the one behind them shows that they are whole.
    is_stopped(&ran, locked_ms, &folder, "\"completed >= 50/s over 2s\" broke: found", Duration::from_secs(6));
}

#[test]
fn a_gate_without_a_driver_ends_the_run_and_one_on_no_column_does_not_begin_it() {
    let folder = Folder::new();
    let ran = folder.run(&["--tick=50ms", "--seconds=20", "--stop-when", "host.up <= 0 for 200ms"]);
    assert_eq!(ran.code, 6, "{}", ran.err);
    assert!(folder.ticks().tick.len() < 20, "{} rows", folder.ticks().tick.len());
    for (gate, told) in [
        ("host.cpu_bsy <= 0", "the ticks have no column host.cpu_bsy"),
        ("knee >= 30/s", "can be judged only after the run"),
        ("p95 < 30ms over 5s", "needs the driver's log\nhint: name the file that the driver writes: --driver-log FILE"),
    ] {
        let ran = Folder::new().run(&["--seconds=1", "--stop-when", gate]);
        assert_eq!(ran.code, 2, "{gate}: {}", ran.err);
        assert!(ran.err.contains(told), "{gate}: {}", ran.err);
    }
}
