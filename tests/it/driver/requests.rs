//! Logs of single requests: counts by second exactly, percentiles within the histogram's error.

use super::*;
use whatgives::timeline::Offered;

/// Second of the run, (started, ok, failed, in flight), p50, p95, longest.
pub type Second = (i64, (f64, f64, f64, f64), f64, Option<f64>, f64);

#[track_caller]
pub fn seconds(timeline: &Timeline, begin: i64, want: &[Second]) {
    for (second, expected, p50, p95, longest) in want {
        assert_eq!(counts(timeline, begin + second), *expected, "second {second}");
        let row = at(timeline, begin + second);
        near(row.p50_ms, *p50);
        match p95 {
            Some(p95) => near(row.p95_ms, *p95),
            None => assert_eq!(row.p95_ms, None, "second {second}"),
        }
        let found = row.max_ms.unwrap();
        assert!((found - longest).abs() < 1e-6, "{found} is not {longest}");
    }
    round_trip(timeline);
}

#[test]
fn vegeta_csv_and_json_give_the_same_seconds_and_say_when_the_workers_ran_out() {
    for name in ["vegeta/results.csv.gz", "vegeta/results.json.gz"] {
        let t = read(name);
        assert_eq!(totals(&t, ALL), (11_993.0, 0.0, 0.0));
        assert_eq!(totals(&t, "GET /events/{}/seats").0, 5997.0);
        assert_eq!(totals(&t, "POST /holds").0, 5996.0);
        seconds(
            &t,
            1_795_980_282,
            &[
                (0, (34.0, 33.0, 0.0, 1.0), 23.849_158, Some(32.342_209), 37.016_989),
                (5, (127.0, 127.0, 0.0, 3.0), 22.600_695, Some(30.612_525), 32.112_639),
                (21, (367.0, 367.0, 0.0, 8.0), 21.590_812, Some(28.234_915), 32.557_373),
                (40, (143.0, 387.0, 0.0, 156.0), 1_030.364_62, Some(1_042.941_191), 1_049.834_402),
            ],
        );
        let first = t.all().next().unwrap();
        assert_eq!(first.unix_ms, 1_795_980_282_362);
        has_caveat(&t, "workers_exhausted");
        assert_eq!(t.driver.more["workers_exhausted"]["in_flight"], 400.0);
        assert_eq!(t.driver.more["workers_exhausted"]["unix_ms"], 1_795_980_311_000_i64);
        has_not_caveat(&t, "closed_loop");
    }
}

#[test]
fn k6_json_has_the_requests_to_the_microsecond() {
    let t = read("k6/synthetic.ndjson.gz");
    assert_eq!(totals(&t, ALL), (2043.0, 0.0, 0.0));
    assert_eq!(totals(&t, "hold, \"A-12\"").0, 1021.0);
    seconds(
        &t,
        1_795_980_282,
        &[
            (0, (34.0, 33.0, 0.0, 1.0), 23.849_158, Some(32.342_209), 37.016_989),
            (7, (158.0, 157.0, 0.0, 4.0), 22.794_65, Some(30.665_955), 44.232_103),
            (12, (232.0, 230.0, 0.0, 6.0), 20.537_966, Some(28.284_237), 37.039_381),
        ],
    );
    assert_eq!(t.driver.driver, "k6");
    has_not_caveat(&t, "second_stamps");
}

#[test]
fn k6_json_takes_keys_in_any_order_and_escapes() {
    let text = r#"{"type":"Metric","data":{"name":"http_req_duration","type":"trend"},"metric":"http_req_duration"}
{"type":"Point","data":{"time":"2026-11-29T16:24:42.5-03:00","value":12.5,"tags":{"name":"caf\u00e9 \"x\"","status":"200","expected_response":"true"}},"metric":"http_req_duration"}
{"metric":"http_req_duration","data":{"tags":{"status":"503","expected_response":"false","name":"b"},"value":3,"time":"2026-11-29T19:24:42.6Z"},"type":"Point"}
{"metric":"http_req_duration","type":"Point","data":{"time":"2026-11-29T19:24:42.7Z","value":3,"tags":null,"metadata":{"name":"m","status":"200"}}}
"#;
    let t = read_text(text).unwrap();
    assert_eq!(steps(&t), ["b", "café \"x\"", "m"]);
    assert_eq!(totals(&t, ALL), (2.0, 1.0, 0.0));
}

