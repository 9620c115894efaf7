//! A process of this machine, or all of one name together: processor time, threads, memory, open files, context switches
//! (Linux, `/proc`).
//!
//! A name is looked for at most once a second, a number (or `self`, the sampler) once. The files of a process stay open: the
//! handle is that of this very process, so that a number used again is never taken for it. What ended leaves what it had
//! used in the sums, so that they never fall. Rights: none but for the open files of another user's process (root, or
//! `CAP_SYS_PTRACE`). Left unread on purpose: `smaps` (walks the whole memory), `io` (needs rights and tells little).

mod stat;

use crate::api::{Capacity, Class, Collector, Fault, FaultKind, Gauge, Lack, Layer, Reading, Section, Spec, Support, Unit};
use crate::proc::ProcFile;
use crate::settings;
use serde::Deserialize;
use stat::Stat;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A process.
pub const SPEC: Spec = Spec {
    name: "process",
    flag: "process",
    aliases: &[],
    value: "PID|NAME",
    about: "a process of this machine, or all of one name: processor time, threads, memory, open files (Linux)",
    needs: "nothing; for the open files of another user's process root or CAP_SYS_PTRACE",
    sample_config: r#"[process]
endpoint = "nginx"          # a number, a name (all that have it together, such as the wrapped driver's), or self
# proc = "/host/proc"       # in a container that has the machine's /proc mounted there
"#,
    gauges: GAUGES,
    open,
};

const NAME: &str = "process";

const GAUGES: &[Gauge] = &[
    Gauge::counter("cpu_seconds_total", Class::Utilisation, Unit::Seconds, "Processor time, of all threads")
        .of("cores")
        .at(Layer::App, NAME),
    Gauge::new("cores", Class::Constant, Unit::Count, "Processors of the machine").at(Layer::Host, "host CPU"),
    level("processes", Unit::Count, "Processes of the name"),
    level("threads", Unit::Count, "Threads, of all processes together"),
    level("resident_bytes", Unit::Bytes, "Memory in use; shared pages count for each process"),
    Gauge::new("open_files", Class::Utilisation, Unit::Count, "Open files and sockets of the process that has the most")
        .of("open_files_max")
        .at(Layer::App, "open files"),
    Gauge::new("open_files_max", Class::Constant, Unit::Count, "Its soft limit of them").at(Layer::App, "open files"),
    switches("context_switches_total", "Context switches, of all threads"),
    switches("involuntary_switches_total", "Of them those forced on it: others wanted the processor"),
];

const fn level(name: &'static str, unit: Unit, help: &'static str) -> Gauge {
    Gauge::new(name, Class::Level, unit, help).at(Layer::App, NAME)
}

const fn switches(name: &'static str, help: &'static str) -> Gauge {
    Gauge::counter(name, Class::Throughput, Unit::Count, help).at(Layer::App, NAME)
}

/// `USER_HZ`, part of the kernel's interface: 100 on every architecture.
const TICKS_PER_SECOND: f64 = 100.0;

/// How often a name is looked for.
const SEARCH: Duration = Duration::from_secs(1);

/// So many threads' context switches are read, each a file of its own; with more there are none.
const MOST_THREADS: u64 = 256;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Where `/proc` is.
    proc: Option<PathBuf>,
}

/// Which processes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wanted {
    Number(u32),
    Name(String),
}

struct Process {
    instance: String,
    wanted: Wanted,
    root: PathBuf,
    members: Vec<Member>,
    searched: Option<Instant>,
    /// Sums over all that ever were members.
    ticks: u64,
    switches: (u64, u64),
    cores: Option<f64>,
    buffer: Vec<u8>,
}

/// One process.
struct Member {
    number: u32,
    began: u64,
    folder: PathBuf,
    stat: ProcFile,
    status: ProcFile,
    /// Clock ticks that are in the sums.
    ticks: u64,
    /// Context switches that are, by thread.
    switches: HashMap<String, (u64, u64)>,
}

fn open(section: &Section) -> Result<Box<dyn Collector>, Fault> {
    let settings: Settings = settings::parse(section)?;
    let text = section.endpoint.trim();
    let wrong = |why: &str| Fault::new(FaultKind::Config, format!("{}: {why}, found {text:?}", section.instance));
    let wanted = match text {
        "" => return Err(wrong("expected a process's number or name")),
        "self" => Wanted::Number(std::process::id()),
        text if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            Wanted::Number(text.parse().map_err(|_| wrong("expected a process's number"))?)
        }
        // The name alone, of a path as well.
        text => Wanted::Name(
            text.rsplit('/').next().filter(|name| !name.is_empty()).ok_or_else(|| wrong("expected a name"))?.to_owned(),
        ),
    };
    Ok(Box::new(Process {
        instance: section.instance.clone(),
        wanted,
        root: settings.proc.unwrap_or_else(|| "/proc".into()),
        members: Vec::new(),
        searched: None,
        ticks: 0,
        switches: (0, 0),
        cores: None,
        buffer: Vec::new(),
    }))
}

