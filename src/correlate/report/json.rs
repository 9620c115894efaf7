//! `--json`: the verdict as one object, its keys in the order of the struct.

use crate::correlate::verdict::Verdict;

/// The object with a line end.
pub fn render(verdict: &Verdict) -> String {
    // Every number in a verdict is finite and every key a string: this cannot fail.
    let mut text = serde_json::to_string_pretty(verdict).unwrap_or_default();
    text.push('\n');
    text
}
