//! Numbers as people read them.

use crate::correlate::verdict::Between;

/// A value and its interval with no more digits than the interval's width carries.
pub fn rounded(between: Between) -> (String, String, String) {
    let width = (between.high - between.low).abs();
    let step = if width > 0.0 {
        10_f64.powf((width / 4.0).log10().floor())
    } else {
        10_f64.powf(between.value.abs().max(1e-9).log10().floor() - 2.0)
    };
    let digits = (-step.log10().round()).max(0.0) as usize;
    let one = |value: f64| {
        let value = (value / step).round() * step;
        if digits == 0 { thousands(value) } else { format!("{value:.digits$}") }
    };
    (one(between.value), one(between.low), one(between.high))
}

/// A number as people read it.
pub fn number(value: f64) -> String {
    if value == value.round() && value.abs() < 1e15 {
        thousands(value)
    } else if value.abs() >= 100.0 {
        thousands(value.round())
    } else if value.abs() >= 1.0 {
        format!("{value:.1}")
    } else {
        // Two digits of the smallest, if it needs more than three places.
        let places = (1.0 - value.abs().log10().floor()).clamp(3.0, 9.0) as usize;
        format!("{value:.places$}").trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

/// 1204 as 1,204.
pub fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if value <= -0.5 { format!("-{out}") } else { out }
}

/// With its sign.
pub fn signed(value: f64) -> String {
    format!("{}{}", if value < 0.0 { "-" } else { "+" }, significant(value.abs()))
}

/// Three digits.
pub fn significant(value: f64) -> String {
    if value <= 0.0 || value >= 999.5 {
        return thousands(value);
    }
    let digits = (2.0 - value.log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{value:.digits$}")
}

/// The multiple of a unit in which a value is short.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale<'a> {
    /// How many of the gauge's own unit it is.
    pub by: f64,
    /// Its name with a space before it; nothing for what is only counted.
    pub unit: Unit<'a>,
}

/// A unit behind a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit<'a>(&'a str);

impl std::fmt::Display for Unit<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " {}", self.0) }
    }
}

impl<'a> Scale<'a> {
    /// For a value in this unit; only bytes have multiples.
    pub fn of(unit: &'a str, value: f64) -> Self {
        let (by, unit) = match (unit, value) {
            ("bytes", 1e9..) => (1e9, "GB"),
            ("bytes", 1e6..) => (1e6, "MB"),
            ("bytes", 1e3..) => (1e3, "kB"),
            ("count", _) => (1.0, ""),
            _ => (1.0, unit),
        };
        Self { by, unit: Unit(unit) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_has_no_more_digits_than_its_interval() {
        let text = |value, low, high| rounded(Between { value, low, high });
        assert_eq!(text(782.4, 741.2, 806.0), ("780".into(), "740".into(), "810".into()));
        assert_eq!(text(865.3, 851.0, 880.2).0, "865");
        assert_eq!(text(3.217, 3.1, 3.4).0, "3.22");
        assert_eq!(text(1234.6, 1234.6, 1234.6).0, "1,230");
    }

    #[test]
    fn numbers_are_grouped_and_small_ones_keep_what_they_have() {
        assert_eq!(number(0.0), "0");
        assert_eq!(number(1_131.0), "1,131");
        assert_eq!(number(0.25), "0.25");
        assert_eq!(number(0.000_04), "0.00004");
        assert_eq!(number(-0.0123), "-0.012");
        assert_eq!(thousands(-12_345.0), "-12,345");
    }

    #[test]
    fn a_number_has_three_digits() {
        assert_eq!([0.012_34, 3.456, 56.78, 2345.6].map(significant), ["0.0123", "3.46", "56.8", "2,346"]);
        assert_eq!(signed(-0.5), "-0.500");
    }

    #[test]
    fn bytes_have_multiples_and_what_is_counted_has_no_unit() {
        let told = |unit, value: f64| {
            let scale = Scale::of(unit, value);
            format!("{}{}", significant(value / scale.by), scale.unit)
        };
        assert_eq!(told("bytes", 9_830_400.0), "9.83 MB");
        assert_eq!(told("bytes", 512.0), "512 bytes");
        assert_eq!(told("count", 1800.0), "1,800");
        assert_eq!(told("s", 1.5), "1.50 s");
    }
}
