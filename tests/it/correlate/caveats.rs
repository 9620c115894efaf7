//! Runs that are spoiled in one way each: every one has its caveat, and none a wrong name.

use crate::support::made::{Made, Said};
use crate::support::making::START;
use std::fs;
use whatgives::timeline::Offered;

fn names_the_pool(said: &Said) {
    assert!(said.first().starts_with("app.pool_wait"), "{}", said.text);
}

#[test]
fn a_counter_that_is_reset_is_noted_and_makes_no_rate() {
    let said = Made { restart: Some(70), ..Made::default() }.write().correlate();
    names_the_pool(&said);
    assert!(said.warns("reset"), "{}", said.text);
}

#[test]
fn a_clock_that_is_49_s_apart_is_found_and_mended() {
    for clock_s in [49.0, -49.0] {
        let said = Made { clock_s, before: 20, ..Made::default() }.write().correlate();
        names_the_pool(&said);
        assert!(said.warns("clocks_apart"), "{}", said.text);
        assert!((said.rate() - 100.0).abs() < 12.0, "at {}", said.rate());
    }
}

#[test]
fn a_log_of_another_day_is_left_out_and_the_answer_is_inconclusive() {
    let said = Made { clock_s: 86_400.0, ..Made::default() }.write().correlate();
    assert_eq!((said.code, said.verdict["verdict"].as_str()), (4, Some("inconclusive")), "{}", said.text);
    assert!(said.warns("clocks_apart") && said.warns("no_driver"), "{}", said.text);
}

#[test]
fn four_resting_ticks_are_too_few_to_name_anything() {
    let said = Made { low: 4, climb: 4, top: 60, ..Made::default() }.write().correlate();
    assert_eq!((said.code, said.first()), (4, ""), "{}", said.text);
    assert!(said.warns("few_resting_ticks") || said.warns("no_low_load"), "{}", said.text);
    assert!(said.text.contains("Inconclusive"), "{}", said.text);
}

#[test]
fn a_closed_loop_is_said_and_no_knee_is_told() {
    let said = Made { offered: Offered::Achieved, ..Made::default() }.write().correlate();
    names_the_pool(&said);
    assert!(said.warns("closed_loop") && said.verdict["knee"].is_null(), "{}", said.text);
}

#[test]
fn a_run_that_is_saturated_at_its_lowest_load_has_no_rest() {
    let said = Made { pool: 8.0, ..Made::default() }.write().correlate();
    assert_eq!(said.code, 4, "{}", said.text);
    assert!(said.warns("saturated_at_rest"), "{}", said.text);
}

#[test]
fn a_driver_that_is_the_bottleneck_is_blamed_and_no_target() {
    let said = Made { pool: 400.0, driver_limit: 90.0, ..Made::default() }.write().correlate();
    assert_eq!((said.code, said.first()), (4, ""), "{}", said.text);
    assert!(said.warns("driver_behind"), "{}", said.text);
}

#[test]
fn a_driver_that_is_held_up_by_what_moved_first_does_not_take_the_name_away() {
    let said = Made { driver_limit: 150.0, ..Made::default() }.write().correlate();
    names_the_pool(&said);
    assert_eq!(said.code, 0, "{}", said.text);
    assert!(said.warns("driver_behind"), "{}", said.text);
}

#[test]
fn what_was_felt_while_no_gauge_moved_is_inconclusive_and_a_small_wiggle_of_the_slowest_is_not() {
    let quiet = Made { pool: 400.0, service_ms: 1.0, ..Made::default() };
    let said = Made { wiggle_ms: 2.0, ..quiet.clone() }.write().correlate();
    assert_eq!((said.code, said.verdict["verdict"].as_str()), (0, Some("rested")), "{}", said.text);
    let said = Made { wiggle_ms: 40.0, ..quiet }.write().correlate();
    assert_eq!((said.code, said.first()), (4, ""), "{}", said.text);
    assert!(said.warns("felt_without_a_mover"), "{}", said.text);
}