impl Process {
    fn text(&mut self, path: &Path) -> Option<Vec<u8>> {
        ProcFile::new(path.to_owned()).read(&mut self.buffer).ok().map(<[u8]>::to_vec)
    }

    /// Whether a process is one of those wanted. The kernel keeps 15 bytes of a name; the rest is in the command line.
    fn fits(&mut self, folder: &Path, found: &Stat) -> bool {
        let Wanted::Name(name) = self.wanted.clone() else { return true };
        if found.name == name {
            return true;
        }
        // `nginx: worker process`, `/usr/sbin/mysqld`, and names that were cut.
        if !found.name.starts_with(&name) && !name.starts_with(&found.name) {
            return false;
        }
        let line = self.text(&folder.join("cmdline")).unwrap_or_default();
        let first = line.split(|byte| *byte == 0 || *byte == b' ').next().unwrap_or_default();
        let first = String::from_utf8_lossy(first);
        first.rsplit('/').next().unwrap_or_default().trim_end_matches(':') == name
    }

    /// Finds members that are not known yet.
    fn search(&mut self, first: bool) {
        let numbers: Vec<u32> = match &self.wanted {
            Wanted::Number(number) => vec![*number],
            Wanted::Name(_) => {
                let entries = std::fs::read_dir(&self.root).into_iter().flatten().flatten();
                entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
            }
        };
        for number in numbers {
            if self.members.iter().any(|member| member.number == number) {
                continue;
            }
            let folder = self.root.join(number.to_string());
            let mut file = ProcFile::new(folder.join("stat"));
            let Some(found) = file.read(&mut self.buffer).ok().and_then(stat::stat).filter(|found| found.state != b'Z') else {
                continue;
            };
            if self.fits(&folder, &found) {
                // What it used before we looked is not ours to count, but for one that began meanwhile.
                let ticks = if first { found.ticks } else { 0 };
                self.ticks += if first { found.ticks } else { 0 };
                self.members.push(Member {
                    number,
                    began: found.began,
                    stat: file,
                    status: ProcFile::new(folder.join("status")),
                    folder,
                    ticks,
                    switches: HashMap::new(),
                });
            }
        }
        self.searched = Some(Instant::now());
    }

    fn gone(&self) -> Fault {
        let (what, hint) = match &self.wanted {
            Wanted::Number(number) => (format!("there is no process {number}"), "give its name to follow it through restarts"),
            Wanted::Name(name) => (
                format!("there is no process with the name {name:?}"),
                "the name as in `ps -o comm`, or that of its program's file",
            ),
        };
        Fault::new(FaultKind::Unreachable, format!("read {} of {}: {what}", self.root.display(), self.instance)).hint(hint)
    }

    /// Everything of all members; those that ended are left out from now on.
    fn gather(&mut self, notes: &mut Vec<String>) -> Result<Reading, Fault> {
        let mut reading = Reading::default();
        let (mut threads, mut resident, mut files) = (0, Some(0), None::<(u64, Option<u64>)>);
        let mut found = Vec::new();
        let mut members = std::mem::take(&mut self.members);
        members.retain_mut(|member| {
            let now = member.stat.read(&mut self.buffer).ok().and_then(stat::stat);
            let Some(now) = now.filter(|now| now.state != b'Z' && now.began == member.began) else {
                notes.push(format!("process {} has ended", member.number));
                return false;
            };
            self.ticks += now.ticks.saturating_sub(member.ticks);
            member.ticks = member.ticks.max(now.ticks);
            threads += now.threads;
            let status = member.status.read(&mut self.buffer).ok();
            resident = resident.zip(status.and_then(stat::resident)).map(|(sum, bytes)| sum + bytes);
            found.push((member.folder.clone(), now.threads));
            true
        });
        let all_switches = threads <= MOST_THREADS;
        for (member, (folder, _)) in members.iter_mut().zip(&found) {
            if all_switches {
                for (old, new) in member.switched(&mut self.buffer) {
                    self.switches.0 += new.0.saturating_sub(old.0);
                    self.switches.1 += new.1.saturating_sub(old.1);
                }
            }
            if let Some(open) = open_files(folder)
                && files.is_none_or(|(most, _)| open > most)
            {
                let limit = ProcFile::new(folder.join("limits")).read(&mut self.buffer).ok().and_then(stat::most_files);
                files = Some((open, limit));
            }
        }
        self.members = members;
        if self.members.is_empty() {
            return Err(self.gone());
        }
        reading.put("cpu_seconds_total", self.ticks as f64 / TICKS_PER_SECOND);
        reading.put_some("cores", self.cores);
        reading.put("processes", self.members.len() as f64);
        reading.put("threads", threads as f64);
        reading.put_some("resident_bytes", resident.map(|bytes| bytes as f64));
        if let Some((open, limit)) = files {
            reading.put("open_files", open as f64);
            reading.put_some("open_files_max", limit.map(|limit| limit as f64));
        }
        if all_switches {
            reading.put("context_switches_total", (self.switches.0 + self.switches.1) as f64);
            reading.put("involuntary_switches_total", self.switches.1 as f64);
        }
        Ok(reading)
    }
}

