use super::*;
use crate::api::{Capacity, Class};
use crate::http::fake::{self, pages, run};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Mutex;

const QUEUED: &str = include_str!("../../fixtures/haproxy/2.6.12/queued.csv");
const REST: &str = include_str!("../../fixtures/haproxy/2.6.12/rest-socket.txt");
const QUEUED_SOCKET: &str = include_str!("../../fixtures/haproxy/2.6.12/queued-socket.txt");

fn collector(endpoint: &str, settings: &str) -> Result<Box<dyn Collector>, Fault> {
    fake::collector(&SPEC, "lb", endpoint, settings)
}

fn started(endpoint: &str, settings: &str) -> (Box<dyn Collector>, Result<Support, Fault>) {
    fake::started(collector(endpoint, settings))
}

/// A runtime socket on a port that answers every line with the next of these, the last for ever.
fn socket(answers: Vec<Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp:{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut answers, mut last) = (answers.into_iter(), Vec::new());
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut line = String::new();
            let _ = BufReader::new(stream.try_clone().unwrap()).read_line(&mut line);
            assert_eq!(line, "show info;show stat\n");
            last = answers.next().unwrap_or(last);
            let _ = stream.write_all(&last);
        }
    });
    address
}

/// A page whose proxy `stats` has answered so many reads, and so many other requests.
fn page(reads: u32, others: u32) -> String {
    format!(
        "# pxname,svname,type,status,mode,qcur,scur,slim,stot,req_tot,intercepted\nweb,FRONTEND,0,OPEN,http,,3,400,90,90,0\n\
         app,s,2,UP,http,0,3,16,80,80,\napp,BACKEND,1,UP,http,2,5,40,85,80,\nstats,FRONTEND,0,OPEN,http,,1,400,1,{},{reads}\n",
        reads + others
    )
}

#[test]
fn over_the_socket_proxies_and_the_process_are_read_and_every_value_has_a_column() {
    let (mut collector, support) = started(&socket(vec![REST.into(), QUEUED_SOCKET.into()]), "");
    let support = support.unwrap();
    assert_eq!((support.product.as_str(), support.version.as_str()), ("HAProxy", "2.6.12-1+deb12u4"));
    let reading = run(collector.read()).unwrap();
    for (name, wanted) in [
        ("app_queue", 8.0),
        ("app_servers_queue", 0.0),
        ("app_servers_sessions", 16.0),
        ("app_servers_sessions_max", 16.0),
        ("connections", 25.0),
        ("connections_max", 400.0),
        ("both_server_downs_total", 1.0),
    ] {
        assert_eq!(reading.get(name), Some(wanted), "{name}");
    }
    let names: BTreeSet<_> = support.columns.iter().map(|gauge| gauge.name).collect();
    assert!(reading.values.iter().all(|(name, _)| names.contains(name)), "{:?}", reading.values);
    assert_eq!(names.len(), support.columns.len());
    for gauge in &support.columns {
        if let Capacity::Column(of) = gauge.capacity {
            assert!(names.contains(of), "{of} of {}", gauge.name);
        }
    }
    assert!(support.columns.iter().all(|gauge| gauge.own == 0.0), "the runtime socket counts nowhere");
    let busy = support.columns.iter().find(|gauge| gauge.name == "busy_percent").unwrap();
    assert_eq!((busy.class, busy.capacity), (Class::Utilisation, Capacity::Fixed(100.0)));
    assert!(support.lacks.iter().any(|lack| lack.what.starts_with("both_servers_sessions_max")), "{:?}", support.lacks);
    assert!(!names.contains("app_server_downs_total") && names.contains("both_server_downs_total"));
    assert!(
        support.lacks.iter().any(|lack| lack.what == "whether a server of app is down: none is checked"),
        "{:?}",
        support.lacks
    );
    assert_eq!(reading.notes, Vec::<String>::new());
}

