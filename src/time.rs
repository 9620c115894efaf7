//! The one clock, and durations in and out.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970, now; negative if the machine's clock stands before that.
pub fn unix_ms() -> f64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_secs_f64() * 1e3,
        Err(before) => -before.duration().as_secs_f64() * 1e3,
    }
}

/// A time as people write it: `2026-11-30 01:29:19 UTC`; the number itself where no calendar has it.
pub fn utc(unix_ms: i64) -> String {
    match chrono::DateTime::from_timestamp_millis(unix_ms) {
        Some(time) => time.format("%Y-%m-%d %H:%M:%S UTC").to_string(),
        None => unix_ms.to_string(),
    }
}

/// Reads a duration as people write it: `500ms`, `1s`, `5m`, `1h 30m`; a bare number is seconds.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|_| format!("not a duration: {text:?}"));
    }
    humantime::parse_duration(text).map_err(|why| format!("not a duration: {text:?} ({why}); for example 500ms, 1s, 5m"))
}

/// A length of time by its two largest units: `3 h 12 min`.
pub fn lasted(seconds: f64) -> String {
    let mut left = seconds.round().max(0.0) as u64;
    let mut parts = Vec::new();
    for (unit, length) in [("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)] {
        let count = left / length;
        left %= length;
        // What is under the first unit's neighbour is left out.
        if count > 0 && parts.len() < 2 {
            parts.push(format!("{count} {unit}"));
        } else if !parts.is_empty() {
            break;
        }
    }
    if parts.is_empty() { format!("{seconds:.1} s") } else { parts.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_in_utc() {
        assert_eq!(utc(1_795_998_200_500), "2026-11-30 00:23:20 UTC");
    }

    #[test]
    fn a_length_has_its_two_largest_units() {
        assert_eq!(
            [0.4, 45.0, 60.0, 90.0, 11_525.0, 14_400.0, 100_000.0].map(lasted),
            ["0.4 s", "45 s", "1 min", "1 min 30 s", "3 h 12 min", "4 h", "1 d 3 h"]
        );
    }

    #[test]
    fn a_bare_number_is_seconds_and_units_are_understood() {
        assert_eq!(parse_duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("5m"), Ok(Duration::from_mins(5)));
    }

    #[test]
    fn a_duration_that_is_none_is_refused_with_what_was_found() {
        assert!(parse_duration("fast").is_err_and(|why| why.contains("\"fast\"")));
        assert!(parse_duration("-3").is_err());
    }
}
