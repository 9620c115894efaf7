//! Every kind of gate on recorded stories, once where it holds and once where it breaks. What must come out (the worst value,
//! since when, at which rate, for how long) is worked out from the story's files in another way than the program's.

mod cases;

use crate::support::raw::{Seen, Story, Window};
use cases::{CASES, Case, Found};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;
use whatgives::judge::gate::fits;

/// The results of gates on a story, and the exit code.
fn judged(story: &Story, log: &Path, args: &[&str], gates: &[String]) -> (i32, Vec<Value>) {
    let mut correlate = Command::new(env!("CARGO_BIN_EXE_correlate"));
    correlate.arg(story.folder.join("ticks.tsv.gz")).arg("--driver").arg(log).args(args).arg("--json");
    let said = correlate.args(gates.iter().flat_map(|gate| ["--gate", gate])).output().expect("correlate runs");
    let verdict: Value = serde_json::from_slice(&said.stdout).unwrap_or_else(|why| panic!("{why}: {said:?}"));
    let results = verdict["gates"].as_array().expect("gates").clone();
    assert_eq!(results.len(), gates.len());
    (said.status.code().expect("a code"), results)
}

/// The number of what must hold, in the measure's own unit.
fn limit(test: &str) -> f64 {
    let word = test.trim_start_matches(['<', '>', '=', ' ']);
    let number: f64 = word.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or_else(|why| panic!("{why}: {word}"));
    if word.ends_with('%') { number / 100.0 } else { number }
}

fn holds(test: &str, value: f64) -> bool {
    match test.split(' ').next() {
        Some("<") => value < limit(test),
        Some("<=") => value <= limit(test),
        _ => value >= limit(test),
    }
}

/// Compares what was told of a gate with what the story's files say.
fn compare(case: &Case, test: &str, story: &Story, told: &Value) {
    let number = |key: &str| told[key].as_f64();
    let onset = told["onset"]["unix_ms"].as_f64();
    let within = |range: Seen, value: Option<f64>| value.is_some_and(|value| (range.0..=range.1).contains(&value));
    let breaks = test == case.breaks;
    assert_eq!((&told["code"], &told["passed"]), (&case.kind.into(), &Value::Bool(!breaks)), "{told:#}");
    // A histogram knows a latency within 0.4 %; all others are printed with four decimals.
    let near = |wanted: f64| {
        let off = if case.kind == "gate_latency" { 0.005 } else { 1e-3 };
        let value = number("value").unwrap_or(f64::NAN);
        assert!((value - wanted).abs() <= (off * wanted.abs()).max(1e-4), "{wanted} in the story's files: {told:#}");
    };
    match (case.found)(story) {
        Found::Over(seen) => {
            let worst = if test.starts_with('<') { f64::max } else { f64::min };
            near(seen.iter().map(|(_, value)| *value).reduce(worst).expect("values"));
            let for_s = case.gate.split_once(" for ").map_or(0.0, |(_, text)| text.trim_end_matches('s').parse().expect("seconds"));
            let stretches = seen.chunk_by(|a, b| holds(test, a.1) == holds(test, b.1)).filter(|chunk| !holds(test, chunk[0].1));
            let broken: Vec<Seen> = stretches
                .map(|chunk| (chunk[0].0, chunk[chunk.len() - 1].0))
                .filter(|(since, until)| until - since >= 1e3 * for_s - 1.0)
                .collect();
            assert_eq!(broken.is_empty(), !breaks, "{broken:?}: {told:#}");
            let Some((since, _)) = broken.first().copied() else { return assert!(told["onset"].is_null(), "{told:#}") };
            assert!(within((since - 2.0, since + 2.0), onset), "broken since {since}: {told:#}");
            let longest = broken.iter().map(|(since, until)| (until - since) / 1e3).fold(0.0, f64::max);
            assert!(within((longest - 0.06, longest + 0.06), number("lasted_s")), "broken for {longest} s: {told:#}");
            // Visitors come at random, and near a jump of the load a second more or less is another rate.
            let due = [-1e3, 0.0, 1e3].map(|off| story.due_around(since + off));
            let range = (0.8 * due.iter().copied().fold(f64::INFINITY, f64::min), 1.2 * due.iter().copied().fold(0.0, f64::max));
            assert!(within(range, number("rate_per_s")), "{due:?} were due a second: {told:#}");
        }
        Found::Whole(value) => {
            near(value);
            assert!(told["onset"].is_null() && told["lasted_s"].is_null(), "a value of the whole run has no moment: {told:#}");
        }
        Found::About { least, most, since } => {
            assert!(within((least, most), number("value")), "between {least} and {most}: {told:#}");
            match since.filter(|_| breaks) {
                Some(range) => assert!(within(range, onset), "broken between {range:?}: {told:#}"),
                None => assert!(told["onset"].is_null(), "{told:#}"),
            }
        }
        Found::Name { since } => {
            let pattern = test.rsplit(' ').next().unwrap_or_default();
            assert!(told["value"].as_str().is_some_and(|name| fits(pattern, name)), "{told:#}");
            assert!(!breaks || within(since, onset), "broken between {since:?}: {told:#}");
        }
    }
}