#[test]
fn requests_that_fail_while_no_gauge_moves_are_no_rest() {
    let quiet = Made { pool: 400.0, ..Made::default() };
    let said = Made { failing: (120.0, 0.05), ..quiet.clone() }.write().correlate();
    assert_eq!((said.code, said.first()), (4, ""), "{}", said.text);
    assert!(said.warns("felt_without_a_mover") && said.text.contains("5 % of the requests failed"), "{}", said.text);
    // Some that fail whatever the load are the site's own.
    let said = Made { failing: (0.0, 0.05), ..quiet }.write().correlate();
    assert_eq!((said.code, said.verdict["verdict"].as_str()), (0, Some("rested")), "{}", said.text);
    // Long before the pool moved.
    let said = Made { failing: (50.0, 0.05), ..Made::default() }.write().correlate();
    names_the_pool(&said);
    assert!(said.code == 4 && said.warns("felt_before_the_first"), "{}", said.text);
    let said = Made { failing: (0.0, 0.05), ..Made::default() }.write().correlate();
    names_the_pool(&said);
    assert!(said.code == 0 && !said.warns("felt_before_the_first"), "{}", said.text);
}

#[test]
fn all_targets_silent_across_the_onset_take_the_certainty_away_and_put_no_other_name_there() {
    let silent = vec![("app", 60, 80), ("web", 60, 80)];
    let said = Made { silent, ..Made::default() }.write().correlate();
    names_the_pool(&said);
    assert!(said.warns("silent_at_onset"), "{}", said.text);
}

#[test]
fn a_reset_right_over_the_onset_makes_no_wrong_name() {
    for second in [66, 68, 70] {
        let said = Made { restart: Some(second), ..Made::default() }.write().correlate();
        names_the_pool(&said);
        assert!(said.warns("reset"), "{}", said.text);
        assert!((said.rate() - 100.0).abs() < 12.0, "at {}", said.rate());
    }
}

#[test]
fn ticks_given_twice_or_cut_in_the_head_are_said() {
    let files = Made::default().write();
    // The second half stands in the file again, as after a copy that went wrong.
    files.edit("ticks", |lines| {
        let again = lines[lines.len() - 60..].to_vec();
        lines.extend(again);
    });
    let said = files.correlate();
    names_the_pool(&said);
    assert!(said.warns("ticks_out_of_order"), "{}", said.text);
    let text = fs::read_to_string(files.path("ticks")).unwrap();
    fs::write(files.path("ticks"), &text[..=text.find("\ntick\t").unwrap()]).unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_correlate")).arg(files.path("ticks")).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("hint:"));
}

#[test]
fn a_target_that_is_silent_across_the_onset_widens_its_interval() {
    // The pool is passed in the 68th second.
    let said = Made { silent: vec![("app", 60, 80)], ..Made::default() }.write().correlate();
    names_the_pool(&said);
    assert!(said.warns("silent_at_onset"), "{}", said.text);
    let onset = &said.verdict["first"]["onset"];
    assert!(onset["low_s"].as_f64().unwrap() <= 61.0 && onset["high_s"].as_f64().unwrap() >= 79.0, "{onset:#}");
}

#[test]
fn a_target_that_stops_answering_for_good_is_a_mover_and_two_together_are_the_samplers_trouble() {
    let wide = Made { pool: 400.0, ..Made::default() };
    let one = Made { silent: vec![("app", 90, 200)], ..wide.clone() }.write().correlate();
    assert_eq!(one.first(), "app.up", "{}", one.text);
    assert!(one.text.contains("stopped answering"), "{}", one.text);
    let two = Made { silent: vec![("app", 90, 200), ("web", 90, 200)], ..wide }.write().correlate();
    assert_eq!((two.code, two.first()), (4, ""), "{}", two.text);
    assert!(two.warns("several_silent"), "{}", two.text);
}

#[test]
fn a_cut_file_is_read_to_its_last_whole_row() {
    let files = Made::default().write();
    let text = fs::read_to_string(files.path("ticks")).unwrap();
    fs::write(files.path("ticks"), &text[..text.len() - 11]).unwrap();
    names_the_pool(&files.correlate());
}

#[test]
fn ticks_out_of_order_are_noted_and_make_no_wrong_name() {
    let files = Made::default().write();
    files.edit("ticks", |lines| {
        let rows = lines.iter().position(|line| line.starts_with("tick\t")).unwrap() + 1;
        lines.swap(rows + 30, rows + 31);
        lines.swap(rows + 90, rows + 97);
    });
    let said = files.correlate();
    names_the_pool(&said);
    assert!(said.warns("ticks_out_of_order"), "{}", said.text);
}

