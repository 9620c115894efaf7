//! No secret reaches a file or a message. Two nets: what looks like a secret is cut out of texts that the user wrote (URLs,
//! a command line, a configuration), and the secrets that are known are replaced in everything that goes out ([`Scrub`]).

use std::ffi::OsString;

/// What stands in a secret's place.
pub const MARK: &str = "***";

/// Cuts the passwords out of every URL in a text, and secret parameters out of their queries.
pub fn urls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, url) = rest.split_at(at + 3);
        out.push_str(before);
        let end = url.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '`')).unwrap_or(url.len());
        let (url, after) = url.split_at(end);
        push_url(&mut out, url);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The same for a target's endpoint, which may come without a scheme: `user:password@host`.
pub fn endpoint(text: &str) -> String {
    if text.contains("://") {
        return urls(text);
    }
    let mut out = String::with_capacity(text.len());
    push_url(&mut out, text);
    out
}

/// The password within an endpoint, as it stands there.
pub fn password_of(endpoint: &str) -> Option<&str> {
    let rest = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    password_span(rest).map(|(from, to)| &rest[from..to]).filter(|password| !password.is_empty())
}

/// The user's name within an endpoint.
pub fn user_of(endpoint: &str) -> Option<&str> {
    let rest = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    rest.contains('@').then(|| rest.split([':', '@']).next()).flatten()
}

/// Where the password stands in what follows `scheme://`.
fn password_span(rest: &str) -> Option<(usize, usize)> {
    let authority = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let colon = rest[..authority].find(':')?;
    if let Some(at) = rest[..authority].rfind('@') {
        return (colon < at).then_some((colon + 1, at));
    }
    // A password with a bare '/' in it: what follows the colon is no port, and an '@' comes later.
    let port = rest[colon + 1..authority].chars().all(|c| c.is_ascii_digit());
    let at = rest.rfind('@')?;
    (!port && !rest.starts_with('[')).then_some((colon + 1, at))
}

fn push_url(out: &mut String, url: &str) {
    let mut rest = url;
    if let Some((from, to)) = password_span(rest) {
        out.push_str(&rest[..from]);
        out.push_str(MARK);
        rest = &rest[to..];
    }
    let Some(query) = rest.find('?') else { return out.push_str(rest) };
    out.push_str(&rest[..=query]);
    for (n, pair) in rest[query + 1..].split('&').enumerate() {
        if n > 0 {
            out.push('&');
        }
        match pair.split_once('=') {
            Some((key, _)) if is_secret(key) => out.push_str(&[key, "=", MARK].concat()),
            _ => out.push_str(pair),
        }
    }
}

/// Whether a key's value is a secret, by its name. A file or a variable that holds one is none itself.
pub fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase().replace('-', "_");
    if ["_file", "_env", "_path"].iter().any(|end| key.ends_with(end)) {
        return false;
    }
    [
        "password",
        "passwd",
        "passphrase",
        "pwd",
        "secret",
        "token",
        "bearer",
        "authorization",
        "cookie",
        "apikey",
        "api_key",
        "credential",
    ]
    .iter()
    .any(|word| key.contains(word))
}

/// A configuration's value without its secrets.
pub fn value(key: &str, value: &toml::Value) -> toml::Value {
    match value {
        toml::Value::Table(table) => toml::Value::Table(table.iter().map(|(k, v)| (k.clone(), self::value(k, v))).collect()),
        toml::Value::Array(list) => toml::Value::Array(list.iter().map(|v| self::value(key, v)).collect()),
        _ if is_secret(key) => toml::Value::String(MARK.to_owned()),
        toml::Value::String(text) => toml::Value::String(urls(text)),
        other => other.clone(),
    }
}