#[test]
fn the_page_gets_its_csv_and_its_own_proxy_is_found_by_asking_twice() {
    for (others, left_out) in [(0, true), (7, false)] {
        let reads = Mutex::new(0);
        let url = pages(move |path| {
            if path != "/stats;csv" {
                return ("200 OK", "<html><title>Statistics Report for HAProxy</title>".to_owned());
            }
            let mut reads = reads.lock().unwrap();
            *reads += 1;
            ("200 OK", page(*reads, others))
        });
        let (mut collector, support) = started(&format!("{url}stats"), "");
        let support = support.unwrap();
        assert_eq!(support.endpoint, format!("{url}stats;csv"));
        let own = support.columns.iter().find(|gauge| gauge.name == "stats_frontend_sessions").map(|gauge| gauge.own);
        assert_eq!(own, (!left_out).then_some(1.0), "{others} other requests");
        assert!(support.sees.iter().any(|sees| sees.contains("stats") && sees.contains("this page")), "{:?}", support.sees);
        assert_eq!(run(collector.read()).unwrap().get("app_queue"), Some(2.0));
    }
}

#[test]
fn a_page_without_its_own_proxy_leaves_nothing_out() {
    let url = pages(|_| ("200 OK", QUEUED.to_owned()));
    let support = started(&format!("{url}stats;csv"), "").1.unwrap();
    assert!(support.columns.iter().any(|gauge| gauge.name == "stats_frontend_sessions"));
    assert!(support.lacks.iter().any(|lack| lack.mend.as_ref().is_some_and(|mend| mend.contains("stats socket"))));
}

#[test]
fn another_process_cleared_counters_and_a_proxy_that_is_gone_are_noted_once() {
    let another = QUEUED_SOCKET.replacen("\nPid: ", "\nPid: 9", 1);
    // The same process with the counters of before.
    let (process, _) = another.split_once("\n\n").unwrap();
    let cleared = format!("{process}\n\n{}", REST.split_once("\n\n").unwrap().1);
    let gone: String = cleared.split_inclusive('\n').filter(|line| !line.starts_with("both,")).collect();
    let (mut collector, support) = started(
        &socket([REST, QUEUED_SOCKET, &another, &cleared, &cleared, &gone, &gone].map(|text| text.as_bytes().to_vec()).to_vec()),
        "",
    );
    support.unwrap();
    let told: Vec<Reading> = (0..6).map(|_| run(collector.read()).unwrap()).collect();
    let notes: Vec<_> = told.iter().map(fake::said).collect();
    let wanted = [
        "",
        "another process answers (restarted or reloaded), counters begin again",
        "counters begin again (restarted, reloaded or cleared)",
        "",
        "proxy both is gone",
        "",
    ];
    assert_eq!(notes, wanted);
    assert_eq!((told[3].get("both_queue"), told[5].get("both_queue")), (Some(0.0), None));
}

#[test]
fn configured_proxies_alone_have_columns_and_a_wrong_name_is_a_fault_of_the_configuration() {
    let address = socket(vec![REST.into()]);
    let support = started(&address, "proxies = [\"app\"]").1.unwrap();
    assert!(
        support
            .columns
            .iter()
            .all(|gauge| gauge.name.starts_with("app_") || PROCESS.iter().any(|(_, of, _)| of.name == gauge.name))
    );
    let fault = started(&address, "proxies = [\"application\"]").1.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Config);
    assert!(fault.message.contains("\"application\"") && fault.message.contains("web, app, stats"), "{fault}");
}

