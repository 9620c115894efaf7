//! A view of the listening sockets of one network namespace: by socket diagnosis, or where that is refused by the table of
//! all sockets.

use super::diag::{Tcp, Unix};
use super::netlink::{Netlink, enter};
use super::table;
use crate::proc::{ProcFile, protocol, value};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Open for the whole run; it stays in the namespace in which it was opened.
#[derive(Debug)]
pub(super) struct View {
    sockets: Sockets,
    netstat: Option<ProcFile>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
enum Sockets {
    Diagnosis(Netlink),
    Tables { tcp: ProcFile, tcp6: ProcFile, why: String },
}

/// Where to look.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Namespace {
    /// The sampler's own.
    Own,
    /// That of a process.
    Process(u32),
    /// That of a file: `/proc/<pid>/ns/net`, or one that `ip netns add` made in `/run/netns`.
    File(PathBuf),
}

impl Namespace {
    fn file(&self) -> Option<PathBuf> {
        match self {
            Self::Own => None,
            Self::Process(pid) => Some(format!("/proc/{pid}/ns/net").into()),
            Self::File(path) => Some(path.clone()),
        }
    }
}

impl View {
    pub fn open(namespace: &Namespace) -> io::Result<Self> {
        let Some(path) = namespace.file() else { return Self::here(Path::new("/proc/self/net")) };
        match (Self::there(&path), namespace) {
            // Without the privilege to go there, the tables of a process can still be looked at.
            (Err(why), Namespace::Process(pid)) if why.kind() == io::ErrorKind::PermissionDenied => {
                Self::tables(Path::new(&format!("/proc/{pid}/net")), &why).map_err(|_| why)
            }
            (opened, _) => opened,
        }
        .map_err(|why| io::Error::new(why.kind(), format!("{}: {why}", path.display())))
    }

    /// In the namespace of that file.
    fn there(namespace: &Path) -> io::Result<Self> {
        let file = File::open(namespace)?;
        let (theirs, ours) = (file.metadata()?, std::fs::metadata("/proc/self/ns/net")?);
        if (theirs.dev(), theirs.ino()) == (ours.dev(), ours.ino()) {
            return Self::here(Path::new("/proc/self/net"));
        }
        // A thread of its own goes there, opens everything, and ends: what it opened stays there, the rest of the program
        // never was.
        std::thread::spawn(move || {
            enter(&file)?;
            Self::here(Path::new("/proc/thread-self/net"))
        })
        .join()
        .unwrap_or_else(|_| Err(io::Error::other("the thread that went there failed")))
    }

    /// In the namespace of the calling thread.
    fn here(net: &Path) -> io::Result<Self> {
        let asked = Netlink::new().and_then(|mut netlink| {
            // The kernel refuses a kind of question, not the socket.
            netlink.tcp(0)?;
            Ok(netlink)
        });
        match asked {
            Ok(netlink) => Ok(Self {
                sockets: Sockets::Diagnosis(netlink),
                netstat: ProcFile::open(net.join("netstat")).ok(),
                buffer: Vec::new(),
            }),
            Err(why) => Self::tables(net, &why),
        }
    }

    pub(super) fn tables(net: &Path, why: &io::Error) -> io::Result<Self> {
        let mut tcp = ProcFile::open(net.join("tcp"))?;
        let mut buffer = Vec::new();
        tcp.read(&mut buffer)?;
        Ok(Self {
            sockets: Sockets::Tables { tcp, tcp6: ProcFile::new(net.join("tcp6")), why: why.to_string() },
            netstat: ProcFile::open(net.join("netstat")).ok(),
            buffer,
        })
    }

    /// Why only the table of sockets can be read, if so.
    pub fn refused(&self) -> Option<&str> {
        match &self.sockets {
            Sockets::Diagnosis(_) => None,
            Sockets::Tables { why, .. } => Some(why),
        }
    }

    /// The listening TCP sockets of a port, or (0) of all.
    pub fn tcp(&mut self, port: u16) -> io::Result<Vec<Tcp>> {
        match &mut self.sockets {
            Sockets::Diagnosis(netlink) => netlink.tcp(port),
            Sockets::Tables { tcp, tcp6, .. } => {
                let mut found = table::parse(tcp.read(&mut self.buffer)?);
                match tcp6.read(&mut self.buffer) {
                    Ok(text) => found.extend(table::parse(text)),
                    // A kernel without IPv6 has no such table.
                    Err(why) if why.kind() == io::ErrorKind::NotFound => {}
                    Err(why) => return Err(why),
                }
                found.retain(|socket| port == 0 || socket.port == port);
                Ok(found)
            }
        }
    }

    /// The listening Unix sockets. No table tells their queues.
    pub fn unix(&mut self) -> io::Result<Vec<Unix>> {
        match &mut self.sockets {
            Sockets::Diagnosis(netlink) => netlink.unix(),
            Sockets::Tables { why, .. } => Err(io::Error::new(io::ErrorKind::PermissionDenied, why.clone())),
        }
    }

    /// Overflows and drops at the accept queues of the namespace, all together.
    pub fn overflows(&mut self) -> (Option<f64>, Option<f64>) {
        let Some(text) = self.netstat.as_mut().and_then(|netstat| netstat.read(&mut self.buffer).ok()) else { return (None, None) };
        let of = |wanted: &[u8]| protocol(text, "TcpExt:").find(|(name, _)| *name == wanted).and_then(|(_, count)| value(count));
        (of(b"ListenOverflows"), of(b"ListenDrops"))
    }
}
