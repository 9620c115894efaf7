//! Asking the kernel: a netlink socket, and going to the network namespace it shall belong to.

use super::diag::{Garbled, Step, Tcp, Unix, ask_tcp, ask_unix, tcp, unix};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with, sockopt};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// The kernel writes an answer into the reader's own system calls: it is there or it never comes. This is for a kernel
/// that breaks its word.
const PATIENCE: Duration = Duration::from_millis(500);

/// The kernel never writes a longer datagram than this unless asked to.
const DATAGRAM: usize = 64 << 10;

/// A socket for questions about sockets. It stays in the network namespace in which it was made.
#[derive(Debug)]
pub(super) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Netlink {
    pub fn new() -> io::Result<Self> {
        let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?;
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(PATIENCE))?;
        Ok(Self { socket, sequence: 0, buffer: vec![0; DATAGRAM] })
    }

    /// The listening TCP sockets of a port, or (0) of all.
    pub fn tcp(&mut self, port: u16) -> io::Result<Vec<Tcp>> {
        let mut found = Vec::new();
        for v6 in [false, true] {
            let answered =
                self.ask(|sequence| ask_tcp(v6, port, sequence), |datagram, sequence| tcp(datagram, sequence, &mut found));
            match answered {
                Ok(()) => {}
                // A kernel without IPv6 has none of its sockets.
                Err(why) if v6 && why.raw_os_error() == Some(rustix::io::Errno::NOENT.raw_os_error()) => {}
                Err(why) => return Err(why),
            }
        }
        Ok(found)
    }

    /// The listening Unix sockets.
    pub fn unix(&mut self) -> io::Result<Vec<Unix>> {
        let mut found = Vec::new();
        self.ask(ask_unix, |datagram, sequence| unix(datagram, sequence, &mut found))?;
        Ok(found)
    }

    fn ask(
        &mut self,
        question: impl Fn(u32) -> Vec<u8>,
        mut answer: impl FnMut(&[u8], u32) -> Result<Step, Garbled>,
    ) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        send(&self.socket, &question(self.sequence), SendFlags::empty())?;
        loop {
            let (_, length) = recv(&self.socket, &mut self.buffer[..], RecvFlags::TRUNC)?;
            let datagram = self
                .buffer
                .get(..length)
                .ok_or_else(|| io::Error::other(format!("sock_diag answered a datagram of {length} bytes")))?;
            match answer(datagram, self.sequence) {
                Ok(Step::More) => {}
                Ok(Step::Done) => return Ok(()),
                Ok(Step::Refused(code)) => return Err(io::Error::from_raw_os_error(code)),
                Err(Garbled) => return Err(io::Error::other("sock_diag answered something that is not laid out as documented")),
            }
        }
    }
}

/// Moves the calling thread, and nothing else, into a network namespace. The thread should end soon after.
pub(super) fn enter(namespace: &File) -> io::Result<()> {
    Ok(rustix::thread::move_into_link_name_space(namespace.as_fd(), Some(rustix::thread::LinkNameSpaceType::Network))?)
}
