//! A run in the background: the sampler starts itself again in a session of its own, waits until that has read every
//! target, prints its pid and files, and returns. `sampler stop` ends it by the pid in PREFIX.pid.
//!
//! The pid is trusted because the running sampler holds a lock on that file: a number left behind by a dead one is never
//! signalled, whoever has it now.

use super::cli::DETACHED;
use super::config::{Config, Wrong};
use super::say::Say;
use super::write;
use crate::exit;
use rustix::process::{Pid, Signal, kill_process, setsid};
use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The one that waits is told by this line.
const READY: &str = "ready";
/// How long a start may take: the targets' answers, the first ticks, and some for the machine.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long `stop` waits for the run's end; a wrapped driver may need some of it.
const STOP_PATIENCE: Duration = Duration::from_secs(30);

/// A file beside the run's own: PREFIX.pid, or sampler.pid without a prefix.
fn beside(prefix: Option<&Path>, kind: &str) -> PathBuf {
    let whole = prefix.is_some_and(|prefix| !prefix.as_os_str().as_encoded_bytes().ends_with(b"/"));
    write::path(prefix, &if whole { kind.to_owned() } else { format!("sampler.{kind}") })
}

/// Starts the run in the background and waits until it has begun.
pub fn start(args: &[OsString], config: &Config, say: &Say) -> u8 {
    match begin(args, config) {
        Ok((mut child, log, waiting)) => {
            let pid = child.id();
            let ready = wait(&mut child, waiting);
            // What it had to say until now.
            say_log(&log, say);
            match ready {
                Ok(()) => {
                    let prefix = config.out.as_deref();
                    say.answer(&format!(
                        "pid {pid}\nticks {}\nwaits {}\nlog {}",
                        write::path(prefix, "ticks.tsv").display(),
                        write::path(prefix, "waits.tsv").display(),
                        log.0.display()
                    ));
                    let name = prefix.map(|prefix| format!(" {}", prefix.display())).unwrap_or_default();
                    say.tell(&format!("sampling in the background; stop it with: sampler stop{name}"));
                    exit::DONE
                }
                Err(code) => code,
            }
        }
        Err(why) => {
            say.trouble(&format!("the run in the background cannot be started: {why}"));
            exit::SAMPLER_FAILED
        }
    }
}

fn begin(args: &[OsString], config: &Config) -> io::Result<(Child, (PathBuf, u64), UnixStream)> {
    let path = beside(config.out.as_deref(), "log");
    let log = OpenOptions::new().create(true).append(true).open(&path)?;
    let from = log.metadata()?.len();
    let (ours, theirs) = UnixStream::pair()?;
    let child = Command::new(std::env::current_exe()?)
        .arg(DETACHED)
        .args(args.iter().skip(1))
        // Its standard input is the line to the one that waits: no other way to hand a socket over.
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::from(log.try_clone()?))
        .stderr(Stdio::from(log))
        .spawn()?;
    Ok((child, (path, from), ours))
}

/// Waits for the ready line; otherwise the exit code of the one that ended without it.
fn wait(child: &mut Child, waiting: UnixStream) -> Result<(), u8> {
    let mut line = String::new();
    // A socket that takes no time limit is still closed when the other ends.
    let _ = waiting.set_read_timeout(Some(PATIENCE));
    match BufReader::new(waiting).read_line(&mut line) {
        Ok(_) if line.trim() == READY => return Ok(()),
        Ok(_) => {}
        Err(_) => {
            let _ = child.kill();
        }
    }
    let code = child.wait().ok().and_then(|status| status.code()).and_then(|code| u8::try_from(code).ok());
    Err(code.filter(|code| *code != exit::DONE).unwrap_or(exit::SAMPLER_FAILED))
}

fn say_log((path, from): &(PathBuf, u64), say: &Say) {
    let mut text = String::new();
    let read = File::open(path).and_then(|mut log| {
        log.seek(SeekFrom::Start(*from))?;
        log.read_to_string(&mut text)
    });
    if read.is_ok() && !text.trim().is_empty() {
        say.trouble(text.trim_end());
    }
}

/// This process, if it is the one in the background.
pub struct Detached {
    waiting: Option<UnixStream>,
    pid_path: PathBuf,
    /// Held as long as the run goes on.
    _lock: File,
}

