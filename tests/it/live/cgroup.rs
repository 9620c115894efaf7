//! A process and a control group of this machine, driven to their limits.

use crate::support::collector::{started, value};
use collectors::api::Capacity;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// A shell in a loop, for 30 s at most.
struct Busy(Child);

impl Busy {
    fn new(before: &str) -> Self {
        let script = format!("{before} while :; do :; done");
        Self(Command::new("timeout").args(["30", "bash", "-c", &script]).spawn().expect("a shell"))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // `timeout` passes the signal on.
        let _ = Command::new("kill").args(["-s", "TERM", &self.0.id().to_string()]).status();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_process_that_works_takes_a_processor_and_one_that_ended_is_missing() {
    let mut child = Command::new("bash")
        .args(["-c", "exec 9</dev/null; read -t 0.6 <> <(:); n=0; while ((n < 100000000)); do ((n++)); done"])
        .spawn()
        .expect("a shell");
    let (mut process, support) = started("process", &child.id().to_string()).await;
    assert_eq!(support.lacks, []);
    let rest = process.read().await.expect("it is there");
    let began = Instant::now();
    let mut busy = rest.clone();
    while value(&busy, "cpu_seconds_total") - value(&rest, "cpu_seconds_total") < 0.2 {
        assert!(began.elapsed() < Duration::from_secs(20), "it never worked");
        tokio::time::sleep(Duration::from_millis(50)).await;
        busy = process.read().await.expect("it is there");
    }
    let spent = value(&busy, "cpu_seconds_total") - value(&rest, "cpu_seconds_total");
    assert!(spent <= 1.1 * began.elapsed().as_secs_f64() + 0.7, "one thread is at most one processor: {spent}");
    assert_eq!((value(&busy, "threads"), value(&busy, "processes")), (1.0, 1.0));
    assert!(value(&busy, "open_files") >= 3.0 && value(&busy, "open_files_max") >= value(&busy, "open_files"));
    child.kill().expect("it ends");
    child.wait().expect("it ended");
    assert!(process.read().await.is_err());
}

/// A group of v2, or one of v1 in each hierarchy that matters, with a quota of a fifth of a processor.
struct Group(Vec<PathBuf>);

impl Group {
    fn new(name: &str) -> Option<Self> {
        let root = Path::new("/sys/fs/cgroup");
        let mounts: Vec<PathBuf> = if root.join("cgroup.controllers").exists() {
            vec![root.to_owned()]
        } else {
            ["cpu", "cpuacct", "cpu,cpuacct", "pids"].iter().map(|name| root.join(name)).filter(|mount| mount.is_dir()).collect()
        };
        let mut group = Self(Vec::new());
        for mount in mounts {
            let folder = mount.join(name);
            std::fs::create_dir(&folder).ok()?;
            group.0.push(folder);
        }
        let quota = |folder: &PathBuf| {
            std::fs::write(folder.join("cpu.max"), "20000 100000").is_ok()
                || std::fs::write(folder.join("cpu.cfs_quota_us"), "20000").is_ok()
        };
        group.0.iter().any(quota).then_some(group)
    }

    fn join(&self) -> String {
        let lines: Vec<String> = self.0.iter().map(|folder| format!("echo $$ > {}/cgroup.procs;", folder.display())).collect();
        lines.concat()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for folder in &self.0 {
            let began = Instant::now();
            while std::fs::remove_dir(folder).is_err() && began.elapsed() < Duration::from_secs(5) {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

#[tokio::test]
async fn a_group_that_uses_up_its_quota_is_throttled_and_one_that_rests_is_not() {
    let name = format!("whatgives-test-{}", std::process::id());
    let Some(group) = Group::new(&name) else {
        eprintln!("NOT TESTED: throttling: this user may not make a control group with a quota here");
        return;
    };
    let (mut collector, support) = started("cgroup", &name).await;
    let rest = collector.read().await.expect("it is there");
    assert_eq!((value(&rest, "cpu_limit"), value(&rest, "throttled_periods_total")), (0.2, 0.0));
    assert_eq!(value(&rest, "cpu_seconds_total"), 0.0);
    let used = support.columns.iter().find(|gauge| gauge.name == "cpu_seconds_total").expect("its time");
    assert_eq!(used.capacity, Capacity::Column("cpu_limit"));

    let busy = Busy::new(&group.join());
    let began = Instant::now();
    let mut full = rest.clone();
    while value(&full, "throttled_periods_total") < 3.0 || value(&full, "throttled_us_total") < 50_000.0 {
        assert!(began.elapsed() < Duration::from_secs(25), "it was never throttled: {full:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
        full = collector.read().await.expect("it is there");
    }
    let spent = value(&full, "cpu_seconds_total");
    assert!(spent > 0.0 && spent < 0.2 * began.elapsed().as_secs_f64() + 0.2, "{spent} s in {:?}", began.elapsed());
    assert!(value(&full, "pids") >= 1.0);

    // The same group by the number of a process in it.
    let pid = std::fs::read_to_string(group.0[0].join("cgroup.procs")).expect("its processes");
    let (mut by_number, _) = started("cgroup", pid.lines().next().expect("a process")).await;
    assert_eq!(value(&by_number.read().await.expect("it is there"), "cpu_limit"), 0.2);
    drop(busy);
    drop(group);
    assert!(collector.read().await.is_err(), "a group that is gone is missing and never 0");
}
