//! The traps of drivers' logs, by kind.

use super::*;

const JTL: &str = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success\n";

fn jtl(rows: usize) -> String {
    let rows: String =
        (0..rows).map(|n| format!("{},20,buy,200,OK,t 1-1,text,true\n", 1_795_980_084_000_u64 + n as u64 * 10)).collect();
    format!("{JTL}{rows}")
}

#[test]
fn a_stamp_that_a_spreadsheet_rounded_is_refused_with_the_reason() {
    let why = read_text(format!("{JTL}1.79598E+12,306,buy,200,OK,t 1-6,text,true\n")).unwrap_err();
    assert!(why.what.contains("exponent") && why.line == Some(2), "{why}");
    assert!(why.hint.is_some());
}

#[test]
fn a_quote_left_open_by_a_kill_costs_the_cut_row_only() {
    let text = jtl(10) + "1795980084500,200,\"Number of samples";
    let t = read_text(&text).unwrap();
    assert_eq!(totals(&t, ALL).0, 10.0);
    has_caveat(&t, "cut_log");
    has_not_caveat(&t, "bad_rows");
}

#[test]
fn a_stray_quote_in_the_middle_is_one_bad_row_and_names_its_line() {
    let text = jtl(300) + "1795980087010,20,\"buy,200,OK,t 1-1,text,true\n" + &jtl(300)[JTL.len()..];
    let t = read_text(&text).unwrap();
    assert_eq!(totals(&t, ALL).0, 600.0);
    has_caveat(&t, "bad_rows");
    assert_eq!(t.driver.more["bad_rows"][0]["line"], 302);
}

#[test]
fn over_one_percent_of_bad_rows_is_an_error_that_shows_three_of_them() {
    let bad = "soon,20,buy,200,OK,t 1-1,text,true\n";
    let t = read_text(jtl(400) + &bad.repeat(4)).unwrap();
    assert_eq!(t.driver.more["bad_row_count"], 4);
    assert_eq!(t.driver.more["bad_rows"].as_array().unwrap().len(), 3);
    let why = read_text(jtl(400) + &bad.repeat(5)).unwrap_err();
    assert!(why.what.contains("5 of 405 rows") && why.what.contains("line 402") && why.what.contains("\"soon\""), "{why}");
}

#[test]
fn a_hole_inside_the_run_is_an_error_and_a_planned_pause_is_none() {
    let second = |s: u64| -> String {
        (0..50).map(|n| format!("{},5,buy,200,OK,t 1-1,text,true\n", 1_795_980_084_000 + s * 1000 + n * 20)).collect()
    };
    let text = format!("{JTL}{}{}{}", second(0), second(1), second(6));
    let why = read_text(&text).unwrap_err();
    assert!(why.what.contains("4.0 s") && why.what.contains("1795980086000"), "{why}");
    assert!(read_text_with(&text, |options| options.allow_holes = true).is_ok());
    assert!(read_text_with(&text, |options| options.plan = Some("50/2s,0/4s,50/1s".parse().unwrap())).is_ok());
    assert!(read_text(format!("{JTL}{}{}{}", second(0), second(1), second(4))).is_ok());
    // A stalled site is no hole: requests are under way all the time.
    let stalled = format!("{JTL}{}1795980085990,5010,buy,200,OK,t 1-1,text,true\n{}", second(0) + &second(1), second(7));
    assert!(read_text(stalled).is_ok());
}

#[test]
fn names_that_are_no_utf8_are_read_with_replacement_characters() {
    let mut text = JTL.as_bytes().to_vec();
    text.extend_from_slice(b"1795980084320,306,caf\xe9,200,OK,t 1-6,text,true\n");
    assert_eq!(steps(&read_text(text).unwrap()), ["caf\u{fffd}"]);
}

#[test]
fn the_order_of_rows_does_not_matter() {
    let text = String::from_utf8(content("jmeter/default213.jtl")).unwrap();
    let rows: Vec<&str> = text.lines().collect();
    let turned: String = rows.iter().rev().map(|row| format!("{row}\n")).collect();
    let (a, b) = (read_text(&text).unwrap(), read_text(turned).unwrap());
    let counts = |t: &Timeline| {
        t.intervals.iter().map(|r| (r.unix_ms, r.step.clone(), r.started, r.ok, r.in_flight, r.hist.clone())).collect::<Vec<_>>()
    };
    assert_eq!(counts(&a), counts(&b));
}

#[test]
fn a_gap_of_days_makes_no_row_for_every_second() {
    let text = format!("{JTL}1795980084000,20,buy,200,OK,t 1-1,text,true\n1797980084000,20,buy,200,OK,t 1-1,text,true\n");
    let t = read_text_with(&text, |options| options.allow_holes = true).unwrap();
    assert!(t.intervals.len() < 200_000 && t.driver.window_ms > 1000.0, "{} rows", t.intervals.len());
    assert_eq!(totals(&t, ALL).0, 2.0);
    let text = text.replace("1797980084000", "1895980084000");
    assert!(read_text_with(&text, |options| options.allow_holes = true).unwrap_err().what.contains("not one run"));
}

