//! Which of the listening sockets is meant.

use super::diag::{Tcp, Unix};
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The sockets of the right port that take connections to any of these addresses: those bound to one of them, else those
/// bound to all. No address means every socket of the port.
pub(super) fn tcp(sockets: Vec<Tcp>, addresses: &[IpAddr]) -> Vec<Tcp> {
    if addresses.is_empty() {
        return sockets;
    }
    let bound = |socket: &Tcp| addresses.iter().any(|address| address.to_canonical() == socket.address.to_canonical());
    let (exact, others): (Vec<Tcp>, Vec<Tcp>) = sockets.into_iter().partition(bound);
    if !exact.is_empty() {
        return exact;
    }
    let takes = |socket: &Tcp| {
        socket.address.is_unspecified()
            && addresses.iter().any(|address| {
                address.to_canonical().is_ipv4() == socket.address.is_ipv4() || (socket.address.is_ipv6() && !socket.v6_only)
            })
    };
    others.into_iter().filter(takes).collect()
}

/// A Unix socket's path as it is known here.
pub(super) struct Name {
    /// As given, and without symbolic links; an abstract name begins with a zero byte.
    names: Vec<Vec<u8>>,
    /// Its file, as the kernel numbers it.
    file: Option<(u32, u32)>,
}

impl Name {
    /// Looks at the path below `root` (another process's, or empty).
    pub fn find(path: &Path, root: &Path) -> Self {
        let given = path.as_os_str().as_bytes();
        if let Some(name) = given.strip_prefix(b"@") {
            return Self { names: vec![[b"\0", name].concat()], file: None };
        }
        let there = if root.as_os_str().is_empty() { path.to_owned() } else { root.join(path.strip_prefix("/").unwrap_or(path)) };
        let mut names = vec![given.to_vec()];
        if root.as_os_str().is_empty()
            && let Ok(canonical) = there.canonicalize()
        {
            names.push(canonical.as_os_str().as_bytes().to_vec());
        }
        // The kernel tells the lower half of the inode.
        let file = std::fs::metadata(&there).ok().map(|file| (file.ino() as u32, kernel_device(file.dev())));
        Self { names, file }
    }
}

/// The sockets of that file; where the file system numbers files differently for us (overlay, btrfs), those of that name.
pub(super) fn unix(sockets: Vec<Unix>, wanted: &Name) -> Vec<Unix> {
    let (same, others): (Vec<Unix>, Vec<Unix>) =
        sockets.into_iter().partition(|socket| wanted.file.is_some() && socket.file == wanted.file);
    if !same.is_empty() {
        return same;
    }
    others.into_iter().filter(|socket| wanted.names.contains(&socket.name)).collect()
}

/// A device as the kernel numbers it inside: 12 bits and 20; `stat` gives programs the older, folded form.
fn kernel_device(device: u64) -> u32 {
    let (major, minor) = ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xf_ff00));
    (major << 20 | minor) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(address: &str, v6_only: bool) -> Tcp {
        Tcp { address: address.parse().unwrap(), port: 80, v6_only, depth: 1, limit: Some(8) }
    }

    fn chosen(bound: &[(&str, bool)], addresses: &[&str]) -> Vec<String> {
        let sockets = bound.iter().map(|(address, v6_only)| socket(address, *v6_only)).collect();
        let addresses: Vec<IpAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
        tcp(sockets, &addresses).iter().map(|socket| socket.address.to_string()).collect()
    }

    #[test]
    fn without_an_address_every_socket_of_the_port_counts() {
        assert_eq!(chosen(&[("127.0.0.1", false), ("::", true)], &[]), ["127.0.0.1", "::"]);
    }

    #[test]
    fn a_socket_bound_to_the_address_goes_before_one_bound_to_all() {
        assert_eq!(chosen(&[("0.0.0.0", false), ("10.0.0.1", false)], &["10.0.0.1"]), ["10.0.0.1"]);
        assert_eq!(chosen(&[("0.0.0.0", false), ("10.0.0.1", false)], &["10.0.0.2"]), ["0.0.0.0"]);
        assert_eq!(chosen(&[("::ffff:10.0.0.1", false)], &["10.0.0.1"]), ["::ffff:10.0.0.1"]);
    }

    #[test]
    fn an_ipv6_socket_takes_ipv4_unless_it_says_otherwise() {
        assert_eq!(chosen(&[("::", false)], &["127.0.0.1"]), ["::"]);
        assert_eq!(chosen(&[("::", true)], &["127.0.0.1"]), Vec::<String>::new());
        assert_eq!(chosen(&[("0.0.0.0", false)], &["::1"]), Vec::<String>::new());
        assert_eq!(chosen(&[("::", true), ("0.0.0.0", false)], &["127.0.0.1", "::1"]), ["::", "0.0.0.0"]);
    }

    #[test]
    fn a_unix_socket_is_found_by_its_file_even_where_it_was_bound_by_another_path() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("app.sock");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let name = Name::find(&path, Path::new(""));
        let bound = |name: &[u8], file| Unix { name: name.to_vec(), file, depth: 0, limit: 1 };
        let found = unix(vec![bound(b"app.sock", name.file), bound(path.as_os_str().as_bytes(), Some((1, 1)))], &name);
        assert_eq!(found, [bound(b"app.sock", name.file)], "the file, not an older socket of the same path");
        let found = unix(vec![bound(path.as_os_str().as_bytes(), None)], &name);
        assert_eq!(found.len(), 1, "by its name where the file does not tell");
    }

    #[test]
    fn an_abstract_name_begins_with_a_zero_byte() {
        let socket = Unix { name: b"\0app".to_vec(), ..Unix::default() };
        assert_eq!(unix(vec![socket.clone()], &Name::find(Path::new("@app"), Path::new(""))), [socket]);
    }

    #[test]
    fn devices_are_numbered_as_the_kernel_does() {
        assert_eq!(kernel_device(65_024), 254 << 20);
        assert_eq!(kernel_device(0x3456_789a), 0x678 << 20 | 0x3_459a);
    }
}
