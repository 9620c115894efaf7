//! Random and mutated logs: every reader gives a timeline or an error, never a panic, and never takes all memory.

use super::*;
use proptest::prelude::*;
use std::sync::LazyLock;

/// The begin of every fixture.
static SEEDS: LazyLock<Vec<(String, Vec<u8>)>> = LazyLock::new(|| {
    let root = fixture("");
    let mut seeds = Vec::new();
    for tool in std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        for file in std::fs::read_dir(tool).unwrap().map(|entry| entry.unwrap().path()) {
            let name = file.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
            let mut bytes = content(&name);
            bytes.truncate(6000);
            seeds.push((name, bytes));
        }
    }
    seeds.sort();
    assert!(seeds.len() > 40);
    seeds
});

/// How many cases each property gets: few in the suite, as many as `PROPTEST_CASES` says in a longer run.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(96)
}

fn any_format() -> impl Strategy<Value = Option<String>> {
    let names: Vec<Option<String>> = driver::formats().map(|(name, ..)| Some(name.to_owned())).chain([None]).collect();
    prop::sample::select(names)
}

/// A change to a log: where (of all), and what.
#[derive(Clone, Debug)]
enum Change {
    Put(f64, u8),
    Cut(f64, usize),
    Repeat(f64, usize),
    Insert(f64, Vec<u8>),
    End(f64),
}

fn any_change() -> impl Strategy<Value = Change> {
    let spice = prop::sample::select(vec![
        b"\"".to_vec(),
        b"\"\"\"".to_vec(),
        b"\r\n".to_vec(),
        b"\n\n".to_vec(),
        b",".to_vec(),
        b"\t".to_vec(),
        b"\xff\xfe".to_vec(),
        b"-nan".to_vec(),
        b"99999999999999999999".to_vec(),
        b"-9223372036854775808".to_vec(),
        b"1e308".to_vec(),
        b"1795980282".to_vec(),
        b"0".to_vec(),
        b"{".to_vec(),
        b"]}".to_vec(),
        b"<sample".to_vec(),
        b"\0\0\0\x01".to_vec(),
    ]);
    prop_oneof![
        (0.0..1.0, any::<u8>()).prop_map(|(at, byte)| Change::Put(at, byte)),
        (0.0..1.0, 1_usize..400).prop_map(|(at, n)| Change::Cut(at, n)),
        (0.0..1.0, 1_usize..400).prop_map(|(at, n)| Change::Repeat(at, n)),
        (0.0..1.0, spice).prop_map(|(at, text)| Change::Insert(at, text)),
        (0.1..1.0).prop_map(Change::End),
    ]
}

fn changed(mut bytes: Vec<u8>, changes: &[Change]) -> Vec<u8> {
    for change in changes {
        if bytes.is_empty() {
            break;
        }
        let place = |at: f64| ((bytes.len() as f64 * at) as usize).min(bytes.len() - 1);
        match change {
            Change::Put(at, byte) => {
                let at = place(*at);
                bytes[at] = *byte;
            }
            Change::Cut(at, n) => {
                let at = place(*at);
                bytes.drain(at..(at + n).min(bytes.len()));
            }
            Change::Repeat(at, n) => {
                let at = place(*at);
                let part = bytes[at..(at + n).min(bytes.len())].to_vec();
                bytes.splice(at..at, part);
            }
            Change::Insert(at, text) => {
                let at = place(*at);
                bytes.splice(at..at, text.iter().copied());
            }
            Change::End(at) => bytes.truncate(place(*at)),
        }
    }
    bytes
}

/// Reads it; what comes out can be written, holds only sane values, and an error says something.
fn survives(bytes: &[u8], format: Option<String>) {
    match read_text_with(bytes, |options| {
        options.format = format;
        options.allow_holes = true;
        options.zone = Some("UTC".parse().unwrap());
    }) {
        Ok(timeline) => {
            round_trip(&timeline);
            assert!(!timeline.intervals.is_empty());
            assert!(timeline.intervals.iter().all(|row| row.dur_ms >= 0.0 && row.dur_ms.is_finite()));
            assert!(timeline.intervals.len() < 500_000, "{} rows of {} bytes", timeline.intervals.len(), bytes.len());
        }
        Err(why) => assert!(!why.what.is_empty()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_reader_survives_random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..2000), format in any_format()) {
        survives(&bytes, format);
    }

    #[test]
    fn any_reader_survives_text_that_looks_like_rows(text in "([0-9]{1,19}[,;\t |.:-]?|[a-zA-Z\"{}\\[\\]<>=/% ]{1,6}|\n|\r\n){0,300}", format in any_format()) {
        survives(text.as_bytes(), format);
    }

    #[test]
    fn real_logs_that_were_changed_are_read_or_refused(seed in 0_usize..1000, changes in prop::collection::vec(any_change(), 1..12)) {
        let (_, bytes) = &SEEDS[seed % SEEDS.len()];
        survives(&changed(bytes.clone(), &changes), None);
    }

    #[test]
    fn real_logs_are_read_or_refused_by_every_other_reader(seed in 0_usize..1000, format in any_format()) {
        let (_, bytes) = &SEEDS[seed % SEEDS.len()];
        survives(bytes, format);
    }
}
