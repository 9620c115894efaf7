//! The README's table of targets is made from the registry, and every benchmark stands in it.

use collectors::api::Spec;
use std::fmt::Write as _;

const BEGIN: &str = "<!-- targets: from the registry; UPDATE_README=1 cargo test --test it readme -->\n";
const END: &str = "<!-- /targets -->\n";

fn row(spec: &Spec) -> String {
    // In a cell of Markdown a bar ends the cell and a line ends the row.
    let cell = |text: &str| text.replace('|', "\\|");
    let flags = std::iter::once(spec.flag).chain(spec.aliases.iter().copied());
    let flags: Vec<_> = flags.map(|flag| format!("`--{}`", cell(format!("{flag} {}", spec.value).trim_end()))).collect();
    // Statements and lines of configuration as code, one below the other; words as words.
    let needs = if spec.needs.starts_with("nothing") {
        cell(spec.needs)
    } else {
        let lines = spec.needs.lines().flat_map(|line| line.split_inclusive("; "));
        lines.map(|line| format!("`{}`", cell(line.trim()))).collect::<Vec<_>>().join("<br>")
    };
    format!("| {} | {} | {} |\n", flags.join("<br>"), cell(spec.about), needs)
}

fn table() -> String {
    let mut table = "| | reads | needs |\n|---|---|---|\n".to_owned();
    for spec in collectors::REGISTRY {
        // Writing to a String cannot fail.
        let _ = write!(table, "{}", row(spec));
    }
    table
}

const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");

#[test]
fn every_benchmark_of_the_package_is_named_and_no_other() {
    let package: toml::Table = include_str!("../../Cargo.toml").parse().expect("Cargo.toml");
    let mut benches: Vec<&str> =
        package["bench"].as_array().expect("benchmarks").iter().filter_map(|bench| bench["name"].as_str()).collect();
    let readme = std::fs::read_to_string(README).expect("README.md");
    let lines = readme.lines().filter_map(|line| line.strip_prefix("| `cargo bench --bench "));
    let mut named: Vec<&str> = lines.filter_map(|rest| rest.split('`').next()).collect();
    benches.sort_unstable();
    named.sort_unstable();
    assert_eq!(named, benches);
}

#[test]
fn the_table_of_targets_is_that_of_the_registry() {
    let readme = std::fs::read_to_string(README).expect("README.md");
    let (before, rest) = readme.split_once(BEGIN).expect("the mark where the table begins");
    let (found, after) = rest.split_once(END).expect("the mark where the table ends");
    let table = table();
    if std::env::var_os("UPDATE_README").is_some() {
        std::fs::write(README, format!("{before}{BEGIN}{table}{END}{after}")).expect("README.md is written");
    } else {
        assert_eq!(found, table, "UPDATE_README=1 cargo test --test it readme");
    }
}
