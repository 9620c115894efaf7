//! Where a php-fpm is asked: over HTTP, or straight over FastCGI.

use crate::address::{self, Address};
use crate::api::{Fault, FaultKind};
use crate::http;
use reqwest::Url;
use std::fmt;

/// How a page is reached.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Place {
    /// Through a web server.
    Http(Url),
    /// php-fpm itself.
    FastCgi {
        /// Its listener.
        address: Address,
        /// `pm.status_path`; where it is not given, the usual ones are tried.
        path: Option<String>,
    },
}

/// What to write, for a hint.
pub(super) const FORMS: &str =
    "HOST:PORT/PATH (FastCGI), unix:/SOCKET:/PATH (FastCGI), or http://HOST/PATH; PATH is the pool's pm.status_path";

impl Place {
    /// Reads an address as given.
    pub(super) fn parse(what: &str, text: &str) -> Result<Self, Fault> {
        let text = text.trim();
        if text.starts_with("http://") || text.starts_with("https://") {
            return http::address::parse(what, text).map(Self::Http);
        }
        let fault = |why: &str| Fault::new(FaultKind::Config, format!("address of {what}: {why}")).hint(FORMS);
        let bare = ["fcgi://", "tcp://"].iter().find_map(|scheme| text.strip_prefix(scheme)).unwrap_or(text);
        let (unix, rest) = match bare.strip_prefix("unix:") {
            Some(rest) => (true, rest.strip_prefix("//").unwrap_or(rest)),
            None => (bare.starts_with(['/', '@']), bare),
        };
        // A socket's path has slashes of its own; others mark its end with a semicolon.
        let mark = if unix { rest.find(":/").or_else(|| rest.find(";/")) } else { rest.find('/') };
        let (listener, path) = match mark {
            Some(at) => (&rest[..at], Some(rest[at..].trim_start_matches([':', ';']))),
            None => (rest, None),
        };
        let listener = if unix { format!("unix:{listener}") } else { listener.trim_end_matches(';').to_owned() };
        if !unix && (listener.contains('@') || rest.contains("://")) {
            return Err(fault("neither http:// nor a listener of php-fpm, which knows no user"));
        }
        let address = address::parse(&listener, None).map_err(|missing| fault(&format!("expected {missing} in {text:?}")))?;
        let path = path.map(|path| path.split(['?', '#']).next().unwrap_or_default()).filter(|path| *path != "/");
        Ok(Self::FastCgi { address, path: path.map(str::to_owned) })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(url) => f.write_str(&http::address::shown(url)),
            Self::FastCgi { address: Address::Unix(socket), path } => {
                write!(f, "unix:{}", socket.display())?;
                path.as_ref().map_or(Ok(()), |path| write!(f, ":{path}"))
            }
            Self::FastCgi { address, path } => write!(f, "{address}{}", path.as_deref().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fastcgi(address: Address, path: Option<&str>) -> Place {
        Place::FastCgi { address, path: path.map(str::to_owned) }
    }

    #[test]
    fn every_form_is_understood() {
        let tcp = |path| fastcgi(Address::Tcp { host: "app".to_owned(), port: 9000 }, path);
        for (text, place) in [
            ("app:9000/status", tcp(Some("/status"))),
            ("app:9000", tcp(None)),
            ("app:9000/", tcp(None)),
            ("fcgi://app:9000/a/b?json", tcp(Some("/a/b"))),
            ("tcp://app:9000;/status", tcp(Some("/status"))),
            ("[::1]:9000/s", fastcgi(Address::Tcp { host: "::1".to_owned(), port: 9000 }, Some("/s"))),
        ] {
            assert_eq!(Place::parse("app", text), Ok(place), "{text}");
        }
        let unix = |path| fastcgi(Address::Unix("/run/php/fpm.sock".into()), path);
        for (text, place) in [
            ("unix:/run/php/fpm.sock:/status", unix(Some("/status"))),
            ("unix:///run/php/fpm.sock;/status", unix(Some("/status"))),
            ("/run/php/fpm.sock:/status?full", unix(Some("/status"))),
            ("/run/php/fpm.sock", unix(None)),
            ("unix:/run/php/fpm.sock:/", unix(None)),
            ("@fpm:/s", fastcgi(Address::Unix("@fpm".into()), Some("/s"))),
        ] {
            assert_eq!(Place::parse("app", text), Ok(place), "{text}");
        }
        assert!(matches!(Place::parse("app", "https://site/status"), Ok(Place::Http(_))));
    }

    #[test]
    fn what_is_neither_is_refused_with_the_forms_and_without_a_password() {
        for text in ["", "app", "app/status", ":9000/status", "mysql://app:9000/x", "unix:", "http://", "app:99999/s"] {
            let fault = Place::parse("app", text).unwrap_err();
            assert!(fault.kind == FaultKind::Config && fault.hint.is_some(), "{text}: {fault}");
        }
        for text in ["probe:hush@app:9000/status", "fcgi://probe:hush@app:9000/status", "ftp://probe:hush@app/"] {
            let fault = Place::parse("app", text).unwrap_err();
            assert!(!fault.message.contains("hush"), "{fault}");
        }
    }

    proptest! {
        #[test]
        fn what_was_taken_apart_is_the_same_when_written_and_read_again(text in "(unix:)?[a-z@/.:;\\[\\]0-9]{0,24}") {
            if let Ok(place) = Place::parse("app", &text) {
                prop_assert_eq!(Place::parse("app", &place.to_string()), Ok(place));
            }
        }
    }
}
