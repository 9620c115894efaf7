//! Logs of single requests in forms of their own: Gatling, phout, JMeter's XML, fortio, any CSV.

use super::requests::seconds;
use super::*;

#[test]
fn gatling_text_and_binary_of_one_run_are_the_same() {
    let (text, binary) = (read("gatling/simulation-3.5.log"), read("gatling/simulation-3.14.log"));
    assert_eq!(text.intervals, binary.intervals);
    assert_eq!((text.driver.driver.as_str(), binary.driver.driver.as_str()), ("gatling 3.5.1", "gatling 3.14.3"));
    assert_eq!(totals(&text, ALL), (588.0, 12.0, 0.0));
    assert_eq!(totals(&text, "café ☕"), (196.0, 4.0, 0.0));
    seconds(
        &binary,
        1_795_980_282,
        &[
            (0, (50.0, 48.0, 1.0, 1.0), 53.0, Some(112.0), 117.0),
            (5, (50.0, 51.0, 1.0, 2.0), 73.0, Some(117.0), 118.0),
            (12, (0.0, 3.0, 1.0, 0.0), 96.0, None, 114.0),
        ],
    );
    assert_eq!(at(&binary, 1_795_980_282).vus, Some(4.0));
    let by_code = |options: &mut Options| options.outcomes = vec!["503=refused".parse().unwrap()];
    assert_eq!(totals(&read_with("gatling/simulation-3.14.log", by_code).unwrap(), ALL), (588.0, 0.0, 12.0));
}

#[test]
fn gatlings_columns_are_found_by_ok_or_ko_in_every_version() {
    let three_three = "RUN\tdemo.Sim\tsim\t1795980282000\t \t3.3.1\nUSER\tbuyers\t1\tSTART\t1795980282000\t1795980282000\nREQUEST\t1\t\tsee\t1795980282100\t1795980282150\tOK\t \nREQUEST\t1\tcart\tpay\t1795980282200\t1795980282290\tKO\tstatus.find.is(200), but actually found 500\n";
    let two = "demo.Sim\tsim\tRUN\t1795980282000\t\t2.0\nbuyers\t1\tREQUEST\t\tsee\t1795980282100\t1795980282110\t1795980282140\t1795980282150\tOK\t\nbuyers\t1\tREQUEST\tcart\tpay\t1795980282200\t1795980282210\t1795980282280\t1795980282290\tKO\tfailed\n";
    let three_five = "RUN\tdemo.Sim\tsim\t1795980282000\t \t3.5.1\nGROUP\tcart\t1795980282000\t1795980282100\t5\tOK\nREQUEST\t\tsee\t1795980282100\t1795980282150\tOK\nREQUEST\tcart\tpay\t1795980282200\t1795980282290\tKO\tx\n";
    for text in [three_three, two, three_five] {
        let t = read_text(text).unwrap();
        assert_eq!((totals(&t, "see"), totals(&t, "pay")), ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)), "{text}");
        assert_eq!(t.all().next().unwrap().max_ms, Some(50.0), "{text}");
        // The last line cut inside of its stamps is no bad row.
        let t = read_text(text.trim_end().rsplit_once("1795980282290").unwrap().0).unwrap();
        assert_eq!(totals(&t, ALL), (1.0, 0.0, 0.0));
    }
}

#[test]
fn a_binary_log_cut_anywhere_ends_at_its_last_whole_record_and_an_unknown_one_is_refused() {
    let bytes = content("gatling/simulation-3.14.log");
    let mut most = 0.0;
    for cut in (200..bytes.len()).step_by(37) {
        match read_text(&bytes[..cut]) {
            Ok(t) => {
                let (ok, failed, _) = totals(&t, ALL);
                assert!(ok + failed >= most, "fewer requests of a longer log");
                most = ok + failed;
            }
            Err(why) => assert!(why.what.contains("holds no request"), "{why}"),
        }
    }
    assert!(most > 590.0);
    let mut other = bytes.clone();
    other[5..11].copy_from_slice(b"3.24.3");
    assert!(read_text(&other).unwrap_err().what.contains("3.24.3"));
    let mut broken = bytes;
    let last = broken.len();
    broken.extend_from_slice(&[9, 0, 0]);
    let why = read_text(&broken).unwrap_err();
    assert!(why.what.contains("kind 9") && last > 0, "{why}");
}

