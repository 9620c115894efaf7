//! What memcached answers to `stats`: lines `STAT name value`, then `END`; or one line that begins with `ERROR`.

use crate::fields::Fields;

/// A whole answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reply {
    /// Every statistic by its name, the values as the server writes them.
    Stats(Fields),
    /// `ERROR …`, `CLIENT_ERROR …`, `SERVER_ERROR …`: the line.
    Error(String),
    /// Not memcached: how it begins.
    Foreign(String),
}

const ERRORS: [&str; 3] = ["ERROR", "CLIENT_ERROR", "SERVER_ERROR"];

/// Far more than any memcached tells of itself.
const LARGEST: usize = 1 << 20;

/// The answer that these bytes are, or `None` while it is not whole.
pub(super) fn parse(bytes: &[u8]) -> Option<Reply> {
    let mut stats = Fields::default();
    let mut rest = bytes;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        rest = &rest[end + 1..];
        let text = String::from_utf8_lossy(line);
        let mut words = text.splitn(3, ' ');
        match (words.next(), words.next(), words.next()) {
            // One question, one answer: what follows belongs to no question.
            (Some("END"), None, None) if rest.is_empty() => return Some(Reply::Stats(stats)),
            (Some("STAT"), Some(name), value) => stats.push(name, value.unwrap_or_default()),
            (Some(word), _, _) if stats.is_empty() && ERRORS.contains(&word) => return Some(Reply::Error(text.into_owned())),
            _ => return Some(Reply::Foreign(beginning(line))),
        }
    }
    // A server that speaks first and in binary never ends its line.
    let begins = |word: &str| rest.iter().zip(word.as_bytes()).all(|(found, wanted)| found == wanted);
    if bytes.len() > LARGEST || !(begins("STAT ") || begins("END\r\n") || ERRORS.iter().any(|word| begins(word))) {
        return Some(Reply::Foreign(beginning(rest)));
    }
    None
}

/// Enough of it to recognise, on one line.
fn beginning(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).escape_debug().to_string()
}

/// A statistic as a number; a negative one is a sentinel, not an amount.
pub(super) fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damaged::{hold, is_written};
    use proptest::prelude::*;

    const STATS: &[u8] = include_bytes!("../../fixtures/memcached/1.6.18/stats.txt");
    const SETTINGS: &[u8] = include_bytes!("../../fixtures/memcached/1.6.18/settings.txt");

    #[test]
    fn a_real_answer_is_taken_by_name() {
        let Some(Reply::Stats(stats)) = parse(STATS) else { panic!() };
        assert_eq!(stats.iter().count(), 92);
        assert_eq!(stats.get("version"), Some("1.6.18"));
        assert_eq!(stats.get("rusage_user"), Some("0.111980"));
        let Some(Reply::Stats(settings)) = parse(SETTINGS) else { panic!() };
        assert_eq!(settings.get("maxconns_fast"), Some("yes"));
        assert_eq!(settings.get("stat_key_prefix"), Some(":"));
    }

    #[test]
    fn a_cut_answer_is_never_taken_as_whole() {
        for end in 0..STATS.len() {
            assert_eq!(parse(&STATS[..end]), None, "cut at byte {end}");
        }
    }

    #[test]
    fn a_refusal_is_an_error_and_no_statistic() {
        assert_eq!(parse(b"ERROR Too many open connections\r\n"), Some(Reply::Error("ERROR Too many open connections".to_owned())));
        assert_eq!(parse(b"CLIENT_ERROR bad stats command\r\n"), Some(Reply::Error("CLIENT_ERROR bad stats command".to_owned())));
        assert_eq!(parse(b"ERROR"), None);
    }

    #[test]
    fn another_kind_of_server_is_recognised_by_how_it_begins() {
        for (bytes, begins) in [
            (&b"HTTP/1.1 400 Bad Request\r\nDate: x\r\n"[..], "HTTP/1.1 400 Bad Request"),
            (b"-ERR unknown command 'stats'\r\n", "-ERR unknown"),
            (b"\x4a\x00\x00\x00\x0a9.7.4\x00", "J\\0\\0\\0"),
            (b"STAT a 1\r\nHTTP\r\n", "HTTP"),
            (b"END\r\nEND\r\n", "END"),
        ] {
            let Some(Reply::Foreign(found)) = parse(bytes) else { panic!("{bytes:?}: {:?}", parse(bytes)) };
            assert!(found.starts_with(begins), "{found}");
        }
    }

    #[test]
    fn an_answer_without_end_does_not_grow_for_ever() {
        assert_eq!(parse(&b"STAT a 1\r\n".repeat(100)), None);
        assert!(matches!(parse(&b"STAT a 1\r\n".repeat(200_000)), Some(Reply::Foreign(_))));
    }

    #[test]
    fn what_is_no_amount_is_no_number() {
        assert_eq!(number("0.111980"), Some(0.11198));
        for text in ["", "yes", "-1", "nan", "inf", "1 2", "0x10"] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn an_answer_changed_at_any_byte_gives_what_is_written_there_or_nothing() {
        for answer in [STATS, SETTINGS] {
            let numbers = |bytes: &[u8]| match parse(bytes) {
                Some(Reply::Stats(stats)) => {
                    stats.iter().filter_map(|(name, text)| Some((name.to_owned(), number(text)?))).collect()
                }
                _ => Vec::new(),
            };
            hold(answer, numbers, is_written);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn one_changed_byte_never_makes_a_shorter_answer_of_statistics(at in 0..STATS.len(), byte in any::<u8>()) {
            let mut bytes = STATS.to_vec();
            bytes[at] = byte;
            if let Some(Reply::Stats(stats)) = parse(&bytes) {
                prop_assert!(stats.iter().count() >= 90, "{stats:?}");
            }
        }
    }
}
