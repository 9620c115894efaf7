//! The accept queue of a listening socket on this machine: how many connections wait to be accepted, and how many can.
//!
//! A full queue is where a client feels a server that gave way, and no status page shows it: the page waits in the same
//! queue. The kernel's socket diagnosis tells depth and limit of the listening sockets of one port, at the cost of the
//! listening sockets, not of the connections; where it is refused, `/proc/net/tcp` tells the depth. No privilege is needed,
//! but to look into another network namespace (a container's) `CAP_SYS_ADMIN`, or for the depth alone the right to read
//! that process's `/proc/<pid>/net`.
//!
//! Several sockets of one port (`SO_REUSEPORT`) are summed: a single full one among them shows only as its share. The kernel
//! lets one more wait than the limit says. Overflows and drops are counted by the kernel for all sockets of the namespace
//! together, and only after a queue was full.

mod diag;
mod netlink;
mod table;
mod view;
mod wanted;

use crate::address::{self, Address};
use crate::api::{Class, Collector, Fault, FaultKind, Gauge, Lack, Layer, Reading, Section, Spec, Support, Unit, intern};
use crate::settings;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use view::{Namespace, View};
use wanted::Name;

/// The accept queue of a listening socket on this machine.
pub const SPEC: Spec = Spec {
    name: "listen",
    flag: "listen-queue",
    aliases: &[],
    value: "PORT|HOST:PORT|PATH",
    about: "the accept queue of a listening TCP port or Unix socket on this machine (Linux)",
    needs: "nothing; CAP_SYS_ADMIN for another network namespace (pid, netns)",
    sample_config: r#"[listen]
endpoint = "8080"                # or HOST:PORT, or the path of a Unix socket
# pid = 4711                     # in the network namespace of that process
# netns = "/run/netns/blue"      # or in this one
"#,
    gauges: GAUGES,
    open,
};

const GAUGES: &[Gauge] = &[
    Gauge::new("queue", Class::Queue, Unit::Count, "Connections that wait to be accepted")
        .of("limit")
        .at(Layer::Accept, "accept queue"),
    Gauge::new("limit", Class::Constant, Unit::Count, "Connections that can wait to be accepted").at(Layer::Accept, "accept queue"),
    Gauge::new("sockets", Class::Constant, Unit::Count, "Listening sockets that are summed").at(Layer::Accept, "accept queue"),
    Gauge::counter(
        "overflows_total",
        Class::Event,
        Unit::Count,
        "Connections refused because an accept queue of the namespace was full",
    )
    .at(Layer::Accept, "accept queues of the network namespace"),
    Gauge::counter("drops_total", Class::Event, Unit::Count, "Connection requests dropped at a listening socket of the namespace")
        .at(Layer::Accept, "accept queues of the network namespace"),
];

/// What has no meaning for a Unix socket.
const OF_TCP: [&str; 2] = ["overflows_total", "drops_total"];

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// The network namespace of this process.
    pid: Option<u32>,
    /// The network namespace of this file.
    netns: Option<PathBuf>,
}

fn open(section: &Section) -> Result<Box<dyn Collector>, Fault> {
    let settings: Settings = settings::parse(section)?;
    let instance = &section.instance;
    let wrong = |message: String| Err(Fault::new(FaultKind::Config, message));
    let place = match section.endpoint.trim().parse::<u16>() {
        Ok(port) if port > 0 => Place::Tcp { host: None, port },
        _ => match address::parse(&section.endpoint, None) {
            Ok(Address::Tcp { host, port }) if host == "*" => Place::Tcp { host: None, port },
            Ok(Address::Tcp { host, port }) => Place::Tcp { host: Some(host), port },
            Ok(Address::Unix(path)) => Place::Unix(path),
            Err(missing) => {
                return wrong(format!("address of {instance}: expected {missing}, found {:?}", section.endpoint)).map_err(
                    |fault: Fault| fault.hint("PORT, HOST:PORT, or the path of a Unix socket (@name for an abstract one)"),
                );
            }
        },
    };
    let namespace = match (settings.pid, settings.netns) {
        (None, None) => Namespace::Own,
        (Some(pid), None) => Namespace::Process(pid),
        (None, Some(path)) => Namespace::File(path),
        (Some(_), Some(_)) => return wrong(format!("configuration of {instance}: pid and netns are two namespaces; give one")),
    };
    Ok(Box::new(Listen { instance: instance.clone(), place, namespace, addresses: Vec::new(), view: None, sockets: None }))
}

