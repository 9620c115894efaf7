//! A control group of this machine (Linux, v2 and v1): processor time and throttling, memory, pressure, processes. What a
//! container or a systemd unit is bounded by.
//!
//! Every gauge is taken from the first file that tells it, whatever the hierarchies are called and however both versions
//! are mixed. Only a group's own files are read, and only those that told something at the start. Rights: none. Values of
//! the processor time that cannot be (less than before, more than all processors could give; torn reads of a root group)
//! are left out. Left unread on purpose: `cgroup.procs`, `io.stat` (a line for every device), the pressure averages.

mod files;

use crate::api::{Capacity, Class, Collector, Fault, FaultKind, Gauge, Layer, Reading, Section, Spec, Support, Unit};
use crate::proc::{Plausible, ProcFile, lines};
use crate::settings;
use files::{FILES, PERIOD, QUOTA};
use serde::Deserialize;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A control group.
pub const SPEC: Spec = Spec {
    name: "cgroup",
    flag: "cgroup",
    aliases: &[],
    value: "PATH|PID",
    about: "a control group of this machine, v1 or v2: throttling, memory and its events, pressure, processes (Linux)",
    needs: "nothing",
    sample_config: r#"[cgroup]
endpoint = "system.slice/nginx.service"   # a path below /sys/fs/cgroup, or the number of a process in it
# root = "/host/cgroup"                   # where the groups are mounted, and
# proc = "/host/proc"                     # where processes are, as seen from a container
"#,
    gauges: GAUGES,
    open,
};

const CPU: &str = "cgroup CPU";
const MEMORY: &str = "cgroup memory";

const GAUGES: &[Gauge] = &[
    Gauge::counter("cpu_seconds_total", Class::Utilisation, Unit::Seconds, "Processor time used")
        .of("cpu_limit")
        .at(Layer::App, CPU),
    Gauge::new("cpu_limit", Class::Constant, Unit::Count, "Processors that it may use, on average; without a quota no such column")
        .at(Layer::App, CPU),
    count("periods_total", Class::Throughput, "Periods in which it wanted a processor", CPU),
    count("throttled_periods_total", Class::Event, "Of them those in which its quota was used up", CPU),
    Gauge::counter(
        "throttled_us_total",
        Class::WaitSum,
        Unit::Microseconds,
        "Time waited for the next period, summed over processors",
    )
    .at(Layer::App, CPU),
    stalled("psi_cpu_some_us_total", "Time in which some thread waited for a processor", CPU),
    bytes("memory_bytes", Class::Level, "Memory charged to it, the page cache too"),
    bytes("memory_working_bytes", Class::Level, "The same without inactive files, which are given back when needed")
        .of("memory_max_bytes"),
    bytes("memory_max_bytes", Class::Constant, "The limit of memory; without one no such column"),
    bytes("memory_high_bytes", Class::Constant, "Above it allocations are slowed down (v2)"),
    count("memory_high_hits_total", Class::Event, "Times that it was slowed down above memory.high (v2)", MEMORY),
    // At the limit the page cache is reclaimed, at any load: the kills are what hurts.
    count("memory_max_hits_total", Class::Throughput, "Times that the limit was reached and memory had to be reclaimed", MEMORY)
        .worse(crate::api::Worse::Up),
    count("oom_total", Class::Event, "Times that reclaiming did not help (v2)", MEMORY),
    count("oom_kills_total", Class::Event, "Processes killed for lack of memory", MEMORY),
    stalled("psi_memory_some_us_total", "Time in which some thread waited for memory", MEMORY),
    stalled("psi_memory_full_us_total", "Time in which all threads waited for memory", MEMORY),
    stalled("psi_io_some_us_total", "Time in which some thread waited for input or output", "cgroup I/O"),
    stalled("psi_io_full_us_total", "Time in which all threads waited for input or output", "cgroup I/O"),
    Gauge::new("pids", Class::Utilisation, Unit::Count, "Processes and threads").of("pids_max").at(Layer::App, "cgroup processes"),
    Gauge::new("pids_max", Class::Constant, Unit::Count, "The limit of them").at(Layer::App, "cgroup processes"),
    count("pids_max_hits_total", Class::Event, "Processes and threads refused at the limit", "cgroup processes"),
];

const fn count(name: &'static str, class: Class, help: &'static str, resource: &'static str) -> Gauge {
    Gauge::counter(name, class, Unit::Count, help).at(Layer::App, resource)
}

const fn bytes(name: &'static str, class: Class, help: &'static str) -> Gauge {
    Gauge::new(name, class, Unit::Bytes, help).at(Layer::App, MEMORY)
}

const fn stalled(name: &'static str, help: &'static str, resource: &'static str) -> Gauge {
    Gauge::counter(name, Class::Pressure, Unit::Microseconds, help).at(Layer::App, resource)
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Where the groups are mounted.
    root: Option<PathBuf>,
    /// Where `/proc` is.
    proc: Option<PathBuf>,
}

