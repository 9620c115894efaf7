//! Charts as SVG: lines over time or over the rate, with bands, limits and marks. Colours and widths are classes of the
//! page's style, so that light, dark and print need no other picture.

mod scale;

use crate::correlate::plot::Line;
use crate::correlate::report::junit::escaped;
use crate::correlate::report::numbers::number;
use scale::{nice, powers, short, times, x_label};
use std::fmt::Write as _;

/// Writing to a string cannot fail.
macro_rules! put { ($out:expr, $($arg:tt)*) => { let _ = write!($out, $($arg)*); } }

/// What is drawn.
#[derive(Clone, Debug, Default)]
pub struct Chart<'a> {
    /// The name of the x axis' unit.
    pub x_unit: &'a str,
    /// The unit of the values.
    pub unit: &'a str,
    /// From where to where the x axis goes.
    pub x: (f64, f64),
    /// The lines; their classes are `l0`, `l1`, …
    pub lines: Vec<(&'a str, &'a [(f64, f64)])>,
    /// Whether the areas under the lines are stacked.
    pub stacked: bool,
    /// Single points.
    pub dots: &'a [(f64, f64)],
    /// A band of values.
    pub band: Option<(f64, f64)>,
    /// A limit, with its label.
    pub limit: Option<(f64, String)>,
    /// Marks on the x axis.
    pub marks: Vec<Mark>,
    /// Named stretches of the x axis.
    pub stretches: Vec<(f64, f64, &'a str)>,
    /// Lines from point to point that stand for something fitted.
    pub fitted: Vec<(f64, f64)>,
    /// Squeezes what is far above this value, so that what happens around it can be seen beside a peak of a thousand times.
    pub squeezed: Option<f64>,
}

/// When something began, and in what interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// The likeliest.
    pub at: f64,
    /// The interval.
    pub between: (f64, f64),
    /// What.
    pub label: String,
    /// Its class: `first`, `later`, `felt`, `knee`.
    pub class: &'static str,
}

/// Where the plot stands in the picture.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    x: (f64, f64),
    y: (f64, f64),
    squeezed: Option<f64>,
}

impl Frame {
    fn x(&self, value: f64) -> f64 {
        let share = (value - self.x.0) / (self.x.1 - self.x.0).max(1e-9);
        self.left + share.clamp(0.0, 1.0) * (self.right - self.left)
    }

    fn y(&self, value: f64) -> f64 {
        let scaled = |value: f64| match self.squeezed {
            Some(unit) => (value.max(0.0) / unit).ln_1p(),
            None => value,
        };
        let (low, high) = (scaled(self.y.0), scaled(self.y.1));
        let share = (scaled(value) - low) / (high - low).max(1e-9);
        self.bottom - share.clamp(0.0, 1.0) * (self.bottom - self.top)
    }
}

/// The picture for people who look at a wide screen and at a narrow one; the style shows one of them.
pub fn both(chart: &Chart, height: f64, label: &str) -> String {
    format!("{}{}", svg(chart, "wide", 920.0, height, label), svg(chart, "narrow", 360.0, height, label))
}

/// A picture that stands alone, with the style inside it.
pub fn alone(chart: &Chart, width: f64, height: f64, label: &str, style: &str) -> String {
    let picture = svg(chart, "alone", width, height, label);
    let size = format!("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\"");
    let background = "<style>svg { background: var(--page); }</style>";
    match picture.strip_prefix("<svg").and_then(|rest| rest.split_once('>')) {
        Some((attributes, rest)) => format!("{size}{attributes}><style>{style}</style>{background}{rest}\n"),
        None => picture,
    }
}

fn svg(chart: &Chart, class: &str, width: f64, height: f64, label: &str) -> String {
    let head = if chart.stretches.is_empty() { 10.0 } else { 24.0 };
    let y = range(chart);
    // What is nowhere far above it needs no squeezing.
    let squeezed = chart.squeezed.filter(|unit| *unit > 0.0 && y.1 > 20.0 * unit && y.0 >= 0.0);
    let frame = Frame { left: 52.0, right: width - 8.0, top: head, bottom: height - 24.0, x: chart.x, y, squeezed };
    let mut out =
        format!("<svg class=\"{class}\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{}\">", escaped(label));
    stretches(&mut out, chart, &frame);
    axes(&mut out, chart, &frame, width, height);
    behind(&mut out, chart, &frame);
    if chart.stacked {
        stacked(&mut out, chart, &frame);
    } else {
        for (n, (name, points)) in chart.lines.iter().enumerate().rev() {
            put!(out, "<path class=\"line l{n}\" d=\"{}\"><title>{}</title></path>", path(points, &frame), escaped(name));
        }
    }
    before(&mut out, chart, &frame);
    out.push_str("</svg>");
    out
}