/// Which socket.
#[derive(Clone, Debug)]
enum Place {
    Tcp { host: Option<String>, port: u16 },
    Unix(PathBuf),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp { host: None, port } => write!(f, ":{port}"),
            Self::Tcp { host: Some(host), port } => Address::Tcp { host: host.clone(), port: *port }.fmt(f),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

struct Listen {
    instance: String,
    place: Place,
    namespace: Namespace,
    /// What the host's name means; empty for every address.
    addresses: Vec<IpAddr>,
    view: Option<View>,
    /// How many sockets were summed last.
    sockets: Option<usize>,
}

/// A Unix socket's name for people.
fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).replace('\0', "@")
}

/// The sum over the sockets that are meant.
#[derive(Debug, PartialEq)]
struct Sum {
    sockets: usize,
    depth: u64,
    limit: Option<u64>,
    /// Where they are bound, for people.
    bound: Vec<String>,
}

impl Listen {
    fn unreadable(&self, why: &io::Error) -> Fault {
        let kind = match why.kind() {
            io::ErrorKind::PermissionDenied => FaultKind::Denied,
            _ => FaultKind::Unreachable,
        };
        let fault = Fault::new(kind, format!("read the listening sockets of {}@{}: {why}", self.instance, self.place));
        match (&self.namespace, kind) {
            (Namespace::Own, _) => fault,
            (_, FaultKind::Denied) => {
                fault.hint("another network namespace needs CAP_SYS_ADMIN: run the sampler as root, or inside that namespace")
            }
            _ => fault.hint("does the process run, and is its network namespace still there?"),
        }
    }

    fn sum(&self, view: &mut View) -> Result<Sum, Fault> {
        let unreadable = |why: io::Error| self.unreadable(&why);
        let sum = match &self.place {
            Place::Tcp { port, .. } => {
                let sockets = wanted::tcp(view.tcp(*port).map_err(unreadable)?, &self.addresses);
                Sum {
                    sockets: sockets.len(),
                    depth: sockets.iter().map(|socket| socket.depth).sum(),
                    limit: sockets.iter().map(|socket| socket.limit).sum(),
                    bound: sockets
                        .iter()
                        .map(|socket| std::net::SocketAddr::new(socket.address, socket.port).to_string())
                        .collect(),
                }
            }
            Place::Unix(path) => {
                let root = match self.namespace {
                    Namespace::Process(pid) => format!("/proc/{pid}/root").into(),
                    _ => PathBuf::new(),
                };
                let sockets = wanted::unix(view.unix().map_err(unreadable)?, &Name::find(path, &root));
                Sum {
                    sockets: sockets.len(),
                    depth: sockets.iter().map(|socket| socket.depth).sum(),
                    limit: Some(sockets.iter().map(|socket| socket.limit).sum()),
                    bound: sockets.iter().map(|socket| shown(&socket.name)).collect(),
                }
            }
        };
        if sum.sockets == 0 { Err(self.nobody(view)) } else { Ok(sum) }
    }

    /// Nobody listens: who does.
    fn nobody(&self, view: &mut View) -> Fault {
        const SHOWN: usize = 20;
        let (what, others): (_, Vec<String>) = match &self.place {
            Place::Tcp { .. } => {
                let ports: BTreeSet<u16> = view.tcp(0).unwrap_or_default().iter().map(|socket| socket.port).collect();
                ("ports", ports.iter().map(u16::to_string).collect())
            }
            Place::Unix(_) => {
                let names: BTreeSet<String> = view.unix().unwrap_or_default().iter().map(|socket| shown(&socket.name)).collect();
                ("sockets", names.into_iter().collect())
            }
        };
        let more = if others.len() > SHOWN { format!(" and {} more", others.len() - SHOWN) } else { String::new() };
        let found = match &others[..others.len().min(SHOWN)] {
            [] => "none at all".to_owned(),
            some => format!("{}{more}", some.join(", ")),
        };
        Fault::new(
            FaultKind::Unreachable,
            format!(
                "{}: nobody listens on {} in this network namespace; {what} that are listened on: {found}",
                self.instance, self.place
            ),
        )
        .hint("the socket must be on this machine; for one in a container give pid = N of a process in it")
    }

    fn view(&mut self) -> Result<View, Fault> {
        match self.view.take() {
            Some(view) => Ok(view),
            None => View::open(&self.namespace).map_err(|why| self.unreadable(&why)),
        }
    }

