//! For the tests of every parser: a real reply that was cut at every byte, and one with every byte changed.

use std::collections::BTreeMap;
use std::fmt::Debug;

/// Bytes that mean something in one format or another, and one that is no text at all.
const STRANGERS: &[u8] = b"0-.xe \n:,\"\t9}\xff";

/// The reply, cut before each of its bytes.
pub(crate) fn every_cut(reply: &[u8]) -> impl Iterator<Item = &[u8]> {
    (0..reply.len()).map(move |end| &reply[..end])
}

/// The reply with one byte changed, each byte to some of the strangers in turn: to fewer in a long reply, for time.
pub(crate) fn every_change(reply: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let each = (6000 / reply.len().max(1)).clamp(1, 5);
    (0..reply.len()).flat_map(move |at| {
        (0..each).map(move |turn| {
            let mut changed = reply.to_vec();
            changed[at] = STRANGERS[(at * each + turn) % STRANGERS.len()];
            changed
        })
    })
}

/// What must hold for a parser of values: a cut reply gives values of the whole one or none; with a byte changed, a value is
/// what it was before or `fits` the changed text; and nothing panics.
pub(crate) fn hold<N: Ord + Debug, V: IntoIterator<Item = (N, f64)>>(
    reply: &[u8],
    parse: impl Fn(&[u8]) -> V,
    fits: impl Fn(&str, &N, f64) -> bool,
) {
    let values = |reply: &[u8]| parse(reply).into_iter().collect::<BTreeMap<N, f64>>();
    let whole = values(reply);
    assert!(!whole.is_empty(), "the reply itself is not read: {}", String::from_utf8_lossy(reply));
    for cut in every_cut(reply) {
        for (name, value) in values(cut) {
            assert_eq!(whole.get(&name), Some(&value), "{name:?} of a reply cut at byte {}", cut.len());
        }
    }
    for changed in every_change(reply) {
        let text = String::from_utf8_lossy(&changed);
        for (name, value) in values(&changed) {
            let same = whole.get(&name) == Some(&value);
            assert!(same || (value.is_finite() && fits(&text, &name, value)), "{name:?} became {value} in {text}");
        }
    }
}

/// The numbers that stand in a text.
pub(crate) fn numbers(text: &str) -> impl Iterator<Item = f64> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || "+-._".contains(c))).filter_map(|word| word.parse().ok())
}

/// The value stands in the text as it is.
pub(crate) fn is_written<N>(text: &str, _: &N, value: f64) -> bool {
    numbers(text).any(|number| number == value)
}

/// For values that are worked out, or found by their place: one that is now 0 stands for a 0 that was not in the reply
/// before, or for another place, since a word became two or two became one.
pub(crate) fn no_new_zero<N>(reply: &[u8]) -> impl Fn(&str, &N, f64) -> bool {
    let zeros = |text: &str| numbers(text).filter(|number| *number == 0.0).count();
    let words = |text: &str| text.split_whitespace().count();
    let reply = String::from_utf8_lossy(reply);
    let (zeros_before, words_before) = (zeros(&reply), words(&reply));
    move |text, _, value| value != 0.0 || zeros(text) > zeros_before || words(text) != words_before
}

#[test]
fn a_parser_that_takes_the_unreadable_for_0_is_found_out() {
    let reply = b"busy 17\nidle 4\n";
    let parse = |bad: f64| {
        move |text: &[u8]| -> Vec<(String, f64)> {
            let text = String::from_utf8_lossy(text).into_owned();
            let lines =
                text.split_inclusive('\n').filter(|line| line.ends_with('\n')).filter_map(|line| line.trim().split_once(' '));
            let all = lines.map(|(name, value)| (name.to_owned(), value.parse().unwrap_or(bad)));
            all.filter(|(_, value)| !value.is_nan()).collect()
        }
    };
    hold(reply, parse(f64::NAN), is_written);
    let found = std::panic::catch_unwind(|| hold(reply, parse(0.0), is_written)).unwrap_err();
    assert!(found.downcast_ref::<String>().unwrap().contains("became 0"));
    let found = std::panic::catch_unwind(|| hold(reply, parse(0.0), no_new_zero(reply))).unwrap_err();
    assert!(found.downcast_ref::<String>().unwrap().contains("became 0"));
}
