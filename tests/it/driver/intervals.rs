//! Logs of intervals.

use super::*;
use whatgives::timeline::Offered;

fn kind(timeline: &Timeline) -> &str {
    timeline.driver.more["kind"].as_str().unwrap()
}

#[test]
fn artillerys_first_and_last_intervals_are_as_long_as_they_were() {
    let t = read("artillery/report.json");
    assert_eq!(t.driver.offered, Offered::Scheduled);
    assert_eq!(totals(&t, ALL), (12_900.0, 0.0, 0.0));
    assert_eq!((totals(&t, "seat map").0, totals(&t, "hold").0), (11_188.0, 1712.0));
    let told: Vec<_> = t.all().map(|row| (row.unix_ms, row.dur_ms, row.started.unwrap(), row.ok.unwrap())).collect();
    assert_eq!(told.len(), 10);
    assert_eq!(told[0], (1_795_980_123_332, 6668.0, 340.0, 329.0));
    assert_eq!(told[3], (1_795_980_150_000, 10_000.0, 2028.0, 2024.0));
    assert_eq!(told[9], (1_795_980_210_000, 9881.0, 1965.0, 1988.0));
    let row = at(&t, 1_795_980_150);
    assert_eq!((row.offered, row.in_flight, row.p95_ms), (Some(2029.0), Some(29.0), Some(252.2)));
    has_caveat(&t, "percentiles_coarse");
    round_trip(&t);
}

#[test]
fn artillerys_period_may_be_a_text_and_errors_fail() {
    let text = r#"{"aggregate":{"counters":{}},"intermediate":[{"period":"1795980120000","firstMetricAt":1795980121000,"lastMetricAt":1795980129000,"counters":{"vusers.created":10,"vusers.skipped":2,"http.requests":10,"http.codes.200":6,"http.codes.503":1,"errors.ETIMEDOUT":2},"summaries":{}}]}"#;
    let t = read_text(text).unwrap();
    let row = t.all().next().unwrap();
    assert_eq!((row.unix_ms, row.dur_ms), (1_795_980_121_000, 8000.0));
    assert_eq!(
        (row.ok, row.failed, row.in_flight, row.dropped, row.offered),
        (Some(6.0), Some(3.0), Some(1.0), Some(2.0), Some(12.0))
    );
    assert_eq!(row.p95_ms, None);
}

#[test]
fn pgbench_aggregates_of_two_threads_are_added() {
    let paths = [fixture("pgbench/agg_limit.31111"), fixture("pgbench/agg_limit.31111.1")];
    let t = driver::read(&paths, &Options::default()).unwrap();
    assert_eq!(totals(&t, ALL), (5809.0 + 5925.0, 0.0, 0.0));
    assert_eq!(t.all().count(), 20);
    has_caveat(&t, "mean_only");
    let t = read("pgbench/agg_closed.31494");
    assert_eq!(totals(&t, ALL).0, 5940.0);
    let row = at(&t, 1_795_979_901);
    assert_eq!((row.ok, row.max_ms, row.p95_ms), (Some(640.0), Some(52.776), None));
    has_caveat(&t, "closed_loop");
}

#[test]
fn pgbench_progress_is_placed_by_the_start_or_by_its_own_stamps() {
    let given = |options: &mut Options| options.start_unix_ms = Some(1_795_979_848_295);
    let t = read_with("pgbench/progress_limit.stderr.txt", given).unwrap();
    let first = t.all().next().unwrap();
    assert_eq!((first.unix_ms, first.dur_ms, first.ok, first.dropped), (1_795_979_848_295, 1000.0, Some(376.0), Some(20.0)));
    assert_eq!(first.offered, Some(396.0));
    assert_eq!((t.all().count(), sum(&t, ALL, |row| row.dropped)), (20, 29.0));
    has_caveat(&t, "driver_queue");
    let t = read("pgbench/progress_closed.stderr.txt");
    has_not_caveat(&t, "relative_clock");
    let row = t.all().nth(3).unwrap();
    assert_eq!((row.unix_ms, row.dur_ms, row.ok), (1_795_979_892_905, 1005.0, Some(594.0)));
}

