use super::*;
use whatgives::timeline::Offered;

const T0: i64 = 1_795_978_866;

#[test]
fn rates_are_differences_of_the_totals_and_not_the_drivers_own_column() {
    let t = read("locust/run_stats_history.csv");
    assert_eq!(t.driver.offered, Offered::Achieved);
    assert_eq!((t.driver.latency.as_str(), t.driver.window_ms), ("all", 10_000.0));
    assert_eq!(totals(&t, ALL), (19_477.0 - 451.0, 451.0, 0.0));
    assert_eq!(t.all().count(), 60);
    let row = at(&t, T0);
    assert_eq!(
        (row.dur_ms, row.ok, row.failed, row.vus, row.p50_ms, row.p95_ms),
        (1000.0, Some(40.0), Some(0.0), Some(20.0), None, None)
    );
    let row = at(&t, T0 + 5);
    assert_eq!((row.ok, row.vus, row.p50_ms, row.p95_ms), (Some(121.0), Some(60.0), Some(46.0), Some(110.0)));
    let row = at(&t, T0 + 31);
    assert_eq!((row.dur_ms, row.ok, row.vus), (2000.0, Some(390.0), Some(274.0)));
    assert_eq!(steps(&t), ["checkout", "hold, \"quoted\"", "seat map"]);
    assert_eq!(totals(&t, "seat map"), (16_868.0 - 405.0, 405.0, 0.0));
    for code in ["closed_loop", "percentiles_coarse", "coordinated_omission"] {
        has_caveat(&t, code);
    }
    round_trip(&t);
}

#[test]
fn rows_that_stand_frozen_after_the_stop_are_not_part_of_the_run() {
    let t = read("locust/ctrlc_stats_history.csv.gz");
    assert_eq!(t.all().count(), 60);
    let last = t.all().last().unwrap();
    assert_eq!((last.unix_ms, last.ok, last.failed), (1_795_979_016_000, Some(395.0 - last.failed.unwrap()), last.failed));
    assert_eq!(totals(&t, ALL), (19_397.0 - 311.0, 311.0, 0.0));
}

const HEAD: &str =
    "Timestamp,User Count,Type,Name,Requests/s,Failures/s,50%,95%,99%,100%,Total Request Count,Total Failure Count\r\n";

fn row(second: i64, users: i64, total: i64) -> String {
    format!("{},{users},,Aggregated,99.0,0.0,20,30,40,50,{total},0\r\n", T0 + second)
}

#[test]
fn totals_that_fall_with_users_at_work_are_a_reset_and_only_that_interval_is_unknown() {
    let rows: String = [(0, 0), (1, 10), (2, 30), (3, 5), (4, 25)].iter().map(|(s, n)| row(*s, 5, *n)).collect();
    let t = read_text(format!("{HEAD}{rows}")).unwrap();
    let told: Vec<_> = t.all().map(|row| (row.unix_ms / 1000 - T0, row.ok.unwrap())).collect();
    assert_eq!(told, [(0, 10.0), (1, 20.0), (3, 20.0)]);
    has_caveat(&t, "stats_reset");
}

#[test]
fn another_run_in_the_same_file_stands_alone() {
    let first: String = (0..5).map(|s| row(s, 5, s * 10)).chain((5..60).map(|s| row(s, 0, 40))).collect();
    let second: String = (60..65).map(|s| row(s, 5, (s - 60) * 7)).collect();
    let t = read_text(format!("{HEAD}{first}{second}")).unwrap();
    assert_eq!(totals(&t, ALL).0, 28.0);
    assert_eq!(t.all().next().unwrap().unix_ms / 1000, T0 + 60);
    has_caveat(&t, "restarted");
}

#[test]
fn a_name_used_with_two_types_is_told_apart_by_the_type() {
    let line = |s: i64, kind: &str, total: i64| format!("{},5,{kind},/cart,1,0,20,30,40,50,{total},0\r\n", T0 + s);
    let rows: String = (0..3).map(|s| line(s, "GET", s * 10) + &line(s, "POST", s * 5) + &row(s, 5, s * 15)).collect();
    let t = read_text(format!("{HEAD}{rows}")).unwrap();
    assert_eq!(steps(&t), ["GET /cart", "POST /cart"]);
    assert_eq!(totals(&t, "GET /cart").0, 20.0);
}

#[test]
fn a_hole_of_more_than_two_rows_is_an_error_and_two_lost_seconds_are_not() {
    let rows = |seconds: &[i64]| seconds.iter().map(|s| row(*s, 5, s * 10)).collect::<String>();
    assert!(read_text(format!("{HEAD}{}", rows(&[0, 1, 2, 4, 5, 7, 8]))).is_ok());
    let text = format!("{HEAD}{}", rows(&[0, 1, 2, 3, 9, 10]));
    let why = read_text(&text).unwrap_err();
    assert!(why.what.contains("6.0 s") && why.what.contains("1795978869000"), "{why}");
    // The totals go on: with the hole allowed, nothing is lost.
    let t = read_text_with(&text, |options| options.allow_holes = true).unwrap();
    assert_eq!(at(&t, T0 + 3).dur_ms, 6000.0);
    assert_eq!(totals(&t, ALL).0, 100.0);
}
