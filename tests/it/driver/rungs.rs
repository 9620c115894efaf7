//! Rungs, summaries, and what is refused.

use super::*;
use whatgives::timeline::Offered;

fn kind(timeline: &Timeline) -> &str {
    timeline.driver.more["kind"].as_str().unwrap()
}

/// The one row of a rung.
#[track_caller]
fn rung(name: &str) -> (Timeline, Interval) {
    let t = read(name);
    assert_eq!(kind(&t), "rung");
    has_caveat(&t, "no_timeline");
    round_trip(&t);
    let rows: Vec<&Interval> = t.all().collect();
    assert_eq!(rows.len(), 1);
    let row = rows[0].clone();
    (t, row)
}

#[test]
fn wrk_and_wrk2_are_rungs() {
    let (t, row) = rung("wrk/wrk_c8.txt");
    assert_eq!(
        (row.ok, row.failed, row.dur_ms, row.p50_ms, row.p99_ms, row.max_ms),
        (Some(3879.0), Some(0.0), 10_020.0, Some(20.48), Some(31.38), Some(41.86))
    );
    has_caveat(&t, "closed_loop");
    // The corrected latencies, not the raw ones that stand below them.
    let (t, row) = rung("wrk2/wrk2_R500.txt");
    assert_eq!(
        (row.ok, row.dur_ms, row.p50_ms, row.p95_ms, row.p99_ms, row.max_ms),
        (Some(5966.0), 15_000.0, Some(2530.0), Some(2924.543), Some(2980.0), Some(3050.0))
    );
    has_not_caveat(&t, "closed_loop");
    let (_, row) = rung("wrk2/wrk2_R200.txt");
    assert_eq!(row.ok, Some(2998.0));
    let text = String::from_utf8(content("wrk/wrk_c8.txt")).unwrap();
    let text = text.replace(
        "Requests/sec:",
        "  Socket errors: connect 0, read 12, write 1, timeout 3\n  Non-2xx or 3xx responses: 79\nRequests/sec:",
    );
    let row = read_text(text).unwrap().intervals[0].clone();
    assert_eq!((row.ok, row.failed), (Some(3800.0), Some(95.0)));
}

#[test]
fn rungs_without_a_start_follow_one_another_and_with_starts_stand_at_them() {
    let paths = ["wrk/wrk_c2.txt", "wrk/wrk_c8.txt", "wrk/wrk_c32.txt"].map(fixture);
    let t = driver::read(&paths, &Options::default()).unwrap();
    let told: Vec<_> = t.all().map(|row| (row.unix_ms, row.ok.unwrap())).collect();
    assert_eq!(told, [(0, 919.0), (10_040, 3879.0), (20_060, 3907.0)]);
    has_caveat(&t, "relative_clock");
    let starts =
        paths.iter().zip([1_795_979_615_000, 1_795_979_626_000, 1_795_979_637_000]).map(|(path, ms)| (path.clone(), ms)).collect();
    let t = driver::read(&paths, &Options { starts, ..Options::default() }).unwrap();
    assert_eq!(t.all().map(|row| row.unix_ms).collect::<Vec<_>>(), [1_795_979_615_000, 1_795_979_626_000, 1_795_979_637_000]);
    has_not_caveat(&t, "relative_clock");
}

#[test]
fn ab_hey_h2load_and_oha_print_rungs() {
    let (_, row) = rung("ab/ab.stdout.txt");
    assert_eq!(
        (row.ok, row.failed, row.dur_ms, row.p50_ms, row.p95_ms, row.p99_ms, row.max_ms),
        (Some(11_202.0), Some(0.0), 30_008.0, Some(84.0), Some(103.0), Some(113.0), Some(134.0))
    );
    let (_, row) = rung("hey/hey_text.txt");
    assert_eq!((row.ok, row.dur_ms), (Some(1936.0), 5058.7));
    near(row.p95_ms, 50.9);
    let (t, row) = rung("h2load/h2load.stdout.txt");
    assert_eq!(
        (row.ok, row.started, row.dur_ms, row.max_ms, row.p95_ms),
        (Some(11_149.0), Some(11_181.0), 30_010.0, Some(143.6), None)
    );
    has_caveat(&t, "mean_only");
    let (t, row) = rung("oha/q300.json");
    assert_eq!((row.ok, row.failed, row.dur_ms), (Some(2394.0), Some(0.0), 8004.0));
    near(row.p95_ms, 29.309_761);
    assert_eq!(t.driver.more["aborted"], 7.0);
    let (_, row) = rung("oha/refused.json");
    assert_eq!((row.ok, row.failed, row.p95_ms, row.max_ms), (Some(0.0), Some(20.0), None, None));
    let text = "\nSummary:\n  Total:\t2.0 secs\n  Slowest:\t0.1 secs\n  Requests/sec:\t6\n\nStatus code distribution:\n  [200]\t7 responses\n  [503]\t3 responses\n\nError distribution:\n  [2]\tGet \"http://x/\": dial tcp: connect: connection refused\n";
    let row = read_text(text).unwrap().intervals[0].clone();
    assert_eq!((row.ok, row.failed), (Some(7.0), Some(5.0)));
}

