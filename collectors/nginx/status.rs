//! The `stub_status` page as a pure function of its bytes.
//!
//! ```text
//! Active connections: 291
//! server accepts handled requests
//!  16630948 16630948 31070465
//! Reading: 6 Writing: 179 Waiting: 106
//! ```
//! White space and colons only separate, so that a proxy or a fork may join and indent lines; words that are not known and
//! their numbers are skipped. The three counters are the first three numbers after their names: Tengine adds the sum of its
//! requests' times as a fourth, under a name of its own.

/// The numbers with a name before each.
const NAMED: [(&str, &str); 4] =
    [("connections", "active"), ("Reading", "reading"), ("Writing", "writing"), ("Waiting", "waiting")];

/// The counters by position, and the name that stands above each.
const COUNTERS: [(&str, &str); 3] = [("accepts", "accepts_total"), ("handled", "handled_total"), ("requests", "requests_total")];

/// Tengine's name of its fourth number, milliseconds.
const REQUEST_TIME: (&str, &str) = ("request_time", "request_ms_total");

/// One page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// Gauges and raw values.
    pub values: Vec<(&'static str, f64)>,
    /// What was strange, one short phrase each.
    pub oddities: Vec<String>,
}

impl Status {
    /// One value.
    pub fn value(&self, gauge: &str) -> Option<f64> {
        self.values.iter().find(|(name, _)| *name == gauge).map(|(_, value)| *value)
    }

    fn put(&mut self, gauge: &'static str, word: &str) {
        if self.value(gauge).is_some() {
            self.oddities.push(format!("{gauge} stands twice, the first counts"));
        } else if let Some(number) = number(word) {
            self.values.push((gauge, number));
        } else {
            let text: String = word.chars().take(40).collect();
            self.oddities.push(format!("{gauge}: expected a count, got {text:?}"));
        }
    }
}

/// Reads a page of whole lines; `None` where it is no such page.
pub fn parse(body: &[u8]) -> Option<Status> {
    let text = std::str::from_utf8(body).ok()?;
    let words: Vec<&str> = text.split(|c: char| c.is_ascii_whitespace() || c == ':').filter(|word| !word.is_empty()).collect();
    if !words.first().is_some_and(|word| word.eq_ignore_ascii_case("active")) {
        return None;
    }
    let mut status = Status::default();
    let mut at = 1;
    while at < words.len() {
        let word = words[at];
        at += 1;
        if word == COUNTERS[0].0 {
            at = counters(&words, at - 1, &mut status);
        } else if let (Some((_, gauge)), Some(next)) = (NAMED.iter().find(|(name, _)| *name == word), words.get(at)) {
            status.put(gauge, next);
            at += usize::from(starts_number(next));
        }
    }
    (!status.values.is_empty()).then_some(status)
}

/// Reads names and then as many numbers; gives where they end.
fn counters(words: &[&str], from: usize, status: &mut Status) -> usize {
    let names = &words[from..];
    let names = &names[..names.iter().position(|word| starts_number(word)).unwrap_or(names.len())];
    let numbers = &words[from + names.len()..];
    let numbers = &numbers[..numbers.iter().position(|word| !starts_number(word)).unwrap_or(numbers.len())];
    // Fewer numbers than three: which of them are there cannot be told.
    if names.len() >= 3 && names.iter().zip(COUNTERS).all(|(name, (known, _))| *name == known) && numbers.len() >= 3 {
        for ((_, gauge), word) in COUNTERS.into_iter().zip(numbers) {
            status.put(gauge, word);
        }
        if names.len() == numbers.len()
            && let Some(at) = names.iter().position(|name| *name == REQUEST_TIME.0)
        {
            status.put(REQUEST_TIME.1, numbers[at]);
        }
    } else {
        status.oddities.push("accepts handled requests: their numbers are not in a known order".to_owned());
    }
    from + names.len() + numbers.len()
}

fn starts_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit() || c == '-')
}