/// The named stretches of the x axis.
fn stretches(out: &mut String, chart: &Chart, frame: &Frame) {
    for (n, (from, to, name)) in chart.stretches.iter().enumerate() {
        let (from, to) = (frame.x(*from), frame.x(*to));
        if to - from < 1.0 {
            continue;
        }
        put!(
            out,
            "<g><rect class=\"stretch s{}\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            n % 2,
            frame.top,
            to - from,
            frame.bottom - frame.top
        );
        put!(out, "<title>{}</title>", escaped(name));
        // Five and a half units are about a letter.
        if to - from > 5.5 * name.chars().count() as f64 {
            put!(out, "<text class=\"stretch\" x=\"{:.1}\" y=\"14\">{}</text>", f64::midpoint(from, to), escaped(name));
        }
        out.push_str("</g>");
    }
}

/// What stands along both axes.
fn axes(out: &mut String, chart: &Chart, frame: &Frame, width: f64, height: f64) {
    let values = match frame.squeezed {
        Some(unit) => powers(unit, frame.y.1),
        None => nice(frame.y.0, frame.y.1, (height / 36.0).max(2.0)),
    };
    let mut last = f64::INFINITY;
    for value in values {
        let at = frame.y(value);
        // On a squeezed scale the lowest ones may stand too close to be read.
        if last - at < 13.0 {
            continue;
        }
        last = at;
        put!(out, "<line class=\"grid\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>", frame.left, frame.right);
        put!(out, "<text class=\"y\" x=\"{:.1}\" y=\"{:.1}\">{}</text>", frame.left - 6.0, at + 4.0, short(value));
    }
    let whole = |value: &f64| chart.x_unit != "run" || value.fract() == 0.0;
    let along = if chart.x_unit == "s" { times } else { nice };
    for value in along(frame.x.0, frame.x.1, width / 90.0).into_iter().filter(whole) {
        let at = frame.x(value);
        put!(
            out,
            "<line class=\"grid\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>",
            frame.bottom,
            frame.bottom + 4.0
        );
        put!(out, "<text class=\"x\" x=\"{at:.1}\" y=\"{:.1}\">{}</text>", height - 8.0, x_label(value, chart.x_unit));
    }
}

/// What the lines are drawn over: the band and the marks.
fn behind(out: &mut String, chart: &Chart, frame: &Frame) {
    if let Some((low, high)) = chart.band {
        let (top, bottom) = (frame.y(high), frame.y(low));
        put!(
            out,
            "<rect class=\"band\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>at rest: {} to {}</title></rect>",
            frame.left,
            top - 1.0,
            frame.right - frame.left,
            bottom - top + 2.0,
            number(low),
            number(high)
        );
    }
    for mark in &chart.marks {
        let (from, to) = (frame.x(mark.between.0), frame.x(mark.between.1));
        put!(
            out,
            "<g class=\"mark {}\" data-at=\"{:.3}\"><rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            mark.class,
            mark.at,
            frame.top,
            (to - from).max(1.0),
            frame.bottom - frame.top
        );
        let at = frame.x(mark.at);
        put!(
            out,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/><title>{}</title></g>",
            frame.top,
            frame.bottom,
            escaped(&mark.label)
        );
    }
}

/// What is drawn over the lines: dots, what was fitted, the limit and the unit.
fn before(out: &mut String, chart: &Chart, frame: &Frame) {
    for (x, y) in chart.dots {
        put!(out, "<circle class=\"dot\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.2\"/>", frame.x(*x), frame.y(*y));
    }
    if !chart.fitted.is_empty() {
        put!(out, "<path class=\"fitted\" d=\"{}\"/>", path(&chart.fitted, frame));
    }
    if let Some((limit, label)) = &chart.limit {
        let at = frame.y(*limit);
        put!(out, "<g class=\"limit\"><line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>", frame.left, frame.right);
        put!(out, "<text x=\"{:.1}\" y=\"{:.1}\">{}</text></g>", frame.left + 4.0, at - 4.0, escaped(label));
    }
    if !chart.unit.is_empty() {
        let note = if frame.squeezed.is_some() { ", squeezed scale" } else { "" };
        put!(
            out,
            "<text class=\"unit\" x=\"{:.1}\" y=\"{:.1}\">{}{note}</text>",
            frame.left + 4.0,
            frame.top + 11.0,
            escaped(chart.unit)
        );
    }
}

