//! Where the server is and who asks: from the endpoint, the section's settings and the environment. No I/O but reading the
//! files that they name.

use crate::api::{Fault, FaultKind, Section};
use crate::http;
use crate::settings::{self, Secret};
use crate::sql::address::{Address, redact};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::Arc;

/// A section's keys.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    user: Option<String>,
    password: Option<Secret>,
    password_file: Option<PathBuf>,
    password_env: Option<String>,
    socket: Option<PathBuf>,
    tls: Option<bool>,
    ca_file: Option<PathBuf>,
    cert_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
    maxclients: Option<f64>,
}

/// Where it listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Host and port.
    Tcp(String, u16),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

/// What is needed to connect.
#[derive(Clone)]
pub(super) struct Target {
    /// `instance@endpoint`, for messages.
    pub name: String,
    /// `cache:6379`, or the path of a socket.
    pub endpoint: String,
    pub place: Place,
    /// TLS, and the name that the certificate must have.
    pub tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    pub user: Option<String>,
    pub password: Option<Secret>,
    /// The limit of connections, where the server does not tell.
    pub maxclients: Option<f64>,
}

const PLAIN: [&str; 3] = ["redis", "valkey", "tcp"];
const SECURE: [&str; 2] = ["rediss", "valkeys"];
const SOCKET: [&str; 5] = ["unix://", "redis+unix://", "redis+socket://", "valkey+unix://", "unix:"];

