//! Every log in the tree: what it is. A file that is added must be added here.

use super::*;
use std::process::{Command, Output};

/// What a file is, and how many requests it has: ok, failed.
enum Is {
    Timeline(f64, f64),
    Rung(f64, f64),
    Summary(f64, f64),
    /// Refused, with this in its reason and this in its hint.
    Refused(&'static str, &'static str),
}
use Is::{Refused, Rung, Summary, Timeline as Line};

const FILES: &[(&str, Is)] = &[
    ("ab/ab.gnuplot.tsv.gz", Line(11_202.0, 0.0)),
    ("ab/ab.percentiles.csv", Refused("percentiles without counts", "ab -g")),
    ("ab/ab.stdout.txt", Rung(11_202.0, 0.0)),
    ("artillery/report.json", Line(12_900.0, 0.0)),
    ("autocannon/autocannon.json", Rung(6062.0, 0.0)),
    ("gatling/simulation-3.14.log", Line(588.0, 12.0)),
    ("gatling/simulation-3.5.log", Line(588.0, 12.0)),
    ("goose/report.json.gz", Line(15_594.0, 0.0)),
    ("goose/requests.csv.gz", Line(15_594.0, 0.0)),
    ("goose/requests.json.gz", Line(2242.0, 0.0)),
    ("h2load/h2load.stdout.txt", Rung(11_149.0, 0.0)),
    ("h2load/h2load.tsv.gz", Line(11_149.0, 0.0)),
    ("hey/hey_c32_q20.csv.gz", Line(11_770.0, 0.0)),
    ("hey/hey_text.txt", Rung(1936.0, 0.0)),
    ("jmeter/default213.jtl", Line(541.0, 0.0)),
    ("jmeter/modern_header.trimmed.jtl.gz", Refused("inside the run", "--driver-holes")),
    ("jmeter/stopped_udp.jtl.gz", Line(1465.0, 0.0)),
    ("jmeter/tab_localtime.jtl.gz", Line(1182.0, 0.0)),
    ("jmeter/xml.jtl.gz", Line(1572.0, 0.0)),
    ("k6/synthetic.csv.gz", Line(11_993.0, 0.0)),
    ("k6/synthetic.ndjson.gz", Line(2043.0, 0.0)),
    ("locust/api_stats_requests.http", Refused("HTTP answer", "stats_history.csv")),
    ("locust/ctrlc_stats_history.csv.gz", Line(19_086.0, 311.0)),
    ("locust/run_exceptions.csv", Refused("list of errors", "stats_history.csv")),
    ("locust/run_failures.csv", Refused("list of errors", "stats_history.csv")),
    ("locust/run_stats.csv", Rung(19_026.0, 451.0)),
    ("locust/run_stats_history.csv", Line(19_026.0, 451.0)),
    ("oha/ladder_q100.csv", Line(598.0, 0.0)),
    ("oha/ladder_q450.csv.gz", Line(2338.0, 0.0)),
    ("oha/q300.json", Rung(2394.0, 0.0)),
    ("oha/refused.csv", Refused("only those that were answered", "json")),
    ("oha/refused.json", Rung(0.0, 20.0)),
    ("pgbench/agg.txt", Rung(11_945.0, 0.0)),
    ("pgbench/agg_closed.31494", Line(5940.0, 0.0)),
    ("pgbench/agg_closed.txt", Rung(6239.0, 0.0)),
    ("pgbench/agg_limit.31111", Line(5809.0, 0.0)),
    ("pgbench/agg_limit.31111.1", Line(5925.0, 0.0)),
    ("pgbench/pertx_closed.31357.gz", Line(5743.0, 0.0)),
    ("pgbench/pertx_limit.30650.1.gz", Line(6014.0, 0.0)),
    ("pgbench/pertx_limit.30650.gz", Line(5921.0, 0.0)),
    ("pgbench/progress_closed.stderr.txt", Line(5732.0, 0.0)),
    ("pgbench/progress_closed.txt", Rung(5743.0, 0.0)),
    ("pgbench/progress_limit.stderr.txt", Line(11_923.0, 0.0)),
    ("pgbench/progress_limit.txt", Rung(11_935.0, 0.0)),
    ("pgbench/progress_rate.stderr.txt", Line(11_763.0, 0.0)),
    ("pgbench/progress_rate.txt", Rung(11_773.0, 0.0)),
    ("redis-benchmark/out.csv", Rung(26_426.68, 0.0)),
    ("redis-benchmark/out.txt", Line(200_000.0, 0.0)),
    ("redis-benchmark/out_q.txt", Line(195_503.6, 0.0)),
    ("siege/siege.log", Rung(8486.0, 0.0)),
    ("sysbench/closed.txt", Line(3050.0, 53.0)),
    ("sysbench/rate400.txt", Line(2789.0, 53.0)),
    ("taurus/apiritif.0.csv", Line(19.0, 0.0)),
    ("taurus/final-stats-locust.csv", Summary(4134.0, 2367.0)),
    ("taurus/final-stats.csv", Summary(19.0, 0.0)),
    ("taurus/final-stats.xml", Refused("final status", "kpi.jtl")),
    ("taurus/kpi_locust.jtl.gz", Line(4134.0, 2367.0)),
    ("tsung/tsung.dump.gz", Line(12_782.0, 1610.0)),
    ("tsung/tsung.log", Line(12_782.0, 1610.0)),
    ("vegeta/report.json", Rung(11_993.0, 0.0)),
    ("vegeta/results.bin", Refused("vegeta's binary", "vegeta encode")),
    ("vegeta/results.csv.gz", Line(11_993.0, 0.0)),
    ("vegeta/results.json.gz", Line(11_993.0, 0.0)),
    ("wrk/wrk_c2.txt", Rung(919.0, 0.0)),
    ("wrk/wrk_c32.txt", Rung(3907.0, 0.0)),
    ("wrk/wrk_c8.txt", Rung(3879.0, 0.0)),
    ("wrk2/wrk2_R200.txt", Rung(2998.0, 0.0)),
    ("wrk2/wrk2_R500.txt", Rung(5966.0, 0.0)),
];

