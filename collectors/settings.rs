//! A target's section of the configuration: read strictly, with its secrets from a file or the environment.

use crate::api::{Fault, FaultKind, Section};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::path::{Path, PathBuf};

/// Reads a section's settings into a collector's own struct, which denies unknown keys; the error names the instance and
/// the key.
pub fn parse<T: DeserializeOwned>(section: &Section) -> Result<T, Fault> {
    T::deserialize(toml::Value::Table(section.settings.clone()))
        .map_err(|why| Fault::new(FaultKind::Config, format!("configuration of {}: {}", section.instance, why.message().trim())))
}

/// A text that never shows itself.
#[derive(Clone, Deserialize, PartialEq, Eq)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// Reads a secret from the first place that is given: the text itself, a file (one trailing line end is cut), or an
/// environment variable. `what` names it in messages, for example `password of mysql`.
pub fn secret(what: &str, text: Option<&Secret>, file: Option<&Path>, env: Option<&str>) -> Result<Option<Secret>, Fault> {
    if let Some(text) = text {
        return Ok(Some(text.clone()));
    }
    if let Some(file) = file {
        let read = std::fs::read_to_string(expand_home(file)).map_err(|why| {
            Fault::new(FaultKind::Config, format!("{what}: cannot read the file {}: {why}", file.display()))
                .hint("the file holds the secret alone, on one line, readable by the user who runs the sampler")
        })?;
        return Ok(Some(Secret::new(read.trim_end_matches(['\n', '\r']))));
    }
    if let Some(env) = env {
        return match std::env::var(env) {
            Ok(value) => Ok(Some(Secret::new(value))),
            Err(_) => Err(Fault::new(FaultKind::Config, format!("{what}: the environment variable {env} is not set"))),
        };
    }
    Ok(None)
}

/// `~/x` means the home folder, as in a shell.
pub fn expand_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(rest), Some(home)) => Path::new(&home).join(rest),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        password_file: Option<PathBuf>,
    }

    fn section(text: &str) -> Section {
        Section::of("db", "", text)
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_instance_and_the_key() {
        let fault = parse::<Sample>(&section("passwort = 1")).unwrap_err();
        assert!(fault.message.contains("db") && fault.message.contains("passwort"), "{fault}");
    }

    #[test]
    fn a_secret_in_a_file_loses_its_line_end_and_never_shows_itself() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("secret");
        std::fs::write(&file, "hush\n").unwrap();
        let sample: Sample = parse(&section(&format!("password_file = {file:?}"))).unwrap();
        let found = secret("password of db", None, sample.password_file.as_deref(), None).unwrap().unwrap();
        assert_eq!(found.reveal(), "hush");
        assert_eq!(format!("{found:?}"), "(secret)");
    }

    #[test]
    fn a_missing_file_or_variable_is_named() {
        let fault = secret("password of db", None, Some(Path::new("/nonexistent/file")), None).unwrap_err();
        assert!(fault.message.contains("/nonexistent/file"), "{fault}");
        let fault = secret("password of db", None, None, Some("WHATGIVES_NOT_SET")).unwrap_err();
        assert!(fault.message.contains("WHATGIVES_NOT_SET"), "{fault}");
    }
}
