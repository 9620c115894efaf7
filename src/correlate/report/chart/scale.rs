//! Where the lines of a chart's grid stand, and what is written at them.

use crate::correlate::report::numbers::number;

/// Round values between two, about so many.
pub(super) fn nice(low: f64, high: f64, about: f64) -> Vec<f64> {
    let raw = (high - low) / about.max(1.0);
    if raw <= 0.0 || !raw.is_finite() {
        return vec![low];
    }
    let power = 10_f64.powf(raw.log10().floor());
    let step = power * [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * power >= raw).unwrap_or(10.0);
    multiples(low, high, step)
}

fn multiples(low: f64, high: f64, step: f64) -> Vec<f64> {
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    (first..=last).map(|n| n as f64 * step).collect()
}

/// What minutes and hours are divided into, seconds.
const TIMES: [f64; 12] = [60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 10_800.0, 21_600.0, 43_200.0, 86_400.0];

/// Times that a clock would show, about so many.
pub(super) fn times(low: f64, high: f64, about: f64) -> Vec<f64> {
    let raw = (high - low) / about.max(1.0);
    match TIMES.into_iter().find(|step| *step >= raw) {
        Some(step) if raw > TIMES[0] => multiples(low, high, step),
        _ => nice(low, high, about),
    }
}

/// 0 and the powers of ten from about a unit on.
pub(super) fn powers(unit: f64, high: f64) -> Vec<f64> {
    let first = unit.log10().round() as i32;
    let powers = (first..).map(|power| 10_f64.powi(power)).take_while(|value| *value <= high);
    std::iter::once(0.0).chain(powers).collect()
}

/// A value of the x axis.
pub(super) fn x_label(value: f64, unit: &str) -> String {
    match unit {
        "s" if value >= 7200.0 => format!("{} h", number(value / 3600.0)),
        "s" if value >= 600.0 => format!("{} min", number((value / 60.0 * 10.0).round() / 10.0)),
        "s" => format!("{} s", number(value)),
        _ => number(value),
    }
}

/// A value of the y axis in little space.
pub(super) fn short(value: f64) -> String {
    for (scale, letter) in [(1e9, "G"), (1e6, "M"), (1e4, "k")] {
        if value.abs() >= scale {
            let scale = if letter == "k" { 1e3 } else { scale };
            return format!("{}{letter}", number((value / scale * 100.0).round() / 100.0));
        }
    }
    number(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_round_values_within_its_ends() {
        assert_eq!(nice(0.0, 103.0, 5.0), [0.0, 50.0, 100.0]);
        assert_eq!(nice(0.0, 0.9, 4.0), [0.0, 0.5]);
        assert_eq!(nice(3.0, 3.0, 4.0), [3.0]);
    }

    #[test]
    fn an_axis_of_hours_has_hours_and_one_of_seconds_round_seconds() {
        assert_eq!(times(0.0, 86_400.0, 4.0), [0.0, 21_600.0, 43_200.0, 64_800.0, 86_400.0]);
        assert_eq!(times(0.0, 1800.0, 10.0), [0.0, 300.0, 600.0, 900.0, 1200.0, 1500.0, 1800.0]);
        assert_eq!(times(0.0, 50.0, 10.0), nice(0.0, 50.0, 10.0));
    }
}
