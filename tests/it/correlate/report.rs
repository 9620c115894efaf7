//! The page of a run, as a browser shows it.

use crate::support::made::Made;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Measures the page after it was laid out, and leaves what it found as the document's only text.
const MEASURE: &str = "<script>
addEventListener('load', () => {
  const box = (e) => { const r = e.getBoundingClientRect(); return { left: r.left, right: r.right, top: r.top, width: r.width, height: r.height }; };
  const shown = (e) => e.getBoundingClientRect().width > 0;
  const charts = [...document.querySelectorAll('svg')].filter(shown).map((svg) => ({
    label: svg.getAttribute('aria-label'),
    ticks: [...svg.querySelectorAll('text.x')].map((t) => ({ text: t.textContent, at: box(t).left + box(t).width / 2 })),
    marks: [...svg.querySelectorAll('.mark')].map((m) => ({ kind: m.getAttribute('class'), at: box(m.querySelector('line')).left, from: box(m.querySelector('rect')).left, to: box(m.querySelector('rect')).right })),
    box: box(svg),
  }));
  const heading = document.querySelector('h1');
  const found = { charts, heading: heading.textContent, heading_box: box(heading), size: parseFloat(getComputedStyle(heading).fontSize),
    background: getComputedStyle(document.body).backgroundColor, wide: document.documentElement.scrollWidth, view: innerWidth,
    loaded: performance.getEntriesByType('resource').map((e) => e.name) };
  document.body.textContent = JSON.stringify(found);
});
</script>";

/// What a browser of this width shows of a page; `None` where there is no browser.
pub(super) fn shown(page: &Path, width: u32, dark: bool) -> Option<Value> {
    let measured = page.with_extension(format!("{width}-{dark}.html"));
    let html = std::fs::read_to_string(page).unwrap();
    std::fs::write(&measured, format!("{html}{MEASURE}")).unwrap();
    let profile = tempfile::tempdir().unwrap();
    let mut browser = Command::new("chromium");
    browser.args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--enable-logging=stderr", "--dump-dom"]);
    if dark {
        browser.arg("--blink-settings=preferredColorScheme=0");
    }
    browser.arg(format!("--user-data-dir={}", profile.path().display()));
    browser.arg(format!("--window-size={width},1200")).arg(format!("file://{}", measured.display()));
    let said = match browser.output() {
        Ok(said) => said,
        Err(why) => {
            let required = std::env::var_os("WHATGIVES_SERVERS_REQUIRED").is_some();
            assert!(!required, "chromium does not start: {why}");
            eprintln!("NOT TESTED: no chromium here ({why}); tests/run installs it");
            return None;
        }
    };
    let log = String::from_utf8_lossy(&said.stderr);
    assert!(!log.contains("CONSOLE"), "the page logged an error: {log}");
    let dom = String::from_utf8(said.stdout).expect("text");
    let json = dom.split_once("<body>").and_then(|(_, body)| body.rsplit_once("</body>")).map(|(body, _)| body.trim());
    let json = json.unwrap_or_else(|| panic!("no body in {dom:?}; {log}"));
    let json = json.replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">");
    Some(serde_json::from_str(&json).unwrap_or_else(|why| panic!("{why} in {json}")))
}

pub(super) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("not a number: {value}"))
}

/// The time at a place of a chart, by the labels of its axis.
pub(super) fn time_at(chart: &Value, place: f64) -> f64 {
    let ticks: Vec<(f64, f64)> = chart["ticks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tick| {
            let text = tick["text"].as_str().unwrap().trim_end_matches(" s").replace(',', "");
            (text.parse().unwrap_or_else(|_| panic!("no seconds: {text}")), number(&tick["at"]))
        })
        .collect();
    let ((t0, x0), (t1, x1)) = (ticks[0], ticks[ticks.len() - 1]);
    t0 + (place - x0) / (x1 - x0) * (t1 - t0)
}

