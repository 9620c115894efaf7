//! The kernel's socket diagnosis (`sock_diag(7)`): the bytes of a question for listening sockets, and of its answer.
//!
//! Written out here, where crates exist, because of three things that they do not give: the device and inode of a Unix
//! socket, which find it when its server bound it by another path; whether an IPv6 listener takes IPv4 too; and that one
//! socket with an odd name does not spoil the answer about all others. Layouts: `linux/inet_diag.h`, `linux/unix_diag.h`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A TCP socket that listens.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tcp {
    pub address: IpAddr,
    pub port: u16,
    /// An IPv6 socket that leaves IPv4 to others.
    pub v6_only: bool,
    /// Connections that wait to be accepted.
    pub depth: u64,
    /// How many can; unknown where only the table of sockets could be read.
    pub limit: Option<u64>,
}

/// A Unix socket that listens.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Unix {
    /// The path by which it was bound; an abstract name begins with a zero byte.
    pub name: Vec<u8>,
    /// Inode (its lower 32 bits) and device (as the kernel numbers it) of the path.
    pub file: Option<(u32, u32)>,
    pub depth: u64,
    pub limit: u64,
}

/// What one datagram of an answer says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// More datagrams follow.
    More,
    /// That was all.
    Done,
    /// The kernel refuses, with this error number.
    Refused(i32),
}

/// The answer is not laid out as documented.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Garbled;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST_DUMP: u16 = 0x301;
const NLMSG_NOOP: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const AF_UNIX: u8 = 1;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
const TCP_LISTEN: u8 = 10;
const INET_DIAG_SKV6ONLY: u16 = 11;
const UNIX_DIAG_NAME: u16 = 0;
const UNIX_DIAG_VFS: u16 = 1;
const UNIX_DIAG_RQLEN: u16 = 4;
/// Name, file and queue.
const UDIAG_SHOW: u32 = 0x01 | 0x02 | 0x10;

/// Asks for the listening TCP sockets of one IP version, of one port or (0) of all; the kernel does the filtering.
pub(super) fn ask_tcp(v6: bool, port: u16, sequence: u32) -> Vec<u8> {
    let mut body = vec![if v6 { AF_INET6 } else { AF_INET }, IPPROTO_TCP, 0, 0];
    body.extend((1_u32 << TCP_LISTEN).to_ne_bytes());
    // The socket's id: source port, and 46 bytes of other ports, addresses, interface and cookie, all unset.
    body.extend(port.to_be_bytes());
    body.extend([0; 46]);
    message(&body, sequence)
}

/// Asks for all listening Unix sockets.
pub(super) fn ask_unix(sequence: u32) -> Vec<u8> {
    let mut body = vec![AF_UNIX, 0, 0, 0];
    body.extend((1_u32 << TCP_LISTEN).to_ne_bytes());
    body.extend(0_u32.to_ne_bytes());
    body.extend(UDIAG_SHOW.to_ne_bytes());
    body.extend([0; 8]);
    message(&body, sequence)
}