/// All kinds of one story, judged together: those that hold, and those that break.
fn is_judged_as_its_files_say(name: &str) {
    let story = Story::read(name);
    let cases: Vec<&Case> = CASES.iter().filter(|case| case.story == name).collect();
    assert!(!cases.is_empty() && cases.iter().all(|case| case.with == cases[0].with), "one run is judged once");
    for test in [|case: &Case| case.holds, |case: &Case| case.breaks] {
        let tested: Vec<&&Case> = cases.iter().filter(|case| !test(case).is_empty()).collect();
        let gates: Vec<String> = tested.iter().map(|case| case.gate.replace("{}", test(case))).collect();
        let (code, results) = judged(&story, &story.folder.join("requests.tsv.gz"), cases[0].with, &gates);
        for (case, told) in tested.into_iter().zip(&results) {
            compare(case, test(case), &story, told);
        }
        // Of a driver that fell behind nothing is certain.
        let unbroken = if name == "driver-bottleneck" { 4 } else { 0 };
        let broken = results.iter().any(|told| told["passed"] == false);
        assert_eq!(code, if broken { 1 } else { unbroken }, "{gates:?}");
    }
}

macro_rules! stories {
    ($($test:ident $name:literal,)*) => {
        $(#[test]
        fn $test() {
            is_judged_as_its_files_say($name);
        })*

        #[test]
        fn every_kind_of_the_grammar_is_judged_on_a_story() {
            let judged = BTreeSet::from([$($name),*]);
            assert_eq!(judged, CASES.iter().map(|case| case.story).collect(), "a story of the table has no test");
            // The codes stand in the grammar's source, and nowhere else in it.
            let source = include_str!("../../../src/judge/gate.rs");
            let codes = source.split('"').filter(|word| word.starts_with("gate_"));
            let kinds: BTreeSet<&str> = CASES.iter().map(|case| case.kind).chain(["gate_dropped"]).collect();
            assert_eq!(kinds, codes.collect());
        }
    };
}

stories! {
    gates_on_columns_and_refusals_are_told_as_the_files_of_full_connections_say "mysql-max-connections",
    gates_on_a_pool_its_latency_and_its_knee_are_told_as_the_files_say "app-pool",
    gates_on_failures_and_goodput_are_told_as_the_files_of_a_storm_say "spike-no-recovery",
    gates_on_steps_are_told_as_the_files_of_an_on_sale_say "on-sale-pool",
    gates_on_what_was_sent_are_told_as_the_files_of_a_slow_driver_say "driver-bottleneck",
    a_gate_on_recovery_is_told_as_the_files_of_a_spike_say "spike-recovers",
    a_gate_on_growth_is_told_as_the_files_of_a_leak_say "leak",
}

