//! A run in the background, and its end.

use crate::support::memcached::Memcached;
use crate::support::sampler::{Folder, until};
use std::path::Path;

/// The pid that a run in the background printed.
fn pid_in(out: &str) -> u32 {
    out.lines().find_map(|line| line.strip_prefix("pid ")?.parse().ok()).unwrap_or_else(|| panic!("no pid in {out:?}"))
}

fn runs(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
        // One that has ended and was not waited for is a zombie.
        && !std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
}

#[test]
fn a_run_in_the_background_is_ready_when_it_returns_and_is_stopped_by_its_prefix() {
    let folder = Folder::new();
    let server = Memcached::start();
    let flag = format!("--memcached={}", server.address);
    let ran = folder.run(&[&flag, "--tick=50ms", "--background", "--out=rung-40"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let pid = pid_in(&ran.out);
    assert!(ran.out.contains("ticks rung-40.ticks.tsv\nwaits rung-40.waits.tsv\nlog rung-40.log"), "{}", ran.out);
    assert!(ran.err.contains("memcached 1.6.18"), "the start's check is shown: {}", ran.err);
    assert!(runs(pid) && folder.text("rung-40.pid").trim() == pid.to_string());
    let first = whatgives::ticks::read(&folder.path("rung-40.ticks.tsv")).unwrap();
    assert_eq!(first.column("memcached.up").unwrap()[0], 1.0);

    let again = folder.run(&[&flag, "--background", "--out=rung-40", "--force"]);
    assert_eq!(again.code, 2);
    assert!(again.err.contains("already runs in the background") && again.err.contains("sampler stop rung-40"), "{}", again.err);

    let stopped = folder.run(&["stop", "rung-40"]);
    assert_eq!((stopped.code, stopped.out.as_str()), (0, format!("stopped pid {pid}\n").as_str()), "{}", stopped.err);
    until("it is gone", || !runs(pid));
    assert!(!folder.path("rung-40.pid").exists());
    assert!(folder.text("rung-40.log").contains("wrote rung-40.ticks.tsv"), "{}", folder.text("rung-40.log"));
}

#[test]
fn a_run_that_cannot_start_in_the_background_says_so_and_leaves_nothing() {
    let folder = Folder::new();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let ran = folder.run(&[&format!("--memcached=127.0.0.1:{port}"), "--background", "--out=x"]);
    assert_eq!(ran.code, 5);
    assert_eq!(ran.out, "");
    assert!(ran.err.contains("Connection refused"), "{}", ran.err);
    assert!(!folder.path("x.ticks.tsv").exists() && !folder.path("x.pid").exists());
}

#[test]
fn a_driver_in_the_background_is_wrapped_and_writes_to_the_log() {
    let folder = Folder::new();
    let args = ["--tick=50ms", "--background", "--rest=200ms", "--cool=0", "--", "sh", "-c", "echo from the driver; cat; exit 4"];
    let ran = folder.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let pid = pid_in(&ran.out);
    until("it has ended by itself", || !runs(pid));
    assert!(folder.text("sampler.log").contains("from the driver"));
    assert_eq!(folder.ticks().children[1].code, Some(4));
    assert!(!folder.path("sampler.pid").exists());
}

#[test]
fn stop_signals_nobody_whose_pid_was_left_behind() {
    let folder = Folder::new();
    let ran = folder.run(&["stop", "x"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("x.pid is not there\nhint: "), "{}", ran.err);
    // This test's own number: it would not outlive being stopped.
    folder.write("x.pid", &std::process::id().to_string());
    let ran = folder.run(&["stop", "x"]);
    assert_eq!(ran.code, 0);
    assert!(ran.out.contains("had already ended"), "{}", ran.out);
    assert!(!folder.path("x.pid").exists());
}
