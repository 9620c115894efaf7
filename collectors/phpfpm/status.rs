//! php-fpm's status page as a pure function of its bytes: JSON (`?json`), or the plain text that comes where a web server
//! does not pass the query on. The keys are the same in both, and have spaces.
//!
//! Of the JSON only what stands before the list of processes is read: in that list a request's duration can be
//! 18446744073709550774 and its URI anything. A number that is no count is missing, with a note.

use serde_json::{Map, Value};

/// The keys that are read, and the gauge each becomes.
const NUMBERS: [(&str, &str); 9] = [
    ("listen queue", "listen_queue"),
    ("listen queue len", "listen_queue_max"),
    ("active processes", "active_processes"),
    ("idle processes", "idle_processes"),
    ("total processes", "total_processes"),
    ("accepted conn", "accepted_total"),
    ("max children reached", "max_children_reached_total"),
    ("slow requests", "slow_requests_total"),
    ("start since", "uptime_seconds"),
];

/// One page.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Status {
    /// The pool's name.
    pub(super) pool: String,
    /// static, dynamic or ondemand.
    pub(super) manager: String,
    /// When the pool was started, as it is written there.
    pub(super) started: Option<String>,
    /// Gauges and raw values.
    pub(super) values: Vec<(&'static str, f64)>,
    /// What was strange, one short phrase each.
    pub(super) oddities: Vec<String>,
}

impl Status {
    /// One value.
    pub(super) fn value(&self, gauge: &str) -> Option<f64> {
        self.values.iter().find(|(name, _)| *name == gauge).map(|(_, value)| *value)
    }

    fn put(&mut self, key: &str, gauge: &'static str, found: &str) {
        if let Some(number) = count(found) {
            self.values.push((gauge, number));
        } else {
            let found: String = found.chars().take(40).collect();
            self.oddities.push(format!("{key}: expected a count, got {found:?}"));
        }
    }
}

const PROCESSES: &[u8] = b"\"processes\"";

/// Whether a page with the list of processes (`full`) was served by one of them: then the request that asked for it, with
/// this mark in its query, is among theirs. `None` without the list.
pub(super) fn served_by_the_pool(body: &[u8], mark: &str) -> Option<bool> {
    let list = &body[memchr::memmem::find(body, PROCESSES)?..];
    Some(memchr::memmem::find(list, mark.as_bytes()).is_some())
}

/// Reads a page; `None` where it is none. The text form must be of whole lines.
pub(super) fn parse(body: &[u8]) -> Option<Status> {
    let body = body.trim_ascii_start();
    if body.first() == Some(&b'{') { json(body) } else { text(std::str::from_utf8(body).ok()?) }
}