struct Cgroup {
    instance: String,
    endpoint: String,
    root: PathBuf,
    proc: PathBuf,
    sources: Vec<Source>,
    cpu: Plausible,
    cores: f64,
    buffer: Vec<u8>,
}

/// A file that told something at the start.
struct Source {
    file: ProcFile,
    parse: fn(&[u8]) -> Vec<(&'static str, f64)>,
}

fn open(section: &Section) -> Result<Box<dyn Collector>, Fault> {
    let settings: Settings = settings::parse(section)?;
    if section.endpoint.trim().is_empty() {
        return Err(Fault::new(
            FaultKind::Config,
            format!("{}: expected the path of a control group or a process's number", section.instance),
        )
        .hint("cat /proc/PID/cgroup tells where a process is"));
    }
    Ok(Box::new(Cgroup {
        instance: section.instance.clone(),
        endpoint: section.endpoint.trim().to_owned(),
        root: settings.root.unwrap_or_else(|| "/sys/fs/cgroup".into()),
        proc: settings.proc.unwrap_or_else(|| "/proc".into()),
        sources: Vec::new(),
        cpu: Plausible::default(),
        cores: std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64),
        buffer: Vec::new(),
    }))
}

impl Cgroup {
    /// Where files of one controller may be: folders, and for v1 the controllers that they are of.
    fn folders(&mut self) -> Result<Vec<(Option<String>, PathBuf)>, Fault> {
        let mut groups: Vec<(Option<String>, String)> = Vec::new();
        if self.endpoint.bytes().all(|byte| byte.is_ascii_digit()) {
            let path = self.proc.join(&self.endpoint).join("cgroup");
            let mut file = ProcFile::new(path.clone());
            let text = file.read(&mut self.buffer).map_err(|why| {
                Fault::new(FaultKind::Unreachable, format!("read {} of {}: {why}", path.display(), self.instance))
                    .hint("the number of a process that runs, or the path of a group below /sys/fs/cgroup")
            })?;
            groups.extend(memberships(text));
        } else {
            // An absolute path below the mount names the group itself, in whatever hierarchy.
            let given = Path::new(&self.endpoint);
            let under = given.strip_prefix(&self.root).unwrap_or(given);
            if given.starts_with(&self.root) && given.is_dir() {
                return Ok(vec![(None, given.to_owned())]);
            }
            groups.push((None, under.display().to_string()));
        }
        let mut mounts = vec![self.root.clone()];
        let entries = std::fs::read_dir(&self.root).into_iter().flatten().flatten();
        let mut below: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        below.sort();
        mounts.extend(below);
        let mut folders = Vec::new();
        for (controllers, path) in groups {
            for mount in &mounts {
                let name = mount.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                let folder = mount.join(path.trim_start_matches('/'));
                let of_it = match controllers.as_deref() {
                    None => true,
                    // The line of v2: beside v1's hierarchies the same path means other groups.
                    Some("") => folder.join("cgroup.controllers").exists(),
                    Some(all) => name.split(',').any(|one| all.split(',').any(|other| one == other)),
                };
                if of_it && folder.is_dir() {
                    folders.push((controllers.clone().filter(|all| !all.is_empty()), folder));
                }
            }
        }
        // The root of a hierarchy is the whole machine: it speaks of what no group of one's own tells.
        folders.sort_by_key(|(_, folder)| mounts.contains(folder));
        Ok(folders)
    }

    /// Finds a file for every gauge.
    fn settle(&mut self) -> Result<(Vec<&'static str>, Vec<PathBuf>), Fault> {
        let folders = self.folders()?;
        let (mut told, mut used) = (Vec::new(), Vec::new());
        self.sources.clear();
        for (controllers, folder) in &folders {
            for file in FILES {
                let controller = file.name.split('.').next().unwrap_or_default();
                if controllers.as_ref().is_some_and(|all| !all.split(',').any(|one| one == controller)) {
                    continue;
                }
                let mut source = Source { file: ProcFile::new(folder.join(file.name)), parse: file.parse };
                let Ok(text) = source.file.read(&mut self.buffer) else { continue };
                let new: Vec<&'static str> =
                    (file.parse)(text).into_iter().map(|(name, _)| name).filter(|name| !told.contains(name)).collect();
                if !new.is_empty() {
                    told.extend(new);
                    self.sources.push(source);
                    if !used.contains(folder) {
                        used.push(folder.clone());
                    }
                }
            }
        }
        if told.is_empty() {
            let looked =
                if folders.is_empty() { "no such folder".to_owned() } else { format!("nothing readable in {}", shown(&folders)) };
            return Err(Fault::new(
                FaultKind::Unreachable,
                format!("read the control group {} of {} below {}: {looked}", self.endpoint, self.instance, self.root.display()),
            )
            .hint("cat /proc/PID/cgroup tells where a process is"));
        }
        Ok((told, used))
    }

