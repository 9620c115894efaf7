//! Where gates come from: `--gate`, and files with a table `[gates]` of names and gates.

use crate::judge::gate::Gate;
use anyhow::{Context as _, bail};
use serde::Deserialize;
use std::path::Path;

/// A gate and the name that it was given.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Its name in a file.
    pub name: Option<String>,
    /// The gate.
    pub gate: Gate,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    gates: toml::Table,
}

/// All gates, those of the files first.
pub fn read(files: &[impl AsRef<Path>], gates: &[Gate]) -> anyhow::Result<Vec<Listed>> {
    let mut all = Vec::new();
    for path in files {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read the gates {}", path.display()))?;
        all.extend(parse(&text).with_context(|| format!("the gates {}", path.display()))?);
    }
    all.extend(gates.iter().map(|gate| Listed { name: None, gate: gate.clone() }));
    Ok(all)
}

fn parse(text: &str) -> anyhow::Result<Vec<Listed>> {
    let file: File =
        toml::from_str(text).context("expected a table [gates] of names and gates: pool = \"app.pool_waiting <= 0 for 5s\"")?;
    let mut listed = Vec::new();
    for (name, value) in file.gates {
        let toml::Value::String(text) = value else { bail!("{name}: expected a gate in quotes, found {value}") };
        let gate = text.parse().with_context(|| name.clone())?;
        listed.push(Listed { name: Some(name), gate });
    }
    if listed.is_empty() {
        bail!("the table [gates] is empty: a gate that is not there cannot fail");
    }
    Ok(listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_gates_keeps_their_names_and_what_is_wrong_is_told_with_its_name() {
        let listed = parse("[gates]\npool = \"app.pool_waiting <= 0 for 5s\"\nslow = 'p95 < 800ms'\n").unwrap();
        let names: Vec<&str> = listed.iter().filter_map(|listed| listed.name.as_deref()).collect();
        assert_eq!(names, ["pool", "slow"]);
        assert_eq!(listed[1].gate, "p95 < 800ms".parse().unwrap());
        for (text, told) in [
            ("[gates]\n", "is empty"),
            ("[gate]\na = 'p95 < 8ms'\n", "expected a table [gates]"),
            ("[gates]\na = 5\n", "a: expected a gate in quotes, found 5"),
            ("[gates]\na = 'p95 < 8'\n", "a: the gate \"p95 < 8\": expected a time"),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(told), "{error}");
        }
    }
}