#[test]
fn autocannon_is_a_rung_with_its_own_clock_and_the_count_of_its_latencies_is_no_count_of_requests() {
    let (t, row) = rung("autocannon/autocannon.json");
    assert_eq!((row.unix_ms, row.dur_ms, row.ok, row.failed), (1_795_979_768_661, 20_350.0, Some(6062.0), Some(0.0)));
    assert_eq!((row.p50_ms, row.p95_ms, row.p99_ms, row.max_ms), (Some(41.0), None, Some(128.0), Some(301.0)));
    has_caveat(&t, "corrected_latency");
    has_not_caveat(&t, "relative_clock");
}

#[test]
fn vegetas_report_fortios_result_and_k6s_summary_are_rungs() {
    let (_, row) = rung("vegeta/report.json");
    assert_eq!((row.unix_ms, row.ok, row.failed), (1_795_980_282_362, Some(11_993.0), Some(0.0)));
    assert!((row.dur_ms - 41_061.597).abs() < 0.01, "{}", row.dur_ms);
    near(row.p95_ms, 1073.065_82);
    let fortio = r#"{"RunType":"HTTP","Labels":"x","StartTime":"2026-11-29T19:24:42.5Z","RequestedQPS":"100","RequestedDuration":"10s","ActualQPS":90.5,"ActualDuration":10000000000,"NumThreads":4,"DurationHistogram":{"Count":905,"Min":0.001,"Max":0.5,"Percentiles":[{"Percentile":50,"Value":0.02},{"Percentile":99,"Value":0.4}]},"RetCodes":{"200":900,"503":5}}"#;
    let t = read_text(fortio).unwrap();
    let row = t.all().next().unwrap();
    assert_eq!((row.unix_ms, row.dur_ms, row.offered, row.started), (1_795_980_282_500, 10_000.0, Some(1000.0), Some(905.0)));
    assert_eq!(
        (row.ok, row.failed, row.p50_ms, row.p99_ms, row.max_ms),
        (Some(900.0), Some(5.0), Some(20.0), Some(400.0), Some(500.0))
    );
    assert_eq!(read_text(fortio.replace("\"100\"", "\"max\"")).unwrap().driver.offered, Offered::Achieved);
    for nested in [false, true] {
        let metric = |text: &str| if nested { format!("{{\"type\":\"x\",\"values\":{{{text}}}}}") } else { format!("{{{text}}}") };
        let text = format!(
            "{{\"metrics\":{{\"http_reqs\":{},\"http_req_failed\":{},\"http_req_duration\":{},\"checks\":{}}}}}",
            metric("\"count\":1000,\"rate\":50.0"),
            metric("\"passes\":20,\"fails\":980,\"value\":0.02"),
            metric("\"avg\":9.0,\"med\":8.0,\"max\":99.0,\"p(90)\":20,\"p(95)\":30.5"),
            metric("\"passes\":7,\"fails\":1")
        );
        let t = read_text(text).unwrap();
        let row = t.all().next().unwrap();
        assert_eq!(
            (row.ok, row.failed, row.dur_ms, row.p95_ms, row.max_ms),
            (Some(980.0), Some(20.0), 20_000.0, Some(30.5), Some(99.0))
        );
        assert_eq!(t.driver.more["checks"]["failed"], 1.0);
    }
}

#[test]
fn pgbench_prints_a_rung_at_its_end() {
    let (_, row) = rung("pgbench/progress_limit.txt");
    assert_eq!((row.ok, row.dropped, row.vus), (Some(11_935.0), Some(29.0), Some(16.0)));
    let (t, _) = rung("pgbench/agg_closed.txt");
    has_caveat(&t, "closed_loop");
    let (t, _) = rung("pgbench/progress_rate.txt");
    has_not_caveat(&t, "closed_loop");
    rung("pgbench/agg.txt");
    rung("pgbench/progress_closed.txt");
}

