use super::*;
use whatgives::timeline::Offered;

#[test]
fn the_neutral_form_comes_back_exactly() {
    let timeline = read("locust/run_stats_history.csv");
    let mut bytes = Vec::new();
    timeline.write(&mut bytes).unwrap();
    assert_eq!(read_text(&bytes).unwrap(), timeline);
}

#[test]
fn a_neutral_form_with_rows_missing_is_a_hole_too() {
    let row = |second: i64| format!("{}\t1000\t*\t10\n", 1_795_980_282_000 + second * 1000);
    let text = |seconds: &[i64]| {
        format!(
            "#whatgives timeline 1\n#driver\t{{}}\nunix_ms\tdur_ms\tstep\tok\n{}",
            seconds.iter().map(|s| row(*s)).collect::<String>()
        )
    };
    assert!(read_text(text(&[0, 1, 2, 5, 6])).is_ok());
    let why = read_text(text(&[0, 1, 2, 6, 7])).unwrap_err();
    assert!(why.what.contains("3.0 s"), "{why}");
    assert!(read_text_with(text(&[0, 1, 2, 6, 7]), |options| options.allow_holes = true).is_ok());
}

#[test]
fn two_neutral_files_of_one_run_are_added_up_with_exact_percentiles() {
    let dir = tempfile::tempdir().unwrap();
    let timeline = read("jmeter/default213.jtl");
    let paths = [dir.path().join("a.tsv"), dir.path().join("b.tsv")];
    for path in &paths {
        timeline.write(std::fs::File::create(path).unwrap()).unwrap();
    }
    let merged = driver::read(&paths, &Options::default()).unwrap();
    assert_eq!(totals(&merged, ALL).0, 1082.0);
    assert_eq!(totals(&merged, "seat map").0, 546.0);
    let (one, two) = (at(&timeline, 1_795_979_942), at(&merged, 1_795_979_942));
    assert_eq!((two.p50_ms, two.p95_ms, two.in_flight), (one.p50_ms, one.p95_ms, one.in_flight.map(|n| n * 2.0)));
    has_caveat(&merged, "files_merged");
}

#[test]
fn single_requests_keep_what_was_scheduled_dropped_and_waited_in_the_driver() {
    let mut text = "#whatgives requests 1\nstart_us\tstep\tms\twall_ms\toutcome\tcode\tsched_us\n".to_owned();
    for n in 0..100_i64 {
        let sched = 1_795_980_282_000_000 + n * 20_000;
        let start = sched + 15_000;
        let (ms, outcome) = (10 + n % 5, ["ok", "refused_sold_out", "fail_http", "timeout", "ok"][(n % 5) as usize]);
        text += &format!("{start}\tbuy\\tnow\t{ms}\t{}\t{outcome}\t200\t{sched}\n", ms + 15);
    }
    text += "\tbuy\\tnow\t\t\tdropped\t\t1795980283500000\n";
    let t = read_text(text).unwrap();
    assert_eq!(t.driver.offered, Offered::Scheduled);
    assert_eq!(totals(&t, "buy\tnow"), (40.0, 40.0, 20.0));
    assert_eq!(sum(&t, ALL, |row| row.dropped), 1.0);
    assert_eq!(sum(&t, ALL, |row| row.offered), 101.0);
    assert_eq!(at(&t, 1_795_980_282).offered, Some(50.0));
    has_caveat(&t, "driver_queue");
    let waited = &t.driver.more["waited_ms"];
    for step in ["buy\tnow", ALL] {
        assert_eq!(waited[step]["count"], 100, "once a request, although both wall_ms and sched_us tell it");
        near(waited[step]["p95"].as_f64(), 15.0);
    }
    round_trip(&t);
}

#[test]
fn requests_without_times_give_figures_by_step_and_no_timeline() {
    let rows: String = (1..=100).map(|ms| format!("buy\t{ms}\t{ms}\tok\n")).collect();
    let t = read_text(format!("step\tms\twall_ms\toutcome\n{rows}see\t5\t5\tfail_transport\n")).unwrap();
    assert_eq!(t.driver.more["kind"], "summary");
    assert_eq!(totals(&t, ALL), (100.0, 1.0, 0.0));
    let row = t.intervals.iter().find(|row| row.step == "buy").unwrap();
    near(row.p95_ms, 95.0);
    near(row.p99_ms, 99.0);
    has_caveat(&t, "no_timeline");
    round_trip(&t);
}
