//! The machine that the sampler runs on, from `/proc` of Linux: processors, run queue, pressure, memory, disks, network,
//! TCP, open files, and what the sampler itself takes.
//!
//! Needs no privilege. Every file stays open and is read anew in each tick, about 15 of them; all of it takes well under
//! a millisecond, so that it is done within the read, without a thread. Which disks and interfaces there are is settled at
//! the start. A file that a kernel does not have costs its own gauges and is said once, at the start.
//!
//! Left unread on purpose: load averages (smoothed over a minute), the pressure averages (the same), `statfs` (hangs on a
//! dead network mount), per-processor states, `/proc/net/tcp` (its cost grows with every connection), `/proc/schedstat`.

mod cpu;
mod disk;
mod limits;
mod memory;
mod net;
mod pressure;

use crate::api::{Collector, Fault, FaultKind, Gauge, Lack, Layer, Reading, Section, Spec, Support, intern};
use crate::proc::ProcFile;
use crate::settings;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The machine that the sampler runs on.
pub const SPEC: Spec = Spec {
    name: "host",
    flag: "host",
    aliases: &[],
    value: "",
    about: "the machine the sampler runs on: processors, pressure, memory, disks, network (Linux)",
    needs: "nothing",
    sample_config: r#"[host]
# proc = "/host/proc"      # in a container that has the machine's /proc mounted there
# disks = ["nvme0n1"]      # instead of every whole disk
# interfaces = ["eth0"]    # instead of every outer interface
"#,
    gauges: FIXED,
    open,
};

/// Every gauge but those of single disks and interfaces, whose names are known at the start only.
const FIXED: &[Gauge] = &flat::<{ count(GROUPS) }>(GROUPS);

const GROUPS: &[&[Gauge]] = &[
    cpu::GAUGES,
    pressure::CPU,
    pressure::MEMORY,
    pressure::IO,
    memory::LEVELS,
    memory::COUNTS,
    net::NETSTAT,
    net::SNMP,
    net::SOCKSTAT,
    net::SOFTNET,
    limits::FILES,
    limits::TRACKED,
    limits::TRACKED_MAX,
    limits::OWN_CPU,
    limits::OWN_MEMORY,
];

const fn count(groups: &[&[Gauge]]) -> usize {
    let (mut sum, mut group) = (0, 0);
    while group < groups.len() {
        sum += groups[group].len();
        group += 1;
    }
    sum
}

const fn flat<const N: usize>(groups: &[&[Gauge]]) -> [Gauge; N] {
    let (mut all, mut at, mut group) = ([groups[0][0]; N], 0, 0);
    while group < groups.len() {
        let mut index = 0;
        while index < groups[group].len() {
            all[at] = groups[group][index];
            at += 1;
            index += 1;
        }
        group += 1;
    }
    all
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Where `/proc` is.
    proc: Option<PathBuf>,
    /// The disks to watch, by their names in `/proc/diskstats`.
    disks: Option<Vec<String>>,
    /// The interfaces to watch, by their names in `/proc/net/dev`.
    interfaces: Option<Vec<String>>,
}

fn open(section: &Section) -> Result<Box<dyn Collector>, Fault> {
    let instance = &section.instance;
    if !section.endpoint.is_empty() {
        return Err(Fault::new(
            FaultKind::Config,
            format!("{instance}: the host is the machine the sampler runs on and has no address, found {:?}", section.endpoint),
        )
        .hint("run a sampler on that machine, or read its exporter with --metrics URL"));
    }
    let settings = settings::parse(section)?;
    Ok(Box::new(Host {
        instance: instance.clone(),
        settings,
        sources: Vec::new(),
        times: cpu::Follow::default(),
        buffer: Vec::new(),
    }))
}

/// What turns a file's text into values.
type Parse = Box<dyn Fn(&[u8], &mut Reading) + Send>;

/// One file, and the gauges it should have.
struct Source {
    file: ProcFile,
    gauges: Vec<Gauge>,
    parse: Parse,
    absent: Absent,
}

/// What it means that a file is not there or has no value of a gauge.
enum Absent {
    /// Something stays unseen; this would mend it.
    Lacks(Option<&'static str>),
    /// The machine has no such thing.
    HasNone(&'static [&'static str]),
}

struct Host {
    instance: String,
    settings: Settings,
    sources: Vec<Source>,
    times: cpu::Follow,
    buffer: Vec<u8>,
}

/// The columns of one disk or interface, from the gauges of any.
fn columns(kind: &str, name: &str, gauges: &[Gauge], layer: Layer, resource: &str) -> Vec<Gauge> {
    let clean: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    let resource = intern(resource);
    gauges
        .iter()
        .map(|gauge| Gauge { name: intern(&format!("{kind}_{clean}_{}", gauge.name)), ..gauge.at(layer, resource) })
        .collect()
}

