//! What collectors over HTTP share: one kept connection a target, credentials, and faults that say what was found.
//!
//! No proxy, no redirects, no compression, no cookies, HTTP/1.1. The connection is kept between reads; one that the server
//! closed meanwhile (`KeepAliveTimeout`, `MaxKeepAliveRequests`) is opened again at once within the same read and is no
//! fault. The whole body is read before anything of it is believed, and only of an answer with status 200. There is no
//! switch that turns the check of certificates off: a server with a certificate of its own is named with `ca_file`.

pub mod address;
#[cfg(test)]
pub mod fake;
pub mod sniff;
pub(crate) mod tls;
pub mod usual;

use crate::api::{Fault, FaultKind, Section};
use crate::settings::{self, Secret};
use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use reqwest::{Client, StatusCode, Url};
use serde::Deserialize;
use std::error::Error as _;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// The longest that one request may take, when nobody else ended it before.
const LONGEST: Duration = Duration::from_secs(30);

/// A connection gets at least this long, however short the tick: it is made once, and a distant TLS server needs several
/// round trips.
const CONNECT: Duration = Duration::from_secs(3);

/// The keys of a configuration section that every HTTP target understands.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Basic credentials; the address may hold them too.
    pub user: Option<String>,
    /// The password itself.
    pub password: Option<Secret>,
    /// A file that holds the password alone.
    pub password_file: Option<PathBuf>,
    /// The environment variable that holds the password.
    pub password_env: Option<String>,
    /// A bearer token itself.
    pub token: Option<Secret>,
    /// A file that holds the token alone.
    pub token_file: Option<PathBuf>,
    /// The environment variable that holds the token.
    pub token_env: Option<String>,
    /// The only authority to trust, PEM; without it the system's.
    pub ca_file: Option<PathBuf>,
    /// Our own certificate, PEM.
    pub cert_file: Option<PathBuf>,
    /// Its key, PEM; without it the key is looked for in `cert_file`.
    pub key_file: Option<PathBuf>,
    /// Where to connect, in place of what the host's name resolves to: one of several machines of that name.
    pub connect_to: Option<IpAddr>,
}

impl Settings {
    const KEYS: [&'static str; 11] = [
        "user",
        "password",
        "password_file",
        "password_env",
        "token",
        "token_file",
        "token_env",
        "ca_file",
        "cert_file",
        "key_file",
        "connect_to",
    ];

    /// Takes these keys out of a section and leaves the collector's own, so that both can be read strictly.
    pub fn take(section: &Section) -> Result<(Self, Section), Fault> {
        let (mut ours, mut rest) = (section.clone(), section.clone());
        ours.settings.retain(|key, _| Self::KEYS.contains(&key));
        rest.settings.retain(|key, _| !Self::KEYS.contains(&key));
        let found: Self = settings::parse(&ours)?;
        let wrong = |why: &str| Err(Fault::new(FaultKind::Config, format!("configuration of {}: {why}", section.instance)));
        let password = [found.password.is_some(), found.password_file.is_some(), found.password_env.is_some()];
        let token = [found.token.is_some(), found.token_file.is_some(), found.token_env.is_some()];
        let count = |given: [bool; 3]| given.into_iter().filter(|given| *given).count();
        if count(password) > 1 || count(token) > 1 {
            return wrong("a secret is given more than once (itself, its _file or its _env)");
        }
        if count(token) == 1 && (count(password) == 1 || found.user.is_some()) {
            return wrong("both a token and a user with a password are given");
        }
        if found.key_file.is_some() && found.cert_file.is_none() {
            return wrong("key_file is given without cert_file");
        }
        Ok((found, rest))
    }
}

/// What a server answered, whole.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The `Content-Type`, lower case, empty where there is none.
    pub content_type: String,
    /// The body.
    pub body: Vec<u8>,
    /// The server said how long the body is, so that this is all of it.
    pub framed: bool,
    /// The first bytes, for messages: escaped, and without our own secrets, should the page repeat them.
    excerpt: String,
    asked: String,
    reason: &'static str,
    leads_to: Option<String>,
}

/// A client for one target.
pub struct Http {
    client: Client,
    token: Option<Secret>,
    user: Option<(String, Option<Secret>)>,
    accept: &'static str,
    connect: Duration,
    /// An answer was read whole on the connection that is kept.
    kept: bool,
}

