//! Real servers for a test of its own: started by the scripts, ended with the test.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A server that this test started.
pub struct Server {
    script: PathBuf,
    folder: tempfile::TempDir,
    env: HashMap<String, String>,
}

impl Server {
    /// Starts `name` with these options. `None` where it cannot be had here: then one loud line is printed, and under
    /// `tests/run` the test fails.
    pub fn start(name: &str, options: &[(&str, &str)]) -> Option<Self> {
        let scripts = std::env::var_os("WHATGIVES_SERVER_SCRIPTS")
            .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers"), PathBuf::from);
        let mut server = Self {
            script: scripts.join(name),
            folder: tempfile::Builder::new().prefix("whatgives-").tempdir().expect("a temporary folder"),
            env: HashMap::new(),
        };
        match server.run("start", options) {
            Ok(()) => Some(server),
            Err(why) => {
                let required = std::env::var_os("WHATGIVES_SERVERS_REQUIRED").is_some();
                assert!(!required, "{name} did not start: {why}");
                eprintln!("NOT TESTED: {name} did not start here ({why}); tests/run installs it");
                None
            }
        }
    }

    /// Starts it again in the same folder: the same data, port and options.
    pub fn start_again(&mut self) {
        self.run("start", &[]).expect("the server starts again");
    }

    /// Ends it by its own signal.
    pub fn stop(&mut self) {
        self.run("stop", &[]).expect("the server stops");
    }

    /// Sends a signal to the server's first process.
    pub fn signal(&self, signal: &str) {
        kill(signal, self.pid());
        if signal == "STOP" {
            self.wait_until_stopped();
        }
    }

    /// A busy machine stops the threads of a process one after the other, some time after the signal.
    fn wait_until_stopped(&self) {
        let tasks = Path::new("/proc").join(self.pid()).join("task");
        let stopped = |stat: String| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'));
        for _ in 0..200 {
            let Ok(entries) = std::fs::read_dir(&tasks) else { return };
            let mut stats = entries.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok());
            if stats.all(stopped) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// Sends a signal to the server and all its children.
    pub fn signal_all(&self, signal: &str) {
        kill(signal, &format!("-{}", self.pid()));
    }

    /// A line of the server's own description, for example `APACHE_PORT`.
    pub fn get(&self, key: &str) -> &str {
        self.find(key).unwrap_or_else(|| panic!("no {key} among {:?}", self.env.keys()))
    }

    /// The same, where it has such a line.
    pub fn find(&self, key: &str) -> Option<&str> {
        self.env.get(key).map(String::as_str)
    }

    fn pid(&self) -> &str {
        self.env.iter().find(|(key, _)| key.ends_with("_PID")).map(|(_, pid)| pid.as_str()).expect("a pid")
    }

    fn run(&mut self, verb: &str, options: &[(&str, &str)]) -> Result<(), String> {
        let mut command = Command::new(&self.script);
        command.arg(verb).arg(self.folder.path()).envs(options.iter().copied());
        let output = command.output().map_err(|why| format!("{}: {why}", self.script.display()))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
        let text = std::fs::read_to_string(self.folder.path().join("env")).map_err(|why| format!("its env: {why}"))?;
        self.env =
            text.lines().filter_map(|line| line.split_once('=')).map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        Ok(())
    }
}

fn kill(signal: &str, whom: &str) {
    let status = Command::new("kill").args(["-s", signal, "--", whom]).status().expect("kill runs");
    assert!(status.success(), "kill -s {signal} {whom}");
}

impl Drop for Server {
    fn drop(&mut self) {
        // A test may have killed it already; a failure here must not hide the test's own.
        let _ = self.run("stop", &[]);
    }
}
