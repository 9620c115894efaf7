//! A whole session of a user: the sampler beside a load, then correlate, both run as users run them.

use crate::open_loop::watched::wait_for_first_tick;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The files of a session, and what was said about them.
pub struct Session {
    folder: tempfile::TempDir,
    /// What `correlate --json` said.
    pub verdict: Value,
}

/// One story at a time: they measure waits, and two on one machine would wait for each other.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    /// Samples the targets every 200 ms for so many seconds; the load begins when the first tick is written, and writes its
    /// log of requests to the path that it is given. The machine is not watched: other tests may keep it busy, and would
    /// rightly be named.
    pub fn run(title: &str, targets: &[&str], seconds: u32, load: impl FnOnce(&Path)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut session = Self { folder, verdict: Value::Null };
        let mut sampler = Command::new(env!("CARGO_BIN_EXE_sampler"))
            .args(targets)
            .args(["--no-host", "--tick", "200ms", "--seconds", &seconds.to_string(), "--out"])
            .arg(session.folder.path().join("run"))
            .spawn()
            .expect("the sampler starts");
        wait_for_first_tick(&session.file("ticks"), &mut sampler).expect("the sampler begins");
        load(&session.file("requests"));
        let status = sampler.wait().expect("the sampler ends");
        assert!(status.success(), "the sampler ended with {status}");
        // What a person reads stands in the test's log, beside what is asserted about the other.
        println!("{title}:\n{}", String::from_utf8_lossy(&session.correlate(&[])));
        let json = session.correlate(&["--json"]);
        session.verdict =
            serde_json::from_slice(&json).unwrap_or_else(|why| panic!("{why} in {:?}", String::from_utf8_lossy(&json)));
        session
    }

    fn correlate(&self, more: &[&str]) -> Vec<u8> {
        let mut correlate = Command::new(env!("CARGO_BIN_EXE_correlate"));
        correlate.args([self.file("ticks"), self.file("waits"), "--driver".into(), self.file("requests")]).args(more);
        correlate.stderr(Stdio::inherit()).output().expect("correlate runs").stdout
    }

    fn file(&self, kind: &str) -> PathBuf {
        self.folder.path().join(format!("run.{kind}.tsv"))
    }

    /// The cells of every line of the waits file, as they stand there.
    pub fn waits(&self) -> Vec<Vec<String>> {
        let text = std::fs::read_to_string(self.file("waits")).expect("the waits file");
        let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
        lines.map(|line| line.split('\t').map(str::to_owned).collect()).collect()
    }

    /// The first mover's gauge; empty where nothing moved.
    pub fn first(&self) -> &str {
        self.verdict["first"]["gauge"].as_str().unwrap_or_default()
    }

    /// The gauges of all movers, in their order.
    pub fn movers(&self) -> Vec<&str> {
        let movers = self.verdict["movers"].as_array().expect("a list of movers");
        movers.iter().filter_map(|mover| mover["gauge"].as_str()).collect()
    }
}