impl Http {
    /// Builds the client and reads what its settings name: secrets and certificates. Connects to nothing.
    pub fn new(section: &Section, settings: &Settings, url: &Url, accept: &'static str) -> Result<Self, Fault> {
        let what = &section.instance;
        let secret = |name: &str, text: &Option<Secret>, file: &Option<PathBuf>, env: &Option<String>| {
            settings::secret(&format!("{name} of {what}"), text.as_ref(), file.as_deref(), env.as_deref())
        };
        let password = secret("password", &settings.password, &settings.password_file, &settings.password_env)?;
        let token = secret("token", &settings.token, &settings.token_file, &settings.token_env)?;
        let (in_url, password_in_url) = (unescape(url.username()), url.password().map(|text| Secret::new(unescape(text))));
        let user = settings.user.clone().or_else(|| (!in_url.is_empty()).then_some(in_url));
        let password = password.or(password_in_url);
        let user = match (user, password) {
            (Some(user), password) => Some((user, password)),
            (None, None) => None,
            (None, Some(_)) => {
                return Err(Fault::new(FaultKind::Config, format!("configuration of {what}: a password is given without a user")));
            }
        };
        let connect = section.timeout.max(CONNECT);
        let tls = tls::config(what, settings, url.scheme() == "https")?;
        let builder = match (settings.connect_to, url.host_str()) {
            // The port stays the URL's, and so do the name in the request and in the certificate.
            (Some(address), Some(host)) => Client::builder().resolve(host, SocketAddr::new(address, 0)),
            _ => Client::builder(),
        };
        let client = builder
            .tls_backend_preconfigured(tls)
            .http1_only()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .user_agent(concat!("whatgives-sampler/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(connect)
            .timeout(LONGEST)
            .pool_max_idle_per_host(1)
            .pool_idle_timeout(None)
            .build()
            .map_err(|why| Fault::new(FaultKind::Config, format!("{what}: cannot make an HTTP client: {}", deepest(&why))))?;
        Ok(Self { client, token, user, accept, connect, kept: false })
    }

    /// Asks for a page and reads it whole, whatever its status; more than `most` bytes are a fault.
    pub async fn get(&mut self, url: &Url, most: usize) -> Result<Answer, Fault> {
        let was_kept = std::mem::replace(&mut self.kept, false);
        let response = match self.send(url).await {
            // The server closed the kept connection while the request was on its way: that is its right, and says nothing
            // about its health. Once, and only on a connection that has answered before.
            Err(why) if was_kept && !why.is_connect() && !why.is_timeout() => self.send(url).await,
            first => first,
        };
        let mut response = response.map_err(|why| self.unreachable(url, &why))?;
        let header = |name| response.headers().get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let mut answer = Answer {
            status: response.status().as_u16(),
            reason: response.status().canonical_reason().unwrap_or(""),
            content_type: header(CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase(),
            leads_to: header(LOCATION).map(|to| address::shown_location(url, &to)),
            framed: response.headers().contains_key("content-length") || response.headers().contains_key("transfer-encoding"),
            asked: address::shown(url),
            body: Vec::new(),
            excerpt: String::new(),
        };
        if let Some(coding) = header(CONTENT_ENCODING).filter(|coding| !coding.eq_ignore_ascii_case("identity")) {
            return Err(Fault::new(
                FaultKind::Nonsense,
                format!("GET {}: compressed with {coding}, which was not asked for", answer.asked),
            )
            .hint("turn compression off for this page"));
        }
        while let Some(chunk) = response.chunk().await.map_err(|why| self.unreachable(url, &why))? {
            if answer.body.len() + chunk.len() > most {
                return Err(Fault::new(FaultKind::Nonsense, format!("GET {}: more than {} KiB", answer.asked, most / 1024)));
            }
            answer.body.extend_from_slice(&chunk);
        }
        self.kept = true;
        answer.excerpt = self.scrub(sniff::excerpt(&answer.body));
        Ok(answer)
    }

    fn scrub(&self, text: String) -> String {
        let password = self.user.as_ref().and_then(|(_, password)| password.as_ref());
        [self.token.as_ref(), password]
            .into_iter()
            .flatten()
            .map(Secret::reveal)
            .filter(|secret| !secret.is_empty())
            .fold(text, |text, secret| text.replace(&secret.as_bytes().escape_ascii().to_string(), "***"))
    }

    async fn send(&self, url: &Url) -> Result<reqwest::Response, reqwest::Error> {
        let mut bare = url.clone();
        // Neither fails for a URL that has a host.
        let _ = bare.set_username("");
        let _ = bare.set_password(None);
        let mut request = self.client.get(bare).header(ACCEPT, self.accept);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token.reveal());
        } else if let Some((user, password)) = &self.user {
            request = request.basic_auth(user, password.as_ref().map(Secret::reveal));
        }
        request.send().await
    }

    fn unreachable(&self, url: &Url, why: &reqwest::Error) -> Fault {
        let asked = address::shown(url);
        let deepest = deepest(why);
        if why.is_connect() && why.is_timeout() {
            return Fault::new(
                FaultKind::Unreachable,
                format!("GET {asked}: no connection within {} ms", self.connect.as_millis()),
            );
        }
        if why.is_timeout() {
            return Fault::new(FaultKind::Unreachable, format!("GET {asked}: no answer within {} s", LONGEST.as_secs()));
        }
        let fault = match (why.is_connect(), why.is_body() || why.is_decode()) {
            (true, _) => format!("GET {asked}: cannot connect: {deepest}"),
            (_, true) => format!("GET {asked}: the answer broke off: {deepest}"),
            _ => format!("GET {asked}: connected, but no answer: {deepest}"),
        };
        let fault = Fault::new(FaultKind::Unreachable, fault);
        let lower = deepest.to_ascii_lowercase();
        if lower.contains("certificate") {
            fault.hint("name the authority that signed the server's certificate with ca_file = \"…\"")
        } else if lower.contains("corrupt message") || lower.contains("invalidcontenttype") {
            fault.hint("the port may speak plain HTTP: try http://")
        } else {
            fault
        }
    }
}

impl Answer {
    /// The answer, where it is one: anything but 200 is a fault, with the page's first bytes.
    pub fn ok(self) -> Result<Self, Fault> {
        let (asked, excerpt) = (&self.asked, &self.excerpt);
        let found = format!("{} {}", self.status, self.reason);
        let found = found.trim_end();
        let status = StatusCode::from_u16(self.status).unwrap_or_default();
        match (self.status, &self.leads_to) {
            (200, _) => Ok(self),
            (401, _) => Err(Fault::new(FaultKind::Refused, format!("GET {asked}: {found}: {excerpt}"))
                .hint("give a user with password_file, or token_file, in the target's section of the configuration")),
            (403, _) => Err(Fault::new(FaultKind::Denied, format!("GET {asked}: {found}: {excerpt}"))
                .hint("the page must allow this address: Apache `Require ip ADDRESS` in its <Location>, nginx `allow ADDRESS;`")),
            (_, Some(to)) if status.is_redirection() => Err(Fault::new(
                FaultKind::Nonsense,
                format!("GET {asked}: {found}: it leads to {to}, and redirects are not followed"),
            )
            .hint(format!("if that is the page, give {to}"))),
            _ => Err(Fault::new(FaultKind::Nonsense, format!("GET {asked}: {found}: {excerpt}"))),
        }
    }

