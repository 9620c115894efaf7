//! The sampler as a user runs it: the binary, in a folder of its own.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use whatgives::ticks::{self, Ticks};
use whatgives::waits::{self, Waits};

/// A folder in which samplers run.
pub struct Folder(pub tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::Builder::new().prefix("whatgives-").tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sampler"));
        command.args(args).current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::of(&self.command(args).output().unwrap())
    }

    /// Starts it.
    pub fn start(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    pub fn ticks(&self) -> Ticks {
        ticks::read(&self.path("ticks.tsv")).unwrap()
    }

    pub fn waits(&self) -> Waits {
        waits::read(&self.path("waits.tsv")).unwrap()
    }

    /// Waits until so many rows are written.
    pub fn until_rows(&self, rows: usize) {
        until("the rows are written", || ticks::read(&self.path("ticks.tsv")).is_ok_and(|ticks| ticks.tick.len() >= rows));
    }
}

/// A sampler that has ended.
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Self { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// Waits for one that was started.
    pub fn end(child: Child) -> Self {
        Self::of(&child.wait_with_output().unwrap())
    }
}

/// Sends a signal to a process.
pub fn signal(pid: u32, signal: &str) {
    let status = Command::new("kill").args(["-s", signal, &pid.to_string()]).status().unwrap();
    assert!(status.success(), "kill -s {signal} {pid}");
}

/// Waits for something, 20 s at most.
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(20), "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The columns of an instance that its collector reads, and their cells: neither whether it is up, nor how long that took.
pub fn read_columns<'t>(ticks: &'t Ticks, instance: &str) -> Vec<(&'t str, &'t [f64])> {
    let of_it = |name: &&String| name.split_once('.').is_some_and(|(of, own)| of == instance && !["up", "poll_ms"].contains(&own));
    let names = ticks.header.columns.iter().filter(of_it);
    names.map(|name| (name.as_str(), ticks.column(name).unwrap())).collect()
}

/// Notes, one a line, each with its row.
pub fn notes(ticks: &Ticks) -> String {
    ticks.notes.iter().map(|(row, note)| format!("{row} {note}")).collect::<Vec<_>>().join("\n")
}
