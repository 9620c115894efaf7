//! Runs against runs: what the file of runs says after many of them.

use super::report::{number, shown, time_at};
use crate::support::made::Made;
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A run whose pool carries so much, started and judged into the file of runs.
fn start(pool: f64, runs: &Path, more: &[&str]) -> (Child, tempfile::TempDir) {
    let made = Made { low: 12, climb: 40, top: 6, pool, ..Made::default() };
    let files = made.write();
    let mut correlate = Command::new(env!("CARGO_BIN_EXE_correlate"));
    correlate
        .arg(files.path("ticks"))
        .arg("--driver")
        .arg(files.path("timeline"))
        .arg("--history")
        .arg(runs)
        .args(more)
        .arg("--json");
    let child = correlate.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("correlate starts");
    (child, files.into_folder())
}

fn judged(pool: f64, runs: &Path, more: &[&str]) -> (i32, Value) {
    let (child, _files) = start(pool, runs, more);
    let said = child.wait_with_output().expect("correlate ends");
    let verdict = serde_json::from_slice(&said.stdout).unwrap_or_else(|why| panic!("{why}: {said:?}"));
    (said.status.code().expect("a code"), verdict)
}

/// Pools around 100 a second, with the chance of a few per cent.
fn around(n: usize) -> f64 {
    100.0 + [0.4, -1.1, 0.9, -0.3, 1.3, -0.8, 0.1, -1.4, 0.7, -0.2, 1.1][n % 11]
}

#[test]
fn a_knee_that_fell_by_a_fifth_is_told_after_one_run_and_after_ten_and_noise_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs.tsv");
    let (code, verdict) = judged(100.0, &runs, &[]);
    assert_eq!((code, &verdict["history"]["earlier"]), (0, &Value::from(0)), "{:#}", verdict["history"]);
    assert_eq!(verdict["verdict"], "moved", "a first run is compared with nothing");
    for n in 0..9 {
        let (code, verdict) = judged(around(n), &runs, &["--label", "version=1.0"]);
        assert_eq!((code, verdict["verdict"].as_str()), (0, Some("qualified")), "{:#}", verdict["history"]);
        assert_eq!(verdict["history"]["knee"]["change"], "usual", "{:#}", verdict["history"]);
        if n == 1 {
            // Among few runs as well; what fell is recorded like every other run, but not in the file of the next ones here.
            let aside = folder.path().join("few.tsv");
            std::fs::copy(&runs, &aside).unwrap();
            assert_eq!(judged(75.0, &aside, &[]).0, 1);
        }
    }
    let (code, verdict) = judged(80.0, &runs, &["--label", "version=1.1"]);
    assert_eq!((code, verdict["verdict"].as_str()), (1, Some("violated")), "{:#}", verdict["history"]);
    let knee = &verdict["history"]["knee"];
    assert_eq!(knee["change"], "fell", "{knee}");
    assert!((knee["share"].as_f64().unwrap() - 0.2).abs() < 0.03, "{knee}");
    assert_eq!(std::fs::read_to_string(&runs).unwrap().lines().count(), 2 + 11, "one line a run");
    shown_as_a_page(&runs);
}

/// The page of these eleven runs: the fall is the first thing read, and its mark stands at the last of them.
fn shown_as_a_page(runs: &Path) {
    let page = runs.with_extension("html");
    let mut correlate = Command::new(env!("CARGO_BIN_EXE_correlate"));
    let said = correlate.arg("history").arg(runs).arg("--report").arg(&page).output().expect("correlate runs");
    let text = String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success() && text.contains("The last run fell by "), "{said:?}");
    for (width, dark) in [(1280, false), (400, true)] {
        let Some(found) = shown(&page, width, dark) else { return };
        assert_eq!(found["loaded"], Value::Array(Vec::new()), "nothing is loaded from anywhere");
        assert!(found["heading"].as_str().unwrap().starts_with("The last run fell by "), "{found:#}");
        assert!(number(&found["wide"]) <= number(&found["view"]), "nothing stands over the edge at {width}");
        let chart = &found["charts"][0];
        let marks = chart["marks"].as_array().unwrap();
        let at: Vec<f64> = marks.iter().map(|mark| time_at(chart, number(&mark["at"]))).collect();
        assert!(at.len() == 1 && (at[0] - 11.0).abs() < 0.1, "{at:?}: {chart:#}");
        let ticks: Vec<&str> = chart["ticks"].as_array().unwrap().iter().filter_map(|tick| tick["text"].as_str()).collect();
        assert!(ticks.iter().all(|tick| tick.parse::<u32>().is_ok()), "runs are counted: {ticks:?}");
    }
}

#[test]
fn runs_of_another_scenario_are_never_compared_with() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs.tsv");
    judged(100.0, &runs, &["--label", "mix=70:25:5"]);
    let (code, verdict) = judged(60.0, &runs, &["--label", "mix=10:80:10"]);
    assert_eq!(code, 0, "{:#}", verdict["history"]);
    assert_eq!((&verdict["history"]["earlier"], &verdict["history"]["other_scenarios"]), (&Value::from(0), &Value::from(1)));
}

#[test]
fn processes_that_append_at_once_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs.tsv");
    let started: Vec<_> = (0..6).map(|n| start(around(n), &runs, &[])).collect();
    for (child, _files) in started {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    let text = std::fs::read_to_string(&runs).unwrap();
    assert_eq!(text.lines().count(), 2 + 6, "{text}");
    assert!(text.lines().skip(2).all(|line| line.split('\t').count() == 15), "{text}");
}

#[test]
fn a_last_line_that_was_cut_is_passed_over_and_the_next_run_stands_on_a_line_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs.tsv");
    judged(100.0, &runs, &[]);
    judged(100.5, &runs, &[]);
    let text = std::fs::read_to_string(&runs).unwrap();
    std::fs::write(&runs, &text[..text.len() - 200]).unwrap();
    let (code, verdict) = judged(99.5, &runs, &[]);
    assert_eq!((code, &verdict["history"]["earlier"]), (0, &Value::from(1)), "{:#}", verdict["history"]);
    assert!(verdict["caveats"].as_array().unwrap().iter().any(|caveat| caveat["code"] == "history_cut"));
    let (_, verdict) = judged(99.5, &runs, &[]);
    assert_eq!(verdict["history"]["earlier"], 2);
    std::fs::write(&runs, "some\tother\ttable\n1\t2\t3\n").unwrap();
    let (child, _files) = start(100.0, &runs, &[]);
    let said = child.wait_with_output().unwrap();
    assert_eq!(said.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&said.stderr).contains("is no file of runs"), "{said:?}");
    assert_eq!(std::fs::read_to_string(&runs).unwrap().lines().count(), 2, "a file of somebody else is left as it is");
}
