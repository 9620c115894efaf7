use super::*;
use proptest::prelude::*;

const BASE: i64 = 1_795_980_282_000_000;

fn request(start_ms: i64, ms: i64, step: u16, outcome: Outcome) -> Request {
    Request { start_us: BASE + start_ms * 1000, end_us: BASE + (start_ms + ms) * 1000, ms: ms as f64, step, outcome }
}

fn names(n: usize) -> Vec<String> {
    (0..n).map(|n| format!("step {n}")).collect()
}

#[test]
fn a_request_starts_in_one_second_and_ends_in_another_and_the_ends_of_the_run_are_partial() {
    let mut cells = Cells::default();
    cells.request(request(400, 900, 0, Outcome::Ok));
    cells.request(request(1200, 100, 1, Outcome::Failed));
    cells.request(request(1900, 350, 0, Outcome::Refused));
    let (rows, capped) = cells.finish(&names(2), Offered::Achieved);
    assert!(!capped);
    let all: Vec<_> = rows.iter().filter(|row| row.step == ALL).collect();
    let told: Vec<_> =
        all.iter().map(|r| (r.unix_ms - BASE / 1000, r.dur_ms, r.started, r.ok, r.failed, r.refused, r.in_flight)).collect();
    assert_eq!(
        told,
        [
            (400, 600.0, Some(1.0), Some(0.0), Some(0.0), Some(0.0), Some(1.0)),
            (1000, 1000.0, Some(2.0), Some(1.0), Some(1.0), Some(0.0), Some(1.0)),
            (2000, 250.0, Some(0.0), Some(0.0), Some(0.0), Some(1.0), Some(0.0)),
        ]
    );
    assert!((all[1].p50_ms.unwrap() - 900.0).abs() <= 0.004 * 900.0);
    assert_eq!((all[1].p95_ms, all[1].max_ms), (None, Some(900.0)));
}

proptest! {
    #[test]
    fn nothing_is_lost_or_counted_twice_whatever_the_order(mut requests in prop::collection::vec((0_i64..20_000, 0_i64..3000, 0_u16..5, 0..4), 1..300), seed in any::<u64>()) {
        let outcome = |n| [Outcome::Ok, Outcome::Failed, Outcome::Refused, Outcome::Dropped][n as usize];
        let fill = |requests: &[(i64, i64, u16, i32)]| {
            let mut cells = Cells::default();
            for (start, ms, step, n) in requests { cells.request(request(*start, *ms, *step, outcome(*n))); }
            cells.finish(&names(5), Offered::Achieved).0
        };
        let rows = fill(&requests);
        let sum = |step: fn(&Interval) -> bool, of: fn(&Interval) -> Option<f64>| rows.iter().filter(|r| step(r)).filter_map(of).sum::<f64>();
        for steps in [(|r: &Interval| r.step == ALL) as fn(&Interval) -> bool, |r: &Interval| r.step != ALL] {
            prop_assert_eq!(sum(steps, |r| r.ok), requests.iter().filter(|r| r.3 == 0).count() as f64);
            prop_assert_eq!(sum(steps, |r| r.failed), requests.iter().filter(|r| r.3 == 1).count() as f64);
            prop_assert_eq!(sum(steps, |r| r.refused), requests.iter().filter(|r| r.3 == 2).count() as f64);
            prop_assert_eq!(sum(steps, |r| r.dropped), requests.iter().filter(|r| r.3 == 3).count() as f64);
            prop_assert_eq!(sum(steps, |r| r.started), requests.iter().filter(|r| r.3 != 3).count() as f64);
        }
        prop_assert_eq!(rows.iter().rfind(|r| r.step == ALL).unwrap().in_flight, Some(0.0));
        prop_assert!(rows.iter().all(|r| r.in_flight.unwrap() >= 0.0 && r.dur_ms > 0.0 && r.dur_ms <= 1000.0));
        let spin = seed as usize % requests.len();
        requests.rotate_left(spin);
        prop_assert_eq!(fill(&requests), rows);
    }
}

#[test]
fn seconds_are_joined_before_memory_follows_the_length_of_the_run() {
    let mut cells = Cells::default();
    for n in 0..400_000_i64 {
        cells.request(request(n * 1000, 10, 0, Outcome::Ok));
    }
    assert!(cells.held + cells.slots.len() <= MOST_CELLS + 2);
    assert!(cells.width_us > 1_000_000);
    let (rows, _) = cells.finish(&names(1), Offered::Achieved);
    assert_eq!(rows.iter().filter(|r| r.step == ALL).filter_map(|r| r.ok).sum::<f64>(), 400_000.0);
}

#[test]
fn the_rarest_steps_past_fifty_are_together_in_other() {
    let mut cells = Cells::default();
    for step in 0..60_u16 {
        for n in 0..=i64::from(step) {
            cells.request(request(n, 5, step, Outcome::Ok));
        }
    }
    let (rows, capped) = cells.finish(&names(60), Offered::Achieved);
    assert!(capped);
    let mut steps: Vec<&str> = rows.iter().map(|row| row.step.as_str()).filter(|step| *step != ALL).collect();
    steps.sort_unstable();
    steps.dedup();
    assert_eq!(steps.len(), KEPT);
    assert!(steps.contains(&"step 59") && !steps.contains(&"step 3"));
    let other: f64 = rows.iter().filter(|row| row.step == OTHER).filter_map(|row| row.ok).sum();
    assert_eq!(other, f64::from((1..=11).sum::<i32>()));
}

#[test]
fn a_stall_is_no_silence_but_a_stretch_with_nothing_under_way_is() {
    let mut cells = Cells::default();
    cells.request(request(0, 6000, 0, Outcome::Ok));
    assert_eq!(cells.longest_silence(), None);
    cells.request(request(12_000, 10, 0, Outcome::Ok));
    assert_eq!(cells.longest_silence(), Some((BASE / 1000 + 7000, 5)));
    cells.vus(BASE + 9_500_000, 0, 3.0);
    assert_eq!(cells.longest_silence().map(|(_, n)| n), Some(2));
}

#[test]
fn visitors_of_several_files_are_added_and_within_a_file_the_last_counts() {
    let mut cells = Cells::default();
    cells.request(request(0, 10, 0, Outcome::Ok));
    for (file, count) in [(0, 5.0), (0, 7.0), (1, 2.0), (1, 3.0)] {
        cells.vus(BASE + 5000, file, count);
    }
    let (rows, _) = cells.finish(&names(1), Offered::Achieved);
    assert_eq!(rows[0].vus, Some(10.0));
}
