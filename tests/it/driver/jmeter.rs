use super::*;

#[test]
fn rows_of_transaction_controllers_are_not_counted_twice_and_no_header_is_needed() {
    let t = read("jmeter/default213.jtl");
    assert_eq!(totals(&t, ALL), (541.0, 0.0, 0.0));
    assert_eq!(totals(&t, "seat map").0, 273.0);
    assert_eq!(totals(&t, "hold, \"A-12\"").0, 268.0);
    assert_eq!(t.driver.more["transaction_rows"], 268);
    has_caveat(&t, "transaction_rows");
    let t0 = 1_795_979_940;
    for (second, started, ok, in_flight) in
        [(0, 4.0, 0.0, 4.0), (1, 58.0, 57.0, 5.0), (2, 116.0, 116.0, 5.0), (4, 152.0, 151.0, 5.0), (5, 70.0, 75.0, 0.0)]
    {
        assert_eq!(counts(&t, t0 + second), (started, ok, 0.0, in_flight), "second {second}");
    }
    near(at(&t, t0 + 2).p95_ms, 79.0);
    near(at(&t, t0 + 1).p50_ms, 39.0);
    // The run begins at .845 and ends at .373: only the covered time counts.
    let (first, last) = (t.all().next().unwrap(), t.all().last().unwrap());
    assert_eq!((first.unix_ms, first.dur_ms), (1_795_979_940_845, 155.0));
    assert_eq!((last.unix_ms, last.dur_ms), (1_795_979_945_000, 373.0));
    assert_eq!(at(&t, t0 + 2).vus, Some(5.0));
    has_not_caveat(&t, "end_stamps");
    round_trip(&t);
}

#[test]
fn a_tab_file_in_local_time_is_placed_by_the_zone_given() {
    let t = read_with("jmeter/tab_localtime.jtl.gz", |options| options.zone = Some("+02:00".parse().unwrap())).unwrap();
    assert_eq!(totals(&t, ALL), (1182.0, 0.0, 0.0));
    let t0 = 1_795_980_054;
    for (second, started, ok, in_flight) in
        [(0, 6.0, 0.0, 6.0), (1, 123.0, 120.0, 9.0), (3, 216.0, 216.0, 10.0), (6, 135.0, 145.0, 0.0)]
    {
        assert_eq!(counts(&t, t0 + second), (started, ok, 0.0, in_flight), "second {second}");
    }
    near(at(&t, t0 + 3).p95_ms, 64.0);
    has_not_caveat(&t, "zone_assumed");
    let t = read("jmeter/tab_localtime.jtl.gz");
    has_caveat(&t, "zone_assumed");
}

#[test]
fn requests_cut_off_by_the_drivers_own_stop_are_neither_good_nor_failed() {
    let t = read("jmeter/stopped_udp.jtl.gz");
    assert_eq!(totals(&t, ALL), (1465.0, 0.0, 0.0));
    assert_eq!(t.driver.more["aborted"], 10);
    has_caveat(&t, "aborted_at_end");
    assert_eq!(counts(&t, 1_795_980_089), (234.0, 234.0, 0.0, 10.0));
    assert_eq!(counts(&t, 1_795_980_090), (160.0, 160.0, 0.0, 0.0));
}

#[test]
fn a_log_with_stretches_missing_is_refused_unless_the_pauses_were_meant() {
    let why = read_with("jmeter/modern_header.trimmed.jtl.gz", |_| {}).unwrap_err();
    assert!(why.what.contains("inside the run") && why.hint.is_some(), "{why}");
    let t = read_with("jmeter/modern_header.trimmed.jtl.gz", |options| options.allow_holes = true).unwrap();
    assert_eq!(totals(&t, ALL), (1220.0, 2452.0, 0.0));
    assert_eq!(totals(&t, "seat map"), (613.0, 1230.0, 0.0));
    assert_eq!(t.driver.more["transaction_rows"], 1830);
    let t0 = 1_795_980_023;
    assert_eq!(counts(&t, t0 + 5), (272.0, 257.0, 0.0, 15.0));
    assert_eq!(counts(&t, t0 + 20), (1649.0, 281.0, 1328.0, 40.0));
    near(at(&t, t0 + 20).p95_ms, 106.0);
    near(at(&t, t0 + 20).p50_ms, 76.0);
}