#[test]
fn oha_seconds_are_those_of_the_start_that_was_given_and_failures_are_said_to_be_missing() {
    let begin = 1_795_980_323;
    let given = |options: &mut Options| options.start_unix_ms = Some(begin * 1000);
    let t = read_with("oha/ladder_q100.csv", given).unwrap();
    assert_eq!(totals(&t, ALL), (598.0, 0.0, 0.0));
    seconds(
        &t,
        begin,
        &[
            (0, (100.0, 98.0, 0.0, 2.0), 22.864_281, Some(36.405_872), 44.582_61),
            (3, (100.0, 99.0, 0.0, 3.0), 22.476_734, Some(30.334_223), 38.894_791),
            (5, (98.0, 100.0, 0.0, 0.0), 22.711_113, Some(30.004_224), 32.324_877),
        ],
    );
    has_caveat(&t, "failures_missing");
    has_not_caveat(&t, "relative_clock");
    assert_eq!(steps(&t), [""; 0]);
    let t = read("oha/ladder_q450.csv.gz");
    has_caveat(&t, "relative_clock");
    seconds(
        &t,
        0,
        &[
            (1, (389.0, 349.0, 0.0, 104.0), 201.400_519, Some(258.573_678), 269.686_074),
            (5, (328.0, 353.0, 0.0, 223.0), 671.619_785, Some(724.666_152), 735.706_693),
        ],
    );
}

#[test]
fn rungs_of_one_ladder_are_laid_at_their_own_starts() {
    let paths = [fixture("oha/ladder_q100.csv"), fixture("oha/ladder_q450.csv.gz")];
    let starts = vec![(paths[0].clone(), 1_795_980_300_000), (paths[1].clone(), 1_795_980_400_000)];
    let options = Options { starts, allow_holes: true, ..Options::default() };
    let t = driver::read(&paths, &options).unwrap();
    assert_eq!(totals(&t, ALL).0, 598.0 + 2338.0);
    assert_eq!(counts(&t, 1_795_980_401), (389.0, 349.0, 0.0, 104.0));
    has_not_caveat(&t, "begun_together");
    // Without starts they are taken as workers of one run, and that is said.
    let t = driver::read(&paths, &Options::default()).unwrap();
    has_caveat(&t, "begun_together");
    assert_eq!(counts(&t, 1).0, 489.0);
}

#[test]
fn hey_has_answered_requests_only() {
    let t = read("hey/hey_c32_q20.csv.gz");
    assert_eq!(totals(&t, ALL), (11_770.0, 0.0, 0.0));
    seconds(
        &t,
        0,
        &[
            (1, (399.0, 399.0, 0.0, 32.0), 80.1, Some(92.4), 104.4),
            (15, (407.0, 407.0, 0.0, 32.0), 78.8, Some(89.8), 93.4),
            (30, (1.0, 33.0, 0.0, 0.0), 78.4, Some(89.8), 90.1),
        ],
    );
    for code in ["failures_missing", "closed_loop", "relative_clock"] {
        has_caveat(&t, code);
    }
    has_not_caveat(&t, "workers_exhausted");
}

#[test]
fn h2load_stamps_are_starts_in_microseconds_and_minus_one_is_a_failed_stream() {
    let t = read("h2load/h2load.tsv.gz");
    assert_eq!(totals(&t, ALL), (11_149.0, 0.0, 0.0));
    seconds(
        &t,
        1_795_979_737,
        &[
            (0, (309.0, 277.0, 0.0, 32.0), 85.845, Some(99.62), 120.615),
            (29, (313.0, 313.0, 0.0, 32.0), 100.062, Some(128.212), 143.595),
        ],
    );
    let text = "1795979737217267\t200\t46062\n1795979737217268\t-1\t5\textra\n1795979737217269\t503\t7\n1795979737217270\t20";
    let t = read_text(text).unwrap();
    assert_eq!(totals(&t, ALL), (1.0, 2.0, 0.0));
    has_caveat(&t, "cut_log");
}

#[test]
fn ab_tells_whole_seconds_and_no_status() {
    let t = read("ab/ab.gnuplot.tsv.gz");
    assert_eq!(totals(&t, ALL), (11_202.0, 0.0, 0.0));
    let row = at(&t, 1_795_979_650);
    assert_eq!((row.started, row.dur_ms, row.max_ms), (Some(371.0), 1000.0, Some(127.0)));
    near(row.p95_ms, 110.0);
    has_caveat(&t, "second_stamps");
    has_caveat(&t, "outcomes_unknown");
    round_trip(&t);
}

#[test]
fn goose_csv_and_json_are_read_and_its_report_gives_the_seconds_of_the_start() {
    let t = read("goose/requests.csv.gz");
    assert_eq!(totals(&t, ALL), (15_594.0, 0.0, 0.0));
    assert_eq!(totals(&t, "seat map").0, 14_016.0);
    seconds(
        &t,
        0,
        &[
            (0, (125.0, 122.0, 0.0, 3.0), 20.082, Some(27.383), 28.271),
            (20, (396.0, 396.0, 0.0, 60.0), 151.576, Some(161.953), 171.963),
            (40, (24.0, 84.0, 0.0, 0.0), 146.733, Some(159.452), 162.661),
        ],
    );
    let t = read("goose/requests.json.gz");
    assert_eq!(totals(&t, "hold, \"A-12\"").0, 228.0);
    seconds(
        &t,
        0,
        &[(2, (401.0, 399.0, 0.0, 10.0), 25.327, Some(34.064), 43.414), (6, (6.0, 16.0, 0.0, 0.0), 23.419, None, 35.823)],
    );
    let t = read("goose/report.json.gz");
    assert_eq!(t.driver.driver, "goose 0.19.0");
    assert_eq!((totals(&t, "seat map").0, totals(&t, "hold, \"A-12\"").0), (14_016.0, 1578.0));
    let row = at(&t, 1_795_981_254);
    assert_eq!((row.started, row.vus, row.p95_ms), (Some(125.0), Some(4.0), None));
    has_caveat(&t, "mean_only");
    round_trip(&t);
}