#[test]
fn sysbench_tells_its_backlog_and_so_what_was_offered() {
    let t = read("sysbench/rate400.txt");
    assert_eq!((kind(&t), t.driver.offered), ("timeline", Offered::Scheduled));
    let rows: Vec<&Interval> = t.all().collect();
    assert_eq!(rows.len(), 20);
    // 265.84 done, 4.98 failed, the queue from 372 to 503.
    assert_eq!((rows[1].ok, rows[1].failed, rows[1].offered), (Some(266.0), Some(5.0), Some(402.0)));
    assert_eq!((rows[1].p99_ms, rows[1].p95_ms, rows[1].in_flight), (Some(1352.03), None, Some(8.0)));
    has_caveat(&t, "driver_queue");
    let t = read("sysbench/closed.txt");
    assert_eq!(t.driver.offered, Offered::Achieved);
    let row = t.all().nth(4).unwrap();
    assert_eq!((row.ok, row.failed, row.p95_ms, row.p99_ms), (Some(240.0), Some(5.0), Some(53.85), None));
    has_caveat(&t, "closed_loop");
    round_trip(&t);
}

#[test]
fn sysbench_without_intervals_is_a_rung() {
    let text = String::from_utf8(content("sysbench/closed.txt")).unwrap();
    let text: String = text.lines().filter(|line| !line.starts_with("[ ")).map(|line| line.to_owned() + "\n").collect();
    let t = read_text(text).unwrap();
    let row = t.all().next().unwrap();
    assert_eq!(
        (kind(&t), row.ok, row.failed, row.dur_ms, row.p95_ms, row.max_ms),
        ("rung", Some(3063.0), Some(53.0), 20_072.4, Some(81.48), Some(2100.16))
    );
}

#[test]
fn tsungs_last_block_written_twice_counts_once() {
    let t = read("tsung/tsung.log");
    assert_eq!((totals(&t, ALL), t.all().count()), ((12_782.0, 1610.0, 0.0), 5));
    assert_eq!(sum(&t, ALL, |row| row.offered), 14_392.0);
    let told: Vec<_> = t.all().map(|row| (row.unix_ms / 1000, row.ok.unwrap(), row.failed.unwrap(), row.vus.unwrap())).collect();
    assert_eq!(told[0], (1_795_980_391, 1397.0, 0.0, 4.0));
    assert_eq!(told[3], (1_795_980_421, 3368.0, 745.0, 424.0));
    assert_eq!(totals(&t, "seatmap").0, 7196.0);
    has_caveat(&t, "mean_only");
    round_trip(&t);
}

