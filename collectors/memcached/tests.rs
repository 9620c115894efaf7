use super::*;
use crate::api::{Capacity, Class};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

const STATS: &str = include_str!("../../fixtures/memcached/1.6.18/stats.txt");
const SETTINGS: &str = include_str!("../../fixtures/memcached/1.6.18/settings.txt");

/// What a scripted server answers to one line; an empty answer closes the connection.
type Script = Box<dyn FnMut(&str) -> String + Send>;

/// A server for as many connections as there are scripts, one after another.
fn server(scripts: Vec<Script>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for script in scripts {
            let (stream, _) = listener.accept().unwrap();
            std::thread::spawn(move || talk(stream, script));
        }
    });
    address
}

fn talk(mut stream: TcpStream, mut script: Script) {
    for line in BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok) {
        let answer = script(line.trim_end());
        if answer.is_empty() || stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn always(stats: String, settings: &str) -> Script {
    let settings = settings.to_owned();
    Box::new(move |line| if line == "stats" { stats.clone() } else { settings.clone() })
}

fn opened(endpoint: &str) -> Result<Box<dyn Collector>, Fault> {
    open(&Section::of("memcached", endpoint, ""))
}

#[tokio::test]
async fn a_real_answer_gives_every_gauge() {
    let address = server(vec![always(STATS.to_owned(), SETTINGS)]);
    let mut memcached = opened(&address).unwrap();
    let support = memcached.start().await.unwrap();
    assert_eq!((support.version.as_str(), support.endpoint.as_str()), ("1.6.18", address.as_str()));
    assert_eq!(support.lacks, []);
    let columns: Vec<&str> = support.columns.iter().map(|gauge| gauge.name).collect();
    for gauge in gauges::ALL {
        assert!(columns.contains(&gauge.name), "{}", gauge.name);
    }
    assert!(support.facts.contains(&("maxconns_fast".to_owned(), "yes".into())));
    let reading = memcached.read().await.unwrap();
    assert_eq!(reading.get("curr_connections"), Some(1.0));
    assert_eq!(reading.get("max_connections"), Some(32.0));
    assert_eq!(reading.get("rejected_connections_total"), Some(0.0));
    assert_eq!(reading.get("used_bytes"), Some(7_535_120.0));
    assert_eq!(reading.get("limit_bytes"), Some(8_388_608.0));
    assert!((reading.get("cpu_seconds_total").unwrap() - 0.18294).abs() < 1e-9);
    assert_eq!(reading.values.len(), gauges::ALL.len() - 1, "the hit ratio is worked out by the reader");
    assert_eq!(reading.notes, Vec::<String>::new());
}

#[test]
fn every_capacity_is_a_gauge_and_the_samplers_own_connection_is_declared() {
    for gauge in gauges::ALL {
        if let Capacity::Column(column) = gauge.capacity {
            assert!(gauges::ALL.iter().any(|gauge| gauge.name == column), "{column}");
        }
        assert_eq!(gauge.own, f64::from(gauge.name == "curr_connections"));
        assert_eq!(gauge.name.ends_with("_total"), gauge.kind == crate::api::Kind::Counter, "{}", gauge.name);
    }
    let class = |wanted: &str| gauges::ALL.iter().find(|gauge| gauge.name == wanted).map(|gauge| gauge.class);
    assert_eq!(class("rejected_connections_total"), Some(Class::Event));
    assert_eq!(class("evictions_total"), Some(Class::Event));
    assert_eq!(class("hit_ratio"), Some(Class::Ratio));
}

#[tokio::test]
async fn what_a_version_does_not_tell_is_missing_and_what_is_no_number_is_noted() {
    let stats = "STAT pid 1\r\nSTAT version 1.4.5\r\nSTAT curr_connections 3\r\nSTAT evictions ON\r\nSTAT threads -1\r\nEND\r\n";
    let mut memcached = opened(&server(vec![always(stats.to_owned(), "END\r\n")])).unwrap();
    let support = memcached.start().await.unwrap();
    assert_eq!(support.columns.iter().map(|gauge| gauge.name).collect::<Vec<_>>(), ["curr_connections"]);
    assert!(support.lacks[0].what.contains("rejected_connections_total"), "{:?}", support.lacks);
    let reading = memcached.read().await.unwrap();
    assert_eq!(reading.values, [("curr_connections", 3.0)]);
    assert_eq!(reading.notes.len(), 2);
    assert!(reading.notes[0].contains("evictions") && reading.notes[0].contains("\"ON\""), "{:?}", reading.notes);
}

#[tokio::test]
async fn a_proxy_without_settings_keeps_its_statistics() {
    let error = "CLIENT_ERROR bad stats command\r\n";
    let mut memcached = opened(&server(vec![always(STATS.to_owned(), error)])).unwrap();
    let support = memcached.start().await.unwrap();
    assert_eq!(support.lacks.len(), 1);
    assert!(support.lacks[0].what.contains("bad stats command"), "{:?}", support.lacks);
    assert_eq!(memcached.read().await.unwrap().get("max_connections"), Some(32.0));

    let closes: Script = Box::new(|line| if line == "stats" { STATS.to_owned() } else { String::new() });
    let mut memcached = opened(&server(vec![closes, always(STATS.to_owned(), "")])).unwrap();
    let support = memcached.start().await.unwrap();
    assert!(support.lacks[0].what.contains("closed the connection"), "{:?}", support.lacks);
    assert_eq!(memcached.read().await.unwrap().get("max_connections"), Some(32.0));
}

#[tokio::test]
async fn a_full_server_a_locked_one_and_another_kind_are_told_apart() {
    for (answer, kind, says) in [
        ("ERROR Too many open connections\r\n", FaultKind::Refused, "Too many open connections"),
        ("CLIENT_ERROR unauthenticated\r\n", FaultKind::Refused, "authentication"),
        ("ERROR\r\n", FaultKind::Nonsense, "ERROR"),
        ("HTTP/1.1 400 Bad Request\r\n\r\n", FaultKind::Nonsense, "web server"),
        ("-ERR unknown command `stats`\r\n", FaultKind::Nonsense, "Redis"),
        ("STAT one 1\r\nSTAT two 2\r\nEND\r\n", FaultKind::Nonsense, "one, two"),
    ] {
        let mut memcached = opened(&server(vec![always(answer.to_owned(), "")])).unwrap();
        let fault = memcached.start().await.unwrap_err();
        assert_eq!(fault.kind, kind, "{fault}");
        assert!(fault.message.contains(says) && fault.message.contains("memcached@127.0.0.1:"), "{fault}");
    }
}

#[tokio::test]
async fn an_answer_cut_off_is_no_answer_and_the_next_read_connects_anew() {
    let mut asked = 0;
    let breaks: Script = Box::new(move |line| {
        asked += 1;
        match (line, asked) {
            ("stats settings", _) => SETTINGS.to_owned(),
            (_, 1) => STATS.to_owned(),
            _ => String::new(),
        }
    });
    let mut memcached = opened(&server(vec![breaks, always(STATS.replace("uptime 628", "uptime 2"), "")])).unwrap();
    memcached.start().await.unwrap();
    let fault = memcached.read().await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Unreachable);
    let reading = memcached.read().await.unwrap();
    assert_eq!(reading.get("threads"), Some(2.0));
    assert_eq!(reading.restarted.as_deref(), Some("the server was started anew"));
    assert_eq!(memcached.read().await.unwrap().notes, Vec::<String>::new(), "said once");
}

