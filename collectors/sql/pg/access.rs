//! Where a server of PostgreSQL's protocol is and who asks: the endpoint, then the section's settings, then what libpq takes
//! from the environment (`PGHOST`, `PGUSER`, `PGPASSWORD`, `PGSSLMODE`, …, `~/.pgpass`). No I/O but reading those.

use crate::api::{Fault, FaultKind, Section};
use crate::settings::{self, Secret};
use crate::sql::address::Address;
use serde::Deserialize;
use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use std::fmt;
use std::path::PathBuf;

/// The keys of a configuration section that both collectors understand.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    user: Option<String>,
    password: Option<Secret>,
    password_file: Option<PathBuf>,
    password_env: Option<String>,
    database: Option<String>,
    tls: Option<String>,
    tls_ca: Option<PathBuf>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
}

const KEYS: [&str; 9] = ["user", "password", "password_file", "password_env", "database", "tls", "tls_ca", "tls_cert", "tls_key"];

/// Where no password was given by us; libpq's own places may still hold one.
pub const NOWHERE: &str = "~/.pgpass, or nowhere";

/// What is needed to connect.
#[derive(Clone)]
pub struct Access {
    /// The name in messages: `postgres`.
    pub instance: String,
    /// `db:5432`, or the path of a socket.
    pub endpoint: String,
    /// For sqlx.
    pub options: PgConnectOptions,
    /// Where the password came from, in words.
    pub password_from: &'static str,
    /// Whether the server runs on this machine.
    pub local: bool,
    /// The database that was named, if any.
    pub named_database: Option<String>,
}

/// sqlx's options would show the password.
impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("instance", &self.instance).field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.instance, self.endpoint)
    }
}

/// What differs between the two collectors.
#[derive(Clone, Copy, Debug)]
pub struct Usual {
    /// The port, where neither the endpoint nor `PGPORT` says it.
    pub port: Option<u16>,
    /// The only database that makes sense.
    pub database: Option<&'static str>,
}

impl Access {
    /// Works everything out, and leaves the collector's own keys in the section that it returns.
    pub fn take(section: &Section, usual: Usual) -> Result<(Self, Section), Fault> {
        let (mut ours, mut rest) = (section.clone(), section.clone());
        ours.settings.retain(|key, _| KEYS.contains(&key));
        rest.settings.retain(|key, _| !KEYS.contains(&key));
        let given: Settings = settings::parse(&ours)?;
        let wrong = |why: String| Fault::new(FaultKind::Config, format!("configuration of {}: {why}", section.instance));
        let mut address =
            Address::parse(&section.endpoint, &["postgres", "postgresql"]).map_err(|why| wrong(format!("the address: {why}")))?;
        let query = Query::take(&mut address).map_err(&wrong)?;
        let explicit = settings::secret(
            &format!("password of {}", section.instance),
            given.password.as_ref(),
            given.password_file.as_deref(),
            given.password_env.as_deref(),
        )?;
        if explicit.is_some() && address.password.is_some() {
            return Err(wrong("the password is given twice, in the URL and in the settings".to_owned()));
        }
        let named_database = given.database.clone().or_else(|| address.database.clone());
        let database = usual.database.or(named_database.as_deref());
        let url = url(&address, given.user.as_deref(), database, usual.port);
        let mut options: PgConnectOptions =
            url.parse().map_err(|_| wrong("the address: it cannot be turned into a connection".to_owned()))?;
        if let Some(database) = database {
            // Once more: a URL folds a database called `.` or `..` away.
            options = options.database(database);
        }
        let password_from = if explicit.is_some() {
            "the settings"
        } else if address.password.is_some() {
            "the URL"
        } else if std::env::var_os("PGPASSWORD").is_some() {
            "PGPASSWORD"
        } else {
            NOWHERE
        };
        if let Some(password) = explicit.as_ref().or(address.password.as_ref()) {
            options = options.password(password.reveal());
        }
        options = options.application_name("whatgives").statement_cache_capacity(0).disable_statement_logging();
        if let Some(mode) = query.tls.as_deref().or(given.tls.as_deref()) {
            options = options.ssl_mode(tls_mode(mode).map_err(&wrong)?);
        }
        if let Some(ca) = query.ca.or(given.tls_ca) {
            options = options.ssl_root_cert(settings::expand_home(&ca));
        }
        match (query.cert.or(given.tls_cert), query.key.or(given.tls_key)) {
            (Some(cert), Some(key)) => {
                options = options.ssl_client_cert(settings::expand_home(&cert)).ssl_client_key(settings::expand_home(&key));
            }
            (None, None) => {}
            _ => return Err(wrong("a client certificate needs both tls_cert and tls_key".to_owned())),
        }
        let (endpoint, local) = shown(&options);
        Ok((Self { instance: section.instance.clone(), endpoint, options, password_from, local, named_database }, rest))
    }