const WAITS_HEAD: &str = "#whatgives waits 1\ntick\tunix_ms\ttarget\tkind\tobject\tindex\trow\tmode\twaiter\twaited_ms\tstatement\tblocker\tblocker_state\tblocker_statement\n";

#[test]
fn an_empty_file_of_waits_beside_the_ticks_changes_nothing() {
    let files = Made::default().write();
    fs::write(files.path("waits"), WAITS_HEAD).unwrap();
    let said = files.correlate();
    names_the_pool(&said);
    assert_eq!(said.verdict["waits"].as_array().map(Vec::len), Some(0));
    assert!(!said.warns("waits_untold"), "{}", said.text);
}

#[test]
fn an_empty_file_of_waits_says_what_it_means_where_locks_were_watched() {
    let caveat = |said: &Said| {
        let all = said.verdict["caveats"].as_array().unwrap();
        all.iter().find(|caveat| caveat["code"] == "waits_empty").map(|caveat| caveat["text"].as_str().unwrap().to_owned())
    };
    // Nobody waited.
    let files = Made { lock: true, pool: 400.0, ..Made::default() }.write();
    fs::write(files.path("waits"), WAITS_HEAD).unwrap();
    let said = files.correlate();
    assert_eq!((said.code, said.first()), (0, ""), "{}", said.text);
    assert!(caveat(&said).is_some_and(|text| text.contains("app.pool_waiting counted none")), "{}", said.text);
    assert!(said.text.contains("waits_empty"), "{}", said.text);
    // Somebody did, at the very end: too late to be a mover, and not in the file.
    let files = Made { lock: true, pool: 199.0, top: 1, ..Made::default() }.write();
    fs::write(files.path("waits"), WAITS_HEAD).unwrap();
    let said = files.correlate();
    assert!(caveat(&said).is_some_and(|text| text.contains("app.pool_waiting counted some")), "{}", said.text);
    // One row, and it is not empty.
    let row = format!("140\t{}\tapp\trow\tshop.slot\t-\t-\tX\t1\t5\t-\t2\trunning\t-\n", START + 139_000);
    fs::write(files.path("waits"), WAITS_HEAD.to_owned() + &row).unwrap();
    assert_eq!(caveat(&files.correlate()), None);
    // Without the file nothing is said of it.
    fs::remove_file(files.path("waits")).unwrap();
    assert_eq!(caveat(&files.correlate()), None);
}

#[test]
fn a_lock_that_moved_while_the_waits_are_empty_is_named_without_its_object_and_that_is_said() {
    let files = Made { lock: true, ..Made::default() }.write();
    for text in [WAITS_HEAD, ""] {
        fs::write(files.path("waits"), text).unwrap();
        for said in [files.correlate(), files.with_waits()] {
            names_the_pool(&said);
            assert!(said.warns("waits_untold"), "{}", said.text);
            assert_eq!(said.verdict["first"]["resource"], "connection pool");
        }
    }
}

#[test]
fn waits_given_as_pairs_are_counted_once_a_waiter() {
    let files = Made::default().write();
    let mut text = WAITS_HEAD.to_owned();
    // Six waiters on one row, told with every one before them as their blocker; two on another table, told once.
    for second in 80..130 {
        let at = START + 1000 * second;
        let mut row = |object: &str, waiter: usize, blocker: usize| {
            let line =
                format!("{second}\t{at}\tapp\trow\t{object}\tPRIMARY\t17\tX\t{waiter}\t5\t-\t{blocker}\tidle in transaction\t-\n");
            text.push_str(&line);
        };
        (1..=6).for_each(|waiter| (0..waiter).for_each(|blocker| row("shop.slot", waiter, blocker)));
        (11..=12).for_each(|waiter| row("shop.order", waiter, 10));
    }
    fs::write(files.path("waits"), text).unwrap();
    let said = files.correlate();
    assert!(said.warns("waits_as_pairs"), "{}", said.text);
    assert_eq!(said.verdict["waits"][0]["share"], 0.75, "{:#}", said.verdict["waits"]);
    assert_eq!(said.verdict["waits"][0]["waiters"], 300);
}

#[test]
fn a_file_that_is_no_file_of_ticks_is_refused_with_what_it_is() {
    let files = Made::default().write();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_correlate")).arg(files.path("timeline")).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let why = String::from_utf8(output.stderr).unwrap();
    assert!(why.contains("#whatgives timeline 1") && why.contains("hint:"), "{why}");
}