fn json(body: &[u8]) -> Option<Status> {
    let page: Map<String, Value> = match memchr::memmem::find(body, PROCESSES) {
        Some(at) => {
            let mut head = body[..at].trim_ascii_end().strip_suffix(b",")?.to_vec();
            head.push(b'}');
            serde_json::from_slice(&head).ok()?
        }
        None => serde_json::from_slice(body).ok()?,
    };
    let text = |key: &str| match page.get(key)? {
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    status(text)
}

fn text(body: &str) -> Option<Status> {
    let pairs: Vec<(&str, &str)> =
        body.lines().filter_map(|line| line.split_once(':')).map(|(key, value)| (key.trim_end(), value.trim())).collect();
    status(|key| pairs.iter().find(|(name, _)| *name == key).map(|(_, value)| (*value).to_owned()))
}

fn status(get: impl Fn(&str) -> Option<String>) -> Option<Status> {
    let mut status =
        Status { pool: get("pool")?, manager: get("process manager")?, started: get("start time"), ..Status::default() };
    for (key, gauge) in NUMBERS {
        if let Some(found) = get(key) {
            status.put(key, gauge, &found);
        }
    }
    (!status.values.is_empty()).then_some(status)
}

/// A count: not negative, and below 2^63; what is above has wrapped around.
fn count(text: &str) -> Option<f64> {
    text.parse::<i128>().ok().filter(|number| (0..1 << 63).contains(number)).map(|number| number as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damaged::{hold, is_written};
    use crate::http::whole_lines;
    use proptest::prelude::*;

    const FULL: &[u8] = include_bytes!("../../fixtures/phpfpm/8.2/status-full.json");
    const STATIC: &[u8] = include_bytes!("../../fixtures/phpfpm/8.2/saturated.json");
    const UNIX: &[u8] = include_bytes!("../../fixtures/phpfpm/8.2/saturated-unix.json");
    const TEXT: &[u8] = include_bytes!("../../fixtures/phpfpm/8.2/status.txt");

    #[test]
    fn json_and_text_give_the_same_values() {
        for (body, idle, active) in [(FULL, 3.0, 0.0), (TEXT, 2.0, 1.0)] {
            let status = parse(body).unwrap();
            assert_eq!((status.pool.as_str(), status.manager.as_str()), ("www", "dynamic"));
            assert_eq!(
                status.values,
                [
                    ("listen_queue", 0.0),
                    ("listen_queue_max", 8.0),
                    ("active_processes", active),
                    ("idle_processes", idle),
                    ("total_processes", 3.0),
                    ("accepted_total", 18.0),
                    ("max_children_reached_total", 1.0),
                    ("slow_requests_total", 15.0),
                    ("uptime_seconds", 570.0),
                ]
            );
            assert_eq!(status.oddities, Vec::<String>::new());
        }
        assert_eq!(parse(FULL).unwrap().started.as_deref(), Some("1795978637"));
        assert_eq!(parse(TEXT).unwrap().started.as_deref(), Some("29/Nov/2026:18:57:17 +0000"));
    }

    #[test]
    fn a_saturated_pool_has_its_queue_and_one_on_a_unix_socket_none() {
        let tcp = parse(STATIC).unwrap();
        assert_eq!((tcp.value("listen_queue"), tcp.value("listen_queue_max")), (Some(6.0), Some(64.0)));
        assert_eq!((tcp.value("active_processes"), tcp.value("idle_processes")), (Some(8.0), Some(0.0)));
        let unix = parse(UNIX).unwrap();
        assert_eq!((unix.value("active_processes"), unix.value("listen_queue_max")), (Some(8.0), Some(0.0)));
    }

    #[test]
    fn numbers_that_have_wrapped_around_among_the_processes_harm_nothing() {
        let page = String::from_utf8_lossy(FULL).replace("3000373", "18446744073709550774").replace("\\/slow.php", "\\x\u{1}");
        assert_eq!(parse(page.as_bytes()).unwrap().values, parse(FULL).unwrap().values);
    }

    #[test]
    fn what_is_no_count_is_missing_with_a_note_in_both_forms() {
        for found in ["-1", "18446744073709550774", "1.5", "\"x\"", "null", "true", "99999999999999999999999999999999999999999999"]
        {
            let json = format!("{{\"pool\":\"a\",\"process manager\":\"static\",\"accepted conn\":5,\"listen queue\":{found}}}");
            let text = format!("pool: a\nprocess manager: static\naccepted conn: 5\nlisten queue: {found}\n");
            for page in [json, text] {
                let status = parse(page.as_bytes()).unwrap();
                assert_eq!(status.values, [("accepted_total", 5.0)], "{page}");
                assert_eq!(status.oddities.len(), 1, "{page}");
            }
        }
    }

    #[test]
    fn the_process_that_serves_the_page_shows_the_request_for_it() {
        assert_eq!(served_by_the_pool(FULL, "fpm-status"), Some(true));
        assert_eq!(served_by_the_pool(FULL, "w123"), Some(false));
        assert_eq!(served_by_the_pool(FULL, "\"pool\""), Some(false), "what stands before the list is no request");
        assert_eq!(served_by_the_pool(STATIC, "w123"), None);
        assert_eq!(served_by_the_pool(b"", "w123"), None);
    }

    #[test]
    fn other_pages_are_none() {
        let nginx: &[u8] = include_bytes!("../../fixtures/nginx/1.22.1/stub_status.txt");
        let metrics: &[u8] = include_bytes!("../../fixtures/metrics/phpfpm-8.2-openmetrics.txt");
        let warned = [b"PHP Warning:  Invalid argument in x.php\n", FULL].concat();
        for page in
            [nginx, metrics, &warned, b"", b"{}", b"{\"pool\":\"www\"}", b"File not found.\n", b"pool: a\nprocess manager: b\n"]
        {
            assert_eq!(parse(page), None, "{}", crate::http::sniff::excerpt(page));
        }
    }

    #[test]
    fn a_page_cut_or_changed_at_any_byte_gives_what_is_written_there_or_nothing() {
        for page in [FULL, STATIC, UNIX] {
            hold(page, |page| parse(page).map(|status| status.values).unwrap_or_default(), is_written);
        }
        hold(TEXT, |page| parse(whole_lines(page)).map(|status| status.values).unwrap_or_default(), is_written);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(body in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&body);
            let _ = parse(&[b"{\"pool\":", body.as_slice()].concat());
        }
    }
}