impl Host {
    fn root(&self) -> &Path {
        self.settings.proc.as_deref().unwrap_or(Path::new("/proc"))
    }

    /// Where the network of the machine is: another machine's `/proc`, seen from a container, has that machine's network
    /// only through its first process; `/proc/net` is the network of whoever looks.
    fn network(&self) -> PathBuf {
        let first = self.root().join("1/net");
        if self.settings.proc.is_some() && first.join("dev").exists() { first } else { self.root().join("net") }
    }

    /// One file's text, read once.
    fn text(&mut self, path: &Path) -> Option<Vec<u8>> {
        ProcFile::new(path.to_owned()).read(&mut self.buffer).ok().map(<[u8]>::to_vec)
    }

    fn line(&mut self, path: &str) -> Option<String> {
        let path = self.root().join(path);
        self.text(&path).map(|text| String::from_utf8_lossy(&text).trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// The chosen names, or those that count without a choice.
    fn settle(
        &self,
        key: &str,
        chosen: Option<&[String]>,
        listed: &[String],
        usual: Vec<String>,
        file: &Path,
    ) -> Result<Vec<String>, Fault> {
        let Some(chosen) = chosen else { return Ok(usual) };
        match chosen.iter().find(|name| !listed.contains(name)) {
            None => Ok(chosen.to_vec()),
            Some(name) => Err(Fault::new(
                FaultKind::Config,
                format!(
                    "configuration of {}: {key} {name:?} is not in {}, found {}",
                    self.instance,
                    file.display(),
                    listed.join(", ")
                ),
            )),
        }
    }

    fn disks(&mut self) -> Result<Vec<disk::Disk>, Fault> {
        let path = self.root().join("diskstats");
        let text = self.text(&path).unwrap_or_default();
        let names = self.settle("disks", self.settings.disks.as_deref(), &disk::listed(&text), disk::names(&text), &path)?;
        Ok(names.iter().map(|name| disk::Disk::new(name)).collect())
    }

    fn interfaces(&mut self) -> Result<Vec<net::Interface>, Fault> {
        let path = self.network().join("dev");
        let text = self.text(&path).unwrap_or_default();
        let names =
            self.settle("interfaces", self.settings.interfaces.as_deref(), &net::listed(&text), net::names(&text), &path)?;
        Ok(names.iter().map(|name| net::Interface::new(name)).collect())
    }

    fn sources(&self, disks: Vec<disk::Disk>, interfaces: Vec<net::Interface>) -> Vec<Source> {
        let (root, net) = (self.root(), self.network());
        let source = |path: PathBuf, gauges: &[Gauge], absent: Absent, parse: Parse| Source {
            file: ProcFile::new(path),
            gauges: gauges.to_vec(),
            parse,
            absent,
        };
        let lacks = || Absent::Lacks(None);
        let psi = || Absent::Lacks(Some(pressure::MEND));
        let all = |columns: Vec<&[Gauge]>| columns.concat();
        let (disk_columns, net_columns) =
            (all(disks.iter().map(|d| &d.columns[..]).collect()), all(interfaces.iter().map(|i| &i.columns[..]).collect()));
        vec![
            source(root.join("stat"), cpu::GAUGES, lacks(), Box::new(cpu::parse)),
            source(root.join("pressure/cpu"), pressure::CPU, psi(), Box::new(pressure::parse_cpu)),
            source(root.join("pressure/memory"), pressure::MEMORY, psi(), Box::new(pressure::parse_memory)),
            source(root.join("pressure/io"), pressure::IO, psi(), Box::new(pressure::parse_io)),
            source(root.join("meminfo"), memory::LEVELS, Absent::HasNone(memory::SWAP), Box::new(memory::parse_levels)),
            source(root.join("vmstat"), memory::COUNTS, lacks(), Box::new(memory::parse_counts)),
            source(root.join("diskstats"), &disk_columns, lacks(), Box::new(move |text, to| disk::parse(text, &disks, to))),
            source(net.join("dev"), &net_columns, lacks(), Box::new(move |text, to| net::parse_interfaces(text, &interfaces, to))),
            source(net.join("netstat"), net::NETSTAT, lacks(), Box::new(net::parse_netstat)),
            source(net.join("snmp"), net::SNMP, lacks(), Box::new(net::parse_snmp)),
            source(net.join("sockstat"), net::SOCKSTAT, lacks(), Box::new(net::parse_sockstat)),
            source(net.join("softnet_stat"), net::SOFTNET, lacks(), Box::new(net::parse_softnet)),
            source(root.join("sys/fs/file-nr"), limits::FILES, lacks(), Box::new(limits::parse_files)),
            source(
                root.join("sys/net/netfilter/nf_conntrack_count"),
                limits::TRACKED,
                Absent::HasNone(&["conntrack_entries"]),
                Box::new(limits::parse_tracked),
            ),
            source(
                root.join("sys/net/netfilter/nf_conntrack_max"),
                limits::TRACKED_MAX,
                Absent::HasNone(&["conntrack_entries_max"]),
                Box::new(limits::parse_tracked_max),
            ),
            source(root.join("self/stat"), limits::OWN_CPU, lacks(), Box::new(limits::parse_own_cpu)),
            source(root.join("self/status"), limits::OWN_MEMORY, lacks(), Box::new(limits::parse_own_memory)),
        ]
    }

    /// Reads every file once: what gives a value becomes a column, what does not is lacking, and a file without any is not
    /// read again.
    fn prove(&mut self, support: &mut Support) -> Reading {
        let mut all = Reading::default();
        let mut sources = std::mem::take(&mut self.sources);
        sources.retain_mut(|source| {
            if source.gauges.is_empty() {
                return false;
            }
            let mut reading = Reading::default();
            let failed = match source.file.read(&mut self.buffer) {
                Ok(text) => {
                    (source.parse)(text, &mut reading);
                    None
                }
                Err(why) => Some(why.to_string()),
            };
            let has = |gauge: &Gauge| reading.values.iter().any(|(name, _)| *name == gauge.name);
            let missing: Vec<&str> = source.gauges.iter().filter(|gauge| !has(gauge)).map(|gauge| gauge.name).collect();
            support.columns.extend(source.gauges.iter().filter(|gauge| has(gauge)).copied());
            let (missing, mend): (Vec<&str>, _) = match &source.absent {
                Absent::Lacks(mend) => (missing, *mend),
                Absent::HasNone(none) => (missing.into_iter().filter(|name| !none.contains(name)).collect(), None),
            };
            if !missing.is_empty() {
                let why = failed.unwrap_or_else(|| "has no readable value".to_owned());
                support.lacks.push(Lack {
                    what: format!("{} ({}: {why})", missing.join(", "), source.file.path().display()),
                    mend: mend.map(str::to_owned),
                });
            }
            all.values.append(&mut reading.values);
            source.gauges.iter().any(|gauge| support.columns.iter().any(|column| column.name == gauge.name))
        });
        self.sources = sources;
        all
    }
}

#[async_trait::async_trait]
impl Collector for Host {
    fn columns(&self) -> Vec<Gauge> {
        FIXED.to_vec()
    }

    async fn start(&mut self) -> Result<Support, Fault> {
        let stat = self.root().join("stat");
        if let Err(why) = ProcFile::new(stat.clone()).read(&mut self.buffer) {
            return Err(Fault::new(FaultKind::Unreachable, format!("read {} of {}: {why}", stat.display(), self.instance))
                .hint("the host's gauges are read on Linux only; --no-host leaves them out"));
        }
        let (disks, interfaces) = (self.disks()?, self.interfaces()?);
        let listed = |names: Vec<&str>| serde_json::Value::from(names);
        let mut support = Support {
            product: "Linux".to_owned(),
            version: self.line("sys/kernel/osrelease").unwrap_or_default(),
            endpoint: self.line("sys/kernel/hostname").unwrap_or_default(),
            facts: vec![
                ("disks".to_owned(), listed(disks.iter().map(|disk| disk.name.as_str()).collect())),
                ("interfaces".to_owned(), listed(interfaces.iter().map(|interface| interface.name.as_str()).collect())),
            ],
            ..Support::default()
        };
        let names = |kind: &str, names: Vec<&str>| format!("{kind} {}", names.join(", "));
        if !disks.is_empty() {
            support.sees.push(names("disk", disks.iter().map(|disk| disk.name.as_str()).collect()));
        }
        if !interfaces.is_empty() {
            support.sees.push(names("network", interfaces.iter().map(|interface| interface.name.as_str()).collect()));
        }
        self.sources = self.sources(disks, interfaces);
        let reading = self.prove(&mut support);
        let value = |wanted: &str| reading.values.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
        for name in ["cores", "memory_total_bytes"] {
            if let Some(value) = value(name) {
                support.facts.push((name.to_owned(), (value as u64).into()));
            }
        }
        if let Some(cores) = value("cores") {
            support.sees.insert(0, format!("{cores} processors"));
        }
        let range = self.root().join("sys/net/ipv4/ip_local_port_range");
        if let Some(ports) = self.text(&range).as_deref().and_then(net::parse_ephemeral) {
            support.facts.push(("ephemeral_ports".to_owned(), ports.into()));
        }
        Ok(support)
    }

    async fn read(&mut self) -> Result<Reading, Fault> {
        let mut reading = Reading::default();
        for source in &mut self.sources {
            match source.file.read(&mut self.buffer) {
                Ok(text) => (source.parse)(text, &mut reading),
                // It was there at the start. The rest of the row goes on.
                Err(why) => reading.notes.push(format!("{}: {why}", source.file.path().display())),
            }
        }
        self.times.leave_out_the_impossible(&mut reading, Instant::now());
        Ok(reading)
    }
}

#[cfg(test)]
mod tests;
