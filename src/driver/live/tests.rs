use super::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::sync::mpsc::{Receiver, channel};

/// A server that gives these answers (request line to begin with, status, body) and tells what it was asked.
fn server(answers: &'static [(&'static str, u16, &'static str)]) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut line, mut length) = (String::new(), 0);
            reader.read_line(&mut line).unwrap();
            loop {
                let mut header = String::new();
                reader.read_line(&mut header).unwrap();
                if let Some(value) = header.strip_prefix("Content-Length: ") {
                    length = value.trim().parse().unwrap();
                }
                if header.trim().is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let asked = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
            let answer = answers.iter().find(|(begin, ..)| asked == *begin);
            let (status, text) = answer.map_or((404, ""), |(_, status, text)| (*status, *text));
            // Told first: whoever has the answer may look at once.
            if tell.send(format!("{asked} {}", String::from_utf8_lossy(&body)).trim_end().to_owned()).is_err() {
                return;
            }
            write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{text}", text.len()).unwrap();
        }
    });
    (place, told)
}

#[test]
fn k6_is_asked_and_stopped_over_rest() {
    let (place, told) = server(&[
        (
            "GET /v1/status",
            200,
            r#"{"data":{"type":"status","id":"default","attributes":{"status":4,"paused":false,"vus":12,"vus-max":20,"stopped":false,"running":true,"tainted":false}}}"#,
        ),
        (
            "GET /v1/metrics",
            200,
            r#"{"data":[{"type":"metrics","id":"http_reqs","attributes":{"type":"counter","sample":{"count":400,"rate":40}}},{"type":"metrics","id":"http_req_failed","attributes":{"type":"rate","sample":{"rate":0.05}}}]}"#,
        ),
        ("PATCH /v1/status", 200, "{}"),
    ]);
    let mut k6 = live(&format!("k6://{place}")).unwrap();
    assert_eq!(k6.look().unwrap(), Seen { running: Some(true), users: Some(12.0), requests: Some(400.0), failed: Some(20.0) });
    k6.stop().unwrap();
    let asked: Vec<String> = told.try_iter().collect();
    assert_eq!(asked[..2], ["GET /v1/status", "GET /v1/metrics"]);
    assert!(asked[2].starts_with("PATCH /v1/status ") && asked[2].contains(r#""stopped":true"#), "{}", asked[2]);
}

#[test]
fn a_k6_that_does_not_listen_is_said_to_need_its_address() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let why = live(&format!("k6://{closed}")).unwrap().look().unwrap_err();
    assert!(why.what.contains(&closed.to_string()) && why.hint.unwrap().contains("--address"), "{why}");
}

#[test]
fn locust_is_asked_and_stopped_by_post_and_by_get_where_post_is_not_taken() {
    // As Locust 2.47 answered, cut to two rows.
    const STATS: &str = r#"{"current_rps":112.0,"errors":[],"state":"running","stats":[{"method":"GET","name":"seat map","num_failures":0,"num_requests":1399},{"method":"","name":"Aggregated","num_failures":7,"num_requests":1603}],"user_count":117}"#;
    let (place, told) = server(&[("GET /stats/requests", 200, STATS), ("POST /stop", 200, "{}")]);
    let mut locust = live(&format!("locust://{place}")).unwrap();
    assert_eq!(locust.look().unwrap(), Seen { running: Some(true), users: Some(117.0), requests: Some(1603.0), failed: Some(7.0) });
    locust.stop().unwrap();
    assert_eq!(told.try_iter().collect::<Vec<_>>(), ["GET /stats/requests", "POST /stop"]);
    let (place, told) = server(&[("POST /stop", 405, ""), ("GET /stop", 200, "{}")]);
    live(&format!("locust://{place}")).unwrap().stop().unwrap();
    assert_eq!(told.try_iter().collect::<Vec<_>>(), ["POST /stop", "GET /stop"]);
}

#[test]
fn jmeter_is_told_to_shut_down_over_udp_and_a_closed_port_is_an_error() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let place = socket.local_addr().unwrap();
    live(&format!("jmeter://{place}")).unwrap().stop().unwrap();
    let mut word = [0; 64];
    let length = socket.recv(&mut word).unwrap();
    assert_eq!(&word[..length], b"Shutdown");
    drop(socket);
    let why = live(&format!("jmeter://{place}")).unwrap().stop().unwrap_err();
    assert!(why.hint.unwrap().contains("4445"), "{why}");
    assert_eq!(live("jmeter://127.0.0.1:4445").unwrap().look().unwrap(), Seen::default());
}

#[test]
fn hyperfoil_is_asked_and_killed_by_run() {
    let (place, told) = server(&[
        ("GET /run/000A", 200, r#"{"id":"000A","benchmark":"b","started":"2026/11/29 19:24:42.000","terminated":null}"#),
        (
            "GET /run/000A/stats/total",
            200,
            r#"{"statistics":[{"phase":"main","metric":"a","summary":{"responseCount":90,"invalid":1,"connectionErrors":2}},{"summary":{"responseCount":10,"requestTimeouts":3}}]}"#,
        ),
        ("GET /run/000A/kill", 202, ""),
    ]);
    let mut hyperfoil = live(&format!("hyperfoil://{place}/000A")).unwrap();
    assert_eq!(hyperfoil.look().unwrap(), Seen { running: Some(true), users: None, requests: Some(100.0), failed: Some(6.0) });
    hyperfoil.stop().unwrap();
    assert_eq!(told.try_iter().last().as_deref(), Some("GET /run/000A/kill"));
    let why = live(&format!("hyperfoil://{place}")).unwrap().look().unwrap_err();
    assert!(why.what.contains("\"last\""), "{why}");
}

#[test]
fn what_is_no_live_driver_is_refused_with_the_ones_that_are() {
    for address in ["", "k6", "k6://", "k6://host", "k6://host:x", "gatling://host:1", "locust://:8089"] {
        assert!(live(address).is_err_and(|why| why.contains("locust://HOST:8089")), "{address}");
    }
}
