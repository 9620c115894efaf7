//! The page `/server-status?auto` as a pure function of its bytes.
//!
//! Only what could be read is in the result: a key that is absent or whose value is no count is missing, with a note, and
//! never 0. Unknown lines are ignored, the first among them: it is the virtual host's name, without a colon or, for an IPv6
//! address, full of them.

/// The keys that are read, the gauge each becomes, and what one of it is in the gauge's unit.
const NUMBERS: [(&str, &str, f64); 15] = [
    ("BusyWorkers", "busy_workers", 1.0),
    ("IdleWorkers", "idle_workers", 1.0),
    ("GracefulWorkers", "graceful_workers", 1.0),
    ("Processes", "processes", 1.0),
    ("Stopping", "stopping", 1.0),
    ("ConnsTotal", "conns", 1.0),
    ("ConnsAsyncWaitIO", "conns_async_wait_io", 1.0),
    ("ConnsAsyncWriting", "conns_async_writing", 1.0),
    ("ConnsAsyncKeepAlive", "conns_async_keepalive", 1.0),
    ("ConnsAsyncClosing", "conns_async_closing", 1.0),
    ("Total Accesses", "accesses_total", 1.0),
    ("Total kBytes", "sent_bytes_total", 1024.0),
    ("Total Duration", "duration_ms_total", 1.0),
    ("ServerUptimeSeconds", "uptime_seconds", 1.0),
    ("ParentServerMPMGeneration", "generation", 1.0),
];

/// What a letter of the scoreboard means, by its gauge.
const STATES: [(u8, &str); 11] = [
    (b'_', "scoreboard_waiting"),
    (b'S', "scoreboard_starting"),
    (b'R', "scoreboard_reading"),
    (b'W', "scoreboard_writing"),
    (b'K', "scoreboard_keepalive"),
    (b'D', "scoreboard_dns"),
    (b'C', "scoreboard_closing"),
    (b'L', "scoreboard_logging"),
    (b'G', "scoreboard_graceful"),
    (b'I', "scoreboard_idle_cleanup"),
    (b'.', "scoreboard_open"),
];

/// One page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// `Apache/2.4.71 (Debian)`, as `ServerTokens` allows it.
    pub version: Option<String>,
    /// event, prefork, worker.
    pub mpm: Option<String>,
    /// When the counters began, as the server writes it; a graceful restart keeps it.
    pub restart_time: Option<String>,
    /// Gauges and raw values.
    pub values: Vec<(&'static str, f64)>,
    /// How many places the scoreboard has.
    pub slots: Option<f64>,
    /// What was strange, one short phrase each.
    pub oddities: Vec<String>,
}

impl Status {
    /// One value.
    pub fn value(&self, gauge: &str) -> Option<f64> {
        self.values.iter().find(|(name, _)| *name == gauge).map(|(_, value)| *value)
    }
}

/// Reads a page of whole lines; `None` where it is no status page for machines.
pub fn parse(body: &[u8]) -> Option<Status> {
    let mut status = Status::default();
    let mut found: [Option<Option<f64>>; NUMBERS.len()] = [None; NUMBERS.len()];
    let mut scoreboard = None;
    for line in body.split(|byte| *byte == b'\n') {
        let Some((key, value)) = key_and_value(line) else { continue };
        match key {
            b"Scoreboard" => scoreboard = Some(value),
            b"ServerVersion" => status.version = Some(String::from_utf8_lossy(value).into_owned()),
            b"ServerMPM" => status.mpm = Some(String::from_utf8_lossy(value).to_lowercase()),
            b"RestartTime" => status.restart_time = Some(String::from_utf8_lossy(value).into_owned()),
            _ => {
                let Some(at) = NUMBERS.iter().position(|(name, ..)| name.as_bytes() == key) else { continue };
                if found[at].is_some() {
                    // Apache bug 63300; the later one comes from the newer code.
                    status.oddities.push(format!("{} stands twice, the last counts", NUMBERS[at].0));
                }
                let number = count(value);
                if number.is_none() {
                    let text: String = String::from_utf8_lossy(value).chars().take(40).collect();
                    status.oddities.push(format!("{}: expected a count, got {text:?}", NUMBERS[at].0));
                }
                found[at] = Some(number);
            }
        }
    }
    // A page with neither is somebody else's, however many colons it has.
    let (busy, idle) = (found[0], found[1]);
    if busy.is_none() && idle.is_none() && (scoreboard.is_none() || status.mpm.is_none()) {
        return None;
    }
    for ((_, gauge, factor), number) in NUMBERS.iter().zip(found) {
        if let Some(Some(number)) = number {
            status.values.push((gauge, number * factor));
        }
    }
    if let Some(scoreboard) = scoreboard {
        read_scoreboard(scoreboard, &mut status);
    }
    Some(status)
}

