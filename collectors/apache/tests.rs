use super::*;
use crate::http::fake::{pages, run, said};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const EVENT: &str = include_str!("../../fixtures/apache/2.4.71/event-extended.txt");
const OFF: &str = include_str!("../../fixtures/apache/2.4.71/event-extended-off.txt");
const HTML: &str = include_str!("../../fixtures/apache/2.4.71/event-not-auto.html");

fn collector(endpoint: &str, settings: &str) -> Result<Box<dyn Collector>, Fault> {
    open(&Section::of("web", endpoint, settings))
}

fn started(endpoint: &str, settings: &str) -> (Box<dyn Collector>, Result<Support, Fault>) {
    let mut collector = collector(endpoint, settings).unwrap();
    let support = run(collector.start());
    (collector, support)
}

#[test]
fn a_url_without_a_path_finds_the_page_and_says_which_answered() {
    let url = pages(|path| match path {
        "/apache-status?auto" => ("200 OK", EVENT.to_owned()),
        "/server-status?auto" => ("200 OK", "<html><title>Shop</title>".to_owned()),
        _ => ("404 Not Found", String::new()),
    });
    let support = started(url.as_str(), "").1.unwrap();
    assert_eq!(support.endpoint, format!("{url}apache-status?auto"));
    assert_eq!((support.product.as_str(), support.version.as_str()), ("Apache", "2.4.71 (Debian)"));
}

#[test]
fn where_no_path_answers_each_is_named_with_what_it_said() {
    let url = pages(|path| match path {
        "/server-status?auto" => ("403 Forbidden", "no".to_owned()),
        "/status?auto" => ("200 OK", "Active connections: 1 \n".to_owned()),
        _ => ("404 Not Found", String::new()),
    });
    let fault = started(url.as_str(), "").1.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Denied);
    for part in ["/server-status?auto: 403 Forbidden", "/apache-status?auto: 404", "nginx' stub_status page"] {
        assert!(fault.message.contains(part), "{part} in {fault}");
    }
    assert!(fault.hint.unwrap().contains("SetHandler server-status"));
}

#[test]
fn a_url_without_auto_gets_it_and_says_so() {
    for (given, asked, said) in [
        ("server-status", "server-status?auto", true),
        ("server-status?refresh=5", "server-status?refresh=5&auto", true),
        ("server-status?auto", "server-status?auto", false),
        ("server-status?auto=1", "server-status?auto=1", false),
    ] {
        let url = pages(|path| if path.contains("auto") { ("200 OK", EVENT.to_owned()) } else { ("200 OK", HTML.to_owned()) });
        let support = started(&format!("{url}{given}"), "").1.unwrap();
        assert_eq!(support.endpoint, format!("{url}{asked}"));
        assert_eq!(support.sees.iter().any(|sees| sees.contains("?auto was added")), said, "{given}");
    }
}

#[test]
fn html_with_status_200_is_nonsense_that_names_the_page() {
    for (body, part) in [
        (HTML, "Apache's mod_status page for people"),
        ("<!DOCTYPE html><title>Log in</title>", "an HTML page titled \"Log in\""),
        ("Total Accesses: 1\nBusyServers: 1\nIdleServers: 7\nScoreboard: r\n", "lighttpd"),
        ("# HELP up x\n# TYPE up gauge\nup 1\n", "Prometheus text format"),
        ("pool: www\nprocess manager: dynamic\n", "php-fpm"),
        ("{\"status\":1}", "JSON"),
        ("", "an empty page"),
    ] {
        let url = pages(move |_| ("200 OK", body.to_owned()));
        let fault = started(&format!("{url}server-status?auto"), "").1.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Nonsense);
        assert!(fault.message.contains(part) && fault.hint.is_some(), "{fault}");
    }
}

#[test]
fn without_extended_status_the_lack_names_the_line_and_the_columns_stay() {
    let url = pages(|_| ("200 OK", OFF.to_owned()));
    let (mut collector, support) = started(&format!("{url}server-status?auto"), "");
    let support = support.unwrap();
    assert!(support.lacks.iter().any(|lack| lack.mend.as_deref() == Some("ExtendedStatus On")), "{:?}", support.lacks);
    assert!(support.columns.iter().any(|gauge| gauge.name == "accesses_total"));
    let reading = run(collector.read()).unwrap();
    assert!(!reading.values.iter().any(|(name, _)| ["accesses_total", "duration_ms_total", "sent_bytes_total"].contains(name)));
    assert!(reading.values.contains(&("busy_workers", 1.0)));
}

