//! What a release needs against a file of runs, written by correlate of made and of recorded runs.

use crate::support::made::{Files, Made};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A folder with a file of runs and requirements.
struct Release {
    folder: TempDir,
}

struct Said {
    code: i32,
    told: Value,
    text: String,
    err: String,
}

impl Said {
    /// The codes of what is missing, those of unknown ones with a question mark.
    fn codes(&self) -> Vec<String> {
        let findings = self.told["findings"].as_array().unwrap_or_else(|| panic!("findings in {} {}", self.told, self.err));
        let code = |finding: &Value| finding["code"].as_str().unwrap().strip_prefix("require_").unwrap().to_owned();
        findings.iter().map(|finding| code(finding) + if finding["unknown"] == true { "?" } else { "" }).collect()
    }

    fn is_covered(&self) {
        assert_eq!((self.code, self.codes(), &self.told["covered"]), (0, Vec::new(), &Value::from(true)), "{}", self.text);
    }

    /// Not covered, for these and for nothing else; the text names each.
    fn lacks(&self, codes: &[&str], texts: &[&str]) {
        assert_eq!((self.code, self.codes()), (1, codes.iter().map(|code| (*code).to_owned()).collect()), "{}", self.text);
        assert_eq!(self.told["covered"], false);
        for text in texts {
            assert!(self.text.contains(text), "{text:?} in {}", self.text);
        }
    }
}

impl Release {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Judges a run into the file of runs.
    fn record(&self, ticks: &Path, log: &Path, more: &[&str]) -> &Self {
        let mut correlate = Command::new(env!("CARGO_BIN_EXE_correlate"));
        correlate.arg(ticks).arg("--driver").arg(log).arg("--history").arg(self.path("runs.tsv")).args(more);
        let said = correlate.output().expect("correlate runs");
        assert!(matches!(said.status.code(), Some(0 | 1 | 4)), "{said:?}");
        self
    }

    /// A recorded run of real servers.
    fn recorded(&self, story: &str, more: &[&str]) -> &Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/runs").join(story);
        self.record(&folder.join("ticks.tsv.gz"), &folder.join("requests.tsv.gz"), more)
    }

    fn made(&self, files: &Files, more: &[&str]) -> &Self {
        self.record(&files.path("ticks"), &files.path("timeline"), more)
    }

    fn require(&self, requirements: &str) -> Said {
        self.require_with(requirements, &["--label", "version=1.4.2"])
    }

    fn require_with(&self, requirements: &str, more: &[&str]) -> Said {
        std::fs::write(self.path("requirements.toml"), requirements).unwrap();
        let said = |form: &[&str]| {
            let mut correlate = Command::new(env!("CARGO_BIN_EXE_correlate"));
            correlate.current_dir(&self.folder).args(["require", "requirements.toml", "--history", "runs.tsv"]);
            correlate.args(more).args(form).output().expect("correlate runs")
        };
        let (text, json) = (said(&[]), said(&["--json"]));
        assert_eq!(text.status.code(), json.status.code());
        Said {
            code: text.status.code().expect("a code"),
            told: serde_json::from_slice(&json.stdout).unwrap_or(Value::Null),
            text: String::from_utf8(text.stdout).unwrap(),
            err: String::from_utf8(text.stderr).unwrap(),
        }
    }
}

/// A minute at 200 a second that a pool carries, or does not.
fn soak(pool: f64) -> Files {
    Made { low: 12, climb: 40, top: 60, pool, ..Made::default() }.write()
}

const QUALIFIED: [&str; 4] = ["--label", "version=1.4.2", "--gate", "p95 < 500ms"];