/// A count: digits alone, below 2^63. A wrapped or negative one is none.
fn number(word: &str) -> Option<f64> {
    if !word.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    word.parse::<u64>().ok().filter(|number| *number < 1 << 63).map(|number| number as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damaged::{hold, is_written};
    use crate::http::whole_lines;
    use proptest::prelude::*;

    const NGINX: &[u8] = include_bytes!("../../fixtures/nginx/1.22.1/stub_status.txt");
    const EXHAUSTED: &[u8] = include_bytes!("../../fixtures/nginx/1.22.1/after-exhaustion.txt");
    const TENGINE: &[u8] = include_bytes!("../../fixtures/tengine/manual/stub_status.txt");
    const OTHERS: [&str; 4] = ["active", "reading", "writing", "waiting"];

    fn values(body: &[u8]) -> Vec<(&'static str, f64)> {
        let status = parse(body).unwrap();
        assert_eq!(status.oddities, Vec::<String>::new(), "{}", String::from_utf8_lossy(body));
        status.values
    }

    #[test]
    fn a_page_of_nginx_gives_every_number() {
        assert_eq!(
            values(NGINX),
            [
                ("active", 1.0),
                ("accepts_total", 46.0),
                ("handled_total", 44.0),
                ("requests_total", 30.0),
                ("reading", 0.0),
                ("writing", 1.0),
                ("waiting", 0.0)
            ]
        );
        let exhausted = parse(EXHAUSTED).unwrap();
        assert_eq!((exhausted.value("accepts_total"), exhausted.value("handled_total")), (Some(38.0), Some(17.0)));
    }

    #[test]
    fn tengines_fourth_number_is_the_time_of_its_requests_and_shifts_nothing() {
        let status = parse(TENGINE).unwrap();
        assert_eq!(status.value("accepts_total"), Some(1140.0));
        assert_eq!(status.value("requests_total"), Some(1140.0));
        assert_eq!(status.value("request_ms_total"), Some(75806.0));
        assert_eq!((status.value("writing"), status.oddities.len()), (Some(1.0), 0));
    }

    #[test]
    fn white_space_and_what_others_add_change_nothing() {
        let plain = values(NGINX);
        for page in [
            "Active connections: 1\nserver accepts handled requests\n46 44 30\nReading: 0 Writing: 1 Waiting: 0",
            "\r\n Active connections:1\r\nserver\taccepts  handled requests\r\n\t46\t44\t30 \r\nReading:0\r\nWriting:1\r\nWaiting:0\r\n\r\n",
            "Active connections: 1 server accepts handled requests 46 44 30 Reading: 0 Writing: 1 Waiting: 0",
            "Active connections: 1\nserver accepts handled requests future\n 46 44 30 9\nReading: 0 Writing: 1 Closing: 5 Waiting: 0\nSSL: 7\n",
            "Active connections: 1\nserver accepts handled requests\n 46 44 30 9 9\nUpstream: a 3\nReading: 0 Writing: 1 Waiting: 0\n",
        ] {
            assert_eq!(values(page.as_bytes()), plain, "{page}");
        }
    }

    #[test]
    fn what_is_no_count_is_missing_with_a_note() {
        for text in ["-1", "18446744073709551615", "x", "1.5", "1e3", "0x10", "+1"] {
            let page = format!("Active connections: {text}\nReading: 0 Writing: 1 Waiting: 2\n");
            let status = parse(page.as_bytes()).unwrap();
            assert_eq!((status.value("active"), status.oddities.len()), (None, 1), "{text}");
            assert_eq!(status.value("waiting"), Some(2.0));
            let page = format!("Active connections: 1\nserver accepts handled requests\n 4 {text} 3\n");
            let status = parse(page.as_bytes()).unwrap();
            assert_eq!(status.value("handled_total"), None, "{text}");
            assert_eq!(status.oddities.len(), 1, "{text}");
        }
    }

    #[test]
    fn counters_in_an_unknown_order_are_missing_and_not_guessed() {
        for line in ["accepts handled\n 4 3", "accepts requests handled\n 4 3 2", "accepts handled requests\n 4 3", "accepts"] {
            let status =
                parse(format!("Active connections: 1\nserver {line}\nReading: 0 Writing: 1 Waiting: 0\n").as_bytes()).unwrap();
            assert!(COUNTERS.iter().all(|(_, gauge)| status.value(gauge).is_none()), "{line}");
            assert_eq!((status.value("writing"), status.oddities.len()), (Some(1.0), 1), "{line}");
        }
    }

    #[test]
    fn other_pages_are_none() {
        let apache: &[u8] = include_bytes!("../../fixtures/apache/2.4.71/event-extended.txt");
        let fpm: &[u8] = include_bytes!("../../fixtures/phpfpm/8.2/status.txt");
        for page in [apache, fpm, b"", b"\n", b"{\"active\": 1}", b"<html>Active connections: 1", b"\xffActive connections: 1"] {
            assert_eq!(parse(page), None, "{}", crate::http::sniff::excerpt(page));
        }
    }

    #[test]
    fn a_page_cut_or_changed_at_any_byte_gives_what_is_written_there_or_nothing() {
        for page in [NGINX, EXHAUSTED, TENGINE] {
            hold(page, |page| parse(whole_lines(page)).map(|status| status.values).unwrap_or_default(), is_written);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(body in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&body);
            let _ = parse(&[b"Active connections ", body.as_slice()].concat());
        }

        #[test]
        fn any_words_and_numbers_leave_the_unreadable_out(words in proptest::collection::vec("[a-zA-Z:]{1,9}|accepts|handled|requests|Reading:|-?[0-9]{1,21}|[0-9]x", 0..40)) {
            let page = format!("Active connections: 3\n{}\n", words.join(" "));
            let status = parse(page.as_bytes()).unwrap();
            prop_assert_eq!(status.value("active"), Some(3.0));
            for gauge in OTHERS {
                prop_assert!(status.values.iter().filter(|(name, _)| *name == gauge).count() <= 1);
            }
        }
    }
}