    /// Who asks.
    pub fn user(&self) -> &str {
        self.options.get_username()
    }
}

/// What stood behind the `?` of a URL.
#[derive(Default)]
struct Query {
    tls: Option<String>,
    ca: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl Query {
    fn take(address: &mut Address) -> Result<Self, String> {
        let mut found = Self::default();
        for (key, value) in std::mem::take(&mut address.options) {
            match key.as_str() {
                "sslmode" | "ssl-mode" | "tls" => found.tls = Some(value),
                "sslrootcert" => found.ca = Some(value.into()),
                "sslcert" => found.cert = Some(value.into()),
                "sslkey" => found.key = Some(value.into()),
                "host" if value.starts_with('/') => address.socket = Some(value.into()),
                "host" => address.host = Some(value),
                "port" => address.port = Some(value.parse().map_err(|_| "the URL's option port is no port".to_owned())?),
                // Of the application whose URL this is; they change nothing here.
                "application_name" | "connect_timeout" | "channel_binding" | "target_session_attrs" | "gssencmode" => {}
                _ => {
                    return Err(format!(
                        "the URL's option {key:?} is not known; known are sslmode, sslrootcert, sslcert, sslkey, host, port"
                    ));
                }
            }
        }
        Ok(found)
    }
}

/// The URL for sqlx, which looks a password up in `~/.pgpass` by it. Never with a password in it.
fn url(address: &Address, user: Option<&str>, database: Option<&str>, port: Option<u16>) -> String {
    let mut url = "postgres://".to_owned();
    // sqlx takes PGUSER, but not the name of who is logged in.
    let login =
        || ["PGUSER", "USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok().filter(|name| !name.is_empty()));
    if let Some(user) = user.or(address.user.as_deref()).map(str::to_owned).or_else(login) {
        url.push_str(&escaped(&user));
        url.push('@');
    }
    let socket = address.socket.as_ref().map(|path| path.to_string_lossy().into_owned());
    let port = address.port.or(if address.host.is_some() { port } else { None });
    match (&socket, &address.host) {
        (Some(path), _) => {
            // The path of the socket itself names its folder and the port: /run/postgresql/.s.PGSQL.5433
            let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
            let of_the_file = file.strip_prefix(".s.PGSQL.").and_then(|port| port.parse::<u16>().ok());
            url.push_str(&escaped(if of_the_file.is_some() { folder } else { path.trim_end_matches('/') }));
            if let Some(port) = of_the_file.or(port) {
                url.extend([":".to_owned(), port.to_string()]);
            }
        }
        (None, Some(host)) => {
            if host.contains(':') {
                url.extend(["[", host, "]"]);
            } else {
                url.push_str(&escaped(host));
            }
            url.extend([":".to_owned(), port.unwrap_or(5432).to_string()]);
        }
        (None, None) => {
            // A URL with a user must have a host; what libpq would take is asked from sqlx.
            let usual = PgConnectOptions::new_without_pgpass();
            let host = usual.get_socket().map_or_else(|| usual.get_host().to_owned(), |path| path.to_string_lossy().into_owned());
            url.push_str(&escaped(&host));
            url.extend([":".to_owned(), address.port.unwrap_or_else(|| usual.get_port()).to_string()]);
        }
    }
    url.push('/');
    if let Some(database) = database {
        url.push_str(&escaped(database));
    }
    url
}

fn escaped(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.extend(["%".to_owned(), format!("{byte:02X}")]);
        }
        out
    })
}

/// What to call the place, and whether it is this machine.
fn shown(options: &PgConnectOptions) -> (String, bool) {
    let (host, port) = (options.get_host(), options.get_port());
    if let Some(folder) = options.get_socket() {
        return (format!("{}/.s.PGSQL.{port}", folder.display()), true);
    }
    if host.starts_with('/') {
        return (format!("{host}/.s.PGSQL.{port}"), true);
    }
    let bare = host.trim_matches(['[', ']']);
    let local = bare == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    (if bare.contains(':') { format!("[{bare}]:{port}") } else { format!("{bare}:{port}") }, local)
}

fn tls_mode(text: &str) -> Result<PgSslMode, String> {
    match text.to_ascii_lowercase().replace('_', "-").as_str() {
        "disabled" | "disable" | "off" | "false" => Ok(PgSslMode::Disable),
        "allow" => Ok(PgSslMode::Allow),
        "preferred" | "prefer" => Ok(PgSslMode::Prefer),
        "required" | "require" | "on" | "true" => Ok(PgSslMode::Require),
        "verify-ca" => Ok(PgSslMode::VerifyCa),
        "verify-full" | "verify-identity" => Ok(PgSslMode::VerifyFull),
        _ => Err(format!("tls: expected disabled, allow, preferred, required, verify-ca or verify-full, got {text:?}")),
    }
}

#[cfg(test)]
mod tests;
