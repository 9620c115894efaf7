//! MySQL's option files (`.my.cnf`): user, password, host, port, socket and TLS of the groups that clients read.

use crate::settings::{Secret, expand_home};
use std::path::{Path, PathBuf};

/// What a client is told by an option file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// `user`.
    pub user: Option<String>,
    /// `password`.
    pub password: Option<Secret>,
    /// `host`.
    pub host: Option<String>,
    /// `port`.
    pub port: Option<u16>,
    /// `socket`.
    pub socket: Option<PathBuf>,
    /// `ssl-mode`.
    pub ssl_mode: Option<String>,
    /// `ssl-ca`.
    pub ssl_ca: Option<PathBuf>,
    /// `ssl-cert`.
    pub ssl_cert: Option<PathBuf>,
    /// `ssl-key`.
    pub ssl_key: Option<PathBuf>,
}

/// Reads an option file. One that is not there is an error only where it was asked for.
pub fn read(path: &Path, asked_for: bool) -> Result<Client, String> {
    match std::fs::read_to_string(expand_home(path)) {
        Ok(text) => Ok(parse(&text)),
        Err(why) if !asked_for && why.kind() == std::io::ErrorKind::NotFound => Ok(Client::default()),
        Err(why) => Err(format!("cannot read the option file {}: {why}", path.display())),
    }
}

/// Takes the groups `[client]` and MariaDB's `[client-server]` and `[client-mariadb]`. The last of several values wins, as
/// in MySQL's own clients. Lines it does not know, `!include` among them, are passed over.
pub fn parse(text: &str) -> Client {
    let mut client = Client::default();
    let mut ours = false;
    for line in text.lines().map(str::trim) {
        if let Some(group) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            ours = matches!(group.trim(), "client" | "client-server" | "client-mariadb");
            continue;
        }
        if !ours || line.starts_with(['#', ';', '!']) {
            continue;
        }
        let (key, value) = line.split_once('=').map_or((line, ""), |(key, value)| (key.trim(), value.trim()));
        let value = unquote(value);
        match key.replace('_', "-").as_str() {
            "user" => client.user = Some(value),
            "password" => client.password = Some(Secret::new(value)),
            "host" => client.host = Some(value),
            "port" => client.port = value.parse().ok(),
            "socket" => client.socket = Some(PathBuf::from(value)),
            "ssl-mode" => client.ssl_mode = Some(value),
            "ssl-ca" => client.ssl_ca = Some(PathBuf::from(value)),
            "ssl-cert" => client.ssl_cert = Some(PathBuf::from(value)),
            "ssl-key" => client.ssl_key = Some(PathBuf::from(value)),
            _ => {}
        }
    }
    client
}

/// A value as MySQL reads it: quotes off; outside of them a comment begins at `#`; `\n`, `\t`, `\\`, `\s` and quotes escaped.
fn unquote(value: &str) -> String {
    let quote = value.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let inner = match quote {
        Some(quote) => {
            let rest = &value[1..];
            &rest[..closing(rest, quote).unwrap_or(rest.len())]
        }
        None => value.split('#').next().unwrap_or_default().trim_end(),
    };
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('b') => out.push('\u{8}'),
            Some('s') => out.push(' '),
            Some(c @ ('\\' | '"' | '\'')) => out.push(c),
            Some(c) => out.extend(['\\', c]),
            None => out.push('\\'),
        }
    }
    out
}

fn closing(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let end = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        end.then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_client_group_is_read_and_the_server_s_is_not() {
        let text = "# mine\n[mysqld]\nuser=mysql\nport=1\n[client]\nuser = probe\npassword=\"a#b\\\"c\"\nhost=db # the primary\nport=3307\nssl_ca=/x/ca.pem\nno-beep\n[mysql]\nuser=other\n";
        let client = parse(text);
        assert_eq!(client.user.as_deref(), Some("probe"));
        assert_eq!(client.password.map(|p| p.reveal().to_owned()).as_deref(), Some("a#b\"c"));
        assert_eq!((client.host.as_deref(), client.port), (Some("db"), Some(3307)));
        assert_eq!(client.ssl_ca, Some(PathBuf::from("/x/ca.pem")));
    }

    #[test]
    fn a_password_never_shows_itself() {
        assert!(!format!("{:?}", parse("[client]\npassword=hush")).contains("hush"));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(\\[client\\]\n)?(.{0,20}\n){0,6}") {
            let _ = parse(&text);
        }
    }
}
