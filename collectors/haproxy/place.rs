//! Where a HAProxy is asked: its statistics page over HTTP, or its runtime socket.

use crate::address::{self, Address};
use crate::api::{Fault, FaultKind};
use crate::http;
use reqwest::Url;
use std::fmt;

/// How it is reached.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Place {
    /// The statistics page.
    Page(Url),
    /// The runtime socket.
    Socket(Address),
}

/// What to write, for a hint.
pub(super) const FORMS: &str = "http://HOST:PORT/stats;csv, unix:/SOCKET, or tcp:HOST:PORT for a runtime socket on a port";

impl Place {
    /// Reads an address as given; a page gets its `;csv`.
    pub(super) fn parse(what: &str, text: &str) -> Result<Self, Fault> {
        let text = text.trim();
        let port = ["tcp://", "tcp:", "ipv4@", "ipv6@"].iter().find_map(|scheme| text.strip_prefix(scheme));
        if port.is_none() && !text.starts_with("unix:") && !text.starts_with(['/', '@']) {
            return http::address::parse(what, text).map(|url| Self::Page(with_csv(url)));
        }
        let found = address::parse(port.unwrap_or(text), None);
        found.map(Self::Socket).map_err(|missing| {
            Fault::new(FaultKind::Config, format!("address of {what}: expected {missing}, found {text:?}")).hint(FORMS)
        })
    }
}

/// Without `;csv` the page is HTML for people. It stands at the end of the path, or of the query where the page is one.
fn with_csv(mut url: Url) -> Url {
    let has = |text: &str| text.split(';').skip(1).any(|part| part == "csv");
    if http::address::is_bare(&url) || has(url.path()) || url.query().is_some_and(has) {
        return url;
    }
    if let Some(query) = url.query() {
        let query = format!("{query};csv");
        url.set_query(Some(&query));
    } else {
        let path = format!("{};csv", url.path());
        url.set_path(&path);
    }
    url
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Page(url) => f.write_str(&http::address::shown(url)),
            Self::Socket(Address::Unix(path)) => write!(f, "unix:{}", path.display()),
            Self::Socket(address) => write!(f, "tcp:{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_gets_its_csv_once_and_where_it_belongs() {
        for (given, asked) in [
            ("http://lb:8404/stats", "http://lb:8404/stats;csv"),
            ("http://lb:8404/stats;csv", "http://lb:8404/stats;csv"),
            ("http://lb:8404/stats;csv;norefresh", "http://lb:8404/stats;csv;norefresh"),
            ("http://lb/haproxy?stats", "http://lb/haproxy?stats;csv"),
            ("lb:8404/haproxy?stats;csv", "http://lb:8404/haproxy?stats;csv"),
            ("http://lb:8404", "http://lb:8404/"),
            ("http://lb/csv", "http://lb/csv;csv"),
        ] {
            assert_eq!(Place::parse("lb", given).unwrap().to_string(), asked, "{given}");
        }
    }

    #[test]
    fn sockets_are_told_from_pages() {
        let unix = Place::Socket(Address::Unix("/run/haproxy/admin.sock".into()));
        for given in ["/run/haproxy/admin.sock", "unix:/run/haproxy/admin.sock", "unix:///run/haproxy/admin.sock"] {
            assert_eq!(Place::parse("lb", given), Ok(unix.clone()), "{given}");
        }
        let tcp = Place::Socket(Address::Tcp { host: "lb".to_owned(), port: 9999 });
        for given in ["tcp:lb:9999", "tcp://lb:9999", "ipv4@lb:9999"] {
            assert_eq!(Place::parse("lb", given), Ok(tcp.clone()), "{given}");
        }
        assert_eq!(Place::parse("lb", &unix.to_string()), Ok(unix));
        assert_eq!(Place::parse("lb", &tcp.to_string()), Ok(tcp));
        for given in ["", "tcp:lb", "mysql://lb/", "unix:"] {
            assert_eq!(Place::parse("lb", given).unwrap_err().kind, FaultKind::Config, "{given}");
        }
    }
}
