//! The stretches of a run, the wrapped driver in them, and the signals that end both.
//!
//! The driver shares the sampler's process group and terminal. A Ctrl-C reaches both by itself; any other signal to the
//! sampler is passed on once. The sampler then goes on until the driver has ended; a second signal kills it.

use super::config::Wrong;
use crate::{exit, time};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;

/// Where a run stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// No driver is wrapped.
    Free {
        /// How long it lasts, if that is known.
        total: Option<Duration>,
    },
    /// Before the driver.
    Rest {
        /// How long.
        total: Duration,
    },
    /// The driver runs.
    Driving,
    /// After it.
    Cool {
        /// Until when.
        until: Instant,
    },
}

/// Something that happened beside the ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The driver ended.
    Ended {
        /// When.
        unix_ms: i64,
        /// Its exit code, or 128 and the signal that ended it.
        code: u8,
    },
    /// Somebody wants the run to end.
    Signal(i32),
    /// A gate on requests broke: what was found.
    Broken(String),
}

/// The wrapped driver and the signals.
pub struct Driver {
    /// What happens.
    pub events: UnboundedReceiver<Event>,
    send: UnboundedSender<Event>,
    child: Option<Pid>,
    signals: u32,
}

impl Driver {
    /// Listens to the signals that end a run.
    pub fn listen() -> std::io::Result<Self> {
        let (send, events) = unbounded_channel();
        let mut kinds = vec![SignalKind::interrupt(), SignalKind::terminate()];
        // Under nohup a hangup is ignored, and stays so.
        if !ignored(SignalKind::hangup()) {
            kinds.push(SignalKind::hangup());
        }
        for kind in kinds {
            let mut signals = signal(kind)?;
            let send = send.clone();
            tokio::spawn(async move {
                while signals.recv().await.is_some() && send.send(Event::Signal(kind.as_raw_value())).is_ok() {}
            });
        }
        Ok(Self { events, send, child: None, signals: 0 })
    }

    /// Where others tell what happened.
    pub fn sender(&self) -> UnboundedSender<Event> {
        self.send.clone()
    }

    /// Starts the driver. Its end comes as an event.
    pub fn start(&mut self, command: &[OsString], detached: bool) -> std::io::Result<()> {
        let (program, args) = command.split_first().ok_or_else(|| std::io::Error::other("no command"))?;
        let mut child = tokio::process::Command::new(program);
        child.args(args);
        if detached {
            child.stdin(Stdio::null());
        }
        let mut child = child.spawn()?;
        self.child = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let send = self.send.clone();
        tokio::spawn(async move {
            let code = match child.wait().await {
                Ok(status) => match (status.code(), status.signal()) {
                    (Some(code), _) => u8::try_from(code & 0xff).unwrap_or(exit::SAMPLER_FAILED),
                    (None, number) => code_of_signal(number.unwrap_or(0)),
                },
                Err(_) => exit::SAMPLER_FAILED,
            };
            let _ = send.send(Event::Ended { unix_ms: time::unix_ms() as i64, code });
        });
        Ok(())
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        if let Some(child) = self.child {
            // It may have ended in this moment.
            let _ = kill_process(child, Signal::KILL);
        }
    }

    /// The driver's end was seen.
    pub fn ended(&mut self) {
        self.child = None;
    }

    /// Whether the driver runs.
    pub fn runs(&self) -> bool {
        self.child.is_some()
    }

    /// Passes a signal on to the driver: once; from the second on it is killed. Gives what was done, for people.
    pub fn pass_on(&mut self, number: i32) -> Option<&'static str> {
        let child = self.child?;
        self.signals += 1;
        if self.signals > 1 {
            self.kill();
            return Some("second signal: the driver is killed");
        }
        match Signal::from_named_raw(number) {
            // The terminal gave it to the driver as well; twice means to many drivers: at once, and without a summary.
            Some(Signal::INT) if from_terminal() => Some("waiting for the driver to end; once more kills it"),
            Some(signal) => {
                let _ = kill_process(child, signal);
                Some("passed on to the driver, waiting for it to end; once more kills it")
            }
            None => None,
        }
    }
}

/// As a shell shows a command that was ended by a signal.
pub fn code_of_signal(number: i32) -> u8 {
    u8::try_from(128 + number).unwrap_or(exit::SAMPLER_FAILED)
}

/// Whether this process is in its terminal's foreground: then a Ctrl-C went to the whole group.
fn from_terminal() -> bool {
    std::fs::File::open("/dev/tty")
        .ok()
        .and_then(|tty| rustix::termios::tcgetpgrp(tty).ok())
        .is_some_and(|group| group == rustix::process::getpgrp())
}

fn ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask =
        status.lines().find_map(|line| line.strip_prefix("SigIgn:")).and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (kind.as_raw_value() - 1) & 1 == 1)
}

/// Whether a driver can be started at all, found out before the resting stretch. The code is the shell's.
pub fn find(program: &OsStr) -> Result<PathBuf, (Wrong, u8)> {
    let direct = program.as_encoded_bytes().contains(&b'/');
    let candidates: Vec<PathBuf> = if direct {
        vec![PathBuf::from(program)]
    } else {
        std::env::var_os("PATH")
            .map(|path| std::env::split_paths(&path).map(|folder| folder.join(program)).collect())
            .unwrap_or_default()
    };
    let is_executable = |path: &Path| path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
    if let Some(found) = candidates.iter().find(|path| is_executable(path)) {
        return Ok(found.clone());
    }
    let name = Path::new(program).display();
    match candidates.iter().find(|path| path.is_file()) {
        Some(there) => Err((
            Wrong::new(format!("the driver {name} cannot be started: {} is not executable", there.display())),
            exit::DRIVER_NOT_EXECUTABLE,
        )),
        None => Err((
            Wrong::new(format!("the driver {name} cannot be started: not found{}", if direct { "" } else { " in PATH" })),
            exit::DRIVER_NOT_FOUND,
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_cannot_be_started_is_found_out_before() {
        assert!(find(OsStr::new("sh")).is_ok());
        let (wrong, code) = find(OsStr::new("no-such-driver")).unwrap_err();
        assert!(wrong.message.contains("no-such-driver") && code == 127, "{wrong}");
        let dir = tempfile::tempdir().unwrap();
        let plain = dir.path().join("plain");
        std::fs::write(&plain, "").unwrap();
        let (wrong, code) = find(plain.as_os_str()).unwrap_err();
        assert!(wrong.message.contains("not executable") && code == 126, "{wrong}");
    }
}
