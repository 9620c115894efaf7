//! Where the server is and who asks: from the endpoint, the section's settings, an option file (`.my.cnf`) and the
//! environment, in this order. No I/O but reading those files.

use super::defaults::{self, Client};
use crate::api::{Fault, FaultKind, Section};
use crate::settings::{self, Secret};
use crate::sql::address::{Address, redact};
use serde::Deserialize;
use sqlx::ConnectOptions as _;
use sqlx::mysql::{MySqlConnectOptions, MySqlSslMode};
use std::path::PathBuf;
use std::time::Duration;

/// A section's keys.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    user: Option<String>,
    password: Option<Secret>,
    password_file: Option<PathBuf>,
    password_env: Option<String>,
    socket: Option<PathBuf>,
    defaults_file: Option<PathBuf>,
    tls: Option<String>,
    tls_ca: Option<PathBuf>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    waits: Option<toml::Value>,
    waits_every: Option<toml::Value>,
    cores: Option<f64>,
}

/// Whether lock waits are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsWanted {
    /// No.
    No,
    /// Yes, except on releases that stall while their lock tables are read.
    Yes,
    /// Yes, even there.
    Force,
}

/// What is needed to connect and to read.
#[derive(Clone)]
pub struct Target {
    /// The name in messages: `mysql`.
    pub instance: String,
    /// `db:3306`, or the path of a socket.
    pub endpoint: String,
    /// For sqlx.
    pub options: MySqlConnectOptions,
    /// Whether a password is sent.
    pub has_password: bool,
    /// Where the password came from, in words.
    pub password_from: &'static str,
    /// Whether lock waits are read.
    pub waits: WaitsWanted,
    /// How often at most.
    pub waits_every: Duration,
    /// The server's cores: as given, or this machine's where the server runs on it.
    pub cores: Option<f64>,
    /// How long one read may take.
    pub timeout: Duration,
}

/// sqlx's options would show the password.
impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("instance", &self.instance).field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// The cache behind `INNODB_TRX` is rebuilt only when it was not read for 100 ms (measured): read more often it freezes.
const FASTEST_WAITS: Duration = Duration::from_millis(150);

impl Target {
    /// Works everything out. `home` is where `.my.cnf` may lie; `login` is the name of the user who runs this; `pwd` is
    /// `MYSQL_PWD`.
    pub fn new(section: &Section, home: Option<PathBuf>, login: Option<String>, pwd: Option<String>) -> Result<Self, Fault> {
        let given: Settings = settings::parse(section)?;
        let wrong = |why: String| Fault::new(FaultKind::Config, format!("configuration of {}: {why}", section.instance));
        let address = Address::parse(&section.endpoint, &["mysql", "mariadb"])
            .map_err(|why| wrong(format!("the address {:?}: {why}", redact_harder(&section.endpoint))))?;

        let explicit = settings::secret(
            &format!("password of {}", section.instance),
            given.password.as_ref(),
            given.password_file.as_deref(),
            given.password_env.as_deref(),
        )?;
        if explicit.is_some() && address.password.is_some() {
            return Err(wrong("the password is given twice, in the URL and in the settings".to_owned()));
        }
        let named = given.user.clone().or_else(|| address.user.clone());
        let file = match (&given.defaults_file, home) {
            (Some(path), _) => Some(defaults::read(path, true).map_err(&wrong)?),
            (None, Some(home)) if named.is_none() && explicit.is_none() && address.password.is_none() => {
                Some(defaults::read(&home.join(".my.cnf"), false).map_err(&wrong)?)
            }
            _ => None,
        };
        let file = file.unwrap_or_default();
        // An option file belongs to the user it names: its password is no one else's.
        let of_the_file = file.password.clone().filter(|_| named.is_none() || file.user.is_none() || named == file.user);
        let (password, password_from) = if let Some(password) = explicit {
            (Some(password), "the settings")
        } else if let Some(password) = address.password.clone() {
            (Some(password), "the URL")
        } else if let Some(password) = of_the_file {
            (Some(password), "the option file")
        } else if let Some(password) = pwd.filter(|pwd| !pwd.is_empty()) {
            (Some(Secret::new(password)), "MYSQL_PWD")
        } else {
            (None, "nowhere")
        };
        let user = named.or_else(|| file.user.clone()).or(login).unwrap_or_else(|| "root".to_owned());
        let (options, endpoint, local) = place(&address, &given, &file);
        let mut options = options.username(&user).timezone(None).statement_cache_capacity(0).disable_statement_logging();
        if let Some(password) = &password {
            options = options.password(password.reveal());
        }
        let tls = option(&address, &["tls", "ssl-mode", "sslmode"]).or(given.tls.as_deref()).or(file.ssl_mode.as_deref());
        options = options.ssl_mode(tls_mode(tls.unwrap_or("preferred")).map_err(&wrong)?);
        if let Some(ca) = given.tls_ca.as_ref().or(file.ssl_ca.as_ref()) {
            options = options.ssl_ca(settings::expand_home(ca));
        }
        match (given.tls_cert.as_ref().or(file.ssl_cert.as_ref()), given.tls_key.as_ref().or(file.ssl_key.as_ref())) {
            (Some(cert), Some(key)) => {
                options = options.ssl_client_cert(settings::expand_home(cert)).ssl_client_key(settings::expand_home(key));
            }
            (None, None) => {}
            _ => return Err(wrong("a client certificate needs both tls_cert and tls_key".to_owned())),
        }
        if let Some((unknown, _)) = address.options.iter().find(|(key, _)| !["tls", "ssl-mode", "sslmode"].contains(&key.as_str()))
        {
            return Err(wrong(format!("the URL's option {unknown:?} is not known; known are socket and tls")));
        }
        let waits_every = given.waits_every.as_ref().map_or(Ok(FASTEST_WAITS), every).map_err(&wrong)?;
        if waits_every < FASTEST_WAITS {
            return Err(wrong(
                "waits_every: at least 150ms, for InnoDB's list of transactions freezes when read more often".to_owned(),
            ));
        }
        if given.cores.is_some_and(|cores| !cores.is_finite() || cores <= 0.0) {
            return Err(wrong("cores: expected a number above 0".to_owned()));
        }
        Ok(Self {
            instance: section.instance.clone(),
            endpoint,
            options,
            has_password: password.is_some(),
            password_from,
            waits: wanted(given.waits.as_ref()).map_err(&wrong)?,
            waits_every,
            cores: given.cores.or_else(|| if local { here() } else { None }),
            timeout: section.timeout,
        })
    }
}

