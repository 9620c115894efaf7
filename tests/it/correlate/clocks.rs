//! The driver's clock against the sampler's.

use crate::support::made::{Made, Said, said};
use std::fs;
use std::path::Path;

/// What is to be added to the driver's clock, its interval, and what was added; seconds.
fn clock(said: &Said) -> (f64, f64, f64, f64) {
    let clock = &said.verdict["run"]["clock"];
    let of = |key: &str| clock[key].as_f64().unwrap_or_else(|| panic!("{key} in {clock:#} of {}", said.text)) / 1e3;
    (of("offset_ms"), of("low_ms"), of("high_ms"), of("moved_ms"))
}

/// A simulated run, its driver's clock set back.
fn simulated(story: &str, back_s: f64) -> Said {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/runs").join(story);
    let moved = |line: &str| match line.split_once('\t').and_then(|(time, rest)| Some((time.parse::<f64>().ok()?, rest))) {
        Some((time, rest)) => format!("{}\t{rest}\n", time - 1e3 * back_s),
        None => format!("{line}\n"),
    };
    let text: String = fs::read_to_string(folder.join("timeline.tsv")).unwrap().lines().map(moved).collect();
    let away = tempfile::tempdir().unwrap();
    let timeline = away.path().join("timeline.tsv");
    fs::write(&timeline, text).unwrap();
    said(&folder.join("ticks.tsv").display().to_string(), &["--driver", &timeline.display().to_string()])
}

#[test]
fn clocks_that_agree_are_said_to_agree_to_a_fraction_of_a_second() {
    for story in ["sim-row-lock", "sim-cache-memory", "sim-nothing"] {
        let said = simulated(story, 0.0);
        let (_, low, high, moved) = clock(&said);
        assert!(low <= 0.0 && high >= 0.0 && high - low < 1.0, "{story}: {low} to {high}");
        assert_eq!(moved, 0.0);
        assert!(!said.warns("clocks_apart") && said.text.contains("the driver and the sampler agree"), "{}", said.text);
    }
    // A made load has hardly any chance in it: nothing is told, or that they agree.
    let said = Made::default().write().correlate();
    assert!(said.verdict["run"]["clock"].is_null() || clock(&said).3 == 0.0, "{}", said.text);
}

#[test]
fn a_clock_that_is_apart_by_a_fraction_of_a_second_is_told_and_not_moved() {
    let (here, ..) = clock(&simulated("sim-row-lock", 0.0));
    let (offset, low, high, moved) = clock(&simulated("sim-row-lock", 0.7));
    assert!((offset - here - 0.7).abs() < 0.1, "{offset} and {here}");
    assert!(low <= 0.7 && 0.7 <= high && moved == 0.0, "{low} to {high}");
}

#[test]
fn a_clock_that_is_apart_by_seconds_is_moved_and_the_onset_stays_where_it_is() {
    let onset = |said: &Said| said.verdict["first"]["onset"]["elapsed_s"].as_f64().unwrap();
    let here = simulated("sim-row-lock", 0.0);
    for back_s in [-2.4, 5.3, 49.2, -49.2] {
        let said = simulated("sim-row-lock", back_s);
        let (offset, low, high, moved) = clock(&said);
        assert!(low <= back_s && back_s <= high && high - low < 1.5, "{back_s}: {low} to {high}");
        assert_eq!(moved, offset);
        assert!(said.warns("clocks_apart"), "{}", said.text);
        assert!((onset(&said) - onset(&here)).abs() <= 2.0, "{} and {}", onset(&said), onset(&here));
    }
}

#[test]
fn a_log_that_counts_other_requests_says_nothing_of_the_clocks() {
    let files = Made { low: 60, climb: 0, top: 60, rates: (50.0, 50.0), ..Made::default() }.write();
    // The driver's counts are those of an even load of its own.
    files.edit("timeline", |lines| {
        let names: Vec<String> =
            lines.iter().find(|line| line.starts_with("unix_ms")).unwrap().split('\t').map(str::to_owned).collect();
        for line in lines.iter_mut().filter(|line| line.starts_with("17")) {
            let mut cells: Vec<String> = line.split('\t').map(str::to_owned).collect();
            for name in ["started", "ok"] {
                cells[names.iter().position(|column| column == name).unwrap()] = "50".into();
            }
            *line = cells.join("\t");
        }
    });
    let said = files.correlate();
    assert!(said.verdict["run"]["clock"].is_null() && !said.warns("clocks_apart"), "{}", said.text);
}
