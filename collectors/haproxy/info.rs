//! `show info` of the runtime socket: lines `Name: value`, as a pure function of their bytes.

use super::gauges::PROCESS;

/// What the process says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Info {
    /// As HAProxy writes it.
    pub(super) version: String,
    /// The process's number and when it began: another one has other counters.
    pub(super) process: (String, String),
    /// Gauges and raw values.
    pub(super) values: Vec<(&'static str, f64)>,
    /// What was strange, one short phrase each.
    pub(super) oddities: Vec<String>,
}

/// Reads the lines; `None` where they are somebody else's.
pub(super) fn parse(body: &[u8]) -> Option<Info> {
    let text = std::str::from_utf8(body).ok()?;
    let get = |wanted: &str| {
        text.lines().filter_map(|line| line.split_once(':')).find(|(name, _)| *name == wanted).map(|(_, value)| value.trim())
    };
    let mut info = Info { version: get("Version")?.to_owned(), ..Info::default() };
    info.process = (get("Pid")?.to_owned(), get("Start_time_sec").unwrap_or_default().to_owned());
    for (name, gauge, busy) in PROCESS {
        let Some(found) = get(name) else { continue };
        match found.parse::<u64>().ok().filter(|number| *number < 1 << 63 && (!busy || *number <= 100)) {
            // The share that is left of it is what fills up.
            Some(number) if *busy => info.values.push((gauge.name, (100 - number) as f64)),
            Some(number) => info.values.push((gauge.name, number as f64)),
            None => {
                let found: String = found.chars().take(40).collect();
                info.oddities.push(format!("{name}: expected a count, got {found:?}"));
            }
        }
    }
    (!info.values.is_empty()).then_some(info)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damaged::{hold, is_written};
    use crate::http::whole_lines;
    use proptest::prelude::*;

    const INFO: &[u8] = include_bytes!("../../fixtures/haproxy/2.6.12/info.txt");

    fn value(info: &Info, gauge: &str) -> Option<f64> {
        info.values.iter().find(|(name, _)| *name == gauge).map(|(_, value)| *value)
    }

    #[test]
    fn a_real_answer_gives_what_it_has_and_busy_is_what_is_not_idle() {
        let info = parse(INFO).unwrap();
        assert_eq!(info.version, "2.6.12-1+deb12u4");
        assert!(!info.process.0.is_empty() && !info.process.1.is_empty());
        assert_eq!((value(&info, "connections"), value(&info, "connections_max")), (Some(25.0), Some(400.0)));
        assert_eq!(value(&info, "busy_percent"), Some(0.0));
        assert_eq!(value(&info, "maxconn_reached_total"), None, "only from release 2.8 on");
        assert_eq!(info.oddities, Vec::<String>::new());
    }

    #[test]
    fn what_is_no_count_is_missing_with_a_note() {
        for text in ["-1", "101", "x", "", "NaN"] {
            let info = parse(format!("Version: 3.0\nPid: 1\nMaxconn: 5\nIdle_pct: {text}\n").as_bytes()).unwrap();
            assert_eq!((value(&info, "busy_percent"), info.oddities.len()), (None, 1), "{text}");
            assert_eq!(value(&info, "connections_max"), Some(5.0));
        }
        assert_eq!(parse(b"Version: 3\nPid: 1\n"), None);
        assert_eq!(parse(b"Unknown command\n"), None);
    }

    #[test]
    fn an_answer_cut_or_changed_at_any_byte_gives_what_is_written_there_or_nothing() {
        let fits = |text: &str, gauge: &&str, value: f64| {
            let busy = PROCESS.iter().any(|(_, one, busy)| *busy && one.name == *gauge);
            is_written(text, gauge, if busy { 100.0 - value } else { value })
        };
        hold(INFO, |body| parse(whole_lines(body)).map(|info| info.values).unwrap_or_default(), fits);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(body in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&body);
            let _ = parse(&[b"Version: 1\nPid: 1\nMaxconn: ", body.as_slice()].concat());
        }
    }
}