    /// What this view shows of the socket; the view is kept.
    fn settle(&mut self, view: View) -> Result<Support, Fault> {
        (self.view, self.sockets) = (Some(view), None);
        let (view, sum, reading) = self.read_now()?;
        let has = |name: &str| reading.values.iter().any(|(found, _)| *found == name);
        let mut support = Support {
            product: "accept queue".to_owned(),
            version: std::fs::read_to_string("/proc/sys/kernel/osrelease")
                .map(|text| format!("Linux {}", text.trim()))
                .unwrap_or_default(),
            endpoint: self.place.to_string(),
            columns: self.columns().into_iter().filter(|gauge| has(gauge.name)).collect(),
            facts: vec![("sockets".to_owned(), sum.sockets.into())],
            ..Support::default()
        };
        let bound: BTreeSet<&str> = sum.bound.iter().map(String::as_str).collect();
        let bound = bound.into_iter().collect::<Vec<_>>().join(", ");
        let limit = sum.limit.map_or(String::new(), |limit| format!(", {limit} can wait"));
        support.sees.push(match sum.sockets {
            1 => format!("1 socket on {bound}{limit}"),
            count => format!("{count} sockets on {bound}{limit} in all: summed, one that is full alone shows as its share"),
        });
        if let Some(limit) = sum.limit {
            support.facts.push(("limit".to_owned(), limit.into()));
        } else {
            // Without its limit the depth still is a queue.
            support.columns.iter_mut().for_each(|gauge| gauge.capacity = crate::api::Capacity::None);
            support.lacks.push(Lack {
                what: format!(
                    "the limit of the queue (sock_diag: {}); its depth is read from the table of all sockets, which costs more",
                    view.refused().unwrap_or("refused")
                ),
                mend: Some(
                    "load the kernel module tcp_diag, or run the sampler with CAP_SYS_ADMIN for another namespace".to_owned(),
                ),
            });
        }
        if matches!(self.place, Place::Tcp { .. }) && !(has("overflows_total") && has("drops_total")) {
            support.lacks.push(Lack {
                what: "overflows and drops of accept queues (net/netstat has no such counters)".to_owned(),
                mend: None,
            });
        }
        self.view = Some(view);
        Ok(support)
    }

    async fn resolve(&mut self) -> Result<(), Fault> {
        if let Place::Tcp { host: Some(host), port } = &self.place {
            let found = tokio::net::lookup_host((host.as_str(), *port)).await;
            self.addresses = found.map(|found| found.map(|address| address.ip()).collect()).unwrap_or_default();
            if self.addresses.is_empty() {
                return Err(Fault::new(FaultKind::Unreachable, format!("{}: the name {host:?} has no address", self.instance)));
            }
            // An unspecified address means all of them.
            if self.addresses.iter().all(IpAddr::is_unspecified) {
                self.addresses.clear();
            }
        }
        Ok(())
    }

    fn read_now(&mut self) -> Result<(View, Sum, Reading), Fault> {
        let mut view = self.view()?;
        let sum = self.sum(&mut view)?;
        let mut reading = Reading::default();
        reading.put("queue", sum.depth as f64);
        reading.put_some("limit", sum.limit.map(|limit| limit as f64));
        reading.put("sockets", sum.sockets as f64);
        if matches!(self.place, Place::Tcp { .. }) {
            let (overflows, drops) = view.overflows();
            reading.put_some("overflows_total", overflows);
            reading.put_some("drops_total", drops);
        }
        if let Some(before) = self.sockets.replace(sum.sockets)
            && before != sum.sockets
        {
            reading.notes.push(format!("{before} listening sockets became {}", sum.sockets));
        }
        Ok((view, sum, reading))
    }
}

#[async_trait::async_trait]
impl Collector for Listen {
    fn columns(&self) -> Vec<Gauge> {
        let resource = intern(&format!("accept queue of {}", self.place));
        let of_tcp = matches!(self.place, Place::Tcp { .. });
        GAUGES
            .iter()
            .filter(|gauge| of_tcp || !OF_TCP.contains(&gauge.name))
            .map(|gauge| if OF_TCP.contains(&gauge.name) { *gauge } else { gauge.at(Layer::Accept, resource) })
            .collect()
    }

    async fn start(&mut self) -> Result<Support, Fault> {
        self.resolve().await?;
        let view = View::open(&self.namespace).map_err(|why| self.unreadable(&why))?;
        self.settle(view)
    }

    async fn read(&mut self) -> Result<Reading, Fault> {
        // All of it is a few system calls that never wait. After a fault the view is opened anew: the namespace may be
        // another by then.
        let (view, _, reading) = self.read_now()?;
        self.view = Some(view);
        Ok(reading)
    }
}

#[cfg(test)]
mod tests;