#[test]
fn the_page_shows_the_answer_first_and_its_marks_stand_at_their_times() {
    let files = Made::default().write();
    let page = files.beside("run.html");
    let said = files.correlate_with(&["--report", page.to_str().unwrap()]);
    let first = &said.verdict["first"];
    for (width, dark) in [(1280, false), (400, true)] {
        let Some(found) = shown(&page, width, dark) else { return };
        assert_eq!(found["loaded"], Value::Array(Vec::new()), "nothing is loaded from anywhere");
        let heading = found["heading"].as_str().unwrap();
        assert!(heading.starts_with(first["resource"].as_str().unwrap()), "{heading}");
        assert!(number(&found["heading_box"]["top"]) < 120.0 && number(&found["size"]) >= 20.0, "{found:#}");
        assert!(number(&found["wide"]) <= number(&found["view"]), "nothing stands over the edge at {width}");
        let background = found["background"].as_str().unwrap();
        assert_eq!(background == "rgb(255, 255, 255)", !dark, "{background}");

        let charts = found["charts"].as_array().unwrap();
        let of_first = charts.iter().find(|chart| chart["label"].as_str().unwrap().starts_with(first["gauge"].as_str().unwrap()));
        let load = charts.iter().find(|chart| chart["label"].as_str().unwrap().starts_with("the rate"));
        for chart in [of_first.expect("a chart of the first mover"), load.expect("a chart of the load")] {
            let mark = chart["marks"].as_array().unwrap().iter().find(|mark| mark["kind"] == "mark first").expect("its mark");
            for (place, told) in [("at", "elapsed_s"), ("from", "low_s"), ("to", "high_s")] {
                let (drawn, told) = (time_at(chart, number(&mark[place])), number(&first["onset"][told]));
                assert!((drawn - told).abs() < 1.0, "{place} stands at {drawn} s, and {told} s is told, {width} wide");
            }
        }
    }
}

#[test]
fn what_comes_from_data_is_text_and_never_markup() {
    let files = Made::default().write();
    files.edit("ticks", |lines| {
        for line in lines.iter_mut() {
            *line =
                line.replace("connection pool", "<script>alert(1)</script>&amp;\\\"").replace("app.pool_waiting", "app.<b>pool");
        }
    });
    let (page, text) = (files.beside("run.html"), files.beside("run.md"));
    let said = files.correlate_with(&["--report", page.to_str().unwrap(), "--markdown", text.to_str().unwrap()]);
    assert!(said.verdict["first"]["resource"].as_str().unwrap().contains("<script>"), "{:#}", said.verdict["first"]);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(!page.contains("<script") && !page.contains("<b>pool"), "{page}");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;&amp;amp;"), "{page}");
    let picture = std::fs::read_to_string(files.beside("run.svg")).unwrap();
    assert!(picture.starts_with("<svg xmlns=") && !picture.contains("<script"), "{picture}");
    let text = std::fs::read_to_string(text).unwrap();
    assert!(text.contains("\\<script\\>") && text.contains("](run.svg)"), "{text}");
}

/// The page of a recorded story.
fn page_of(story: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/runs").join(story);
    let file = |name: &str| folder.join(name).into_os_string();
    let into = tempfile::tempdir().unwrap();
    let page = into.path().join("run.html");
    let mut correlate = Command::new(env!("CARGO_BIN_EXE_correlate"));
    correlate.arg(file("ticks.tsv.gz")).arg(file("waits.tsv.gz")).arg("--driver").arg(file("requests.tsv.gz"));
    let said = correlate.arg("--report").arg(&page).output().unwrap();
    assert!(said.status.success(), "{said:?}");
    std::fs::read_to_string(page).unwrap()
}

/// The text between two others, the first time that both are there.
fn between<'a>(page: &'a str, before: &str, after: &str) -> &'a str {
    page.split_once(before).and_then(|(_, rest)| rest.split_once(after)).map_or_else(|| panic!("no {before}"), |(found, _)| found)
}

#[test]
fn a_leak_is_the_headline_where_nothing_left_its_rest_and_is_drawn_with_its_line() {
    let page = page_of("leak");
    assert_eq!(
        between(&page, "<title>", "</title>"),
        "app.session_memory_bytes grows under held load; nothing left rest up to 40 req/s"
    );
    let drawn = between(&page, "<h2>Held load and spikes</h2>", "</section>");
    assert!(drawn.contains("its growth") && drawn.contains("aria-label=\"app.session_memory_bytes over time\""), "{drawn}");
}

#[test]
fn a_spike_that_was_worked_off_is_marked_until_everything_was_back() {
    let page = page_of("spike-recovers");
    assert!(between(&page, "<h2>Load</h2>", "</section>").contains("mark back"));
    assert!(!between(&page_of("spike-no-recovery"), "<h2>Load</h2>", "</section>").contains("mark back"));
}

#[test]
fn waiters_are_drawn_by_row_where_few_rows_have_most_of_them_and_else_by_table() {
    let legend = |story| between(&page_of(story), "<h2>Who waited, and on what</h2>", "</p>").to_owned();
    // PostgreSQL names each version of the one hot row anew.
    let postgres = legend("postgres-hot-row");
    assert!(postgres.contains("public.slot<") && !postgres.contains("others"), "{postgres}");
    let mysql = legend("mysql-hot-row");
    assert!(mysql.contains("shop.slot PRIMARY 17<"), "{mysql}");
}
