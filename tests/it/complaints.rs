//! `tests/complaints.md` says which test holds off which kind of fault: every test that it names is there, and every row
//! names one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every source file below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The names of the functions that stand below a line `#[test]` or `#[tokio::test]`.
fn tests_of(source: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut marked = false;
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            marked = true;
        } else if let Some((_, rest)) = line.split_once("fn ").filter(|(before, _)| ["", "async "].contains(before))
            && std::mem::take(&mut marked)
        {
            names.extend(rest.split('(').next());
        }
    }
    names
}

fn all_sources() -> Vec<String> {
    let mut files = Vec::new();
    for folder in ["src", "collectors", "tests"] {
        sources(&root().join(folder), &mut files);
    }
    files.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// Names between back-quotes.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn every_kind_of_complaint_has_its_row_and_every_test_that_a_row_names_is_there() {
    let sources = all_sources();
    let there: BTreeSet<&str> = sources.iter().flat_map(|source| tests_of(source)).collect();
    assert!(there.contains("every_kind_of_complaint_has_its_row_and_every_test_that_a_row_names_is_there"));
    let table = std::fs::read_to_string(root().join("tests/complaints.md")).unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with("| ") && line.as_bytes()[2].is_ascii_digit())
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let numbers: Vec<usize> = rows.iter().map(|row| row[0].parse().unwrap()).collect();
    assert_eq!(numbers, (1..=62).collect::<Vec<_>>());
    for row in &rows {
        let names = quoted(row[2]);
        assert!(!names.is_empty() && !row[1].is_empty(), "{row:?}");
        let missing: Vec<&&str> = names.iter().filter(|name| !there.contains(**name)).collect();
        assert!(missing.is_empty(), "row {} names tests that are not there: {missing:?}", row[0]);
    }
}

#[test]
fn no_collector_asks_a_file_system_for_its_space() {
    let mut files = Vec::new();
    for folder in ["src", "collectors"] {
        sources(&root().join(folder), &mut files);
    }
    assert!(files.len() > 100, "{}", files.len());
    for path in files {
        let code = std::fs::read_to_string(&path).unwrap();
        let code: String = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        // Nor does it look for mounts to ask: a network mount whose server is gone blocks whoever does, for ever.
        for call in ["statfs", "statvfs", "/mounts", "mountinfo"] {
            assert!(!code.contains(call), "{} in {}", call, path.display());
        }
    }
}
