//! Stamps of drivers as microseconds since 1970: the unit told by the number of digits, dates with and without a zone.

use super::zone::Zone;
use chrono::{NaiveDate, NaiveDateTime};

/// 2001-09-09 to 2096-10-02: what has the right number of digits and is no stamp of a clock that was never set.
const EARLIEST_US: i64 = 1_000_000_000_000_000;
const LATEST_US: i64 = 4_000_000_000_000_000;

/// What a stamp is written in. One file has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Millis,
    Micros,
    Nanos,
    /// A date with its offset from UTC.
    Date,
    /// A date in local time.
    LocalDate,
}

/// Why a stamp was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Bad {
    /// The row is bad.
    Row(String),
    /// The whole file is: what was found, and what mends it.
    File(String, &'static str),
}

/// The stamps of one file.
#[derive(Debug, Default)]
pub(super) struct Clock {
    pub unit: Option<Unit>,
    pub zone: Option<Zone>,
    /// Whether a fraction of a second was ever seen where the unit is seconds.
    pub fractions: bool,
    /// Whether a local date was read without a zone having been given.
    pub zone_assumed: bool,
    last_us: Option<i64>,
}

impl Clock {
    /// Of a file whose local dates are in a zone.
    pub fn new(zone: Option<Zone>) -> Self {
        Self { zone, ..Self::default() }
    }

    /// Whether only whole seconds are told.
    pub fn is_coarse(&self) -> bool {
        self.unit == Some(Unit::Seconds) && !self.fractions
    }

    /// A stamp in microseconds since 1970.
    pub fn us(&mut self, cell: &[u8]) -> Result<i64, Bad> {
        let cell = cell.trim_ascii();
        let digits = cell.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (us, unit) = if digits == cell.len() && digits > 0 {
            let value = integer(cell).ok_or_else(|| bad(cell))?;
            scaled(value, digits).ok_or_else(|| bad(cell))?
        } else if cell.get(digits) == Some(&b'.') && cell[digits + 1..].iter().all(u8::is_ascii_digit) && digits > 0 {
            let value = integer(&cell[..digits]).ok_or_else(|| bad(cell))?;
            let (us, unit) = scaled(value, digits).ok_or_else(|| bad(cell))?;
            self.fractions = true;
            let one = if unit == Unit::Seconds { 1_000_000 } else { 1000 };
            (if matches!(unit, Unit::Seconds | Unit::Millis) { us + fraction(&cell[digits + 1..], one) } else { us }, unit)
        } else if is_exponent(cell) {
            return Err(Bad::File(
                format!(
                    "the stamp {:?} has an exponent: a spreadsheet rounded it, and its digits are gone",
                    String::from_utf8_lossy(cell)
                ),
                "use the file that the driver wrote, not one saved by a spreadsheet",
            ));
        } else {
            self.date(cell)?
        };
        if !(EARLIEST_US..LATEST_US).contains(&us) {
            return Err(Bad::Row(format!("the stamp {} is not of this century", String::from_utf8_lossy(cell))));
        }
        match self.unit {
            None => self.unit = Some(unit),
            Some(known) if known != unit => {
                return Err(Bad::File(
                    format!("stamps of two kinds in one file: {} after {known:?}", String::from_utf8_lossy(cell)),
                    "give the files of the two runs one by one",
                ));
            }
            Some(_) => {}
        }
        self.last_us = Some(us);
        Ok(us)
    }

    fn date(&mut self, cell: &[u8]) -> Result<(i64, Unit), Bad> {
        let text = std::str::from_utf8(cell).map_err(|_| bad(cell))?;
        let (local, offset) = parse_date(text).ok_or_else(|| bad(cell))?;
        let utc_us = local.and_utc().timestamp_micros();
        if let Some(seconds) = offset {
            return Ok((utc_us - i64::from(seconds) * 1_000_000, Unit::Date));
        }
        self.zone_assumed |= self.zone.is_none();
        let zone = self.zone.get_or_insert(Zone::Machine);
        let candidates = zone.to_utc_us(local);
        // In the hour that an autumn night repeats, time goes on from where it was.
        let near = self.last_us.map_or(i64::MIN, |last| last - 300_000_000);
        let us = candidates.iter().copied().find(|us| *us >= near).or_else(|| candidates.last().copied());
        us.map(|us| (us, Unit::LocalDate)).ok_or_else(|| Bad::Row(format!("the local time {text} does not exist in the zone")))
    }
}

fn bad(cell: &[u8]) -> Bad {
    Bad::Row(format!("expected a stamp, found {:?}", String::from_utf8_lossy(&cell[..cell.len().min(60)])))
}

fn integer(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0_i64, |sum, byte| sum.checked_mul(10)?.checked_add(i64::from(byte - b'0')))
}

/// The first digits of a fraction, as a share of `one`.
fn fraction(digits: &[u8], one: i64) -> i64 {
    let (mut value, mut place) = (0, one);
    for byte in digits {
        place /= 10;
        value += place * i64::from(byte - b'0');
    }
    value
}