#[test]
fn taurus_columns_in_another_order_are_read_and_its_stamps_are_ends() {
    let t = read("taurus/kpi_locust.jtl.gz");
    has_caveat(&t, "end_stamps");
    assert_eq!(totals(&t, ALL), (4134.0, 2367.0, 0.0));
    assert_eq!(totals(&t, "checkout"), (150.0, 74.0, 0.0));
    let t0 = 1_795_980_686;
    for (second, want) in
        [(0, (1.0, 0.0, 0.0, 1.0)), (2, (42.0, 38.0, 0.0, 11.0)), (15, (261.0, 173.0, 90.0, 15.0)), (29, (61.0, 101.0, 61.0, 0.0))]
    {
        assert_eq!(counts(&t, t0 + second), want, "second {second}");
    }
    near(at(&t, t0 + 28).p95_ms, 528.0);
    let t = read("taurus/apiritif.0.csv");
    assert_eq!(totals(&t, "/events/{}/seats").0, 10.0);
    assert_eq!(totals(&t, "/holds").0, 9.0);
}

/// The same five rows in every dialect.
fn dialect(delimiter: char, header: bool, end: &str) -> String {
    let names =
        "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,bytes,grpThreads,allThreads,Latency";
    let rows = [
        "1795980084320,306,buy,200,OK,t 1-6,text,true,167,7,7,306",
        "1795980084310,34,buy,503,Busy,t 1-5,text,false,167,7,7,34",
        "1795980085310,40,see,200,OK,t 1-5,text,true,167,7,8,40",
    ];
    let lines: Vec<String> =
        header.then_some(names).into_iter().chain(rows).map(|line| line.replace(',', &delimiter.to_string())).collect();
    lines.join(end) + end
}

#[test]
fn every_delimiter_with_and_without_a_header_and_either_line_end_gives_the_same_timeline() {
    let want = read_text(dialect(',', true, "\n")).unwrap().intervals;
    assert_eq!(want.iter().filter(|row| row.step == ALL).filter_map(|row| row.ok).sum::<f64>(), 2.0);
    for delimiter in [',', '\t', ';', '|'] {
        for header in [true, false] {
            for end in ["\n", "\r\n"] {
                let text = dialect(delimiter, header, end);
                assert_eq!(read_text(&text).unwrap().intervals, want, "{text}");
                assert_eq!(read_text(format!("\u{feff}{text}")).unwrap().intervals, want);
            }
        }
    }
}

#[test]
fn commas_without_quotes_push_columns_to_the_right_and_the_word_true_finds_them() {
    let text = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,bytes,grpThreads,allThreads,Latency\n\
                1795980084320,306,buy,200,OK, really, fine,t 1-6,text,true,167,7,9,306\n\
                1795980084330,30,buy,500,No, sorry,t 1-6,text,false,167,7,9,30\n";
    let t = read_text(text).unwrap();
    assert_eq!(totals(&t, "buy"), (1.0, 1.0, 0.0));
    assert_eq!(t.all().next().unwrap().vus, Some(9.0));
}

#[test]
fn a_failed_assertion_with_a_good_status_shows_that_answers_were_checked() {
    has_caveat(&read_text(dialect(',', true, "\n")).unwrap(), "assertion_free");
    let text = dialect(',', true, "\n").replace("503,Busy", "200,OK");
    let t = read_text(text).unwrap();
    has_not_caveat(&t, "assertion_free");
    assert_eq!(totals(&t, "buy").1, 1.0);
}