impl Member {
    /// Every thread's context switches, before and now.
    fn switched(&mut self, buffer: &mut Vec<u8>) -> Vec<((u64, u64), (u64, u64))> {
        let tasks = std::fs::read_dir(self.folder.join("task")).into_iter().flatten().flatten();
        let mut all = Vec::new();
        for task in tasks {
            let Some(now) = ProcFile::new(task.path().join("status")).read(buffer).ok().and_then(stat::switches) else { continue };
            let thread = task.file_name().to_string_lossy().into_owned();
            all.push((self.switches.insert(thread, now).unwrap_or_default(), now));
        }
        all
    }
}

/// How many files a process has open; `None` where that may not be seen.
fn open_files(folder: &Path) -> Option<u64> {
    let mut count = 0;
    for entry in std::fs::read_dir(folder.join("fd")).ok()? {
        entry.ok()?;
        count += 1;
    }
    Some(count)
}

/// How many processors `/proc/stat` lists.
fn cores(stat: &[u8]) -> Option<f64> {
    let is_one = |line: &&[u8]| line.strip_prefix(b"cpu").is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_digit));
    let whole = crate::proc::lines(stat).any(|line| line.starts_with(b"intr"));
    let count = crate::proc::lines(stat).filter(is_one).count();
    (whole && count > 0).then_some(count as f64)
}

#[async_trait::async_trait]
impl Collector for Process {
    fn columns(&self) -> Vec<Gauge> {
        GAUGES.to_vec()
    }

    async fn start(&mut self) -> Result<Support, Fault> {
        (self.ticks, self.switches) = (0, (0, 0));
        self.members.clear();
        let path = self.root.join("stat");
        self.cores = self.text(&path).as_deref().and_then(cores);
        self.search(true);
        let reading = self.gather(&mut Vec::new())?;
        let has = |name: &str| reading.values.iter().any(|(given, _)| *given == name);
        let numbers: Vec<u32> = self.members.iter().map(|member| member.number).collect();
        let name = self.members.first().and_then(|member| {
            let mut file = ProcFile::new(member.folder.join("stat"));
            file.read(&mut self.buffer).ok().and_then(stat::stat).map(|stat| stat.name)
        });
        let mut support = Support {
            product: name.unwrap_or_default(),
            endpoint: match &self.wanted {
                Wanted::Number(number) => number.to_string(),
                Wanted::Name(name) => name.clone(),
            },
            facts: vec![("pids".to_owned(), serde_json::json!(numbers.iter().take(64).collect::<Vec<_>>()))],
            ..Support::default()
        };
        for gauge in GAUGES {
            let mut gauge = *gauge;
            if matches!(gauge.capacity, Capacity::Column(column) if !has(column)) {
                gauge.capacity = Capacity::None;
            }
            if has(gauge.name) {
                support.columns.push(gauge);
            }
        }
        support.sees.push(format!("{} {}", numbers.len(), if numbers.len() == 1 { "process" } else { "processes" }));
        if !has("open_files") {
            support.lacks.push(Lack {
                what: "open_files (the process is another user's)".to_owned(),
                mend: Some("run the sampler as that user or root, or setcap cap_sys_ptrace+ep on it".to_owned()),
            });
        }
        if !has("context_switches_total") {
            support.lacks.push(Lack { what: format!("context switches (more than {MOST_THREADS} threads)"), mend: None });
        }
        Ok(support)
    }

    async fn read(&mut self) -> Result<Reading, Fault> {
        let is_name = matches!(self.wanted, Wanted::Name(_));
        let mut notes = Vec::new();
        if is_name && (self.members.is_empty() || self.searched.is_none_or(|at| at.elapsed() >= SEARCH)) {
            let before = self.members.len();
            self.search(false);
            if before == 0 && !self.members.is_empty() {
                notes.push("the process is there again".to_owned());
            }
        }
        let mut reading = self.gather(&mut notes)?;
        reading.notes = notes;
        Ok(reading)
    }
}

#[cfg(test)]
mod tests;