/// Works everything out; `auth` is `REDISCLI_AUTH`.
pub(super) fn new(section: &Section, auth: Option<String>) -> Result<Target, Fault> {
    let given: Settings = settings::parse(section)?;
    let wrong = |why: String| Fault::new(FaultKind::Config, format!("configuration of {}: {why}", section.instance));
    let text = section.endpoint.trim();
    let mut address = match SOCKET.iter().find_map(|scheme| text.strip_prefix(scheme)) {
        Some("") => return Err(wrong("a path is missing after unix://".to_owned())),
        Some(path) => Address { socket: Some(path.into()), ..Address::default() },
        None => Address::parse(text, &[&PLAIN[..], &SECURE[..]].concat()).map_err(|why| {
            wrong(format!("the address: {why}"))
                .hint("redis://USER@HOST:PORT, rediss://… for TLS, HOST:PORT, or the path of a socket")
        })?,
    };
    address.socket = address.socket.or(given.socket);
    if let Some((unknown, _)) = address.options.first() {
        return Err(wrong(format!("the URL's option {unknown:?} is not known; settings stand in the configuration")));
    }
    let explicit = settings::secret(
        &format!("password of {}", section.instance),
        given.password.as_ref(),
        given.password_file.as_deref(),
        given.password_env.as_deref(),
    )?;
    if explicit.is_some() && address.password.is_some() {
        return Err(wrong("the password is given twice, in the URL and in the settings".to_owned()));
    }
    let user = given.user.or(address.user);
    // The environment's password is that of whoever runs redis-cli here: it is not sent for a user named otherwise.
    let from_environment = || auth.filter(|_| user.is_none()).map(Secret::new);
    let password = explicit.or(address.password).filter(|password| !password.reveal().is_empty()).or_else(from_environment);
    if user.is_some() && password.is_none() {
        return Err(wrong(format!("the user {} has no password", user.as_deref().unwrap_or_default()))
            .hint("give password_file or password_env; a user with nopass takes any password"));
    }
    if given.maxclients.is_some_and(|limit| !limit.is_finite() || limit < 1.0) {
        return Err(wrong("maxclients: a limit is at least 1".to_owned()));
    }
    let secure = given.tls.unwrap_or_else(|| SECURE.iter().any(|scheme| text.starts_with(&format!("{scheme}://"))));
    let certificates = http::Settings {
        ca_file: given.ca_file,
        cert_file: given.cert_file,
        key_file: given.key_file,
        ..http::Settings::default()
    };
    let (place, endpoint) = if let Some(path) = address.socket {
        let path = settings::expand_home(&path);
        let shown = path.display().to_string();
        (Place::Unix(path), shown)
    } else {
        let host = address.host.unwrap_or_else(|| "127.0.0.1".to_owned());
        let port = address.port.unwrap_or(6379);
        let shown = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        (Place::Tcp(host, port), shown)
    };
    let tls = match (&place, secure) {
        (_, false) if certificates.ca_file.is_some() || certificates.cert_file.is_some() || certificates.key_file.is_some() => {
            return Err(wrong("certificates are given, but not tls = true (or rediss://)".to_owned()));
        }
        (_, false) => None,
        (Place::Unix(_), true) => return Err(wrong("a Unix socket has no TLS".to_owned())),
        (Place::Tcp(host, _), true) => {
            let name =
                ServerName::try_from(host.clone()).map_err(|_| wrong(format!("{host:?} can be no name in a certificate")))?;
            Some((Arc::new(http::tls::config(&section.instance, &certificates, true)?), name))
        }
    };
    let name = format!("{}@{}", section.instance, redact(&endpoint));
    Ok(Target { name, endpoint, place, tls, user, password, maxclients: given.maxclients })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(endpoint: &str, settings: &str, auth: Option<&str>) -> Result<Target, Fault> {
        let section = Section::of("cache", endpoint, settings);
        new(&section, auth.map(str::to_owned))
    }

    fn tcp(host: &str, port: u16) -> Place {
        Place::Tcp(host.to_owned(), port)
    }

    #[test]
    fn every_way_to_write_an_address_is_understood() {
        for (text, place) in [
            ("redis://probe:x@db:7000/0", tcp("db", 7000)),
            ("valkey://db", tcp("db", 6379)),
            ("db:7000", tcp("db", 7000)),
            ("db", tcp("db", 6379)),
            ("[::1]:7000", tcp("::1", 7000)),
            ("/run/redis.sock", Place::Unix("/run/redis.sock".into())),
            ("unix:///run/redis.sock", Place::Unix("/run/redis.sock".into())),
            ("redis+socket:///run/redis.sock", Place::Unix("/run/redis.sock".into())),
        ] {
            assert_eq!(target(text, "", None).unwrap().place, place, "{text}");
        }
    }

    #[test]
    fn the_password_comes_from_one_place_and_the_environments_only_for_the_user_without_a_name() {
        let password = |target: Target| target.password.map(|password| password.reveal().to_owned());
        assert_eq!(password(target("redis://:hush@db", "", Some("env")).unwrap()), Some("hush".to_owned()));
        assert_eq!(password(target("db", "", Some("env")).unwrap()), Some("env".to_owned()));
        assert_eq!(password(target("db", "user = \"probe\"\npassword = \"p\"", Some("env")).unwrap()), Some("p".to_owned()));
        assert!(target("redis://probe@db", "", Some("env")).err().unwrap().message.contains("probe has no password"));
        let twice = target("redis://a:hush@db", "password = \"hush\"", None).err().unwrap();
        assert!(twice.message.contains("twice") && !twice.message.contains("hush"), "{twice}");
    }

    #[test]
    fn tls_is_spoken_when_said_and_certificates_without_it_are_refused() {
        let ca = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/tls/ca.pem");
        assert!(target("rediss://db", &format!("ca_file = {ca:?}"), None).unwrap().tls.is_some());
        assert!(target("db", &format!("tls = true\nca_file = {ca:?}"), None).unwrap().tls.is_some());
        assert!(target("db", &format!("ca_file = {ca:?}"), None).err().unwrap().message.contains("tls = true"));
        assert!(target("/run/x", &format!("tls = true\nca_file = {ca:?}"), None).err().unwrap().message.contains("socket"));
        assert!(target("db", "", None).unwrap().tls.is_none());
    }

    #[test]
    fn what_is_wrong_is_named_and_no_password_shown() {
        assert!(target("db", "maxclient = 1", None).err().unwrap().message.contains("maxclient"));
        assert!(target("db", "maxclients = 0", None).err().unwrap().message.contains("at least 1"));
        assert!(target("http://db", "", None).err().unwrap().message.contains("http"));
        let fault = target("redis://u:hush@db?x=1", "", None).err().unwrap();
        assert!(fault.message.contains('x') && !fault.message.contains("hush"), "{fault}");
        assert_eq!(target("redis://u:hush@db", "", None).unwrap().name, "cache@db:6379");
    }
}