    fn gather(&mut self) -> Result<Reading, Fault> {
        let (mut raw, mut failed): (HashMap<&'static str, f64>, Option<String>) = (HashMap::new(), None);
        let mut reading = Reading::default();
        for source in &mut self.sources {
            match source.file.read(&mut self.buffer) {
                Ok(text) => {
                    for (name, value) in (source.parse)(text) {
                        // The first file that tells it counts, as at the start.
                        raw.entry(name).or_insert(value);
                    }
                }
                Err(why) => failed = Some(format!("{}: {why}", source.file.path().display())),
            }
        }
        if let Some(failed) = failed {
            if raw.is_empty() {
                let message = format!("read the control group {} of {}: {failed}", self.endpoint, self.instance);
                return Err(Fault::new(FaultKind::Unreachable, message).hint("the group is gone: has the container or unit ended?"));
            }
            reading.notes.push(failed);
        }
        if let Some(seconds) = raw.get("cpu_seconds_total").copied()
            && !self.cpu.accepts(seconds, Instant::now(), self.cores, 0.0)
        {
            raw.remove("cpu_seconds_total");
            reading.notes.push(format!("processor time of {seconds} s cannot be: left out"));
        }
        if let (Some(quota), Some(period)) = (raw.get(QUOTA), raw.get(PERIOD))
            && *period > 0.0
        {
            reading.put("cpu_limit", quota / period);
        }
        if let (Some(all), Some(inactive)) = (raw.get("memory_bytes"), raw.get("inactive_file_bytes"))
            && all >= inactive
        {
            reading.put("memory_working_bytes", all - inactive);
        }
        for gauge in GAUGES {
            reading.put_some(gauge.name, raw.get(gauge.name).copied());
        }
        Ok(reading)
    }
}

/// `4:memory:/a` and `0::/b`: controllers of a hierarchy of v1, an empty text for v2, and the group's path in it.
fn memberships(text: &[u8]) -> Vec<(Option<String>, String)> {
    let all = lines(text).filter_map(|line| {
        let line = String::from_utf8_lossy(line);
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        // Seen from another namespace a path may lead out of the mount.
        (!path.contains("/..")).then(|| (Some(controllers.to_owned()), path.to_owned()))
    });
    all.collect()
}

fn shown(folders: &[(Option<String>, PathBuf)]) -> String {
    folders.iter().map(|(_, folder)| folder.display().to_string()).collect::<Vec<_>>().join(", ")
}

#[async_trait::async_trait]
impl Collector for Cgroup {
    fn columns(&self) -> Vec<Gauge> {
        GAUGES.to_vec()
    }

    async fn start(&mut self) -> Result<Support, Fault> {
        self.cpu = Plausible::default();
        let (_, used) = self.settle()?;
        let reading = self.gather()?;
        let value = |wanted: &str| reading.values.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
        let two = used.iter().any(|folder| folder.join("cgroup.events").exists() || folder.join("cgroup.controllers").exists());
        let one = used.iter().any(|folder| !folder.join("cgroup.controllers").exists() && !folder.join("cgroup.events").exists());
        let version = match (two, one) {
            (true, true) => "v1 and v2",
            (true, false) => "v2",
            _ => "v1",
        };
        let mut support = Support {
            product: "cgroup".to_owned(),
            version: version.to_owned(),
            endpoint: self.endpoint.clone(),
            facts: vec![("folders".to_owned(), serde_json::json!(used))],
            ..Support::default()
        };
        for gauge in GAUGES.iter().filter(|gauge| value(gauge.name).is_some()) {
            let mut gauge = *gauge;
            if matches!(gauge.capacity, Capacity::Column(column) if value(column).is_none()) {
                gauge.capacity = Capacity::None;
            }
            support.columns.push(gauge);
        }
        let limits = [("cpu_limit", "processors"), ("memory_max_bytes", "bytes of memory"), ("pids_max", "processes")];
        for (name, what) in limits {
            match value(name) {
                Some(limit) => {
                    support.facts.push((name.to_owned(), serde_json::json!(limit)));
                    support.sees.push(format!("{limit} {what} at most"));
                }
                None => support.sees.push(format!("no limit of {what}")),
            }
        }
        let untold: Vec<&str> = ["cpu_seconds_total", "throttled_periods_total", "memory_bytes", "pids"]
            .into_iter()
            .filter(|name| value(name).is_none())
            .collect();
        if !untold.is_empty() {
            support.lacks.push(crate::api::Lack {
                what: format!("{} (no file of this group tells it; the root group has few)", untold.join(", ")),
                mend: Some("systemd: CPUAccounting=yes MemoryAccounting=yes TasksAccounting=yes in the unit".to_owned()),
            });
        }
        Ok(support)
    }

    async fn read(&mut self) -> Result<Reading, Fault> {
        self.gather()
    }
}

#[cfg(test)]
mod tests;
