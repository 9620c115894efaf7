use super::*;
use crate::api::{Class, Kind};
use crate::http::fake::{self, pages, run};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Mutex;

const FULL: &str = include_str!("../../fixtures/phpfpm/8.2/status-full.json");
const TEXT: &str = include_str!("../../fixtures/phpfpm/8.2/status.txt");
const SATURATED: &str = include_str!("../../fixtures/phpfpm/8.2/saturated.json");
const UNIX: &str = include_str!("../../fixtures/phpfpm/8.2/saturated-unix.json");
const NOT_FOUND: &[u8] = include_bytes!("../../fixtures/phpfpm/8.2/fastcgi-not-found.bin");

fn collector(endpoint: &str, settings: &str) -> Result<Box<dyn Collector>, Fault> {
    fake::collector(&SPEC, "app", endpoint, settings)
}

fn started(endpoint: &str, settings: &str) -> (Box<dyn Collector>, Result<Support, Fault>) {
    fake::started(collector(endpoint, settings))
}

/// The answer of a responder that puts this out.
fn answer(output: &str) -> Vec<u8> {
    let mut bytes = vec![1, 6, 0, 1];
    bytes.extend((output.len() as u16).to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(output.as_bytes());
    bytes.extend([1, 3, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    bytes
}

fn page(body: &str) -> Vec<u8> {
    answer(&format!("X-Powered-By: PHP/8.2.36\r\nContent-Type: application/json\r\n\r\n{body}"))
}

/// A FastCGI server: one answer a connection, made of the request's bytes.
fn server(mut serve: impl FnMut(&str) -> Vec<u8> + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            // Its last record: no input.
            while !request.ends_with(&[1, 5, 0, 1, 0, 0, 0, 0]) {
                let mut piece = [0; 1024];
                match stream.read(&mut piece) {
                    Ok(count) if count > 0 => request.extend(&piece[..count]),
                    _ => break,
                }
            }
            let _ = stream.write_all(&serve(&String::from_utf8_lossy(&request)));
        }
    });
    address
}

/// The same bodies one after the other, over FastCGI; the last for ever.
fn told(bodies: Vec<String>) -> String {
    let (mut bodies, mut last) = (bodies.into_iter(), String::new());
    server(move |_| {
        last = bodies.next().unwrap_or_else(|| last.clone());
        page(&last)
    })
}

fn body(manager: &str, started: u32, accepted: u32, active: u32, total: u32) -> String {
    format!(
        "{{\"pool\":\"www\",\"process manager\":\"{manager}\",\"start time\":{started},\"accepted conn\":{accepted},\"listen queue\":0,\
         \"listen queue len\":64,\"idle processes\":{},\"active processes\":{active},\"total processes\":{total}}}",
        total - active
    )
}

#[test]
fn every_value_has_a_column_and_every_capacity_too() {
    for (text, settings) in [(SATURATED, ""), (FULL, ""), (FULL, "max_children = 50")] {
        let (mut collector, support) = started(&format!("{}/status", told(vec![text.to_owned()])), settings);
        let support = support.unwrap();
        assert_eq!((support.product.as_str(), support.version.as_str()), ("php-fpm", "8.2.36"));
        let reading = run(collector.read()).unwrap();
        let read: BTreeSet<_> = reading.values.iter().map(|(name, _)| *name).collect();
        let names: BTreeSet<_> = support.columns.iter().map(|gauge| gauge.name).collect();
        assert_eq!(read, names);
        for gauge in &support.columns {
            if let Capacity::Column(of) = gauge.capacity {
                assert!(names.contains(of), "{of} of {}", gauge.name);
            }
            assert_eq!(gauge.name.ends_with("_total"), gauge.kind == Kind::Counter, "{}", gauge.name);
        }
    }
}

#[test]
fn the_queue_is_a_queue_that_the_master_sees_once_a_second_and_a_unix_socket_has_none() {
    let (mut collector, support) = started(&format!("{}/status", told(vec![SATURATED.to_owned()])), "");
    let queue = *support.unwrap().columns.iter().find(|gauge| gauge.name == "listen_queue").unwrap();
    assert_eq!(
        (queue.class, queue.lag, queue.capacity),
        (Class::Queue, crate::api::Lag::Refreshed(1.0), Capacity::Column("listen_queue_max"))
    );
    let reading = run(collector.read()).unwrap();
    assert_eq!((reading.get("listen_queue"), reading.get("listen_queue_max")), (Some(6.0), Some(64.0)));

    let (mut collector, support) = started(&format!("{}/status", told(vec![UNIX.to_owned()])), "");
    assert!(support.unwrap().lacks.iter().any(|lack| lack.what.contains("listen queue")), "it is said");
    let reading = run(collector.read()).unwrap();
    assert_eq!((reading.get("listen_queue"), reading.get("listen_queue_max")), (None, None), "0 of 0 is no reading");
    assert_eq!(reading.get("active_processes"), Some(8.0));
}