    /// The body's lines that are certainly whole: where the server did not say how long the body is, a last line without
    /// its end may have been cut.
    pub fn whole_lines(&self) -> &[u8] {
        if self.framed { &self.body } else { whole_lines(&self.body) }
    }

    /// A fault about a page with status 200 that is not what was asked for: `wanted` names that.
    pub fn nonsense(&self, wanted: &str, own_flag: &str) -> Fault {
        let is = sniff::name(&self.body);
        let fault = Fault::new(FaultKind::Nonsense, format!("GET {}: expected {wanted}, found {is}: {}", self.asked, self.excerpt));
        match sniff::flag(&self.body) {
            Some(flag) if flag != own_flag => fault.hint(format!("such a page is read with --{flag} {}", self.asked)),
            _ => fault,
        }
    }
}

/// Cuts a last line that has no end.
pub fn whole_lines(body: &[u8]) -> &[u8] {
    let end = body.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    &body[..end]
}

/// The innermost cause of an error, which is the one that names what happened; never the URL.
fn deepest(why: &reqwest::Error) -> String {
    let mut source = why.source();
    let mut text = None;
    while let Some(inner) = source {
        text = Some(inner.to_string());
        source = inner.source();
    }
    text.unwrap_or_else(|| "the request failed".to_owned())
}

/// `%40` and the like of the user and password in a URL.
fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = (bytes[at] == b'%').then(|| text.get(at + 1..at + 3)).flatten().and_then(|hex| u8::from_str_radix(hex, 16).ok());
        out.push(code.unwrap_or(bytes[at]));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests;
