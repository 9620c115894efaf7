//! An address as people write it: `HOST`, `HOST:PORT`, `[IPv6]:PORT`, or the path of a Unix socket.

use std::fmt;
use std::path::PathBuf;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// A name or a number, and a port.
    Tcp { host: String, port: u16 },
    /// The path of a Unix socket; on Linux `@name` is an abstract one.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Takes a text apart; the error says what is wrong with it. Without a default a port must be given.
pub(crate) fn parse(text: &str, default_port: Option<u16>) -> Result<Address, String> {
    let text = text.trim();
    if let Some(path) = text.strip_prefix("unix:") {
        let path = path.strip_prefix("//").unwrap_or(path);
        return if path.is_empty() { Err("a path after unix:".to_owned()) } else { Ok(Address::Unix(path.into())) };
    }
    if text.contains('/') || text.starts_with('@') {
        return Ok(Address::Unix(text.into()));
    }
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or("a closing ]")?;
            (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':').ok_or("a colon after ]")?) })
        }
        // More than one colon without brackets is a bare IPv6 address.
        None if text.matches(':').count() > 1 => (text, None),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() || host.contains(|c: char| c.is_whitespace() || c == '[' || c == ']') {
        return Err("a host".to_owned());
    }
    let port = match port {
        Some(port) => port.parse().ok().filter(|port| *port != 0).ok_or("a port from 1 to 65535")?,
        None => default_port.ok_or("a port")?,
    };
    Ok(Address::Tcp { host: host.to_owned(), port })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tcp(host: &str, port: u16) -> Address {
        Address::Tcp { host: host.to_owned(), port }
    }

    #[test]
    fn hosts_with_and_without_a_port() {
        assert_eq!(parse("cache", Some(11211)), Ok(tcp("cache", 11211)));
        assert_eq!(parse("cache:11212", Some(11211)), Ok(tcp("cache", 11212)));
        assert_eq!(parse("[::1]:80", None), Ok(tcp("::1", 80)));
        assert_eq!(parse("[::1]", Some(80)), Ok(tcp("::1", 80)));
        assert_eq!(parse("fe80::1", Some(80)), Ok(tcp("fe80::1", 80)));
    }

    #[test]
    fn paths_and_abstract_names() {
        assert_eq!(parse("/run/x.sock", None), Ok(Address::Unix("/run/x.sock".into())));
        assert_eq!(parse("./x:1", None), Ok(Address::Unix("./x:1".into())));
        assert_eq!(parse("unix:///run/x", None), Ok(Address::Unix("/run/x".into())));
        assert_eq!(parse("unix:x", None), Ok(Address::Unix("x".into())));
        assert_eq!(parse("@x", None), Ok(Address::Unix("@x".into())));
    }

    #[test]
    fn what_is_missing_is_named() {
        for (text, missing) in [("", "host"), (":80", "host"), ("cache", "port"), ("cache:", "port"), ("cache:0", "port")] {
            let why = parse(text, None).unwrap_err();
            assert!(why.contains(missing), "{text}: {why}");
        }
        assert!(parse("[::1", None).unwrap_err().contains(']'));
        assert!(parse("cache:70000", Some(1)).is_err());
    }

    proptest! {
        #[test]
        fn an_address_that_was_taken_apart_is_the_same_when_written_and_read_again(text in "[a-z0-9:.\\[\\]]{0,20}") {
            if let Ok(address) = parse(&text, Some(7)) {
                prop_assert_eq!(parse(&address.to_string(), None), Ok(address));
            }
        }
    }
}