fn scaled(value: i64, digits: usize) -> Option<(i64, Unit)> {
    match digits {
        1..=11 => Some((value * 1_000_000, Unit::Seconds)),
        12..=14 => Some((value * 1000, Unit::Millis)),
        15..=17 => Some((value, Unit::Micros)),
        18..=19 => Some((value / 1000, Unit::Nanos)),
        _ => None,
    }
}

fn is_exponent(cell: &[u8]) -> bool {
    cell.iter().any(|byte| matches!(byte, b'e' | b'E'))
        && cell.first().is_some_and(u8::is_ascii_digit)
        && std::str::from_utf8(cell).is_ok_and(|text| text.replace(',', ".").parse::<f64>().is_ok())
}

/// A date and time, and its offset from UTC in seconds where it has one: `2026-11-29T19:24:42.399Z`, `2026/11/29
/// 21:20:55.081`, `11/29/2026 21:20`, `29.11.2026 21:20:55`, with `T` or blank, `.` or `,` before the fraction.
pub(super) fn parse_date(text: &str) -> Option<(NaiveDateTime, Option<i32>)> {
    let text = text.trim();
    let at = text.find(['T', ' ']).filter(|at| *at >= 8)?;
    let (date, rest) = (&text[..at], text[at + 1..].trim_start());
    let mut parts = date.split(['-', '/', '.']).map(str::parse::<u32>);
    let (a, b, c) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    if parts.next().is_some() {
        return None;
    }
    let (year, month, day) = if a > 31 {
        (a, b, c)
    } else if a > 12 || date.contains('.') {
        (c, b, a)
    } else {
        (c, a, b)
    };
    let end = rest.find(|c: char| !(c.is_ascii_digit() || matches!(c, ':' | '.' | ','))).unwrap_or(rest.len());
    let (clock, zone) = (&rest[..end], rest[end..].trim());
    let (whole, part) = clock.split_once(['.', ',']).unwrap_or((clock, ""));
    let mut parts = whole.split(':').map(str::parse::<u32>);
    let (hour, minute) = (parts.next()?.ok()?, parts.next()?.ok()?);
    let second = match parts.next() {
        Some(second) => second.ok()?,
        None => 0,
    };
    if parts.next().is_some() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let us = fraction(part.as_bytes(), 1_000_000);
    let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?;
    let time = date.and_hms_micro_opt(hour, minute, second.min(59), u32::try_from(us).ok()?)?;
    let offset = if zone.is_empty() { None } else { Some(super::zone::parse_offset(zone)?) };
    Some((time, offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: i64 = 1_795_980_282_399_299;

    fn one(cell: &str) -> Result<i64, Bad> {
        Clock::new(Some(Zone::Offset(0))).us(cell.as_bytes())
    }

    #[test]
    fn the_unit_is_told_by_the_number_of_digits() {
        assert_eq!(one("1795980282"), Ok(1_795_980_282_000_000));
        assert_eq!(one("1795980282.399299"), Ok(US));
        assert_eq!(one("1795980282399"), Ok(1_795_980_282_399_000));
        assert_eq!(one("1795980282399.299"), Ok(US));
        assert_eq!(one("1795980282399299"), Ok(US));
        assert_eq!(one("1795980282399299746"), Ok(US));
    }

    #[test]
    fn dates_are_read_with_and_without_a_zone() {
        assert_eq!(one("2026-11-29T19:24:42.399299746Z"), Ok(US));
        assert_eq!(one("2026-11-29T16:24:42.399299-03:00"), Ok(US));
        assert_eq!(one("2026-11-29 21:24:42,399299 +0200"), Ok(US));
        assert_eq!(one("11/29/2026 19:24:42.399299"), Ok(US));
        assert_eq!(one("29.11.2026 19:24:42.399299"), Ok(US));
        let mut clock = Clock::new(Some(Zone::Offset(7200)));
        assert_eq!(clock.us(b"2026/11/29 21:24:42.399"), Ok(1_795_980_282_399_000));
        assert!(!clock.zone_assumed);
    }

    #[test]
    fn a_stamp_with_an_exponent_is_refused_with_the_reason() {
        assert!(matches!(one("1.64797E+12"), Err(Bad::File(why, _)) if why.contains("exponent") && why.contains("1.64797E+12")));
        assert!(matches!(one("1,64797E+12"), Err(Bad::File(..))));
    }

    #[test]
    fn two_units_in_one_file_are_refused_and_a_stamp_of_1970_is_a_bad_row() {
        let mut clock = Clock::default();
        assert!(clock.us(b"1795980282").is_ok());
        assert!(matches!(clock.us(b"1795980282399"), Err(Bad::File(why, _)) if why.contains("two kinds")));
        assert!(matches!(one("0"), Err(Bad::Row(_))));
        assert!(matches!(one("abc"), Err(Bad::Row(_))));
        assert!(matches!(one(""), Err(Bad::Row(_))));
        assert!(matches!(one("99999999999999999999999"), Err(Bad::Row(_))));
    }

    #[test]
    fn only_seconds_without_a_fraction_are_coarse() {
        let mut clock = Clock::default();
        assert!(clock.us(b"1795980282").is_ok());
        assert!(clock.is_coarse());
        assert!(clock.us(b"1795980282.5").is_ok());
        assert!(!clock.is_coarse());
    }
}