#[test]
fn every_value_has_a_column_and_every_capacity_too() {
    let url = pages(|_| ("200 OK", EVENT.to_owned()));
    let (mut collector, support) = started(&format!("{url}server-status?auto"), "");
    let columns = support.unwrap().columns;
    let names: Vec<_> = columns.iter().map(|gauge| gauge.name).collect();
    let reading = run(collector.read()).unwrap();
    for (name, _) in &reading.values {
        assert!(names.contains(name), "{name} has no column");
    }
    for gauge in columns.iter().filter(|gauge| gauge.is_read()) {
        assert!(reading.values.iter().any(|(name, _)| *name == gauge.name), "{} was not read", gauge.name);
        if let crate::api::Capacity::Column(of) = gauge.capacity {
            assert!(names.contains(&of), "{of} of {}", gauge.name);
        }
    }
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
}

/// A status page with these busy and idle workers and this scoreboard.
fn page(restart: &str, generation: u32, busy: u32, idle: u32, scoreboard: &str) -> String {
    format!(
        "site\nServerMPM: event\nRestartTime: {restart}\nParentServerMPMGeneration: {generation}\nBusyWorkers: {busy}\n\
         IdleWorkers: {idle}\nScoreboard: {scoreboard}\n"
    )
}

/// Starts on the first page and reads the others; the value of `workers` and the notes of each read.
fn story(texts: Vec<String>, settings: &str) -> Vec<(Option<f64>, String)> {
    let at = Arc::new(AtomicUsize::new(0));
    let (count, texts) = (texts.len(), Mutex::new(texts));
    let url = pages(move |_| ("200 OK", texts.lock().unwrap()[at.fetch_add(1, Ordering::SeqCst)].clone()));
    let (mut collector, support) = started(&format!("{url}server-status?auto"), settings);
    support.unwrap();
    (1..count)
        .map(|_| {
            let reading = run(collector.read()).unwrap();
            (reading.get("workers"), said(&reading))
        })
        .collect()
}

#[test]
fn the_number_of_workers_is_the_scoreboards_smallest_length() {
    let told = story(
        vec![
            page("a", 0, 1, 3, "__W_...."),
            page("a", 0, 8, 0, "WWWWWWWW"),
            // After a graceful restart the old processes' places show too.
            page("a", 1, 1, 3, "GGGG....__W_"),
            // A reload raised the limit.
            page("a", 2, 10, 2, "WWWWWWWWWW__"),
            // A full restart begins anew.
            page("b", 0, 1, 1, "W_"),
        ],
        "",
    );
    assert_eq!(told.iter().map(|(workers, _)| workers.unwrap()).collect::<Vec<_>>(), [8.0, 8.0, 12.0, 2.0]);
    let notes: Vec<_> = told.into_iter().map(|(_, notes)| notes).collect();
    assert_eq!(notes, ["", "graceful restart", "graceful restart", "restarted, counters begin again"]);
}

#[test]
fn a_configured_number_of_workers_wins_and_none_is_no_0() {
    let twice = |text: String| vec![text.clone(), text];
    assert_eq!(story(twice(page("a", 0, 1, 3, "__W_")), "max_request_workers = 400")[0].0, Some(400.0));
    assert_eq!(story(twice("BusyWorkers: 1\nIdleWorkers: 2\n".to_owned()), "")[0].0, None);
}

#[test]
fn a_strange_page_is_noted_once() {
    let text = "BusyWorkers: 1\nIdleWorkers: 3\nBusyWorkers: 2\nIdleWorkers: -1\n".to_owned();
    let told = story(vec![text; 4], "");
    assert_eq!(told[0].1.split(';').count(), 3, "{}", told[0].1);
    assert!(told[1..].iter().all(|(_, notes)| notes.is_empty()));
}

#[test]
fn an_unknown_key_a_wrong_address_and_a_read_before_the_start_are_faults() {
    assert!(collector("site", "max_workers = 3").err().unwrap().message.contains("max_workers"));
    assert_eq!(collector("", "").err().unwrap().kind, FaultKind::Config);
    assert_eq!(run(collector("site", "").unwrap().read()).unwrap_err().kind, FaultKind::Unreachable);
}