/// From 0, or the lowest where that is below, to a little over the highest of everything.
fn range(chart: &Chart) -> (f64, f64) {
    let of_lines = chart.lines.iter().flat_map(|(_, points)| points.iter().map(|(_, y)| *y));
    let tops: Vec<f64> = if chart.stacked { sums(chart) } else { of_lines.collect() };
    let others = chart.dots.iter().chain(&chart.fitted).map(|(_, y)| *y);
    let edges = chart.band.iter().flat_map(|(low, high)| [*low, *high]).chain(chart.limit.iter().map(|(limit, _)| *limit));
    let all = tops.into_iter().chain(others).chain(edges).filter(|value| value.is_finite());
    let (low, high) = all.fold((0.0_f64, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    if high > low { (low, high + 0.06 * (high - low)) } else { (low, low + 1.0) }
}

fn sums(chart: &Chart) -> Vec<f64> {
    let length = chart.lines.iter().map(|(_, points)| points.len()).max().unwrap_or(0);
    let at = |n: usize| chart.lines.iter().filter_map(|(_, points)| points.get(n)).map(|(_, y)| *y).filter(|y| y.is_finite()).sum();
    (0..length).map(at).collect()
}

fn stacked(out: &mut String, chart: &Chart, frame: &Frame) {
    let length = chart.lines.iter().map(|(_, points)| points.len()).max().unwrap_or(0);
    let mut below = vec![0.0; length];
    for (n, (name, points)) in chart.lines.iter().enumerate() {
        let mut path = String::new();
        let above: Vec<f64> = below
            .iter()
            .enumerate()
            .map(|(at, base)| base + points.get(at).map_or(0.0, |(_, y)| if y.is_finite() { *y } else { 0.0 }))
            .collect();
        let forth = points.iter().zip(&above).map(|((x, _), y)| (*x, *y));
        let back = points.iter().zip(&below).rev().map(|((x, _), y)| (*x, *y));
        for (x, y) in forth.chain(back) {
            let letter = if path.is_empty() { 'M' } else { 'L' };
            put!(path, "{letter}{:.1} {:.1}", frame.x(x), frame.y(y));
        }
        put!(out, "<path class=\"area l{n}\" d=\"{path}Z\"><title>{}</title></path>", escaped(name));
        below = above;
    }
}

/// A path with a gap where a value is missing.
fn path(points: &[(f64, f64)], frame: &Frame) -> String {
    let (mut out, mut open) = (String::new(), false);
    for (x, y) in points {
        if !y.is_finite() {
            open = false;
            continue;
        }
        let letter = if open { 'L' } else { 'M' };
        put!(out, "{letter}{:.1} {:.1}", frame.x(*x), frame.y(*y));
        open = true;
    }
    out
}

/// The names of lines with their colours.
pub fn legend(names: impl Iterator<Item = impl AsRef<str>>) -> String {
    let mut out = String::from("<p class=\"legend\">");
    for (n, name) in names.enumerate() {
        let _ = write!(out, "<span><i class=\"l{n}\"></i>{}</span> ", escaped(name.as_ref()));
    }
    out.push_str("</p>");
    out
}

/// Lines as a chart takes them.
pub fn lines(lines: &[Line]) -> Vec<(&str, &[(f64, f64)])> {
    lines.iter().map(|line| (&*line.name, line.points.as_slice())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_value_is_a_gap_and_a_mark_stands_at_its_time() {
        let points = [(0.0, 1.0), (50.0, f64::NAN), (100.0, 3.0)];
        let mark = Mark { at: 50.0, between: (40.0, 60.0), label: "<first>".into(), class: "first" };
        let chart = Chart { x: (0.0, 100.0), x_unit: "s", lines: vec![("a&b", &points)], marks: vec![mark], ..Chart::default() };
        let picture = svg(&chart, "wide", 160.0, 100.0, "load");
        assert!(picture.contains("d=\"M52.0 "), "{picture}");
        assert_eq!(picture.matches("M1").count(), 1, "the second part of the line begins anew: {picture}");
        assert!(picture.contains("data-at=\"50.000\"") && picture.contains("x1=\"102.0\""), "{picture}");
        assert!(picture.contains("a&amp;b") && picture.contains("&lt;first&gt;") && !picture.contains("<first>"));
    }

    #[test]
    fn a_squeezed_scale_shows_what_is_small_beside_what_is_large_and_says_so() {
        let points = [(0.0, 5.0), (1.0, 5000.0)];
        let chart = Chart { x: (0.0, 1.0), unit: "ms", squeezed: Some(5.0), lines: vec![("a", &points)], ..Chart::default() };
        let frame = Frame { left: 0.0, right: 1.0, top: 0.0, bottom: 100.0, x: (0.0, 1.0), y: (0.0, 5000.0), squeezed: Some(5.0) };
        assert!((frame.y(5.0) - 90.0).abs() < 1.0, "{}", frame.y(5.0));
        assert_eq!(powers(5.0, 5000.0), [0.0, 10.0, 100.0, 1000.0]);
        assert!(svg(&chart, "wide", 300.0, 100.0, "").contains("ms, squeezed scale"));
        let small = Chart { squeezed: Some(500.0), ..chart };
        assert!(!svg(&small, "wide", 300.0, 100.0, "").contains("squeezed scale"));
    }

    #[test]
    fn stacked_areas_stand_on_each_other() {
        let (a, b) = ([(0.0, 1.0), (1.0, 1.0)], [(0.0, 2.0), (1.0, 4.0)]);
        let chart = Chart { x: (0.0, 1.0), stacked: true, lines: vec![("a", &a), ("b", &b)], ..Chart::default() };
        assert!((range(&chart).1 - 5.3).abs() < 1e-9);
    }
}
