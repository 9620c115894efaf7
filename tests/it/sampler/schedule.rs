//! Absolute deadlines: no drift, no burst, every missed tick marked.

use crate::support::sampler::{Folder, Ran, notes, signal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use whatgives::ticks::Ticks;

/// Ticks that the notes say were missed.
fn marked(ticks: &Ticks) -> u64 {
    let counts = ticks.notes.iter().flat_map(|(_, note)| note.split("; ")).filter_map(|note| {
        note.strip_suffix(" ticks missed").or_else(|| note.strip_suffix(" tick missed")).and_then(|count| count.parse::<u64>().ok())
    });
    counts.sum()
}

/// What holds for every run: planned times on the grid, strictly growing numbers, and every gap between them marked.
fn hold(ticks: &Ticks, period_ms: i64) {
    let start = ticks.header.run.start_unix_ms;
    for (tick, unix_ms) in ticks.tick.iter().zip(&ticks.unix_ms) {
        assert_eq!(*unix_ms, start + *tick as i64 * period_ms);
    }
    assert!(ticks.tick.windows(2).all(|two| two[1] > two[0]));
    let last = *ticks.tick.last().unwrap();
    assert_eq!(last + 1 - ticks.tick.len() as u64, marked(ticks), "{}", notes(ticks));
    // A tick begins before the next one is due.
    assert!(ticks.late_ms.iter().all(|late| (0.0..period_ms as f64).contains(late)), "{:?}", ticks.late_ms);
}

#[test]
fn ticks_that_a_stall_swallowed_are_marked_and_never_made_up_for() {
    let folder = Folder::new();
    let child = folder.start(&["--tick=50ms", "--seconds=2.5"]);
    folder.until_rows(10);
    signal(child.id(), "STOP");
    std::thread::sleep(Duration::from_millis(500));
    signal(child.id(), "CONT");
    let ran = Ran::end(child);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ticks = folder.ticks();
    hold(&ticks, 50);
    let longest = ticks.tick.windows(2).map(|two| two[1] - two[0] - 1).max().unwrap();
    assert!(longest >= 8, "{}", notes(&ticks));
    assert!(ran.err.contains("missed"), "{}", ran.err);
}

#[test]
fn with_every_core_busy_ticks_keep_to_the_grid() {
    let stop = Arc::new(AtomicBool::new(false));
    let cores = std::thread::available_parallelism().unwrap().get();
    let busy: Vec<_> = (0..cores)
        .map(|_| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                let mut x = 1_u64;
                while !stop.load(Ordering::Relaxed) {
                    x = std::hint::black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
                }
                x
            })
        })
        .collect();
    let folder = Folder::new();
    let ran = folder.run(&["--tick=100ms", "--seconds=5"]);
    stop.store(true, Ordering::Relaxed);
    for thread in busy {
        assert_ne!(thread.join().unwrap(), 0);
    }
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ticks = folder.ticks();
    hold(&ticks, 100);
    assert!(ticks.tick.len() >= 25 && *ticks.tick.last().unwrap() >= 40, "{}", notes(&ticks));
    assert!(ran.err.contains("lateness p99"), "{}", ran.err);
}

#[test]
fn the_shortest_tick_holds() {
    let folder = Folder::new();
    let ran = folder.run(&["--tick=20ms", "--seconds=2"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ticks = folder.ticks();
    hold(&ticks, 20);
    // Other tests run beside this one.
    assert!(ticks.tick.len() >= 40, "{} rows\n{}", ticks.tick.len(), ran.err);
    let ran = folder.run(&["--tick=19ms", "--seconds=1", "--force"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("19ms is too short\nhint: the shortest is 20ms"), "{}", ran.err);
}