#[test]
fn a_run_that_has_everything_covers_and_one_that_falls_short_is_told_as_the_nearest() {
    let release = Release::new();
    release.made(&soak(300.0), &QUALIFIED);
    let soak = |keys: &str| release.require(&format!("[[run]]\nname = \"soak\"\n{keys}"));
    soak("").is_covered();
    let said = soak("duration = \"1m\"\nrate = \"200/s\"");
    said.is_covered();
    assert!(said.text.contains("covered by the run of 2026-11-18 11:06:40 UTC, 1 min"), "{}", said.text);
    let said = soak("duration = \"2m\"\nrate = \"200/s\"");
    said.lacks(&["duration"], &["not covered; nearest: run of 2026-11-18", "not 2 min", "requirements.toml line 3"]);
    soak("duration = 60\nrate = 300").lacks(&["rate"], &["/s, not 300/s"]);
    soak("rate = \"300/s\"\nduration = \"1h\"").lacks(&["duration", "rate"], &["line 4", "line 3"]);
    soak("verdict = [\"rested\", \"moved\"]").lacks(&["verdict"], &["qualified, not rested or moved"]);
}

#[test]
fn a_run_that_broke_a_gate_covers_nothing_however_long_it_was() {
    let release = Release::new();
    release.made(&soak(100.0), &QUALIFIED);
    let asked = "[[run]]\nname = \"soak\"\nrate = \"200/s\"";
    release.require(asked).lacks(&["verdict"], &["violated, not qualified"]);
    // A second run that qualified covers, whichever was the last; one of another version does not.
    release.made(&soak(300.0), &["--label", "version=1.4.1", "--gate", "p95 < 500ms"]);
    release.require(asked).lacks(&["verdict"], &["runs.tsv has 1 run of it"]);
    release.made(&soak(300.0), &QUALIFIED).made(&soak(100.0), &QUALIFIED);
    release.require(asked).is_covered();
    let other = release.require_with(asked, &["--label", "version=1.4.3"]);
    other.lacks(&["run"], &["no run with version=1.4.3; the runs have version=1.4.1, version=1.4.2"]);
}

#[test]
fn a_soak_of_four_hours_is_one_and_three_hours_that_were_saturated_are_the_nearest() {
    let release = Release::new();
    let asked = "[[run]]\nname = \"soak\"\nduration = \"4h\"\nrate = \"20000/s\"";
    let hours = |hours: f64, pool: f64| {
        let top = (3600.0 * hours) as usize;
        Made { before: 30, low: 60, climb: 300, top, rates: (1000.0, 20_400.0), pool, ..Made::default() }.write()
    };
    release.made(&hours(3.2, 20_000.0), &["--label", "version=1.4.2", "--gate", "app.pool_waiting <= 5 for 60s"]);
    let nearest = "nearest: run of 2026-11-18 11:06:40 UTC, 3 h 12 min at 20,4";
    release.require(asked).lacks(&["duration", "verdict"], &[nearest, "/s, saturated", "3 h 12 min, not 4 h"]);
    release.made(&hours(4.0, 30_000.0), &QUALIFIED);
    release.require(asked).is_covered();
}

#[test]
fn a_part_is_asked_for_by_its_name_and_neighbours_that_hold_the_rate_are_one_stretch() {
    let release = Release::new();
    release.recorded("spike-recovers", &["--label", "version=1.4.2"]);
    let any = "verdict = [\"moved\", \"rested\", \"inconclusive\"]";
    let run = |keys: &str| release.require(&format!("[[run]]\nname = \"surge\"\n{any}\n{keys}"));
    run("phase = \"spike\"\nduration = \"2s\"\nrate = \"150/s\"").is_covered();
    run("phase = \"spike\"\nduration = \"30m\"").lacks(&["duration"], &["not 30 min"]);
    run("phase = \"spikes\"").lacks(&["phase"], &["no part named spikes; it has", "spike,"]);
    // What comes before the spike and after it holds 25 a second as well.
    run("duration = \"15s\"\nrate = \"150/s\"").lacks(&["duration"], &[]);
    run("duration = \"40s\"\nrate = \"25/s\"").is_covered();
}