fn read_scoreboard(scoreboard: &[u8], status: &mut Status) {
    let mut counts = [0_u32; STATES.len()];
    let mut unknown = 0_u32;
    for letter in scoreboard {
        match STATES.iter().position(|(state, _)| state == letter) {
            Some(at) => counts[at] += 1,
            None => unknown += 1,
        }
    }
    if unknown > 0 {
        status.oddities.push(format!("{unknown} places of the scoreboard are in no known state"));
    }
    if unknown < u32::try_from(scoreboard.len()).unwrap_or(u32::MAX) {
        status.slots = Some(scoreboard.len() as f64);
        status.values.extend(STATES.iter().zip(counts).map(|((_, gauge), count)| (*gauge, f64::from(count))));
    }
}

fn key_and_value(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    Some((line[..colon].trim_ascii(), line[colon + 1..].trim_ascii()))
}

/// A count: digits and at most one dot, below 2^63. A wrapped or negative one is none.
fn count(value: &[u8]) -> Option<f64> {
    if value.is_empty() || !value.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.') {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok().filter(|number: &f64| *number < 9.2e18)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damaged::{hold, is_written};
    use crate::http::whole_lines;
    use proptest::prelude::*;

    const EVENT: &[u8] = include_bytes!("../../fixtures/apache/2.4.71/event-extended.txt");
    const OFF: &[u8] = include_bytes!("../../fixtures/apache/2.4.71/event-extended-off.txt");
    const PREFORK: &[u8] = include_bytes!("../../fixtures/apache/2.4.71/prefork-extended.txt");

    #[test]
    fn an_event_page_gives_every_gauge() {
        let status = parse(EVENT).unwrap();
        assert_eq!(status.version.as_deref(), Some("Apache/2.4.71 (Debian)"));
        assert_eq!(status.mpm.as_deref(), Some("event"));
        assert_eq!(status.restart_time.as_deref(), Some("Sunday, 29-Nov-2026 19:06:13 UTC"));
        for (gauge, value) in [("busy_workers", 1.0), ("idle_workers", 3.0), ("accesses_total", 1.0), ("sent_bytes_total", 0.0)] {
            assert_eq!(status.value(gauge), Some(value), "{gauge}");
        }
        for (gauge, value) in [("scoreboard_waiting", 3.0), ("scoreboard_writing", 1.0), ("scoreboard_reading", 0.0)] {
            assert_eq!(status.value(gauge), Some(value), "{gauge}");
        }
        assert_eq!((status.value("uptime_seconds"), status.value("generation")), (Some(33.0), Some(2.0)));
        assert_eq!((status.slots, status.value("conns_async_writing")), (Some(4.0), Some(0.0)));
        assert!(status.oddities.is_empty());
        let all = NUMBERS.iter().map(|(_, gauge, _)| *gauge).chain(STATES.iter().map(|(_, gauge)| *gauge));
        assert!(all.into_iter().all(|gauge| status.value(gauge).is_some()));
    }

    #[test]
    fn a_prefork_page_has_no_async_connections_and_kilobytes_become_bytes() {
        let status = parse(PREFORK).unwrap();
        assert_eq!(status.value("conns"), None);
        assert_eq!(status.value("processes"), None);
        assert_eq!((status.value("sent_bytes_total"), status.value("duration_ms_total")), (Some(8192.0), Some(144_534.0)));
    }

    #[test]
    fn without_extended_status_the_counters_are_missing_and_not_0() {
        let status = parse(OFF).unwrap();
        for gauge in ["accesses_total", "sent_bytes_total", "duration_ms_total"] {
            assert_eq!(status.value(gauge), None, "{gauge}");
        }
        assert_eq!((status.value("busy_workers"), status.value("uptime_seconds")), (Some(1.0), Some(1.0)));
    }

    #[test]
    fn of_repeated_workers_the_last_counts_and_it_is_said() {
        let status = parse(b"BusyWorkers: 3\nIdleWorkers: 5\nBusyWorkers: 4\nIdleWorkers: x\n").unwrap();
        assert_eq!((status.value("busy_workers"), status.value("idle_workers")), (Some(4.0), None));
        assert!(status.oddities.iter().any(|oddity| oddity.starts_with("BusyWorkers stands twice")), "{:?}", status.oddities);
        assert!(status.oddities.iter().any(|oddity| oddity.contains("expected a count, got \"x\"")));
    }

    #[test]
    fn what_is_no_count_is_missing_with_a_note() {
        for text in ["-1", "18446744073709550774", "NaN", "inf", "1e3", "", "0x10", "1 2", "1,5", "."] {
            let status = parse(format!("BusyWorkers: {text}\nIdleWorkers: 2\n").as_bytes()).unwrap();
            assert_eq!(status.value("busy_workers"), None, "{text}");
            assert_eq!(status.oddities.len(), 1, "{text}");
        }
        assert_eq!(parse(b"BusyWorkers:7\r\nIdleWorkers: .5\r\n").unwrap().value("busy_workers"), Some(7.0));
    }

    #[test]
    fn the_virtual_host_line_and_the_tls_cache_lines_are_ignored() {
        let page = b"fe80::1\nServerMPM: event\nBusyWorkers: 1\nIdleWorkers: 3\nScoreboard: W___\nTLSSessionCacheStatus\n\
            CacheType: SHMCB\nCacheSharedMemory: 512000\nCacheCurrentEntries: 0\n";
        let status = parse(page).unwrap();
        assert_eq!((status.slots, status.oddities.len()), (Some(4.0), 0));
        assert_eq!(status.values.len(), 2 + STATES.len());
    }

    #[test]
    fn other_pages_are_none() {
        let html: &[u8] = include_bytes!("../../fixtures/apache/2.4.71/event-not-auto.html");
        let lighttpd = b"Total Accesses: 1\nTotal kBytes: 1\nUptime: 5\nBusyServers: 1\nIdleServers: 127\nScoreboard: r__\n";
        let fpm: &[u8] = include_bytes!("../../fixtures/phpfpm/8.2/status.txt");
        let metrics: &[u8] = include_bytes!("../../fixtures/metrics/haproxy-2.6.prom");
        for page in [html, lighttpd, fpm, metrics, b"", b"\n\n", b"{\"a\": 1}"] {
            assert_eq!(parse(page), None, "{}", crate::http::sniff::excerpt(page));
        }
    }

    #[test]
    fn a_page_cut_or_changed_at_any_byte_gives_what_is_written_there_or_nothing() {
        // The letters of the scoreboard are counted, and kilobytes become bytes.
        let fits = |text: &str, gauge: &&str, value: f64| {
            let factor = NUMBERS.iter().find(|(_, name, _)| name == gauge).map(|(_, _, factor)| *factor);
            factor.is_none_or(|factor| is_written(text, gauge, value / factor))
        };
        for page in [EVENT, OFF, PREFORK] {
            hold(page, |page| parse(whole_lines(page)).map(|status| status.values).unwrap_or_default(), fits);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(body in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = parse(&body);
        }
    }
}
