//! Figures out of what drivers print for people.

/// The text after a label, without blanks before it, up to the line's end; of the first line that has the label.
pub(super) fn after<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    let at = text.find(label)? + label.len();
    Some(text[at..].lines().next()?.trim_start_matches([' ', '\t', ':', '=']))
}

/// The number with which a text begins.
pub(super) fn leading(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+'))).unwrap_or(text.len());
    text[..end].parse().ok().filter(|value: &f64| value.is_finite())
}

/// The number after a label.
pub(super) fn number_after(text: &str, label: &str) -> Option<f64> {
    leading(after(text, label)?)
}

/// The number of the last word before a label on its line: `3879 requests in 10.02s`.
pub(super) fn number_before(text: &str, label: &str) -> Option<f64> {
    let at = text.find(label)?;
    let line = text[..at].lines().next_back()?;
    leading(line.split_whitespace().next_back()?)
}

/// A time with its unit, in milliseconds: `82.23ms`, `46 us`, `10.02s`, `0.0209 secs`, `1.50m`. A bare number is seconds.
pub(super) fn time_ms(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let value: f64 = text[..end].parse().ok()?;
    let unit: String = text[end..].trim_start().chars().take_while(|c| c.is_alphabetic()).collect();
    let factor = match unit.as_str() {
        "ns" => 1e-6,
        "us" | "µs" | "μs" => 1e-3,
        "ms" | "msec" => 1.0,
        "m" | "min" => 60_000.0,
        "h" => 3_600_000.0,
        _ => 1000.0,
    };
    Some(value * factor)
}

/// A time after a label, in milliseconds.
pub(super) fn time_after(text: &str, label: &str) -> Option<f64> {
    time_ms(after(text, label)?)
}

/// Text without the escapes that colour a terminal.
pub(super) fn without_colours(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        out.push_str(before);
        rest = after.split_once(|c: char| c.is_ascii_alphabetic()).map_or("", |(_, tail)| tail);
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_by_their_labels() {
        let text = "  3879 requests in 10.02s, 632.61KB read\nRequests/sec:    387.02\nLatency    20.65ms    4.96ms\n";
        assert_eq!(number_before(text, " requests in "), Some(3879.0));
        assert_eq!(time_after(text, "requests in "), Some(10_020.0));
        assert_eq!(number_after(text, "Requests/sec"), Some(387.02));
        assert_eq!(time_after(text, "Latency"), Some(20.65));
        assert_eq!(number_after(text, "Errors"), None);
    }

    #[test]
    fn times_are_read_in_every_unit_and_colours_are_dropped() {
        for (text, want) in
            [("46us", 0.046), ("1.5 ms", 1.5), ("2.00s", 2000.0), ("0.02 secs", 20.0), ("1.50m", 90_000.0), ("3", 3000.0)]
        {
            assert_eq!(time_ms(text), Some(want), "{text}");
        }
        assert_eq!(time_ms("soon"), None);
        assert_eq!(without_colours("\u{1b}[0;32mHTTP/1.1 200\u{1b}[0m x"), "HTTP/1.1 200 x");
    }
}