#[test]
fn every_named_step_must_have_been_asked_for() {
    let release = Release::new();
    release.recorded("leak", &QUALIFIED);
    release.require("[[run]]\nsteps = [\"keep\"]").is_covered();
    let said = release.require("[[run]]\nsteps = [\"keep\", \"kepp\",\n \"checkout\"]");
    said.lacks(&["step", "step"], &["kepp was never asked for (is it keep?); it has keep", "checkout was never", "line 3"]);
    let without = Release::new();
    without.made(&soak(300.0), &QUALIFIED);
    without.require("[[run]]\nsteps = [\"keep\"]").lacks(&["step?"], &["its line tells no steps", "require_step, unknown"]);
}

#[test]
fn a_staging_that_is_not_like_production_covers_nothing() {
    let release = Release::new();
    release.recorded("outbox", &["--label", "version=1.4.2"]);
    let on = |profile: &str| release.require(&format!("[[run]]\nname = \"soak\"\nverdict = [\"moved\"]\n{profile}"));
    on("[production.postgres]\nversion = \"15\"\nmax_connections = 200\nshared_buffers = \"64MB\"\n\
        [production.host]\ncores = 2\nmemory_total_bytes = \"24GiB\"\n[production.outbox]\ndepth = \"<= 100\"")
    .is_covered();
    on("[production.postgres]\nversion = \"15.1\"")
        .lacks(&["version"], &["postgres.version is 15.18 (", "in production 15.1", "line 5"]);
    on("[production.postgres]\nmax_connections = 201")
        .lacks(&["capacity"], &["postgres.max_connections is 200, in production 201"]);
    on("[production.postgres]\nsynchronous_commit = \"off\"").lacks(&["capacity"], &["is on, in production off"]);
    on("[production.host]\ncores = 16\nmemory_total_bytes = \"64GiB\"")
        .lacks(&["size", "size"], &["host.cores is 2, in production 16"]);
    on("[production.outbox]\ndepth = \">= 1_000_000\"").lacks(&["rows"], &["in production at least 1,000,000"]);
    let said = on("[production.postgres]\nmax_conections = 200\n[production.mysql]\nversion = \"9\"");
    said.lacks(
        &["capacity?", "target?"],
        &["max_conections is not known of it (is it max_connections?)", "no target mysql; it has postgres"],
    );
    assert!(said.text.contains("not covered, for its staging; nearest: run of"), "{}", said.text);
}

/// A made run beside whose targets a query counted rows.
fn with_rows(rows: u64) -> Files {
    let files = soak(300.0);
    files.edit("ticks", |lines| {
        for line in lines.iter_mut() {
            if line.starts_with("tick\t") {
                *line = line.replace("\tnotes", "\tshop.seats\tnotes");
            } else if line.starts_with(|c: char| c.is_ascii_digit()) {
                let (cells, notes) = line.rsplit_once('\t').unwrap();
                *line = format!("{cells}\t{rows}\t{notes}");
            }
        }
        lines.insert(2, "#target\tshop\tquery\t{\"product\":\"PostgreSQL\"}".to_owned());
    });
    files
}

#[test]
fn rows_that_a_query_counted_are_those_of_production_or_nearly() {
    for (rows, covers) in [(20_400_000, true), (2_000_000, false)] {
        let release = Release::new();
        release.made(&with_rows(rows), &QUALIFIED);
        std::fs::write(release.path("production.toml"), "[shop]\nseats = 20_000_000\n").unwrap();
        let said = release.require("profile = \"production.toml\"\n[[run]]\nname = \"soak\"\n");
        if covers {
            said.is_covered();
        } else {
            said.lacks(&["rows"], &["shop.seats is 2,000,000, in production 20,000,000", "production.toml line 2"]);
        }
    }
}