/// The cores of this machine.
fn here() -> Option<f64> {
    std::thread::available_parallelism().ok().map(|cores| cores.get() as f64)
}

/// Host and port, or socket: what the endpoint names goes before the settings, those before the option file.
fn place(address: &Address, given: &Settings, file: &Client) -> (MySqlConnectOptions, String, bool) {
    let mut options = MySqlConnectOptions::new();
    let named_host = address.host.as_deref();
    let socket =
        address.socket.as_ref().or(given.socket.as_ref()).or(if named_host.is_none() { file.socket.as_ref() } else { None });
    if let Some(socket) = socket {
        options = options.socket(settings::expand_home(socket));
        return (options, socket.display().to_string(), true);
    }
    let host = named_host.or(file.host.as_deref()).unwrap_or("localhost").to_owned();
    let port = address.port.or(if named_host.is_none() { file.port } else { None }).unwrap_or(3306);
    let local = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    let endpoint = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    (options.host(&host).port(port), endpoint, local)
}

fn option<'a>(address: &'a Address, names: &[&str]) -> Option<&'a str> {
    address.options.iter().find(|(key, _)| names.contains(&key.as_str())).map(|(_, value)| value.as_str())
}

/// An address that could not be taken apart may hold a password anywhere between the scheme and the end.
fn redact_harder(endpoint: &str) -> String {
    match endpoint.split_once("://") {
        Some((scheme, rest)) if rest.contains('@') || rest.contains(':') => format!("{scheme}://…"),
        _ => redact(endpoint),
    }
}

fn tls_mode(text: &str) -> Result<MySqlSslMode, String> {
    match text.to_ascii_lowercase().replace('_', "-").as_str() {
        "disabled" | "off" | "false" => Ok(MySqlSslMode::Disabled),
        "preferred" => Ok(MySqlSslMode::Preferred),
        "required" | "on" | "true" => Ok(MySqlSslMode::Required),
        "verify-ca" => Ok(MySqlSslMode::VerifyCa),
        "verify-identity" | "verify-full" => Ok(MySqlSslMode::VerifyIdentity),
        _ => Err(format!("tls: expected disabled, preferred, required, verify-ca or verify-identity, got {text:?}")),
    }
}

fn wanted(value: Option<&toml::Value>) -> Result<WaitsWanted, String> {
    match value {
        None | Some(toml::Value::Boolean(true)) => Ok(WaitsWanted::Yes),
        Some(toml::Value::Boolean(false)) => Ok(WaitsWanted::No),
        Some(toml::Value::String(text)) if text == "force" => Ok(WaitsWanted::Force),
        Some(other) => Err(format!("waits: expected true, false or \"force\", got {other}")),
    }
}

/// `"150ms"`, `"1s"`, or a number of seconds.
fn every(value: &toml::Value) -> Result<Duration, String> {
    let seconds = match value {
        toml::Value::Integer(seconds) => Some(*seconds as f64),
        toml::Value::Float(seconds) => Some(*seconds),
        toml::Value::String(text) => {
            let (number, scale) = match text.trim() {
                text if text.ends_with("ms") => (text.trim_end_matches("ms"), 1e-3),
                text => (text.trim_end_matches('s'), 1.0),
            };
            number.trim().parse::<f64>().ok().map(|number| number * scale)
        }
        _ => None,
    };
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| format!("waits_every: expected a duration such as \"150ms\" or \"1s\", got {value}"))
}

#[cfg(test)]
mod tests;
