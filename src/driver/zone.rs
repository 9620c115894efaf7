//! The zone of a driver's local stamps.

use chrono::{Local, MappedLocalTime, NaiveDateTime, TimeZone};
use std::str::FromStr;

/// The zone of a driver's local stamps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Zone {
    /// Seconds east of UTC.
    Offset(i32),
    /// The zone of this machine.
    Machine,
}

impl FromStr for Zone {
    type Err = String;

    /// `+02:00`, `UTC`, `local`.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("local") {
            return Ok(Self::Machine);
        }
        parse_offset(text)
            .map(Self::Offset)
            .ok_or_else(|| format!("not a zone: {text:?}; for example +02:00 or UTC; or local, with TZ={text} before the command"))
    }
}

impl Zone {
    /// The moments that a local time stands for, in microseconds since 1970: none in a spring gap, two in an autumn hour.
    pub(super) fn to_utc_us(&self, local: NaiveDateTime) -> Vec<i64> {
        match self {
            Self::Offset(seconds) => vec![local.and_utc().timestamp_micros() - i64::from(*seconds) * 1_000_000],
            Self::Machine => match Local.from_local_datetime(&local) {
                MappedLocalTime::Single(time) => vec![time.timestamp_micros()],
                // In either order: chrono does not promise the earlier one first.
                MappedLocalTime::Ambiguous(one, other) => {
                    let (one, other) = (one.timestamp_micros(), other.timestamp_micros());
                    vec![one.min(other), one.max(other)]
                }
                MappedLocalTime::None => Vec::new(),
            },
        }
    }
}

/// Seconds east of UTC of `Z`, `UTC`, `+02:00`, `-0330`, `+2`.
pub(super) fn parse_offset(text: &str) -> Option<i32> {
    if matches!(text, "Z" | "z" | "UTC" | "utc" | "GMT") {
        return Some(0);
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits: String = text[1..].chars().filter(|c| *c != ':').collect();
    if text.matches(':').count() > 1 || digits.is_empty() || digits.len() > 4 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value: i32 = digits.parse().ok()?;
    let (hours, minutes) = if digits.len() <= 2 { (value, 0) } else { (value / 100, value % 100) };
    (hours <= 14 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_read_in_every_spelling() {
        for (text, want) in [("Z", 0), ("UTC", 0), ("+02:00", 7200), ("-0330", -12_600), ("+2", 7200), ("-03", -10_800)] {
            assert_eq!(text.parse(), Ok(Zone::Offset(want)), "{text}");
        }
        for text in ["", "+", "+25:00", "02:00", "+1:2:3:4", "Mars/Olympus"] {
            assert!(text.parse::<Zone>().is_err(), "{text}");
        }
    }
}