/// The hour that an autumn night repeats can only be told in a process with such a zone: this test runs itself again.
#[test]
fn the_hour_that_an_autumn_night_repeats_goes_on_from_where_it_was() {
    const NAME: &str = "driver::traps::the_hour_that_an_autumn_night_repeats_goes_on_from_where_it_was";
    if std::env::var("TZ").as_deref() != Ok("Europe/Bucharest") {
        let again = std::process::Command::new(std::env::current_exe().unwrap())
            .args([NAME, "--exact"])
            .env("TZ", "Europe/Bucharest")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&again.stdout).into_owned();
        assert!(again.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    // 2026-10-25 in Bucharest: 03:59:59 summer time (UTC+3) is followed by 03:00:00 winter time (UTC+2).
    let row = |clock: &str| format!("2026/10/25 {clock}.500,20,buy,200,OK,t 1-1,text,true\n");
    let clocks: Vec<String> = (50..60)
        .flat_map(|m| [0, 30].map(|s| format!("03:{m}:{s:02}")))
        .chain((0..10).flat_map(|m| [0, 30].map(|s| format!("03:{m:02}:{s:02}"))))
        .collect();
    let text = format!("{JTL}{}", clocks.iter().map(|clock| row(clock)).collect::<String>());
    let t = read_text_with(text, |options| {
        options.zone = Some("local".parse().unwrap());
        options.allow_holes = true;
    })
    .unwrap();
    let busy: Vec<i64> = t.all().filter(|row| row.started == Some(1.0)).map(|row| row.unix_ms / 1000).collect();
    assert_eq!(busy.len(), 40);
    assert_eq!(busy[0], 1_792_889_400);
    assert!(busy.windows(2).all(|pair| pair[1] - pair[0] == 30), "{busy:?}");
}

#[test]
fn a_clock_set_back_gives_no_negative_latency_and_is_said() {
    let t = read_text(jtl(5) + "1795980084900,-40,buy,200,OK,t 1-1,text,true\n").unwrap();
    assert_eq!(totals(&t, ALL).0, 6.0);
    assert!(t.intervals.iter().all(|row| row.in_flight.unwrap() >= 0.0));
    has_caveat(&t, "clock_stepped");
}

#[test]
fn a_stamp_of_1970_is_a_bad_row_and_two_units_in_one_file_are_refused() {
    let t = read_text(jtl(200) + "0,20,buy,200,OK,t 1-1,text,false\n").unwrap();
    assert_eq!((totals(&t, ALL).0, t.driver.more["bad_row_count"].as_u64()), (200.0, Some(1)));
    let why = read_text(jtl(200) + "1795980084,20,buy,200,OK,t 1-1,text,true\n").unwrap_err();
    assert!(why.what.contains("two kinds") && why.line == Some(202), "{why}");
}

#[test]
fn an_empty_file_and_an_unknown_one_say_so() {
    assert!(read_text("").unwrap_err().what.contains("empty"));
    assert!(read_text("\r\n\n").unwrap_err().what.contains("empty"));
    let why = read_text("hello world\n").unwrap_err();
    assert!(why.what.contains("hello world") && why.hint.unwrap().contains("--driver-format"));
    let why = read_text_with("x", |options| options.format = Some("abacus".into())).unwrap_err();
    assert!(why.what.contains("abacus") && why.hint.unwrap().contains("k6"));
}

#[test]
fn a_cut_gzip_is_read_to_where_it_goes() {
    let gz = std::fs::read(fixture("k6/synthetic.csv.gz")).unwrap();
    let t = read_text(&gz[..gz.len() / 2]).unwrap();
    has_caveat(&t, "cut_log");
    let read = totals(&t, ALL).0;
    assert!((4000.0..8000.0).contains(&read), "{read}");
}

#[test]
fn a_driver_that_stays_behind_its_plan_is_named_with_what_it_reached() {
    let rows: String = (0..1000).map(|n| format!("{},20,buy,200,OK,t 1-1,text,true\n", 1_795_980_084_000_u64 + n * 10)).collect();
    let t = read_text_with(format!("{JTL}{rows}"), |options| options.plan = Some("200/10s".parse().unwrap())).unwrap();
    has_caveat(&t, "behind_plan");
    assert_eq!(t.driver.offered, whatgives::timeline::Offered::Plan);
    assert_eq!(at(&t, 1_795_980_086).offered, Some(200.0));
    let reached = t.driver.more["reached_of_plan"].as_f64().unwrap();
    assert!((reached - 0.5).abs() < 0.01, "{reached}");
}

#[test]
fn the_mix_of_steps_is_told_beside_the_planned_one() {
    let rows: String = (0..100)
        .map(|n| {
            format!("{},20,{},200,OK,t 1-1,text,true\n", 1_795_980_084_000_u64 + n * 10, if n % 4 == 0 { "pay" } else { "see" })
        })
        .collect();
    let t = read_text_with(format!("{JTL}{rows}"), |options| options.mix = Some("see=50,pay=50".parse().unwrap())).unwrap();
    assert_eq!((t.driver.more["mix"]["see"].as_f64(), t.driver.more["mix_planned"]["see"].as_f64()), (Some(0.75), Some(0.5)));
}