fn own(support: &Support, name: &str) -> f64 {
    support.columns.iter().find(|gauge| gauge.name == name).unwrap().own
}

#[test]
fn a_page_that_shows_our_own_request_among_its_processes_is_served_by_the_pool() {
    for (shows, expected) in [(true, 1.0), (false, 0.0)] {
        // Others ask all the time: the counts alone would not tell.
        let mut accepted = 5;
        let address = server(move |request| {
            accepted += 3;
            let plain = body("static", 1, accepted, 4, 8);
            let query = request.split("QUERY_STRING").nth(1).unwrap();
            let Some(end) = query.find("&full&json") else { return page(&plain) };
            let uri = if shows { &query[..end] } else { "/shop" };
            let list = format!(", \"processes\":[{{\"state\":\"Running\",\"request uri\":\"{uri}\"}}]}}");
            page(&plain.replace('}', &list))
        });
        let support = started(&format!("{address}/status"), "").1.unwrap();
        assert_eq!((own(&support, "active_processes"), own(&support, "accepted_total")), (expected, expected));
        let lack = support.lacks.iter().find(|lack| lack.what.contains("every child is busy"));
        assert_eq!(lack.is_some(), shows);
        assert!(lack.is_none_or(|lack| lack.mend.as_ref().unwrap().contains("pm.status_listen")));
    }
}

#[test]
fn without_the_list_of_processes_a_read_that_is_not_counted_or_finds_none_active_is_beside_the_pool() {
    for (pages, expected) in [
        (&[(1, 1), (2, 1), (3, 1), (4, 1), (5, 1)][..], 1.0),
        (&[(1, 1), (2, 3), (3, 3), (4, 3), (9, 3)], 1.0),
        (&[(5, 0), (5, 0), (5, 0)], 0.0),
        (&[(5, 3), (9, 3), (12, 3), (12, 3)], 0.0),
        (&[(5, 3), (9, 3), (12, 3), (14, 0)], 0.0),
    ] {
        let bodies = pages.iter().map(|(accepted, active)| body("static", 1, *accepted, *active, 8)).collect();
        let support = started(&format!("{}/status", told(bodies)), "").1.unwrap();
        assert_eq!(own(&support, "active_processes"), expected, "{pages:?}");
    }
}

#[test]
fn the_limit_is_the_configured_one_or_a_static_pools_and_never_a_high_water_mark() {
    let limit = |texts: Vec<String>, settings: &str| {
        let (mut collector, support) = started(&format!("{}/status", told(texts)), settings);
        let has = support.unwrap().columns.iter().any(|gauge| gauge.name == "max_children");
        let reading = run(collector.read()).unwrap();
        assert_eq!(has, reading.get("max_children").is_some());
        reading.get("max_children")
    };
    assert_eq!(limit(vec![FULL.to_owned()], ""), None, "dynamic, and 3 were active once");
    assert_eq!(limit(vec![FULL.to_owned()], "max_children = 50"), Some(50.0));
    assert_eq!(limit(vec![SATURATED.to_owned()], ""), Some(8.0));
    // A static pool that has lost a child for a moment.
    assert_eq!(limit([8, 8, 8, 7].into_iter().map(|total| body("static", 1, 5, 0, total)).collect(), ""), Some(8.0));
}

#[test]
fn a_restart_is_noted_once_and_the_limit_is_learned_anew() {
    let texts = [(1, 5, 8), (1, 5, 8), (1, 5, 8), (1, 6, 8), (2, 7, 4), (2, 8, 4), (2, 1, 4)];
    let bodies = texts.into_iter().map(|(started, accepted, total)| body("static", started, accepted, 0, total)).collect();
    let (mut collector, support) = started(&format!("{}/status", told(bodies)), "");
    support.unwrap();
    let told: Vec<_> = (0..4).map(|_| run(collector.read()).unwrap()).collect();
    let notes: Vec<_> = told.iter().map(fake::said).collect();
    let again = "restarted, counters begin again";
    assert_eq!(notes, ["", again, "", again]);
    let limits: Vec<_> = told.iter().map(|reading| reading.get("max_children").unwrap()).collect();
    assert_eq!(limits, [8.0, 4.0, 4.0, 4.0]);
}