impl Detached {
    /// Leaves the terminal's session and puts down the pid.
    pub fn enter(config: &Config) -> Result<Self, Wrong> {
        // Fails only where this already leads a session.
        let _ = setsid();
        let waiting = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from).map_err(|why| {
            Wrong::new(format!("{DETACHED} is for the sampler itself: {why}")).hint("--background starts a run in the background")
        })?;
        let pid_path = beside(config.out.as_deref(), "pid");
        let cannot = |why: io::Error| Wrong::new(format!("{} cannot be written: {why}", pid_path.display()));
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&pid_path).map_err(cannot)?;
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            let name = config.out.as_ref().map(|prefix| format!(" {}", prefix.display())).unwrap_or_default();
            return Err(Wrong::new(format!("a sampler already runs in the background, see {}", pid_path.display()))
                .hint(format!("sampler stop{name}")));
        }
        file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(cannot)?;
        Ok(Self { waiting: Some(waiting), pid_path, _lock: file })
    }

    /// Tells the one that waits, once. `false` if it is gone: nobody knows of this run then.
    pub fn ready(&mut self) -> bool {
        match self.waiting.take() {
            Some(mut waiting) => writeln!(waiting, "{READY}").is_ok(),
            None => true,
        }
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        // A file that stays is told from a running sampler's by its lock.
        let _ = std::fs::remove_file(&self.pid_path);
    }
}

/// `sampler stop PREFIX`.
pub fn stop(prefix: Option<&Path>, say: &Say) -> u8 {
    let path = beside(prefix, "pid");
    let (file, text) = match OpenOptions::new().read(true).write(true).open(&path).and_then(|mut file| {
        let mut text = String::new();
        file.read_to_string(&mut text).map(|_| (file, text))
    }) {
        Ok(found) => found,
        Err(why) if why.kind() == io::ErrorKind::NotFound => {
            let wrong = Wrong::new(format!("no sampler runs in the background here: {} is not there", path.display()))
                .hint("sampler stop PREFIX takes what the run was given as --out, from the same folder");
            say.trouble(&wrong.to_string());
            return exit::USAGE;
        }
        Err(why) => {
            say.trouble(&format!("{} cannot be read: {why}", path.display()));
            return exit::USAGE;
        }
    };
    let pid = text.trim().parse::<i32>().ok().and_then(Pid::from_raw);
    let ended = || match file.try_lock() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock) => false,
        // A file system without locks: what runs under that number must be a sampler in the background.
        Err(TryLockError::Error(_)) => !pid.is_some_and(is_detached),
    };
    if ended() {
        let _ = std::fs::remove_file(&path);
        say.answer(&format!("had already ended; {} removed, the files are whole to its last tick", path.display()));
        return exit::DONE;
    }
    let Some(pid) = pid else {
        say.trouble(&format!("{}: expected a pid, found {:?}", path.display(), text.trim()));
        return exit::USAGE;
    };
    let shown = pid.as_raw_nonzero();
    if let Err(why) = kill_process(pid, Signal::TERM) {
        say.trouble(&format!("pid {shown} runs but cannot be stopped from here: {why}"));
        return exit::SAMPLER_FAILED;
    }
    let began = Instant::now();
    while !ended() {
        if began.elapsed() > STOP_PATIENCE {
            say.trouble(&format!(
                "pid {shown} was asked to end and still runs after {} s\nhint: a wrapped driver may need longer; kill -9 {shown} ends it at once, its files are whole to the last tick",
                STOP_PATIENCE.as_secs()
            ));
            return exit::SAMPLER_FAILED;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    say.answer(&format!("stopped pid {shown}"));
    exit::DONE
}

fn is_detached(pid: Pid) -> bool {
    let words = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
    words.split(|byte| *byte == 0).nth(1) == Some(DETACHED.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pid_stands_beside_the_files() {
        assert_eq!(beside(Some(Path::new("a/rung-40")), "pid"), Path::new("a/rung-40.pid"));
        assert_eq!(beside(None, "pid"), Path::new("sampler.pid"));
        assert_eq!(beside(Some(Path::new("a/")), "log"), Path::new("a/sampler.log"));
    }
}