/// A command line for people and for the file: words quoted as for a shell, secrets cut out.
pub fn command(words: &[OsString]) -> String {
    self::words(words).iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A command line's words, secrets cut out.
pub fn words(words: &[OsString]) -> Vec<String> {
    let mut hide_next = false;
    let shown = words.iter().map(|word| {
        let word = word.to_string_lossy();
        if std::mem::take(&mut hide_next) && !word.starts_with('-') {
            return MARK.to_owned();
        }
        match word.split_once('=') {
            Some((key, _)) if is_secret(key) && !key.contains("://") => format!("{key}={MARK}"),
            _ => {
                hide_next = word.starts_with('-') && is_secret(&word);
                urls(&word)
            }
        }
    });
    shown.collect()
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=./:,@%+*?&~".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// The secrets that are known, to be replaced wherever they show up.
#[derive(Clone, Debug, Default)]
pub struct Scrub(Vec<String>);

impl Scrub {
    /// Adds one. Very short ones are left out: replacing them would garble every message, and hide nothing.
    pub fn add(&mut self, secret: &str) {
        for form in [secret.to_owned(), percent_decoded(secret)] {
            if form.len() >= 4 && !self.0.contains(&form) {
                self.0.push(form);
            }
        }
        // A secret that contains another one goes first.
        self.0.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    }

    /// Adds the password of an endpoint, unless it is the same as the user's name: that is shown, and no secret.
    pub fn add_endpoint(&mut self, endpoint: &str) {
        if let Some(password) = password_of(endpoint).filter(|password| Some(*password) != user_of(endpoint)) {
            self.add(password);
        }
    }

    /// Leaves a word alone that is shown anyway, such as an instance's name.
    pub fn except(&mut self, word: &str) {
        self.0.retain(|secret| secret != word);
    }

    /// Adds every secret of a configuration's value.
    pub fn add_value(&mut self, key: &str, value: &toml::Value) {
        match value {
            toml::Value::Table(table) => table.iter().for_each(|(k, v)| self.add_value(k, v)),
            toml::Value::Array(list) => list.iter().for_each(|v| self.add_value(key, v)),
            toml::Value::String(text) if is_secret(key) => self.add(text),
            // Where a secret is kept outside, the collector reads it and says what is wrong; here it is only to be known.
            toml::Value::String(name) if key.strip_suffix("_env").is_some_and(is_secret) => {
                self.add(&std::env::var(name).unwrap_or_default());
            }
            toml::Value::String(path) if key.strip_suffix("_file").is_some_and(is_secret) => {
                let kept = std::fs::read_to_string(collectors::settings::expand_home(path.as_ref())).unwrap_or_default();
                self.add(kept.trim_end_matches(['\n', '\r']));
            }
            toml::Value::String(text) if text.contains("://") => self.add_endpoint(text),
            _ => {}
        }
    }

    /// The text without them.
    pub fn clean(&self, text: &str) -> String {
        self.0.iter().fold(urls(text), |text, secret| if text.contains(secret) { text.replace(secret, MARK) } else { text })
    }
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes
            .get(at + 1..at + 3)
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (bytes[at], hex) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 3;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_a_url_is_cut_out_and_nothing_else() {
        for (text, shown) in [
            ("mysql://probe:hush@db:3306/shop", "mysql://probe:***@db:3306/shop"),
            ("mysql://probe:hu@sh:x@db/", "mysql://probe:***@db/"),
            ("mysql://probe:hu/sh@db/", "mysql://probe:***@db/"),
            ("http://[::1]:8080/x?a=b@c", "http://[::1]:8080/x?a=b@c"),
            ("http://web:8080/server-status?auto", "http://web:8080/server-status?auto"),
            ("http://web:8080/x?mail=a@b", "http://web:8080/x?mail=a@b"),
            ("http://web/x?token=abc&auto", "http://web/x?token=***&auto"),
            ("connect mysql://a:b@c: refused, http://d:e@f too", "connect mysql://a:***@c: refused, http://d:***@f too"),
        ] {
            assert_eq!(urls(text), shown);
        }
        assert_eq!(endpoint("probe:hush@db"), "probe:***@db");
        assert_eq!(endpoint("cache:11211"), "cache:11211");
        assert_eq!(endpoint("/run/a:b@c.sock"), "/run/a:b@c.sock");
        assert_eq!(password_of("mysql://probe:hush@db"), Some("hush"));
        assert_eq!(password_of("mysql://probe:@db"), None);
        assert_eq!(password_of("cache:11211"), None);
        assert_eq!(user_of("mysql://probe@db/"), Some("probe"));
        assert_eq!(user_of("cache:11211"), None);
    }

    #[test]
    fn a_commands_secrets_are_cut_out() {
        let words: Vec<OsString> =
            ["load", "--password", "hush", "-e", "API_TOKEN=x", "--token=y", "--password-file", "f", "http://a:b@c/", "two words"]
                .map(Into::into)
                .into();
        assert_eq!(
            command(&words),
            "load --password *** -e API_TOKEN=*** --token=*** --password-file f http://a:***@c/ 'two words'"
        );
    }

    #[test]
    fn a_known_secret_is_scrubbed_in_every_form() {
        let mut scrub = Scrub::default();
        scrub.add_value("settings", &toml::Value::Table(toml::from_str("password = 'h%40sh'\nurl = 'http://u:other@x'").unwrap()));
        assert_eq!(scrub.clean("no: h%40sh or h@sh or other"), "no: *** or *** or ***");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "kept in a file\n").unwrap();
        scrub.add_value("password_file", &toml::Value::String(file.path().display().to_string()));
        assert_eq!(scrub.clean("found \"kept in a file\""), "found \"***\"");
        scrub.add("ab");
        assert_eq!(scrub.clean("about"), "about");
        scrub.add_endpoint("mysql://probe:probe@db/");
        assert_eq!(scrub.clean("GRANT PROCESS ON *.* TO 'probe'@'%'"), "GRANT PROCESS ON *.* TO 'probe'@'%'");
    }
}
