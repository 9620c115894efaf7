//! Whether this machine carries a target, or only drives the load.

use super::cli::Role;
use std::net::{IpAddr, ToSocketAddrs, UdpSocket};

/// The host part of an endpoint: `None` for a path of this machine, a bare port, or nothing.
pub fn host_of(endpoint: &str) -> Option<String> {
    let rest = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    if rest.is_empty() || rest.starts_with('/') || rest.starts_with('.') || endpoint.starts_with("unix:") {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let address = authority.rsplit_once('@').map_or(authority, |(_, address)| address);
    let host = match address.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        // More than one colon is a bare IPv6 address.
        None if address.matches(':').count() > 1 => address,
        None => address.split(':').next().unwrap_or_default(),
    };
    let port_alone = host.chars().all(|c| c.is_ascii_digit());
    (!port_alone).then(|| host.to_owned())
}

/// Whether an endpoint is on this machine: a path, loopback, or one of its own addresses.
pub fn is_local(endpoint: &str, hostname: &str) -> bool {
    let Some(host) = host_of(endpoint) else { return true };
    if host.eq_ignore_ascii_case("localhost") || host.eq_ignore_ascii_case(hostname) {
        return true;
    }
    let addresses: Vec<IpAddr> = match host.parse() {
        Ok(address) => vec![address],
        Err(_) => (host.as_str(), 0).to_socket_addrs().map(|found| found.map(|found| found.ip()).collect()).unwrap_or_default(),
    };
    // Only an address of one's own can be bound.
    addresses.iter().any(|address| address.is_loopback() || UdpSocket::bind((*address, 0)).is_ok())
}

/// A machine without any local target only drives, unless it is the only thing that is sampled.
pub fn guess(endpoints: &[String], hostname: &str) -> Role {
    if endpoints.is_empty() || endpoints.iter().any(|endpoint| is_local(endpoint, hostname)) { Role::Target } else { Role::Driver }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_found_in_every_form_of_endpoint() {
        for (endpoint, host) in [
            ("mysql://probe:x@db:3306/shop", Some("db")),
            ("http://[::1]:8080/x", Some("::1")),
            ("cache:11211", Some("cache")),
            ("cache", Some("cache")),
            ("::1", Some("::1")),
            ("8080", None),
            ("/run/memcached.sock", None),
            ("unix:/run/x", None),
            ("", None),
        ] {
            assert_eq!(host_of(endpoint).as_deref(), host, "{endpoint}");
        }
    }

    #[test]
    fn a_machine_with_a_local_target_is_the_targets_and_otherwise_the_drivers() {
        let far = "mysql://db@192.0.2.7/".to_owned();
        assert_eq!(guess(std::slice::from_ref(&far), "here"), Role::Driver);
        assert_eq!(guess(&[far.clone(), "127.0.0.1:11211".to_owned()], "here"), Role::Target);
        assert_eq!(guess(&[far, "/run/mysqld/mysqld.sock".to_owned()], "here"), Role::Target);
        assert_eq!(guess(&["HERE:80".to_owned()], "here"), Role::Target);
        assert_eq!(guess(&[], "here"), Role::Target);
    }
}