#[tokio::test]
async fn a_read_that_is_cancelled_half_way_leaves_no_half_answer_for_the_next() {
    let mut asked = 0;
    let stalls: Script = Box::new(move |line| {
        asked += 1;
        match (line, asked) {
            ("stats settings", _) => SETTINGS.to_owned(),
            (_, 1) => STATS.to_owned(),
            _ => STATS[..700].to_owned(),
        }
    });
    let mut memcached = opened(&server(vec![stalls, always(STATS.to_owned(), "")])).unwrap();
    memcached.start().await.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(100), memcached.read()).await.is_err());
    assert_eq!(memcached.read().await.unwrap().get("threads"), Some(2.0));
}

/// `stats` of a server that has seen `total` connections and says it refused `refused` of them.
fn counted(total: u32, refused: u32) -> String {
    STATS
        .replace("total_connections 1\r", &format!("total_connections {total}\r"))
        .replace("rejected_connections 0\r", &format!("rejected_connections {refused}\r"))
}

#[tokio::test]
async fn a_version_that_counts_every_connection_as_refused_loses_that_gauge_alone() {
    let mut asked = 0;
    let kept: Script = Box::new(move |line| {
        asked += 1;
        if line == "stats" { counted(866 + asked, 864 + asked) } else { SETTINGS.to_owned() }
    });
    let mut memcached = opened(&server(vec![kept, always(counted(868, 866), "")])).unwrap();
    let support = memcached.start().await.unwrap();
    assert!(support.lacks[0].what.contains("memcached#619"), "{:?}", support.lacks);
    assert!(!support.columns.iter().any(|gauge| gauge.name == "rejected_connections_total"));
    let reading = memcached.read().await.unwrap();
    assert_eq!(reading.get("rejected_connections_total"), None);
    assert!(reading.get("connections_total").is_some());
}

#[tokio::test]
async fn as_many_refused_as_accepted_is_believed_where_a_served_connection_is_not_counted_as_refused() {
    let mut asked = 0;
    let kept: Script = Box::new(move |line| {
        asked += 1;
        if line == "stats" { counted(20 + asked, 20) } else { SETTINGS.to_owned() }
    });
    let mut memcached = opened(&server(vec![kept, always(counted(22, 20), "")])).unwrap();
    assert_eq!(memcached.start().await.unwrap().lacks, []);
    assert_eq!(memcached.read().await.unwrap().get("rejected_connections_total"), Some(20.0));
}

#[tokio::test]
async fn nobody_there_is_unreachable_with_the_address() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let fault = opened(&free.to_string()).unwrap().start().await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Unreachable);
    assert!(fault.message.contains(&free.to_string()), "{fault}");
    let fault = opened("/nonexistent/memcached.sock").unwrap().start().await.unwrap_err();
    assert!(fault.message.contains("/nonexistent/memcached.sock"), "{fault}");
}

#[test]
fn a_wrong_address_or_an_unknown_setting_is_refused() {
    assert_eq!(opened("cache:x").err().unwrap().kind, FaultKind::Config);
    assert_eq!(opened("").err().unwrap().kind, FaultKind::Config);
    assert!(opened("memcached://cache").is_ok());
}
