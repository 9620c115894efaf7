use super::*;
use whatgives::timeline::Offered;

const T0: i64 = 1_795_980_282;

#[test]
fn the_csv_of_a_ramp_is_counted_exactly_by_the_second_of_the_end() {
    let t = read("k6/synthetic.csv.gz");
    assert_eq!(t.driver.driver, "k6");
    assert_eq!(totals(&t, ALL), (11_993.0, 0.0, 0.0));
    assert_eq!(totals(&t, "seat map").0, 5997.0);
    assert_eq!(totals(&t, "hold, \"A-12\"").0, 5996.0);
    for (second, started, ok, in_flight) in [
        (0, 33.0, 33.0, 0.0),
        (1, 67.0, 67.0, 0.0),
        (5, 127.0, 127.0, 0.0),
        (21, 367.0, 367.0, 0.0),
        (40, 156.0, 387.0, 156.0),
        (41, 0.0, 156.0, 0.0),
    ] {
        assert_eq!(counts(&t, T0 + second), (started, ok, 0.0, in_flight), "second {second}");
    }
    near(at(&t, T0 + 1).p95_ms, 29.591059);
    near(at(&t, T0 + 21).p50_ms, 21.590812);
    near(at(&t, T0 + 40).p95_ms, 1042.941191);
    assert_eq!(at(&t, T0 + 40).max_ms, Some(1049.834402));
    assert_eq!(at(&t, T0 + 2).vus, Some(2.0));
    has_caveat(&t, "second_stamps");
    has_caveat(&t, "assertion_free");
    has_caveat(&t, "open_unknown");
    assert_eq!(t.driver.more["rows"], 155_991);
    round_trip(&t);
}

const HEAD: &str = "metric_name,timestamp,metric_value,check,error,error_code,expected_response,group,method,name,proto,scenario,service,status,subproto,tls_version,url,extra_tags,metadata\n";

fn request(ms: i64, duration: f64, status: u16, rest: &str) -> String {
    let expected = status < 400 && status > 0;
    let tags = format!(",,,,{expected},,GET,/events/{ms}/seats,HTTP/1.1,sale,,{status},,,/events/{ms}/seats,team=a&kind=b,");
    format!(
        "http_reqs,{ms},1.000000{tags}\nhttp_req_duration,{ms},{duration:.6}{tags}\n{}",
        rest.replace("MS", &ms.to_string()).replace("TAGS", &tags)
    )
}

#[test]
fn dropped_iterations_are_offered_too_in_requests() {
    let mut text = HEAD.to_owned();
    for n in 0..200 {
        let ms = 1_795_980_282_000 + n * 50;
        text += &request(ms, 20.0, 200, "");
        if n % 2 == 1 {
            text += &format!("iterations,{ms},1.000000,,,,,,,,,sale,,,,,,,\n");
        }
    }
    text += "dropped_iterations,1795980285500,7.000000,,,,,,,,,sale,,,,,,,\nchecks,1795980285500,0.000000,body is whole,,,,,,,,sale,,,,,,,\n";
    let t = read_text(text).unwrap();
    assert_eq!(t.driver.offered, Offered::Iterations);
    assert_eq!(t.driver.more["requests_per_iteration"], 2.0);
    let row = at(&t, 1_795_980_285);
    assert_eq!((row.dropped, row.started), (Some(14.0), Some(20.0)));
    assert_eq!(row.offered, Some(34.0));
    assert_eq!(t.driver.more["checks"]["failed"], 1);
    has_caveat(&t, "workers_exhausted");
    assert_eq!(t.driver.more["workers_exhausted"]["unix_ms"], 1_795_980_285_500_i64);
    has_not_caveat(&t, "assertion_free");
    has_not_caveat(&t, "second_stamps");
    assert_eq!(steps(&t), ["/events/{}/seats"]);
}

