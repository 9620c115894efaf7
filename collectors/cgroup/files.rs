//! The files of a control group, of both versions: what each tells, as pure functions of its text. Whole lines only, and
//! `max`, `-1` and v1's largest number of pages mean that there is no limit: no number.

use crate::proc::{lines, number, stalled, words};

/// What one file may tell.
#[derive(Clone, Copy)]
pub(super) struct File {
    /// Its name.
    pub name: &'static str,
    /// Gauges by name, and two halves of a limit: [`QUOTA`] and [`PERIOD`].
    pub parse: fn(&[u8]) -> Vec<(&'static str, f64)>,
}

/// v1: microseconds of processor time in one period.
pub(super) const QUOTA: &str = "quota_us";
/// v1: the period.
pub(super) const PERIOD: &str = "period_us";

/// v1 writes "no limit" as the largest multiple of the page size: nothing real comes near.
const UNLIMITED: f64 = (1_u64 << 60) as f64;

/// Every file of both versions that is read; where two tell the same, the first that does counts.
pub(super) const FILES: &[File] = &[
    File { name: "cpu.stat", parse: cpu_stat },
    File { name: "cpu.max", parse: cpu_max },
    File { name: "cpuacct.usage", parse: |text| one(text, "cpu_seconds_total", 1e-9) },
    File { name: "cpu.cfs_quota_us", parse: |text| one(text, QUOTA, 1.0) },
    File { name: "cpu.cfs_period_us", parse: |text| one(text, PERIOD, 1.0) },
    File { name: "cpu.pressure", parse: |text| some(text, b"some", "psi_cpu_some_us_total") },
    File { name: "memory.current", parse: |text| one(text, "memory_bytes", 1.0) },
    File { name: "memory.usage_in_bytes", parse: |text| one(text, "memory_bytes", 1.0) },
    File { name: "memory.max", parse: |text| limit(text, "memory_max_bytes") },
    File { name: "memory.limit_in_bytes", parse: |text| limit(text, "memory_max_bytes") },
    File { name: "memory.high", parse: |text| limit(text, "memory_high_bytes") },
    File { name: "memory.stat", parse: memory_stat },
    File { name: "memory.events", parse: memory_events },
    File { name: "memory.failcnt", parse: |text| one(text, "memory_max_hits_total", 1.0) },
    File { name: "memory.oom_control", parse: |text| named(text, &[("oom_kill", "oom_kills_total", 1.0)]) },
    File {
        name: "memory.pressure",
        parse: |text| [some(text, b"some", "psi_memory_some_us_total"), some(text, b"full", "psi_memory_full_us_total")].concat(),
    },
    File {
        name: "io.pressure",
        parse: |text| [some(text, b"some", "psi_io_some_us_total"), some(text, b"full", "psi_io_full_us_total")].concat(),
    },
    File { name: "pids.current", parse: |text| one(text, "pids", 1.0) },
    File { name: "pids.max", parse: |text| limit(text, "pids_max") },
    File { name: "pids.events", parse: |text| named(text, &[("max", "pids_max_hits_total", 1.0)]) },
];

/// The files of both versions have lines `name number`; v1's throttled time is in nanoseconds.
fn cpu_stat(text: &[u8]) -> Vec<(&'static str, f64)> {
    const WANTED: &[(&str, &str, f64)] = &[
        ("usage_usec", "cpu_seconds_total", 1e-6),
        ("nr_periods", "periods_total", 1.0),
        ("nr_throttled", "throttled_periods_total", 1.0),
        ("throttled_usec", "throttled_us_total", 1.0),
        ("throttled_time", "throttled_us_total", 1e-3),
    ];
    named(text, WANTED)
}

/// `200000 100000`, or `max 100000`.
fn cpu_max(text: &[u8]) -> Vec<(&'static str, f64)> {
    let mut parts = lines(text).next().into_iter().flat_map(words).map(number);
    match (parts.next(), parts.next()) {
        (Some(Some(quota)), Some(Some(period))) => vec![(QUOTA, quota as f64), (PERIOD, period as f64)],
        _ => Vec::new(),
    }
}

fn memory_stat(text: &[u8]) -> Vec<(&'static str, f64)> {
    // v1, whose first line is that of the page cache, has the group's own and, below it, a total with its children; v2 always
    // includes them.
    let name = if text.starts_with(b"cache ") { "total_inactive_file" } else { "inactive_file" };
    named(text, &[(name, "inactive_file_bytes", 1.0)])
}

fn memory_events(text: &[u8]) -> Vec<(&'static str, f64)> {
    const WANTED: &[(&str, &str, f64)] = &[
        ("high", "memory_high_hits_total", 1.0),
        ("max", "memory_max_hits_total", 1.0),
        ("oom", "oom_total", 1.0),
        ("oom_kill", "oom_kills_total", 1.0),
    ];
    named(text, WANTED)
}

/// Lines `name number`.
fn named(text: &[u8], wanted: &[(&str, &'static str, f64)]) -> Vec<(&'static str, f64)> {
    let mut found = Vec::new();
    for line in lines(text) {
        let mut parts = words(line);
        let (Some(name), Some(value), None) = (parts.next(), parts.next().and_then(number), parts.next()) else { continue };
        if let Some((_, gauge, scale)) = wanted.iter().find(|(wanted, _, _)| wanted.as_bytes() == name) {
            found.push((*gauge, value as f64 * scale));
        }
    }
    found
}

/// A file of one number.
fn one(text: &[u8], gauge: &'static str, scale: f64) -> Vec<(&'static str, f64)> {
    let value = lines(text).next().and_then(|line| number(line.trim_ascii()));
    value.map(|value| (gauge, value as f64 * scale)).into_iter().collect()
}

fn limit(text: &[u8], gauge: &'static str) -> Vec<(&'static str, f64)> {
    one(text, gauge, 1.0).into_iter().filter(|(_, limit)| *limit < UNLIMITED).collect()
}

fn some(text: &[u8], kind: &[u8], gauge: &'static str) -> Vec<(&'static str, f64)> {
    stalled(text, kind).map(|total| (gauge, total)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damaged::{hold, no_new_zero};
    use proptest::prelude::*;
    use std::path::Path;

    fn parse(name: &str, text: &[u8]) -> Vec<(&'static str, f64)> {
        (FILES.iter().find(|file| file.name == name).unwrap().parse)(text)
    }

    #[test]
    fn no_limit_is_no_number() {
        for (name, text) in [
            ("cpu.max", "max 100000\n"),
            ("cpu.cfs_quota_us", "-1\n"),
            ("memory.max", "max\n"),
            ("memory.limit_in_bytes", "9223372036854771712\n"),
            ("pids.max", "max\n"),
        ] {
            assert_eq!(parse(name, text.as_bytes()), [], "{name}");
        }
        assert_eq!(parse("cpu.max", b"150000 100000\n"), [(QUOTA, 150_000.0), (PERIOD, 100_000.0)]);
        assert_eq!(parse("memory.limit_in_bytes", b"1048576\n"), [("memory_max_bytes", 1_048_576.0)]);
    }

    #[test]
    fn both_versions_tell_throttling_in_the_same_unit() {
        let two = parse("cpu.stat", b"usage_usec 5000000\nnr_periods 9\nnr_throttled 4\nthrottled_usec 123\n");
        assert!(two.contains(&("throttled_us_total", 123.0)) && two.contains(&("cpu_seconds_total", 5.0)));
        let one = parse("cpu.stat", b"nr_periods 9\nnr_throttled 4\nthrottled_time 123000\n");
        assert!(one.contains(&("throttled_us_total", 123.0)) && one.contains(&("throttled_periods_total", 4.0)));
    }

    #[test]
    fn v1_counts_children_in_and_names_are_not_taken_by_their_beginning() {
        let text = b"cache 9\ninactive_file 4096\ntotal_inactive_file 8192\n";
        assert_eq!(parse("memory.stat", text), [("inactive_file_bytes", 8192.0)]);
        let control = b"oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
        assert_eq!(parse("memory.oom_control", control), [("oom_kills_total", 3.0)]);
        assert_eq!(parse("memory.events", b"low 0\nhigh 1\nmax 2\noom 3\noom_kill 4\noom_group_kill 0\n").len(), 4);
    }

    #[test]
    fn a_file_cut_or_changed_at_any_byte_gives_no_other_value_and_no_0_that_is_not_written_there() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/cgroup"));
        let mut seen = 0;
        for folder in ["v2/app", "v1/cpu/app", "v1/cpuacct/app", "v1/memory/app", "v1/pids/app"] {
            for file in FILES {
                let Ok(text) = std::fs::read(root.join(folder).join(file.name)) else { continue };
                let whole = (file.parse)(&text);
                seen += whole.len();
                if !whole.is_empty() {
                    hold(&text, file.parse, no_new_zero(&text));
                }
            }
        }
        assert!(seen > 25, "{seen}");
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic_and_no_word_is_0(bytes in proptest::collection::vec(any::<u8>(), 0..200), word in "[a-zA-Z.-]{1,9}") {
            for file in FILES {
                let _ = (file.parse)(&bytes);
                for text in [format!("{word}\n"), format!("nr_throttled {word}\nmax {word}\nsome total={word}\n")] {
                    let found = (file.parse)(text.as_bytes());
                    prop_assert!(found.is_empty(), "{}: {found:?}", file.name);
                }
            }
        }
    }
}