fn message(body: &[u8], sequence: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(16 + body.len());
    bytes.extend((16 + body.len() as u32).to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(NLM_F_REQUEST_DUMP.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(body);
    bytes
}

/// Takes one datagram apart. Messages of other questions are passed over.
pub(super) fn tcp(datagram: &[u8], sequence: u32, found: &mut Vec<Tcp>) -> Result<Step, Garbled> {
    messages(datagram, sequence, |body| {
        let address = match byte(body, 0)? {
            AF_INET => IpAddr::from(Ipv4Addr::from(array::<4>(body, 8)?)),
            AF_INET6 => IpAddr::from(Ipv6Addr::from(array::<16>(body, 8)?)),
            _ => return Ok(()),
        };
        if byte(body, 1)? != TCP_LISTEN {
            return Ok(());
        }
        let port = u16::from_be_bytes(array(body, 4)?);
        let (depth, limit) = (u64::from(word(body, 56)?), u64::from(word(body, 60)?));
        let mut v6_only = false;
        attributes(body.get(72..).ok_or(Garbled)?, |kind, value| {
            v6_only |= kind == INET_DIAG_SKV6ONLY && value.first().is_some_and(|only| *only != 0);
        })?;
        found.push(Tcp { address, port, v6_only, depth, limit: Some(limit) });
        Ok(())
    })
}

/// Takes one datagram apart. Messages of other questions are passed over.
pub(super) fn unix(datagram: &[u8], sequence: u32, found: &mut Vec<Unix>) -> Result<Step, Garbled> {
    messages(datagram, sequence, |body| {
        if byte(body, 0)? != AF_UNIX || byte(body, 2)? != TCP_LISTEN {
            return Ok(());
        }
        let (mut socket, mut queue) = (Unix::default(), None);
        attributes(body.get(16..).ok_or(Garbled)?, |kind, value| match kind {
            UNIX_DIAG_NAME => {
                // A path ends in a zero byte, an abstract name begins with one.
                let path = value.strip_suffix(&[0]).filter(|path| path.first().is_some_and(|first| *first != 0));
                socket.name = path.unwrap_or(value).to_vec();
            }
            UNIX_DIAG_VFS => socket.file = word(value, 0).ok().zip(word(value, 4).ok()),
            UNIX_DIAG_RQLEN => queue = word(value, 0).ok().zip(word(value, 4).ok()),
            _ => {}
        })?;
        // A socket without its queue says nothing.
        if let Some((depth, limit)) = queue {
            (socket.depth, socket.limit) = (depth.into(), limit.into());
            found.push(socket);
        }
        Ok(())
    })
}

/// Walks the messages of a datagram.
fn messages(mut rest: &[u8], sequence: u32, mut each: impl FnMut(&[u8]) -> Result<(), Garbled>) -> Result<Step, Garbled> {
    while !rest.is_empty() {
        let length = word(rest, 0)? as usize;
        let kind = u16::from_ne_bytes(array(rest, 4)?);
        let of = word(rest, 8)?;
        let body = rest.get(16..length).ok_or(Garbled)?;
        rest = rest.get(aligned(length)..).unwrap_or_default();
        if of != sequence {
            continue;
        }
        match kind {
            NLMSG_NOOP => {}
            SOCK_DIAG_BY_FAMILY => each(body)?,
            // The end carries the error, if there was one, as a negative number; old kernels leave it out.
            NLMSG_DONE | NLMSG_ERROR => {
                return Ok(match word(body, 0).map(|code| code as i32) {
                    Ok(code) if code < 0 => Step::Refused(code.saturating_neg()),
                    _ if kind == NLMSG_DONE => Step::Done,
                    _ => return Err(Garbled),
                });
            }
            _ => return Err(Garbled),
        }
    }
    Ok(Step::More)
}

/// Walks the attributes behind a message's fixed part.
fn attributes(mut rest: &[u8], mut each: impl FnMut(u16, &[u8])) -> Result<(), Garbled> {
    while rest.len() >= 4 {
        let length = usize::from(u16::from_ne_bytes(array(rest, 0)?));
        let kind = u16::from_ne_bytes(array(rest, 2)?);
        each(kind, rest.get(4..length).ok_or(Garbled)?);
        rest = rest.get(aligned(length)..).unwrap_or_default();
    }
    Ok(())
}

const fn aligned(length: usize) -> usize {
    length.saturating_add(3) & !3
}

fn byte(bytes: &[u8], at: usize) -> Result<u8, Garbled> {
    bytes.get(at).copied().ok_or(Garbled)
}

fn word(bytes: &[u8], at: usize) -> Result<u32, Garbled> {
    array(bytes, at).map(u32::from_ne_bytes)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], Garbled> {
    bytes.get(at..).and_then(|bytes| bytes.first_chunk()).copied().ok_or(Garbled)
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests;