/// A driver that gives up what it cannot send within a second, as pgbench does with a limit: the log of the slow driver, told
/// by that rule.
#[test]
fn a_gate_on_what_was_dropped_is_told_as_the_files_of_a_slow_driver_say() {
    let mut story = Story::read("driver-bottleneck");
    let mut log = "#whatgives requests 1\nstart_us\tstep\tms\twall_ms\toutcome\tcode\tsched_us\n".to_owned();
    // Writing to a string cannot fail.
    for sent in &mut story.requests {
        if sent.start_us - sent.due_us > 1_000_000 {
            (sent.start_us, sent.end_us, sent.outcome) = (sent.due_us, sent.due_us, "dropped".to_owned());
            let _ = writeln!(log, "\t{}\t\t\tdropped\t\t{}", sent.step, sent.due_us);
        } else {
            let _ = writeln!(log, "{}\t{}\t{}\t\tok\t\t{}", sent.start_us, sent.step, sent.ms(), sent.due_us);
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("requests.tsv");
    std::fs::write(&path, log).expect("written");
    for (gate, holds, breaks, found) in [
        ("dropped {}", "<= 90%", "<= 5%", (|story| Found::Whole(dropped(&story.whole()))) as fn(&Story) -> Found),
        ("dropped {} over 5s for 2s", "<= 100%", "<= 5%", |story| Found::Over(story.windows(5, dropped))),
    ] {
        let case = Case { kind: "gate_dropped", story: "driver-bottleneck", with: &[], gate, holds, breaks, found };
        for test in [holds, breaks] {
            let (_, told) = judged(&story, &path, &[], &[gate.replace("{}", test)]);
            compare(&case, test, &story, &told[0]);
        }
    }
}

fn dropped(window: &Window) -> f64 {
    window.count(|sent| sent.outcome == "dropped") / window.started
}

#[test]
fn a_gate_on_recovery_is_broken_by_a_storm_that_never_ends() {
    let story = Story::read("spike-no-recovery");
    let log = story.folder.join("requests.tsv.gz");
    let (code, told) = judged(&story, &log, &[], &["recovery <= 60s".to_owned()]);
    assert_eq!((code, &told[0]["passed"], &told[0]["value"]), (1, &false.into(), &"not recovered".into()), "{:#}", told[0]);
}

/// The story's ticks as if nothing had been read of these columns.
fn unread(story: &Story, columns: &[&str], to: &Path) {
    let mut text = String::new();
    let file = std::fs::File::open(story.folder.join("ticks.tsv.gz")).expect("the ticks");
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("text");
    let mut blank = Vec::new();
    let mut lines = String::new();
    for line in text.lines() {
        let mut cells: Vec<&str> = line.split('\t').collect();
        if cells[0] == "tick" {
            blank = columns.iter().filter_map(|column| cells.iter().position(|cell| cell == column)).collect();
            assert_eq!(blank.len(), columns.len(), "no such columns");
        } else if !line.starts_with('#') {
            for at in &blank {
                cells[*at] = "";
            }
        }
        lines += &(cells.join("\t") + "\n");
    }
    std::fs::create_dir(to).expect("a folder");
    std::fs::write(to.join("ticks.tsv"), lines).expect("written");
}

#[test]
fn of_a_story_no_gate_passes_on_what_is_not_there_or_was_never_read() {
    let (pool, leak) = (Story::read("app-pool"), Story::read("leak"));
    let folder = tempfile::tempdir().expect("a folder");
    let [blank, no_leak] = ["pool", "leak"].map(|name| folder.path().join(name));
    unread(&pool, &["app.pool_acquire_waiting", "app.pool_connections_max", "app.pool_acquire_wait_seconds_total"], &blank);
    unread(&leak, &["app.session_memory_bytes"], &no_leak);
    let log = pool.folder.join("requests.tsv.gz");
    let recorded = pool.folder.join("ticks.tsv.gz");
    for (ticks, log, gate, told) in [
        (
            &recorded,
            Some(&log),
            "app.pool_aquire_waiting <= 99",
            "no column app.pool_aquire_waiting\nhint: is it app.pool_acquire_waiting?",
        ),
        (&recorded, Some(&log), "app.pool_acquire_waiting / capacity <= 99", "no capacity is known of app.pool_acquire_waiting"),
        (&recorded, Some(&log), "app.pool_acquire_waiting / app.pool_max <= 99", "no column app.pool_max"),
        (&recorded, Some(&log), "growth(app.pool_waiting) <= 99/min", "no column app.pool_waiting"),
        (&recorded, Some(&log), "growth(app.pool_acquire_waiting) <= 99/min", "no stretch of held load"),
        (&recorded, Some(&log), "first not in pool.*", "nothing called pool.* was read"),
        (&recorded, Some(&log), "max(pay) < 99s", "no step \"pay\"\nhint: it has book"),
        (&recorded, Some(&log), "failed(pay) <= 99%", "no step \"pay\""),
        (&recorded, Some(&log), "refused(pay) <= 99%", "no step \"pay\""),
        (&recorded, Some(&log), "goodput(pay) >= 0/s", "no step \"pay\""),
        (&recorded, Some(&log), "completed(pay) >= 0/s", "no step \"pay\""),
        (&recorded, Some(&log), "share(book, pay) >= 1%", "no step \"pay\""),
        (&recorded, Some(&log), "count(pay) <= 99", "no step \"pay\""),
        (&recorded, Some(&log), "recovery <= 99s", "no spike to recover from"),
        (&recorded, Some(&log), "p95 < 99s during spike", "no phase \"spike\"; it has "),
        (&recorded, None, "p95 < 99s", "no driver's log"),
        (&recorded, None, "dropped <= 99%", "no driver's log"),
        (&recorded, None, "reached >= 1%", "no driver's log"),
        (&blank.join("ticks.tsv"), Some(&log), "app.pool_acquire_waiting <= 99", "was never read"),
        (&blank.join("ticks.tsv"), Some(&log), "app.pool_connections_in_use / capacity <= 99", "was never read"),
        (&blank.join("ticks.tsv"), Some(&log), "app.pool_acquire_wait_seconds_total <= 99", "was never read"),
        (&blank.join("ticks.tsv"), Some(&log), "first not in app.pool_acquire_wa*", "nothing called app.pool_acquire_wa* was read"),
        (&no_leak.join("ticks.tsv"), None, "growth(app.session_memory_bytes) <= 99GB/min", "was never read"),
    ] {
        let mut correlate = Command::new(env!("CARGO_BIN_EXE_correlate"));
        correlate.arg(ticks).args(log.map(|log| ["--driver".into(), log.clone().into_os_string()]).into_iter().flatten());
        let said = correlate.args(["--gate", gate, "--json"]).output().expect("correlate runs");
        let err = String::from_utf8_lossy(&said.stderr);
        assert_eq!((said.status.code(), said.stdout.as_slice()), (Some(2), &b""[..]), "{gate}: {err}");
        assert!(err.contains(told), "{gate}: {err}");
    }
}