#[test]
fn an_answer_cut_at_any_byte_is_no_answer() {
    let whole = QUEUED_SOCKET.as_bytes();
    let cuts: Vec<usize> = (0..whole.len()).step_by(7).chain(whole.len() - 9..whole.len()).collect();
    let mut answers = vec![whole.to_vec()];
    answers.extend(cuts.iter().map(|cut| whole[..*cut].to_vec()));
    answers.push(whole.to_vec());
    let (mut collector, support) = started(&socket(answers), "");
    support.unwrap();
    for cut in cuts {
        let fault = run(collector.read()).expect_err("cut");
        assert!(matches!(fault.kind, FaultKind::Unreachable | FaultKind::Nonsense), "cut at {cut}: {fault}");
    }
    assert_eq!(run(collector.read()).unwrap().get("app_queue"), Some(8.0));
}

#[test]
fn what_is_no_haproxy_is_named() {
    for (answer, kind, says) in [
        (&b""[..], FaultKind::Unreachable, "without an answer"),
        (b"HTTP/1.1 400 Bad request\r\n\r\n", FaultKind::Nonsense, "HTTP/1.1 400"),
        (b"Unknown command, but maybe one of the following\n\n", FaultKind::Nonsense, "Unknown command"),
        (b"Permission denied\n\n", FaultKind::Nonsense, "Permission denied"),
        (b"Name: HAProxy\nVersion: 1\nPid: 1\nMaxconn: 5\n\nnothing\n\n", FaultKind::Nonsense, "nothing"),
    ] {
        let fault = started(&socket(vec![answer.to_vec()]), "").1.unwrap_err();
        assert_eq!(fault.kind, kind, "{fault}");
        assert!(fault.message.contains(says) && fault.message.contains("show stat of tcp:127.0.0.1:"), "{fault}");
    }
    let url = pages(|_| ("200 OK", "Active connections: 1\n".to_owned()));
    let fault = started(&format!("{url}stats;csv"), "").1.unwrap_err();
    assert!(fault.message.contains("nginx' stub_status page") && fault.hint.unwrap().contains("--nginx"), "{}", fault.message);
    let fault = started("/nonexistent/haproxy.sock", "").1.unwrap_err();
    assert!(fault.kind == FaultKind::Unreachable && fault.message.contains("unix:/nonexistent/haproxy.sock"), "{fault}");
}

#[test]
fn keys_that_do_not_belong_and_a_read_before_the_start_are_faults() {
    assert!(collector("/run/x.sock", "user = \"x\"").err().unwrap().message.contains("user"), "a socket has no credentials");
    assert!(collector("http://lb/stats", "user = \"x\"").is_ok());
    assert!(collector("http://lb/stats", "backends = []").err().unwrap().message.contains("backends"));
    assert_eq!(collector("", "").err().unwrap().kind, FaultKind::Config);
    assert_eq!(run(collector("/run/x.sock", "").unwrap().read()).unwrap_err().kind, FaultKind::Unreachable);
}

#[test]
fn one_that_is_down_at_the_start_has_the_columns_that_are_known_without_it() {
    let columns = |endpoint: &str, settings: &str| {
        let collector = open(&Section::of("lb", endpoint, settings));
        collector.unwrap().columns().iter().map(|gauge| gauge.name).collect::<Vec<_>>()
    };
    let socket = columns("/run/haproxy/nobody.sock", "");
    assert!(socket.contains(&"connections") && !socket.iter().any(|name| name.contains("PROXY")), "{socket:?}");
    let named = columns("http://127.0.0.1:1/stats;csv", "proxies = [\"web\", \"app\"]");
    for name in ["web_frontend_sessions", "app_queue", "app_servers_sessions_max"] {
        assert!(named.contains(&name), "{name} of {named:?}");
    }
    // What it has once it answers is among them.
    let (mut collector, support) = started(&socket_of(REST), "proxies = [\"both\"]");
    let known = columns("/run/haproxy/nobody.sock", "proxies = [\"both\"]");
    for gauge in support.unwrap().columns {
        assert!(known.contains(&gauge.name), "{} of {known:?}", gauge.name);
    }
    assert!(run(collector.read()).is_ok());
}

fn socket_of(text: &str) -> String {
    socket(vec![text.as_bytes().to_vec(); 4])
}