#[test]
fn every_log_in_the_tree_is_what_the_table_says() {
    let mut there = Vec::new();
    for tool in std::fs::read_dir(fixture("")).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        for file in std::fs::read_dir(tool).unwrap().map(|entry| entry.unwrap().path()) {
            there.push(file.strip_prefix(fixture("")).unwrap().to_string_lossy().into_owned());
        }
    }
    there.sort();
    assert_eq!(there, FILES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    for (name, is) in FILES {
        let read = read_with(name, |options| options.zone = Some("UTC".parse().unwrap()));
        let (kind, ok, failed) = match (is, &read) {
            (Line(ok, failed), Ok(_)) => ("timeline", ok, failed),
            (Rung(ok, failed), Ok(_)) => ("rung", ok, failed),
            (Summary(ok, failed), Ok(_)) => ("summary", ok, failed),
            (Refused(what, hint), Err(why)) => {
                assert!(why.what.contains(what), "{name}: {why}");
                assert!(why.hint.as_deref().is_some_and(|text| text.contains(hint)), "{name}: {why}");
                continue;
            }
            (_, Ok(timeline)) => panic!("{name} was read as {:?}", timeline.driver),
            (_, Err(why)) => panic!("{why}"),
        };
        let timeline = read.unwrap();
        assert_eq!(timeline.driver.more["kind"], kind, "{name}");
        let (found_ok, found_failed, _) = totals(&timeline, ALL);
        assert!(
            (found_ok - ok).abs() < 1e-6 && (found_failed - failed).abs() < 1e-6,
            "{name}: {found_ok} ok, {found_failed} failed"
        );
        for code in &timeline.driver.caveats {
            assert!(driver::caveat_text(code).is_some(), "{name}: {code} has no text");
        }
        // What the steps have, all have.
        if !steps(&timeline).is_empty() {
            let of_steps: f64 = timeline.intervals.iter().filter(|row| row.step != ALL).filter_map(|row| row.ok).sum();
            let of_all = found_ok + if *name == "tsung/tsung.log" { found_failed } else { 0.0 };
            assert!(
                (of_steps - of_all).abs() < 1e-6 || name.starts_with("locust/"),
                "{name}: {of_steps} of steps, {of_all} of all"
            );
        }
    }
}

fn correlate(arguments: &[&std::ffi::OsStr]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_correlate")).args(arguments).output().unwrap()
}

#[test]
fn the_program_prints_each_in_the_neutral_form_and_reads_it_again_byte_by_byte() {
    let dir = tempfile::tempdir().unwrap();
    let again = dir.path().join("again.timeline.tsv");
    for (name, is) in FILES {
        let file = fixture(name);
        let first =
            correlate(&["--timeline".as_ref(), "--driver-zone".as_ref(), "UTC".as_ref(), "--driver".as_ref(), file.as_os_str()]);
        let said = String::from_utf8_lossy(&first.stderr).into_owned();
        if matches!(is, Refused(..)) {
            assert_eq!(first.status.code(), Some(3), "{name}: {said}");
            assert!(first.stdout.is_empty() && said.contains("hint: "), "{name}: {said}");
            continue;
        }
        assert!(first.status.success(), "{name}: {said}");
        assert!(first.stdout.starts_with(b"#whatgives timeline 1\n#driver\t{"));
        std::fs::write(&again, &first.stdout).unwrap();
        let second = correlate(&["--timeline".as_ref(), "--driver".as_ref(), again.as_os_str()]);
        assert!(second.status.success(), "{name}: {}", String::from_utf8_lossy(&second.stderr));
        assert!(second.stdout == first.stdout, "{name} is not the same when read again");
    }
}
