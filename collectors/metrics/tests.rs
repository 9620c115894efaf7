use super::*;
use crate::api::{Capacity, Class, Kind, Lag, Layer, Unit, Worse};
use crate::http::fake::{answer, pages, request, run, server};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const PAGE: &str =
    "# TYPE q gauge\nq{pool=\"main\"} 3\nq{pool=\"audit\"} 1\nq_max{pool=\"main\"} 9\n# TYPE e counter\ne_total{why=\"a\"} 1\n";

fn collector(endpoint: &str, settings: &str) -> Result<Box<dyn Collector>, Fault> {
    open(&Section::of("app", endpoint, settings))
}

fn started(endpoint: &str, settings: &str) -> (Box<dyn Collector>, Result<Support, Fault>) {
    let mut collector = collector(endpoint, settings).unwrap_or_else(|fault| panic!("{fault}"));
    let support = run(collector.start());
    (collector, support)
}

/// Starts on the first page and reads the others.
fn story(texts: Vec<String>, settings: &str) -> (Support, Vec<Reading>) {
    let at = Arc::new(AtomicUsize::new(0));
    let (count, texts) = (texts.len(), Mutex::new(texts));
    let url = pages(move |_| ("200 OK", texts.lock().unwrap()[at.fetch_add(1, Ordering::SeqCst)].clone()));
    let (mut collector, support) = started(&format!("{url}metrics"), settings);
    (support.unwrap(), (1..count).map(|_| run(collector.read()).unwrap()).collect())
}

#[test]
fn chosen_series_become_the_columns_they_are_declared_to_be() {
    let settings = r#"
        [[series]]
        name = "q"
        labels = { pool = "main" }
        as = "pool_pending"
        class = "queue"
        unit = "count"
        capacity = "pool_max"
        layer = "pool"
        resource = "main pool"
        own = 1
        help = "who waits"
        [[series]]
        name = "q"
        as = "worst"
        aggregate = "max"
        kind = "gauge"
        class = "age"
        unit = "s"
        worse = "down"
        lag = 5
        [[series]]
        name = "q_max"
        labels = { pool = "main" }
        as = "pool_max"
        [[series]]
        name = "e_total"
        labels = { why = "b" }
        class = "event"
    "#;
    let later = format!("{PAGE}e_total{{why=\"b\"}} 7\n");
    let (support, readings) = story(vec![PAGE.to_owned(), PAGE.to_owned(), later], settings);
    let names: Vec<_> = support.columns.iter().map(|gauge| gauge.name).collect();
    assert_eq!(names, ["pool_pending", "worst", "pool_max", "e_total_b"]);
    let pending = support.columns[0];
    assert_eq!((pending.class, pending.unit, pending.kind, pending.own), (Class::Queue, Unit::Count, Kind::Gauge, 1.0));
    assert_eq!((pending.capacity, pending.layer), (Capacity::Column("pool_max"), Some(Layer::Pool)));
    assert_eq!((pending.resource, pending.help, pending.guessed), ("main pool", "who waits", false));
    let worst = support.columns[1];
    assert_eq!((worst.class, worst.unit, worst.worse, worst.lag), (Class::Age, Unit::Seconds, Worse::Down, Lag::Refreshed(5.0)));
    let errors = support.columns[3];
    assert_eq!((errors.class, errors.kind, errors.worse), (Class::Event, Kind::Counter, Worse::Up));
    assert_eq!(readings[0].get("pool_pending"), Some(3.0));
    assert_eq!((readings[0].get("worst"), readings[0].get("pool_max")), (Some(3.0), Some(9.0)));
    assert_eq!(
        (readings[0].get("e_total_b"), readings[1].get("e_total_b")),
        (None, Some(7.0)),
        "what nothing matches yet is empty"
    );
    assert!(support.lacks.iter().any(|lack| lack.what.starts_with("e_total_b")), "{:?}", support.lacks);
}

#[test]
fn without_a_class_a_chosen_series_takes_what_is_known_of_it_or_says_that_it_is_guessed() {
    let settings = "[[series]]\nname = \"hikaricp_connections_pending\"\nas = \"pending\"\n[[series]]\nname = \"my_backlog\"\n";
    let (support, _) = story(vec!["hikaricp_connections_pending 1\nmy_backlog 2\n".to_owned()], settings);
    assert_eq!((support.columns[0].class, support.columns[0].guessed), (Class::Queue, false));
    assert_eq!((support.columns[1].class, support.columns[1].guessed), (Class::Queue, true));
    assert_eq!(support.columns.len(), 2, "nothing else of the page");
}

