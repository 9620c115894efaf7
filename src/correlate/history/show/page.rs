//! The series as a page that stands alone: what the last run is against the others, the picture, and every run.

use super::{Line, Series, rate};
use crate::correlate::report::chart::{self, Chart, Mark};
use crate::correlate::report::html::STYLE;
use crate::correlate::report::junit::escaped;
use crate::judge::change::Change;
use crate::time::utc;
use std::fmt::Write as _;

/// The page.
pub fn render(all: &[Series]) -> String {
    let heading = match all {
        [] => "No runs".to_owned(),
        [one] => one.last(),
        several => {
            let last = |series: &&Series| series.told(series.runs.len() - 1);
            let fell = several.iter().filter(|series| last(series).is_some_and(|told| matches!(told.change, Change::Fell(_))));
            format!("{} scenarios; the last run of {} fell", several.len(), fell.count())
        }
    };
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{0}</title><style>{STYLE}</style></head><body>\n<header><p class=\"kind\">What the runs could do</p><h1>{0}</h1></header>\n",
        prose(&heading)
    );
    for series in all {
        out.push_str("<section>");
        // Of a single scenario the heading has said the first thing, and the second stands right below it.
        let title = format!("<h2>{}</h2>", escaped(&series.title()));
        let several = all.len() > 1;
        out.push_str(if several { &title } else { "" });
        for said in several.then(|| series.last()).into_iter().chain(series.before()) {
            // Writing to a string cannot fail.
            let _ = write!(out, "<p>{}</p>", prose(&said));
        }
        out.push_str(if several { "" } else { &title });
        picture(&mut out, series);
        table(&mut out, series);
        out.push_str("</section>\n");
    }
    out.push_str("</body></html>\n");
    out
}

/// No line ends between a number and its per cent.
fn prose(text: &str) -> String {
    escaped(text).replace(" %", "&nbsp;%")
}

fn picture(out: &mut String, series: &Series) {
    let point = |(n, run): (usize, &Line)| (n as f64 + 1.0, run.capacity().unwrap_or(f64::NAN));
    let points: Vec<(f64, f64)> = series.runs.iter().enumerate().map(point).collect();
    // A change stands between two runs, a single run that moved on its own.
    let mark = |at: usize| {
        let (class, place) = if series.changes.contains(&at) { ("knee", at as f64 + 0.5) } else { ("first", at as f64 + 1.0) };
        Some(Mark { at: place, between: (place, place), label: format!("run {} {}", at + 1, series.note(at)?), class })
    };
    let marks: Vec<Mark> = (0..series.runs.len()).filter_map(mark).collect();
    let band = series.told(series.runs.len() - 1).and_then(|told| told.between).map(|(low, high)| (low.max(0.0), high));
    out.push_str("<p class=\"note\">The knee of each run, or the highest rate where nothing gave way, in req/s.");
    for (there, what) in [
        (band.is_some(), " Shaded: where the last run is as usual."),
        (marks.iter().any(|mark| mark.class == "first"), " <span class=\"name\">Marked</span>: unlike the runs before it."),
        (marks.iter().any(|mark| mark.class == "knee"), " <span class=\"held\">Marked</span>: the series changed."),
    ] {
        out.push_str(if there { what } else { "" });
    }
    let chart = Chart {
        x_unit: "run",
        x: (0.5, series.runs.len() as f64 + 0.5),
        lines: vec![("knee", &points)],
        dots: &points,
        band,
        marks,
        ..Chart::default()
    };
    let _ = write!(out, "</p><div class=\"series\">{}</div>", chart::both(&chart, 220.0, "what each run could do"));
}

fn table(out: &mut String, series: &Series) {
    out.push_str("<div class=\"wide-table\"><table class=\"series\"><tr><th>run</th>");
    for name in ["knee, req/s", "against those before", "version", "started, UTC", "first to move", "verdict", "gates"] {
        let _ = write!(out, "<th class=\"text\">{name}</th>");
    }
    out.push_str("</tr>");
    for (n, run) in series.runs.iter().enumerate() {
        let _ = write!(out, "<tr><td>{}</td><td class=\"text\">{}</td>", n + 1, escaped(&rate(run)));
        let note = series.note(n);
        let class = if note.is_some() { " name" } else { "" };
        let _ = write!(out, "<td class=\"text{class}\">{}</td>", prose(&note.unwrap_or_default()));
        // To the minute.
        let started = utc(run.start_unix_ms);
        let started = started.rsplit_once(':').map_or(&*started, |(minute, _)| minute);
        let or = |text: &Option<String>, none: &str| text.clone().unwrap_or_else(|| none.to_owned());
        for cell in [&or(&run.version, "-"), started, &or(&run.first, "nothing"), &run.verdict, &or(&run.gates, "-")] {
            let _ = write!(out, "<td class=\"text\">{}</td>", escaped(cell));
        }
        out.push_str("</tr>");
    }
    out.push_str("</table></div>");
}