#[test]
fn phout_tags_may_hold_a_stray_quote_and_network_errors_fail() {
    let text = "1482159938.776\tbuy \"#0\t11000\t100\t50\t10800\t50\t11000\t200\t300\t0\t200\n1482159938.976\tbuy \"#1\t21000\t100\t50\t10800\t50\t11000\t200\t300\t0\t503\n1482159939.076\t#2\t11001029\t0\t0\t0\t0\t0\t0\t0\t110\t0\n";
    let t = read_text(text).unwrap();
    assert_eq!((totals(&t, "buy \""), totals(&t, "requests")), ((1.0, 1.0, 0.0), (0.0, 1.0, 0.0)));
    assert_eq!(t.all().next().unwrap().max_ms, Some(11.0));
    assert_eq!(at(&t, 1_482_159_940).in_flight, Some(1.0));
    round_trip(&t);
}

#[test]
fn jmeter_xml_counts_samples_and_neither_transactions_nor_what_is_inside_of_samples() {
    let t = read("jmeter/xml.jtl.gz");
    assert_eq!(totals(&t, ALL), (1572.0, 0.0, 0.0));
    assert_eq!((totals(&t, "seat map").0, totals(&t, "hold, \"A-12\"").0), (791.0, 781.0));
    assert_eq!(t.driver.more["transaction_rows"], 781);
    seconds(
        &t,
        1_795_980_069,
        &[
            (0, (49.0, 40.0, 0.0, 9.0), 53.0, Some(359.0), 366.0),
            (3, (272.0, 270.0, 0.0, 19.0), 57.0, Some(92.0), 193.0),
            (6, (162.0, 180.0, 0.0, 0.0), 59.0, Some(81.0), 103.0),
        ],
    );
    has_not_caveat(&t, "assertion_free");
    has_not_caveat(&t, "cut_log");
    let text = r#"<?xml version="1.0"?>
<testResults version="1.2">
<sample t="100" ts="1795980069000" s="true" lb="tx" rc="" rm="Number of samples in transaction : 2, number of failing samples : 0">
  <httpSample t="60" ts="1795980069000" s="true" lb="a &amp; b" rc="200" rm="OK">
    <httpSample t="20" ts="1795980069000" s="true" lb="a-0" rc="302" rm="Found"/>
  </httpSample>
  <httpSample t="40" ts="1795980069060"
     s="false" lb="c" rc="500" rm="a > b"/>
</sample>
<httpSample t="7" ts="1795980069100" s="true" lb="c" rc="200" rm="OK"/>
<httpSample t="9" ts="179598006"#;
    let t = read_text(text).unwrap();
    assert_eq!((totals(&t, "a & b"), totals(&t, "c")), ((1.0, 0.0, 0.0), (1.0, 1.0, 0.0)));
    assert_eq!(steps(&t), ["a & b", "c"]);
    has_caveat(&t, "cut_log");
}

#[test]
fn fortio_access_log_is_read_to_the_nanosecond() {
    let line = |n: u64, ok: bool| {
        format!(
            "{{\"latency\":0.0125,\"timestamp\":{},\"thread\":0,\"iter\":{n},\"ok\":{ok},\"details\":\"{}\"}}\n",
            1_795_980_282_399_299_746 + n * 1_000_000,
            if ok { 200 } else { 503 }
        )
    };
    let text: String = (0..40).map(|n| line(n, n % 4 != 3)).collect();
    let t = read_text(text).unwrap();
    assert_eq!(totals(&t, ALL), (30.0, 10.0, 0.0));
    let row = t.all().next().unwrap();
    assert_eq!((row.unix_ms, row.max_ms), (1_795_980_282_399, Some(12.5)));
    near(row.p95_ms, 12.5);
}

#[test]
fn any_csv_is_read_once_its_columns_are_named() {
    let text = "at;took_us;what;result;http\n2026-11-29T19:24:42.100Z;1500;buy;pass;200\n2026-11-29T19:24:42.200Z;2500;see;fail;200\n2026-11-29T19:24:42.300Z;500;see;pass;409\n";
    let by = |columns: &'static str| move |options: &mut Options| options.columns = Some(columns.parse().unwrap());
    let t = read_text_with(text, by("start=at,time=us:took_us,step=what,ok=result,code=http")).unwrap();
    assert_eq!((totals(&t, "buy"), totals(&t, "see")), ((1.0, 0.0, 0.0), (1.0, 1.0, 0.0)));
    let t = read_text_with(text, by("end=at,time=us:took_us,code=http")).unwrap();
    assert_eq!(totals(&t, ALL), (2.0, 1.0, 0.0));
    assert_eq!(t.all().next().unwrap().unix_ms, 1_795_980_282_098);
    let why = read_text_with(text, by("start=at,time=us:latency")).unwrap_err();
    assert!(why.what.contains("no column latency"), "{why}");
}