#[test]
fn connecting_and_handshake_belong_to_the_site_and_the_rest_of_blocked_to_the_driver() {
    let mut text = HEAD.to_owned();
    for n in 0..100 {
        let rest =
            "http_req_blocked,MS,150.000000TAGS\nhttp_req_connecting,MS,60.000000TAGS\nhttp_req_tls_handshaking,MS,40.000000TAGS\n";
        text += &request(1_795_980_282_500 + n, 100.0, 200, if n < 50 { rest } else { "" });
    }
    let t = read_text(text).unwrap();
    let row = t.all().last().unwrap();
    assert_eq!(row.max_ms, Some(200.0));
    near(row.p50_ms, 100.0);
    near(row.p95_ms, 200.0);
    has_caveat(&t, "driver_queue");
    near(t.driver.more["waited_ms"][ALL]["p50"].as_f64(), 50.0);
}

#[test]
fn columns_are_taken_by_name_in_any_order_and_an_older_version_lacks_some() {
    let text = "metric_value,name,metric_name,timestamp,status\n12.5,buy,http_req_duration,1795980282.250,200\n7,buy,http_req_duration,1795980282.500,503\n";
    let t = read_text(text).unwrap();
    assert_eq!(totals(&t, "buy"), (1.0, 1.0, 0.0));
    assert_eq!(t.all().next().unwrap().max_ms, Some(12.5));
}

#[test]
fn every_time_format_gives_the_same_seconds() {
    for stamps in [
        ["1795980282", "1795980283"],
        ["1795980282300", "1795980283300"],
        ["1795980282300000", "1795980283300000"],
        ["1795980282300000000", "1795980283300000000"],
        ["2026-11-29T19:24:42Z", "2026-11-29T19:24:43Z"],
        ["2026-11-29T16:24:42.3-03:00", "2026-11-29T16:24:43.3-03:00"],
    ] {
        let row = |stamp| format!("http_req_duration,{stamp},5.0,buy,200\n");
        let t = read_text(format!("metric_name,timestamp,metric_value,name,status\n{}{}", row(stamps[0]), row(stamps[1]))).unwrap();
        let seconds: Vec<i64> = t.all().filter(|row| row.ok == Some(1.0)).map(|row| row.unix_ms / 1000).collect();
        assert_eq!(seconds, [T0, T0 + 1], "{stamps:?}");
    }
}

#[test]
fn a_step_may_be_another_column_a_tag_or_a_pattern() {
    let text = format!("{HEAD}{}", request(1_795_980_282_500, 5.0, 200, ""));
    for (by, want) in [("scenario", "sale"), ("kind", "b"), ("{method} {name}", "GET /events/{}/seats")] {
        let t = read_text_with(&text, |options| options.step_by = by.parse().unwrap()).unwrap();
        assert_eq!(steps(&t), [want]);
    }
}

#[test]
fn the_users_rules_say_what_a_code_means() {
    let text: String = [200, 409, 503, 0].iter().map(|status| request(1_795_980_282_500, 5.0, *status, "")).collect();
    let text = format!("{HEAD}{text}");
    assert_eq!(totals(&read_text(&text).unwrap(), ALL), (1.0, 3.0, 0.0));
    let t = read_text_with(&text, |options| options.outcomes = vec!["409=refused".parse().unwrap()]).unwrap();
    assert_eq!(totals(&t, ALL), (1.0, 2.0, 1.0));
}

#[test]
fn one_percent_of_bad_rows_is_one_percent_of_those_that_were_looked_at() {
    let good: String = (0..200)
        .map(|n| request(1_795_980_282_000 + n * 5, 5.0, 200, "data_sent,MS,1.0TAGS\ndata_received,MS,1.0TAGS\n"))
        .collect();
    let bad = "http_req_duration,soon,5.0,,,,true,,GET,x,,,,200,,,x,,\n";
    assert!(read_text(format!("{HEAD}{good}{}", bad.repeat(2))).is_ok());
    let why = read_text(format!("{HEAD}{good}{}", bad.repeat(3))).unwrap_err();
    assert!(why.what.contains("3 of 203 rows"), "{why}");
}

#[test]
fn the_last_row_cut_in_the_middle_is_dropped_and_never_read_as_a_shorter_number() {
    let whole = format!("{HEAD}{}{}", request(1_795_980_282_500, 5.0, 200, ""), request(1_795_980_282_600, 123.456, 200, ""));
    for cut in 2..60 {
        let t = read_text(&whole[..whole.len() - cut]).unwrap();
        assert_eq!(totals(&t, ALL).0, 1.0, "cut {cut}");
        has_caveat(&t, "cut_log");
    }
}