#[test]
fn tsung_json_is_read_while_it_is_written_and_whole() {
    let text = r#"{
 "stats": [
 {"timestamp": 1795980391,  "samples": []},
 {"timestamp": 1795980401,  "samples": [   {"name": "users", "value": 4, "max": 12}, {"name": "users_count", "value": 700, "total": 700}, {"name": "request", "value": 1400, "mean": 24.3,"stddev": 6.0,"max":  55.8,"min": 12.0 ,"global_mean": 0 ,"global_count": 0}, {"name": "http_200", "value": 1300, "total": 1300}, {"name": "http_503", "value": 90, "total": 90}, {"name": "error_connect_refused", "value": 10, "total": 10}]},
 {"timestamp": 1795980411,  "samples": [   {"name": "users", "value": 3, "max": 12}, {"name": "http_200", "value": 5, "total": 1305}]}"#;
    for tail in ["", "]}\n"] {
        let t = read_text(format!("{text}{tail}")).unwrap();
        assert_eq!(totals(&t, ALL), (1305.0, 100.0, 0.0), "{tail:?}");
        let row = t.all().next().unwrap();
        assert_eq!((row.unix_ms, row.dur_ms, row.offered), (1_795_980_391_000, 10_000.0, Some(1400.0)));
    }
}

#[test]
fn hyperfoils_series_are_added_by_metric() {
    let dir = tempfile::tempdir().unwrap();
    let head = "Start,End,Requests,Responses,Mean,StdDev,Min,p50.0,p90.0,p99.0,p99.9,p99.99,Max,ConnectionErrors,RequestTimeouts,InternalErrors,Invalid,BlockedTime,http.2xx,http.4xx,http.5xx\n";
    let row = |begin: u64, requests: u64, bad: u64| {
        format!(
            "{begin},{},{requests},{},5000000,0,1000000,4000000,8000000,9500000,9500000,9500000,10000000,1,0,0,{bad},0,{},0,{bad}\n",
            begin + 1000,
            requests - 1,
            requests - 1 - bad
        )
    };
    let write = |name: &str, text: String| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let a =
        write("main.seat map.0.series.csv", format!("{head}{}{}", row(1_795_980_282_000, 101, 0), row(1_795_980_283_000, 201, 20)));
    let b = write("main.hold.1.series.csv", format!("{head}{}", row(1_795_980_282_000, 51, 0)));
    let t = driver::read(&[a, b], &Options::default()).unwrap();
    assert_eq!((totals(&t, "seat map"), totals(&t, "hold")), ((280.0, 22.0, 0.0), (50.0, 1.0, 0.0)));
    let first = at(&t, 1_795_980_282);
    assert_eq!((first.started, first.p50_ms, first.p99_ms, first.max_ms), (Some(152.0), Some(4.0), Some(9.5), Some(10.0)));
    let json = r#"{"info":{},"stats":[{"name":"main","phase":"main","metric":"buy","series":[{"startTime":1795980282000,"endTime":1795980283000,"requestCount":10,"responseCount":9,"invalid":1,"connectionErrors":1,"requestTimeouts":0,"internalErrors":0,"blockedTime":900000000,"maxResponseTime":9000000,"percentileResponseTime":{"50.0":4000000,"99.0":8000000},"extensions":{"http":{"status_2xx":8,"status_5xx":1}}}]}]}"#;
    let t = read_text(json).unwrap();
    assert_eq!(totals(&t, "buy"), (8.0, 2.0, 0.0));
    has_caveat(&t, "driver_queue");
}

#[test]
fn redis_benchmark_progress_ends_in_carriage_returns_and_nan_is_no_number() {
    let t = read("redis-benchmark/out.txt");
    assert_eq!((kind(&t), totals(&t, ALL).0.round(), steps(&t)), ("timeline", 200_000.0, vec!["SET".to_owned()]));
    // 14.30 seconds and 56 lines after the first.
    assert_eq!(t.all().count(), 56);
    assert!((t.all().next().unwrap().dur_ms - 255.36).abs() < 0.01);
    has_caveat(&t, "relative_clock");
    let t = read("redis-benchmark/out_q.txt");
    assert_eq!((t.all().count(), t.all().next().unwrap().dur_ms), (62, 250.0));
    assert_eq!(t.all().next().unwrap().ok, Some(2964.0));
    let t = read("redis-benchmark/out.csv");
    assert_eq!((kind(&t), steps(&t)), ("rung", vec!["GET".to_owned(), "SET".to_owned()]));
    let set = t.intervals.iter().find(|row| row.step == "SET").unwrap();
    assert_eq!((set.ok, set.p95_ms, set.max_ms), (Some(14_082.52), Some(3.455), Some(16.071)));
    has_caveat(&t, "duration_unknown");
}

#[test]
fn memtiers_series_begin_at_its_start_and_empty_seconds_have_no_latency() {
    let second = |count: u64| {
        if count == 0 {
            "{\"Count\":0}".to_owned()
        } else {
            format!(
                "{{\"Count\":{count},\"Average Latency\":1.2,\"Min Latency\":0.5,\"Max Latency\":9.5,\"p50.00\":1.1,\"p99.00\":7.0,\"p99.90\":9.0}}"
            )
        }
    };
    let series = |counts: &[u64]| {
        counts.iter().enumerate().map(|(n, count)| format!("\"{n}\":{}", second(*count))).collect::<Vec<_>>().join(",")
    };
    let text = format!(
        "{{\"configuration\":{{\"server\":\"x\",\"rate_limit\":0}},\"run information\":{{\"Threads\":4}},\"ALL STATS\":{{\"Runtime\":{{\"Start time\":1795980282500,\"Finish time\":1795980285500}},\"Sets\":{{\"Count\":30,\"Time-Serie\":{{{}}}}},\"Gets\":{{\"Count\":300,\"Time-Serie\":{{{}}}}},\"Totals\":{{\"Count\":330}}}}}}",
        series(&[10, 0, 20]),
        series(&[100, 150, 50])
    );
    let t = read_text(text).unwrap();
    assert_eq!((totals(&t, "Sets").0, totals(&t, "Gets").0, totals(&t, ALL).0), (30.0, 300.0, 330.0));
    let rows: Vec<_> = t.intervals.iter().filter(|row| row.step == "Sets").map(|row| (row.unix_ms, row.p50_ms)).collect();
    assert_eq!(rows, [(1_795_980_282_500, Some(1.1)), (1_795_980_283_500, None), (1_795_980_284_500, Some(1.1))]);
}