#[test]
fn without_a_path_the_usual_ones_are_tried_over_fastcgi_and_over_http() {
    let address = server(|request| if request.contains("/fpm-status") { page(SATURATED) } else { NOT_FOUND.to_vec() });
    assert_eq!(started(&address, "").1.unwrap().endpoint, format!("{address}/fpm-status"));
    let address = server(|_| NOT_FOUND.to_vec());
    let fault = started(&address, "").1.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Nonsense);
    for part in ["/status: 404 Primary script unknown", "/fpm_status: 404", "File not found."] {
        assert!(fault.message.contains(part), "{part} in {fault}");
    }
    let url =
        pages(|path| if path == "/php-fpm-status?json" { ("200 OK", FULL.to_owned()) } else { ("404 Not Found", String::new()) });
    assert_eq!(started(url.as_str(), "").1.unwrap().endpoint, format!("{url}php-fpm-status?json"));
}

#[test]
fn over_http_json_is_asked_for_and_the_text_of_a_server_that_drops_the_query_is_read_too() {
    let asked = Mutex::new(Vec::new());
    let url = pages(move |path| {
        asked.lock().unwrap().push(path.to_owned());
        if path == "/status?full&json" { ("200 OK", FULL.to_owned()) } else { ("404 Not Found", String::new()) }
    });
    assert_eq!(started(&format!("{url}status?full"), "").1.unwrap().endpoint, format!("{url}status?full&json"));
    let url = pages(|_| ("200 OK", TEXT.to_owned()));
    let (mut collector, support) = started(&format!("{url}status"), "");
    support.unwrap();
    assert_eq!(run(collector.read()).unwrap().get("active_processes"), Some(1.0));
}

#[test]
fn a_body_that_begins_with_what_php_complains_of_is_named_with_its_first_bytes() {
    let complaint = "PHP Warning:  Invalid argument supplied for foreach() in /var/www/index.php on line 3\n";
    let text = format!("{complaint}{FULL}");
    let copy = text.clone();
    let url = pages(move |_| ("200 OK", copy.clone()));
    for endpoint in [format!("{url}status"), format!("{}/status", told(vec![text]))] {
        let fault = started(&endpoint, "").1.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Nonsense);
        assert!(fault.message.contains("PHP's own text") && fault.message.contains(&complaint[..80]), "{fault}");
        assert!(fault.hint.is_some());
    }
}

#[test]
fn what_goes_wrong_over_fastcgi_is_told_apart() {
    for (bytes, kind, says) in [
        (Vec::new(), FaultKind::Unreachable, "without an answer"),
        (page(FULL)[..300].to_vec(), FaultKind::Unreachable, "cut off"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), FaultKind::Nonsense, "version 72"),
        (vec![1, 3, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0], FaultKind::Refused, "overloaded"),
        (vec![1, 3, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0], FaultKind::Nonsense, "UnknownRole"),
        (answer("no headers"), FaultKind::Nonsense, "without headers"),
        (answer("Status: 403 Forbidden\r\n\r\nAccess denied.\n"), FaultKind::Nonsense, "403 : \"Access denied."),
    ] {
        let address = server(move |_| bytes.clone());
        let fault = started(&format!("{address}/status"), "").1.unwrap_err();
        assert_eq!(fault.kind, kind, "{fault}");
        assert!(fault.message.contains(says) && fault.message.contains(&format!("FastCGI {address}/status")), "{fault}");
    }
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let fault = started(&format!("{free}/status"), "").1.unwrap_err();
    assert!(fault.kind == FaultKind::Unreachable && fault.message.contains("refused"), "{fault}");
}

#[test]
fn an_answer_cut_at_any_byte_is_no_page() {
    let whole = page(&body("static", 1, 5, 2, 8));
    let (copy, mut cut) = (whole.clone(), 0);
    // The first three answers are those of the start.
    let address = server(move |_| {
        cut += 1;
        if cut <= 3 { copy.clone() } else { copy[..cut - 4].to_vec() }
    });
    let (mut collector, support) = started(&format!("{address}/status"), "");
    support.unwrap();
    // The end record's last bytes are reserved and padding: what matters of it is its status.
    let complete = whole.len() - 3;
    for cut in 0..whole.len() {
        match run(collector.read()) {
            Ok(reading) => assert!(cut >= complete && reading.get("active_processes") == Some(2.0), "cut at {cut}"),
            Err(fault) => assert_eq!(fault.kind, FaultKind::Unreachable, "cut at {cut}: {fault}"),
        }
    }
}

#[test]
fn keys_that_do_not_belong_and_a_read_before_the_start_are_faults() {
    assert!(collector("app:9000/status", "user = \"x\"").err().unwrap().message.contains("user"), "FastCGI has no credentials");
    assert!(collector("http://app/status", "user = \"x\"").is_ok());
    assert!(collector("http://app/status", "children = 3").err().unwrap().message.contains("children"));
    assert_eq!(collector("", "").err().unwrap().kind, FaultKind::Config);
    assert_eq!(run(collector("app:9000/status", "").unwrap().read()).unwrap_err().kind, FaultKind::Unreachable);
}