#[test]
fn what_a_line_does_not_carry_is_unknown_and_no_pass() {
    let release = Release::new();
    release.made(&with_rows(5), &QUALIFIED);
    let asked = "[[run]]\nname = \"soak\"\nrate = \"100/s\"\n[production.shop]\nseats = 5\n";
    release.require(asked).is_covered();
    // As a version wrote it that knew neither.
    let runs = std::fs::read_to_string(release.path("runs.tsv")).unwrap();
    let old = runs.replace("held_per_s", "of_later").replace("gauges\\x22:{", "of_later\\x22:{");
    assert_ne!(runs, old);
    std::fs::write(release.path("runs.tsv"), old).unwrap();
    release.require(asked).lacks(&["rate?", "rows?"], &["an older version wrote it", "shop.seats is not known of it"]);
    // Without a driver's log nobody counted what was sent.
    let bare = Release::new();
    let files = soak(300.0);
    let mut correlate = Command::new(env!("CARGO_BIN_EXE_correlate"));
    correlate.arg(files.path("ticks")).args(["--label", "version=1.4.2", "--history"]).arg(bare.path("runs.tsv"));
    assert!(correlate.output().unwrap().status.success());
    bare.require("[[run]]\nverdict = [\"rested\"]\nrate = \"100/s\"").lacks(&["rate?"], &["it had no driver's log"]);
}

#[test]
fn a_typo_in_the_requirements_is_an_error_with_its_line_and_what_is_known() {
    let release = Release::new();
    release.made(&soak(300.0), &QUALIFIED);
    for (text, told) in [
        (
            "[[run]]\nname = \"soak\"\ndurtion = \"4h\"",
            "requirements.toml line 3: unknown field `durtion`, expected one of `name`, `phase`",
        ),
        ("[[runs]]\nname = \"soak\"", "line 1: unknown field `runs`, expected one of `version`, `run`"),
        ("[[run]]\nduration = \"4 ours\"", "line 2: not a duration: \"4 ours\""),
        ("[[run]]\n\nrate = \"20000/min\"", "line 3: expected a rate above 0"),
        ("[[run]]\nverdict = [\"qualifed\"]", "line 2: unknown variant `qualifed`, expected one of `moved`"),
        ("[[run]]\nname = \"a\"\n[[run]]\nname = \"a\"", "line 3: there are two runs named a"),
        ("[[run]]\n[production.db]\nversion = 8.10", "line 3: db.version: expected a version in quotes"),
        ("[[run]]\n[production.db]\nrows = \">= many\"", "line 3: db.rows: expected a number such as >= 512MiB"),
        ("[[run]]\n[production.db]\nrows = [5]", "line 3: db.rows: expected a number, a text"),
        ("[[run]]\nname = soak", "requirements.toml line 2: "),
        ("version = \"1\"", "needs no run"),
        ("profile = \"no.toml\"\n[[run]]", "no.toml: cannot be read"),
    ] {
        let said = release.require(text);
        assert_eq!(said.code, 2, "{text}: {}", said.err);
        assert!(said.err.contains(told), "{text}: {}", said.err);
        assert!(said.text.is_empty() && said.told.is_null(), "{text}: {}", said.text);
    }
    let said = release.require_with("[[run]]", &[]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("names no version under test") && said.err.contains("the runs have 1.4.2"), "{}", said.err);
}

#[test]
fn a_history_that_is_none_is_an_error_and_a_line_that_was_cut_is_not_there() {
    let release = Release::new();
    assert_eq!(release.require("[[run]]").code, 3);
    release.made(&soak(300.0), &QUALIFIED);
    let text = std::fs::read_to_string(release.path("runs.tsv")).unwrap();
    std::fs::write(release.path("runs.tsv"), &text[..text.len() - 100]).unwrap();
    let said = release.require("[[run]]");
    said.lacks(&["run"], &["Lines of it that cannot be read: 1", "no run with version=1.4.2"]);
    assert_eq!(said.told["unreadable"], 1);
    std::fs::write(release.path("runs.tsv"), "a\tb\n1\t2\n").unwrap();
    assert_eq!(release.require("[[run]]").code, 3);
}
