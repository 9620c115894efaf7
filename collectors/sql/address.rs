//! Where an SQL server is, as people write it: a URL, `HOST`, `HOST:PORT`, or the path of a socket. Pure text, and no
//! error shows what may be a password.

use crate::address;
use crate::settings::Secret;
use std::path::PathBuf;

/// An address taken apart. What was not given is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// The user's name.
    pub user: Option<String>,
    /// The password.
    pub password: Option<Secret>,
    /// The host's name or number, without the brackets of IPv6.
    pub host: Option<String>,
    /// The port.
    pub port: Option<u16>,
    /// The path of a Unix socket.
    pub socket: Option<PathBuf>,
    /// The database.
    pub database: Option<String>,
    /// What stood after `?`, in order, `socket` apart.
    pub options: Vec<(String, String)>,
}

/// Shown where a password may have been taken for something else.
const ESCAPES: &str = "in a password, @ : / ? % are written as %40 %3A %2F %3F %25";

impl Address {
    /// Takes an address apart. `schemes` are those that a URL may have.
    pub fn parse(text: &str, schemes: &[&str]) -> Result<Self, String> {
        let text = text.trim();
        if text.starts_with('/') {
            return Ok(Self { socket: Some(PathBuf::from(text)), ..Self::default() });
        }
        let rest = match text.split_once("://") {
            Some((scheme, rest)) if schemes.contains(&scheme) => rest,
            Some((scheme, _)) if scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b)) => {
                return Err(format!("the scheme is {scheme:?}, expected {}", schemes.join(" or ")));
            }
            Some(_) => return Err(format!("it is no URL; expected {}://user@host:port/", schemes.join(" or "))),
            None => text,
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        if query.contains('@') {
            return Err(format!("there is an @ behind the ?; {ESCAPES}"));
        }
        let mut found = Self::default();
        let place = match rest.rsplit_once('@') {
            Some((who, place)) => {
                let (user, password) = who.split_once(':').map_or((who, None), |(user, password)| (user, Some(password)));
                found.user = Some(decode(user)).filter(|user| !user.is_empty());
                found.password = password.map(|password| Secret::new(decode(password)));
                place
            }
            None => rest,
        };
        let (place, database) = place.split_once('/').unwrap_or((place, ""));
        found.database = Some(decode(database)).filter(|name| !name.is_empty());
        found.place(place)?;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            match key {
                "socket" => found.socket = Some(PathBuf::from(decode(value))),
                _ => found.options.push((decode(key), decode(value))),
            }
        }
        Ok(found)
    }

    fn place(&mut self, place: &str) -> Result<(), String> {
        if place.is_empty() {
            return Ok(());
        }
        // What stands here may be the tail of a password with an unescaped `/`, `?` or `@`, so it is not shown. No port that
        // is written can be 0.
        match address::parse(place, Some(0)) {
            Ok(address::Address::Unix(path)) => self.socket = Some(path),
            Ok(address::Address::Tcp { host, port }) => {
                self.host = Some(decode(&host));
                self.port = Some(port).filter(|port| *port != 0);
            }
            Err(expected) => return Err(format!("where the host and the port stand, expected {expected}; {ESCAPES}")),
        }
        Ok(())
    }
}

/// `text` with whatever could be a password replaced by `***`, for messages and printed configurations.
pub fn redact(text: &str) -> String {
    let (start, rest) = text.split_once("://").map_or((0, text), |(scheme, rest)| (scheme.len() + 3, rest));
    let Some(at) = rest.rfind('@') else { return text.to_owned() };
    match rest[..at].find(':') {
        Some(colon) => format!("{}***{}", &text[..=start + colon], &rest[at..]),
        None => text.to_owned(),
    }
}