#[test]
fn siege_logs_a_rung_a_run_stamped_at_its_end_in_local_time() {
    let t = read_with("siege/siege.log", |options| options.zone = Some("UTC".parse().unwrap())).unwrap();
    assert_eq!(kind(&t), "rung");
    let told: Vec<_> = t.all().map(|row| (row.unix_ms, row.dur_ms, row.ok.unwrap(), row.failed.unwrap())).collect();
    assert_eq!(told, [(1_795_979_712_650, 19_350.0, 7085.0, 0.0), (1_795_979_732_130, 4870.0, 1401.0, 0.0)]);
    let text = "\u{1b}[0;32mHTTP/1.1 200\u{1b}[0m     0.03 secs:      12 bytes ==> GET  /x\n\u{1b}[0;31mHTTP/1.1 503\u{1b}[0m     0.01 secs:      12 bytes ==> GET  /x\n";
    let t = read_text(text).unwrap();
    assert_eq!((kind(&t), totals(&t, ALL)), ("summary", (1.0, 1.0, 0.0)));
}

#[test]
fn totals_by_name_are_rungs_or_summaries() {
    let (t, row) = rung("locust/run_stats.csv");
    assert_eq!((row.ok, row.failed, row.p95_ms), (Some(19_026.0), Some(451.0), Some(1200.0)));
    assert!((row.dur_ms - 61_815.8).abs() < 1.0, "{}", row.dur_ms);
    assert_eq!(totals(&t, "seat map"), (16_463.0, 405.0, 0.0));
    let t = read("taurus/final-stats-locust.csv");
    assert_eq!((kind(&t), totals(&t, ALL), totals(&t, "checkout")), ("summary", (4134.0, 2367.0, 0.0), (150.0, 74.0, 0.0)));
    let row = t.all().next().unwrap();
    near(row.p95_ms, 451.0);
    has_caveat(&t, "duration_unknown");
    let t = read("taurus/final-stats.csv");
    assert_eq!(steps(&t), ["/events/{}/seats", "/holds"]);
    round_trip(&t);
}

#[test]
fn what_holds_no_times_is_refused_with_what_to_export_instead() {
    for (name, what, hint) in [
        ("vegeta/results.bin", "vegeta's binary", "vegeta encode"),
        ("oha/refused.csv", "only those that were answered", "json"),
        ("ab/ab.percentiles.csv", "percentiles", "ab -g"),
        ("locust/run_failures.csv", "list of errors", "stats_history.csv"),
        ("locust/run_exceptions.csv", "list of errors", "stats_history.csv"),
        ("locust/api_stats_requests.http", "HTTP answer", "stats_history.csv"),
        ("taurus/final-stats.xml", "final status", "kpi.jtl"),
    ] {
        let why = read_with(name, |_| {}).unwrap_err();
        assert!(why.what.contains(what), "{name}: {why}");
        assert!(why.hint.as_deref().is_some_and(|text| text.contains(hint)), "{name}: {why}");
    }
    for (text, what) in [
        (&b"SQLite format 3\0\x10\0"[..], "SQLite"),
        (b"\x28\xb5\x2f\xfd\x04\0", "zstd"),
        (b"# timestamp userid sessionid requestid event transaction name\n", "matches"),
        (b"<?xml version=\"1.0\"?>\n<!DOCTYPE tsung SYSTEM \"x\">\n<tsung loglevel=\"warning\">", "scenario"),
        (b"<?xml version=\"1.0\"?>\n<jmeterTestPlan version=\"1.2\">", "test plan"),
        (b"duration (ms),status,error\n12.5,OK,\n", "ghz"),
    ] {
        let why = read_text(text).unwrap_err();
        assert!(why.what.contains(what) && why.hint.is_some(), "{why}");
    }
}

#[test]
fn a_summary_beside_a_timeline_is_refused_because_it_would_count_twice() {
    let paths = [fixture("oha/ladder_q100.csv"), fixture("oha/q300.json")];
    let why = driver::read(&paths, &Options::default()).unwrap_err();
    assert!(why.what.contains("given together"), "{why}");
}

#[test]
fn the_format_can_be_named() {
    let t = read_with("h2load/h2load.tsv.gz", |options| options.format = Some("h2load".into())).unwrap();
    assert_eq!(totals(&t, ALL).0, 11_149.0);
    let why = read_with("h2load/h2load.tsv.gz", |options| options.format = Some("k6".into())).unwrap_err();
    assert!(why.what.contains("metric_name"), "{why}");
}