#[test]
fn others_adds_the_rest_of_the_page_but_not_the_chosen_series_again() {
    let settings = "others = true\n[[series]]\nname = \"q\"\nas = \"pending\"\nclass = \"queue\"\ncapacity = \"q_max_main\"\n";
    let (support, readings) = story(vec![PAGE.to_owned(), PAGE.to_owned()], settings);
    let names: Vec<_> = support.columns.iter().map(|gauge| gauge.name).collect();
    assert_eq!(names[0], "pending");
    assert_eq!(names[1..].iter().collect::<BTreeSet<_>>(), ["q_max_main", "e_total"].iter().collect(), "{names:?}");
    assert_eq!(support.columns[0].capacity, Capacity::Column("q_max_main"));
    assert_eq!((readings[0].get("pending"), readings[0].get("e_total")), (Some(4.0), Some(1.0)));
}

#[test]
fn a_configuration_that_cannot_become_columns_is_refused_with_the_key() {
    for (settings, part) in [
        ("[[series]]\nname = \"a\"\nclas = \"queue\"", "clas"),
        ("[[series]]\nname = \"a\"\nclass = \"que\"", "que"),
        ("[[series]]\nname = \"a\"\nas = \"B c\"", "snake case"),
        ("[[series]]\nname = \"a\"\nas = \"up\"", "every target has"),
        ("[[series]]\nname = \"a\"\n[[series]]\nname = \"a\"", "stands twice"),
        ("[[series]]\nname = \"a\"\ncapacity = \"nowhere\"", "nowhere"),
        ("[[series]]\nname = \"a\"\ncapacity = 0", "above 0"),
        ("[[series]]\nname = \"a\"\nvisits = \"nowhere\"", "nowhere"),
        ("[[series]]\nname = \"a\"\naggregate = \"mean\"", "mean"),
        ("serie = 1", "serie"),
    ] {
        let fault = collector("app:1", settings).err().unwrap_or_else(|| panic!("{settings}"));
        assert_eq!(fault.kind, FaultKind::Config);
        assert!(fault.message.contains(part) && fault.message.contains("app"), "{settings}: {fault}");
    }
}

#[test]
fn the_sample_configuration_opens_and_says_its_columns_before_the_start() {
    let sample: toml::Table = toml::from_str(SAMPLE).unwrap();
    let mut section = sample["metrics"][0].as_table().unwrap().clone();
    let url = section.remove("url").unwrap();
    let collector = collector(url.as_str().unwrap(), &toml::to_string(&section).unwrap()).unwrap_or_else(|fault| panic!("{fault}"));
    let columns = collector.columns();
    assert_eq!(columns.iter().map(|gauge| gauge.name).collect::<Vec<_>>(), ["pool_pending", "pool_active", "pool_max"]);
    assert_eq!(columns[1].capacity, Capacity::Column("pool_max"));
}

#[test]
fn a_url_without_a_path_finds_the_page() {
    let url = pages(|path| match path {
        "/actuator/prometheus" => ("200 OK", PAGE.to_owned()),
        "/metrics" => ("200 OK", "{\"mem\": 1}".to_owned()),
        _ => ("404 Not Found", String::new()),
    });
    assert_eq!(started(url.as_str(), "").1.unwrap().endpoint, format!("{url}actuator/prometheus"));
    let url = pages(|_| ("404 Not Found", String::new()));
    let fault = started(url.as_str(), "").1.unwrap_err();
    assert!(fault.message.contains("/metrics: 404 Not Found") && fault.message.contains("/q/metrics: 404"), "{fault}");
}

#[test]
fn a_page_that_is_none_is_named() {
    for (body, part) in [
        ("<html><title>Shop</title>\nx 1\n</html>", "an HTML page titled \"Shop\""),
        ("{\"a\": 1}", "JSON"),
        ("BusyWorkers: 1\nIdleWorkers: 3\n", "Apache's mod_status page"),
        ("", "an empty page"),
        ("# HELP a b\n# TYPE a gauge\n", "Prometheus"),
        ("not a metric at all\n", "no kind known"),
    ] {
        let url = pages(move |_| ("200 OK", body.to_owned()));
        let fault = started(&format!("{url}metrics"), "").1.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Nonsense);
        assert!(fault.message.contains(part) && fault.hint.is_some(), "{fault}");
    }
}