/// `%41` becomes `A`; a `%` that starts no such pair stays as it is.
fn decode(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.as_bytes();
    while let Some((&first, rest)) = bytes.split_first() {
        let pair = rest.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        let value = pair.filter(|pair| pair.bytes().all(|b| b.is_ascii_hexdigit())).and_then(|p| u8::from_str_radix(p, 16).ok());
        match value {
            Some(value) if first == b'%' => {
                out.push(value);
                bytes = &rest[2..];
            }
            _ => {
                out.push(first);
                bytes = rest;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Address {
        Address::parse(text, &["mysql", "mariadb"]).unwrap()
    }

    #[test]
    fn a_url_is_taken_apart_and_its_escapes_are_read() {
        let found = parse("mysql://pr%40be:p%3Aw%2F@db.example:3307/shop?socket=%2Frun%2Fm.sock&tls=required");
        assert_eq!(found.user.as_deref(), Some("pr@be"));
        assert_eq!(found.password.map(|p| p.reveal().to_owned()).as_deref(), Some("p:w/"));
        assert_eq!((found.host.as_deref(), found.port), (Some("db.example"), Some(3307)));
        assert_eq!(found.database.as_deref(), Some("shop"));
        assert_eq!(found.socket, Some(PathBuf::from("/run/m.sock")));
        assert_eq!(found.options, [("tls".to_owned(), "required".to_owned())]);
    }

    #[test]
    fn the_plain_forms_are_a_host_a_host_with_port_an_ipv6_address_and_a_socket() {
        assert_eq!(parse("DB").host.as_deref(), Some("DB"));
        assert_eq!((parse("db:33").host.as_deref(), parse("db:33").port), (Some("db"), Some(33)));
        assert_eq!((parse("[::1]:33").host.as_deref(), parse("[::1]:33").port), (Some("::1"), Some(33)));
        assert_eq!(parse("::1").host.as_deref(), Some("::1"));
        assert_eq!(parse("/run/mysqld/mysqld.sock").socket, Some(PathBuf::from("/run/mysqld/mysqld.sock")));
        assert_eq!(parse("mysql://probe@db").user.as_deref(), Some("probe"));
    }

    #[test]
    fn a_password_with_an_at_sign_in_it_is_still_read() {
        let found = parse("mysql://u:a@b@host/");
        assert_eq!(found.host.as_deref(), Some("host"));
        assert_eq!(found.password.map(|p| p.reveal().to_owned()).as_deref(), Some("a@b"));
    }

    #[test]
    fn a_wrong_address_is_refused_without_showing_what_may_be_a_password() {
        let why = Address::parse("mysql://u:hush?hush@host/", &["mysql"]).unwrap_err();
        assert!(!why.contains("hush") && why.contains("%3F"), "{why}");
        let why = Address::parse("postgres://h/", &["mysql"]).unwrap_err();
        assert!(why.contains("postgres") && why.contains("mysql"), "{why}");
    }

    #[test]
    fn redacting_keeps_the_user_and_the_place() {
        assert_eq!(redact("mysql://u:hush@host:1/db"), "mysql://u:***@host:1/db");
        assert_eq!(redact("mysql://u:a@b/c@host"), "mysql://u:***@host");
        assert_eq!(redact("mysql://u@host"), "mysql://u@host");
        assert_eq!(redact("host:3306"), "host:3306");
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic_and_no_password_is_ever_shown(user in "[a-z]{1,4}", password in "[^@%]{0,9}Zq7[^@%]{0,9}", host in "[a-z]{1,9}") {
            let text = format!("mysql://{user}:{password}@{host}");
            match Address::parse(&text, &["mysql"]) {
                Ok(found) => {
                    let shown = format!("{found:?}");
                    prop_assert!(!shown.contains("Zq7"), "{}", shown);
                }
                Err(why) => prop_assert!(!why.contains("Zq7"), "{why}"),
            }
            prop_assert!(!redact(&text).contains("Zq7"));
        }

        #[test]
        fn any_text_is_parsed_or_refused(text in ".{0,60}") {
            let _ = Address::parse(&text, &["mysql"]);
            let _ = redact(&text);
        }
    }
}