#[test]
fn goose_rows_made_up_for_coordinated_omission_are_dropped_and_a_row_said_again_replaces_the_first() {
    let head = "elapsed,scenario_index,name,final_url,response_time,status_code,success,update,user,error,coordinated_omission_elapsed,response_time_us\n";
    let text = format!(
        "{head}0,0,see,u,20,200,true,false,1,,0,20100\n30,0,see,u,20,200,true,false,1,,0,20200\n30,0,see,u,20,200,false,true,1,wrong body,0,20200\n40,0,see,u,900,200,true,false,2,,900,900000\n60,0,see,u,20,0,false,false,1,no route,0,20\n"
    );
    let t = read_text(text).unwrap();
    assert_eq!(totals(&t, "see"), (1.0, 2.0, 0.0));
    assert_eq!(t.driver.more["synthetic_rows"], 1);
    has_caveat(&t, "synthetic_rows");
    has_not_caveat(&t, "assertion_free");
}

#[test]
fn tsung_dump_rows_end_at_their_stamp() {
    let t = read("tsung/tsung.dump.gz");
    assert_eq!(totals(&t, ALL), (12_782.0, 1610.0, 0.0));
    assert_eq!((totals(&t, "seatmap"), totals(&t, "hold")), ((6527.0, 669.0, 0.0), (6255.0, 941.0, 0.0)));
    seconds(
        &t,
        1_795_980_392,
        &[
            (0, (79.0, 76.0, 0.0, 3.0), 24.457, Some(34.108), 44.476),
            (23, (406.0, 357.0, 0.0, 135.0), 254.686, Some(355.742), 376.083),
            (46, (0.0, 9.0, 0.0, 0.0), 564.964, None, 583.248),
        ],
    );
}

#[test]
fn pgbench_transactions_end_at_their_stamp() {
    let t = read("pgbench/pertx_closed.31357.gz");
    assert_eq!(totals(&t, "script 0"), (5743.0, 0.0, 0.0));
    seconds(
        &t,
        1_795_979_890,
        &[
            (0, (582.0, 576.0, 0.0, 6.0), 11.06, Some(27.642), 40.628),
            (5, (470.0, 472.0, 0.0, 6.0), 12.557, Some(37.308), 63.941),
            (9, (703.0, 711.0, 0.0, 0.0), 7.656, Some(22.731), 72.977),
        ],
    );
    // Seven cells, the last all zero: retries, not a lag.
    has_caveat(&t, "closed_loop");
}

#[test]
fn pgbench_threads_are_added_and_their_schedule_is_what_was_offered() {
    let paths = [fixture("pgbench/pertx_limit.30650.gz"), fixture("pgbench/pertx_limit.30650.1.gz")];
    let t = driver::read(&paths, &Options::default()).unwrap();
    assert_eq!(t.driver.offered, Offered::Scheduled);
    assert_eq!(totals(&t, ALL), (11_935.0, 0.0, 0.0));
    assert_eq!((sum(&t, ALL, |row| row.offered), sum(&t, ALL, |row| row.dropped)), (11_964.0, 29.0));
    seconds(
        &t,
        1_795_979_849,
        &[
            (1, (642.0, 644.0, 0.0, 11.0), 12.421, Some(43.851), 186.832),
            (10, (600.0, 607.0, 0.0, 9.0), 11.936, Some(33.127), 72.977),
            (20, (0.0, 1.0, 0.0, 0.0), 83.393, None, 83.393),
        ],
    );
    let offered: Vec<_> = (0..4).map(|second| at(&t, 1_795_979_849 + second).offered.unwrap()).collect();
    assert_eq!(offered, [528.0, 595.0, 601.0, 577.0]);
    assert_eq!(at(&t, 1_795_979_849).dropped, Some(29.0));
    has_caveat(&t, "driver_queue");
    has_not_caveat(&t, "closed_loop");
}

#[test]
fn pgbench_words_in_place_of_a_time_are_failures() {
    let text = "0 1 39103 0 1795979849 192682\n0 2 serialization 0 1795979849 92716\n1 1 failed 1 1795979849 192721\n1 2 deadlock 1 1795979849 7\n";
    let t = read_text(text).unwrap();
    assert_eq!((totals(&t, "script 0"), totals(&t, "script 1")), ((1.0, 1.0, 0.0), (0.0, 2.0, 0.0)));
    // .92716 is 092716 microseconds, not 927160.
    assert_eq!(t.all().next().unwrap().unix_ms, 1_795_979_849_000);
}