#[test]
fn a_page_that_turns_into_another_costs_that_read_alone() {
    let texts = [("200 OK", PAGE), ("200 OK", "<html>maintenance"), ("503 Service Unavailable", "later"), ("200 OK", PAGE)];
    let at = AtomicUsize::new(0);
    let url = pages(move |_| {
        let (status, body) = texts[at.fetch_add(1, Ordering::SeqCst)];
        (status, body.to_owned())
    });
    let (mut collector, support) = started(&format!("{url}metrics"), "");
    support.unwrap();
    assert!(run(collector.read()).unwrap_err().message.contains("an HTML page"));
    assert!(run(collector.read()).unwrap_err().message.contains("503"));
    assert_eq!(run(collector.read()).unwrap().get("q_max_main"), Some(9.0));
}

#[test]
fn strange_lines_repeats_and_strangers_are_noted_once_and_a_restart_each_time() {
    let page = |start: u32| {
        format!("process_start_time_seconds {start}\nq{{pool=\"main\"}} 3\nq{{pool=\"main\"}} 4\nbroken\nq{{pool=\"late\"}} 1\n")
    };
    let first = "process_start_time_seconds 5\nq{pool=\"main\"} 3\n".to_owned();
    let (_, readings) = story(vec![first, page(5), page(5), page(6), page(6)], "");
    let notes: Vec<_> = readings.iter().map(|reading| reading.notes.clone()).collect();
    assert_eq!(notes[0].len(), 3, "{:?}", notes[0]);
    for part in [
        "first is line 4: no value after the name",
        "stands twice on the page, the first counts: q{pool=\"main\"}",
        "no column: q{pool=\"late\"}",
    ] {
        assert!(notes[0].iter().any(|note| note.contains(part)), "{part} in {:?}", notes[0]);
    }
    assert!(notes[1..].iter().all(Vec::is_empty), "{notes:?}");
    let restarted: Vec<_> = readings.iter().map(|reading| reading.restarted.as_deref()).collect();
    assert_eq!(restarted, [None, None, Some("the process restarted, counters begin again"), None]);
    assert_eq!(readings[0].get("q_main"), Some(3.0));
}

#[test]
fn a_cut_openmetrics_page_is_noted_and_its_cut_line_gives_no_value() {
    let (url, _) = server(|at, stream| {
        request(&stream);
        let body = if at == 0 { "a 1\nb 12\n# EOF\n" } else { "a 1\nb 1" };
        let head = "HTTP/1.0 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0\r\n\r\n";
        let _ = std::io::Write::write_all(&mut &stream, format!("{head}{body}").as_bytes());
    });
    let (mut collector, support) = started(&format!("{url}metrics"), "");
    support.unwrap();
    let reading = run(collector.read()).unwrap();
    assert_eq!((reading.get("a"), reading.get("b")), (Some(1.0), None));
    assert!(reading.notes[0].contains("# EOF"), "{:?}", reading.notes);
}

#[test]
fn the_text_format_is_asked_for_without_compression() {
    let heads = Arc::new(Mutex::new(String::new()));
    let seen = heads.clone();
    let (url, _) = server(move |_, stream| {
        *seen.lock().unwrap() = request(&stream).unwrap().to_ascii_lowercase();
        answer(&stream, "200 OK", "Content-Type: text/plain; version=0.0.4\r\n", PAGE);
    });
    started(&format!("{url}metrics"), "").1.unwrap();
    let head = heads.lock().unwrap().clone();
    assert!(head.contains("accept: text/plain;version=0.0.4") && !head.contains("accept-encoding"), "{head}");
}

#[test]
fn what_says_its_own_name_and_version_is_called_so() {
    let (support, _) =
        story(vec!["go_build_info{version=\"x\"} 1\nshop_build_info{rev=\"1\",version=\"2.3\"} 1\nq 1\n".to_owned()], "");
    assert_eq!((support.product.as_str(), support.version.as_str()), ("shop", "2.3"));
    assert!(support.sees.iter().any(|sees| sees.contains("1 of 3 series in 1 columns")), "{:?}", support.sees);
    assert!(support.sees.iter().any(|sees| sees.contains("1 columns with a class guessed")), "{:?}", support.sees);
}
