//! Real logs of real load drivers, read whole. Expected figures were worked out apart from this code (Python's csv module,
//! the sorted list of latencies) when the test was written.

#![allow(
    clippy::format_collect,
    clippy::format_push_string,
    clippy::unreadable_literal,
    clippy::inconsistent_digit_grouping,
    reason = "small logs as text, figures as they were worked out"
)]

mod every_file;
mod forms;
mod fuzz;
mod intervals;
mod jmeter;
mod k6;
mod locust;
mod neutral;
mod requests;
mod rungs;
mod traps;

use std::io::Write;
use std::path::PathBuf;
use whatgives::driver::{self, Options};
use whatgives::text::InputError;
use whatgives::timeline::{ALL, Interval, Timeline};

fn fixture(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "fixtures", "driver", name].iter().collect()
}

fn read(name: &str) -> Timeline {
    read_with(name, |_| {}).unwrap()
}

fn read_with(name: &str, change: impl FnOnce(&mut Options)) -> Result<Timeline, InputError> {
    let mut options = Options::default();
    change(&mut options);
    driver::read(&[fixture(name)], &options)
}

/// Reads a log given as text.
fn read_text(text: impl AsRef<[u8]>) -> Result<Timeline, InputError> {
    read_text_with(text, |_| {})
}

fn read_text_with(text: impl AsRef<[u8]>, change: impl FnOnce(&mut Options)) -> Result<Timeline, InputError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_ref()).unwrap();
    let mut options = Options::default();
    change(&mut options);
    driver::read(&[file.path().to_owned()], &options)
}

/// The content of a fixture, unpacked.
fn content(name: &str) -> Vec<u8> {
    let bytes = std::fs::read(fixture(name)).unwrap();
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return bytes;
    }
    let mut out = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(&bytes[..]), &mut out).unwrap();
    out
}

fn sum(timeline: &Timeline, step: &str, of: impl Fn(&Interval) -> Option<f64>) -> f64 {
    timeline.intervals.iter().filter(|row| row.step == step).filter_map(of).sum()
}

/// ok, failed, refused of a step.
fn totals(timeline: &Timeline, step: &str) -> (f64, f64, f64) {
    (sum(timeline, step, |row| row.ok), sum(timeline, step, |row| row.failed), sum(timeline, step, |row| row.refused))
}

/// The row of all together in a second.
fn at(timeline: &Timeline, second: i64) -> &Interval {
    timeline.all().find(|row| row.unix_ms.div_euclid(1000) == second).unwrap()
}

/// started, ok, failed, in flight of a second.
fn counts(timeline: &Timeline, second: i64) -> (f64, f64, f64, f64) {
    let row = at(timeline, second);
    (row.started.unwrap(), row.ok.unwrap(), row.failed.unwrap(), row.in_flight.unwrap())
}

/// Within the histogram's error.
#[track_caller]
fn near(found: Option<f64>, want: f64) {
    let found = found.expect("a value");
    assert!((found - want).abs() <= 0.004 * want, "{found} is not within 0.4 % of {want}");
}

#[track_caller]
fn has_caveat(timeline: &Timeline, code: &str) {
    assert!(timeline.driver.caveats.iter().any(|one| one == code), "no {code} in {:?}", timeline.driver.caveats);
    assert!(driver::caveat_text(code).is_some(), "{code} has no text");
}

#[track_caller]
fn has_not_caveat(timeline: &Timeline, code: &str) {
    assert!(timeline.driver.caveats.iter().all(|one| one != code), "{code} in {:?}", timeline.driver.caveats);
}

/// The steps of a timeline, without the sum of all.
fn steps(timeline: &Timeline) -> Vec<String> {
    let mut steps: Vec<String> = timeline.intervals.iter().map(|row| row.step.clone()).filter(|step| step != ALL).collect();
    steps.sort();
    steps.dedup();
    steps
}

/// Written and read again it is the same: what every timeline must stand.
#[track_caller]
fn round_trip(timeline: &Timeline) {
    let mut bytes = Vec::new();
    timeline.write(&mut bytes).unwrap();
    let back = Timeline::read(std::path::Path::new("again"), &bytes[..]).unwrap();
    assert_eq!(back.driver, timeline.driver);
    for (a, b) in back.intervals.iter().zip(&timeline.intervals) {
        assert_eq!(a, b);
    }
    assert_eq!(back.intervals.len(), timeline.intervals.len());
}
