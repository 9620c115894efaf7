use super::*;
use crate::http::fake::{self, answer, pages, request, run, server};
use std::sync::Mutex;

const NGINX: &str = include_str!("../../fixtures/nginx/1.22.1/stub_status.txt");
const TENGINE_PAGE: &str = include_str!("../../fixtures/tengine/manual/stub_status.txt");

fn collector(endpoint: &str, settings: &str) -> Result<Box<dyn Collector>, Fault> {
    fake::collector(&SPEC, "web", endpoint, settings)
}

fn started(endpoint: &str, settings: &str) -> (Box<dyn Collector>, Result<Support, Fault>) {
    fake::started(collector(endpoint, settings))
}

fn page(accepts: u64, handled: u64, requests: u64) -> String {
    format!(
        "Active connections: 1 \nserver accepts handled requests\n {accepts} {handled} {requests} \nReading: 0 Writing: 1 Waiting: 0 \n"
    )
}

/// Starts on the first page and reads the others.
fn story(texts: Vec<String>) -> Vec<Reading> {
    let (count, texts) = (texts.len(), Mutex::new(texts.into_iter()));
    let url = pages(move |_| ("200 OK", texts.lock().unwrap().next().unwrap()));
    let (mut collector, support) = started(&format!("{url}nginx_status"), "");
    support.unwrap();
    (1..count).map(|_| run(collector.read()).unwrap()).collect()
}

#[test]
fn every_value_has_a_column_and_every_capacity_too() {
    for (text, settings) in [(NGINX, ""), (NGINX, "connections_max = 128"), (TENGINE_PAGE, "connections_max = 128")] {
        let url = pages(move |_| ("200 OK", text.to_owned()));
        let (mut collector, support) = started(&format!("{url}status"), settings);
        let support = support.unwrap();
        assert_eq!(support.product, if text == NGINX { "nginx" } else { "Tengine" });
        let names: Vec<_> = support.columns.iter().map(|gauge| gauge.name).collect();
        let reading = run(collector.read()).unwrap();
        let read: BTreeSet<_> = reading.values.iter().map(|(name, _)| *name).collect();
        assert_eq!(read, support.columns.iter().filter(|gauge| gauge.is_read()).map(|gauge| gauge.name).collect());
        for gauge in &support.columns {
            if let Capacity::Column(of) = gauge.capacity {
                assert!(names.contains(&of), "{of} of {}", gauge.name);
            }
            assert_eq!(gauge.name.ends_with("_total"), gauge.kind == crate::api::Kind::Counter, "{}", gauge.name);
        }
        let capacity = support.columns.iter().find(|gauge| gauge.name == "active").unwrap().capacity;
        assert_eq!(capacity == Capacity::Column("connections_max"), !settings.is_empty());
        assert_eq!(reading.get("connections_max"), (!settings.is_empty()).then_some(128.0));
    }
}

#[test]
fn dropped_connections_are_the_difference_of_one_page_and_an_event() {
    let url = pages(|_| ("200 OK", NGINX.to_owned()));
    let (mut collector, support) = started(&format!("{url}nginx_status"), "");
    let dropped = *support.unwrap().columns.iter().find(|gauge| gauge.name == "dropped_total").unwrap();
    assert_eq!((dropped.class, dropped.kind), (Class::Event, crate::api::Kind::Counter));
    assert_eq!(run(collector.read()).unwrap().get("dropped_total"), Some(2.0));
}

#[test]
fn a_difference_that_dips_between_two_counters_is_no_reset_and_a_restart_is_one() {
    let readings = story(vec![
        page(100, 98, 90),
        page(200, 195, 190),
        // Read while two connections were between the two counters, and then while one was ahead.
        page(300, 296, 290),
        page(400, 401, 390),
        page(500, 490, 490),
        page(7, 7, 3),
        page(9, 8, 5),
    ]);
    let dropped: Vec<_> = readings.iter().map(|reading| reading.get("dropped_total").unwrap()).collect();
    assert_eq!(dropped, [5.0, 5.0, 5.0, 10.0, 0.0, 1.0]);
    let notes: Vec<_> = readings.iter().map(fake::said).collect();
    assert_eq!(notes, ["", "", "", "", "restarted, counters begin again", ""]);
}

#[test]
fn a_page_without_counters_has_no_dropped_ones_and_is_noted_once() {
    let text = "Active connections: 1\nserver accepts handled requests\n 4 x 3\nReading: 0 Writing: 1 Waiting: 0\n".to_owned();
    let readings = story(vec![text; 4]);
    for (read, reading) in readings.iter().enumerate() {
        assert_eq!(reading.get("dropped_total"), None);
        assert_eq!(reading.get("writing"), Some(1.0));
        assert_eq!(reading.notes.len(), usize::from(read == 0), "read {read}: {:?}", reading.notes);
    }
}

#[test]
fn a_url_without_a_path_finds_the_page_and_another_page_is_named() {
    let url = pages(|path| match path {
        "/stub_status" => ("200 OK", NGINX.to_owned()),
        _ => ("404 Not Found", String::new()),
    });
    assert_eq!(started(url.as_str(), "").1.unwrap().endpoint, format!("{url}stub_status"));
    let fpm = include_str!("../../fixtures/phpfpm/8.2/status.txt");
    let url = pages(|_| ("200 OK", fpm.to_owned()));
    let fault = started(&format!("{url}status"), "").1.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Nonsense);
    assert!(fault.message.contains("php-fpm's status page") && fault.message.contains("pool:"), "{fault}");
    assert!(fault.hint.unwrap().contains("--phpfpm"));
}

#[test]
fn a_server_that_closes_what_it_accepts_gives_a_hint_to_its_connections() {
    let (url, _) = server(|number, stream| {
        // The first answers and is closed, the others are closed at once.
        if number == 0 && request(&stream).is_some() {
            answer(&stream, "200 OK", "Connection: close\r\n", NGINX);
        }
    });
    let (mut collector, support) = started(&format!("{url}nginx_status"), "");
    support.unwrap();
    let fault = run(collector.read()).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Unreachable);
    assert!(fault.hint.unwrap().contains("worker_connections"));
}

#[test]
fn an_unknown_key_a_wrong_address_and_a_read_before_the_start_are_faults() {
    assert!(collector("site", "worker_connections = 3").err().unwrap().message.contains("worker_connections"));
    assert_eq!(collector("", "").err().unwrap().kind, FaultKind::Config);
    assert_eq!(run(collector("site", "").unwrap().read()).unwrap_err().kind, FaultKind::Unreachable);
}
