//! One name for several machines: a list of them, and a balancer in front of them.

use crate::support::sampler::{Folder, notes};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};

/// A page at an address of its own: what it says at each of its requests. It ends with the test's process.
fn page(says: impl Fn(u32) -> String + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (asked, stream) in (0..).zip(listener.incoming().flatten()) {
            let mut head = BufReader::new(&stream).lines().map_while(Result::ok);
            while head.next().is_some_and(|line| !line.is_empty()) {}
            let body = says(asked);
            let length = body.len();
            let _ = write!(&stream, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
        }
    });
    address
}

/// Two replicas that answer in turn; the second has done much less work.
fn in_turn(tells_its_process: bool) -> SocketAddr {
    page(move |asked| {
        let (started, requests) = if asked % 2 == 0 { (100, 50_000 + asked) } else { (900, 700 + asked) };
        let process = if tells_its_process { format!("process_start_time_seconds {started}\n") } else { String::new() };
        format!("{process}http_requests_total {requests}\nsent_bytes_total {}\njobs_pending {}\n", 90 * requests, asked % 2)
    })
}

#[test]
fn replicas_behind_one_address_that_tell_their_process_are_kept_apart() {
    let folder = Folder::new();
    let ran = folder.run(&[&format!("--metrics=app={}", in_turn(true)), "--no-host", "--tick=50ms", "--seconds=1"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ticks = folder.ticks();
    let requests = ticks.column("app.http_requests_total").unwrap();
    let told: Vec<f64> = requests.iter().copied().filter(|value| value.is_finite()).collect();
    // Of the reads after the second, those of one replica are there and the other's are not.
    assert!(told.len() >= 9 && told.len() <= 12, "{told:?}");
    assert!(told.windows(2).all(|pair| pair[1] - pair[0] < 10.0), "no giant rate: {told:?}");
    let queue = ticks.column("app.jobs_pending").unwrap();
    assert!(queue.iter().all(|value| value.is_finite()), "gauges are kept");
    let notes = notes(&ticks);
    assert_eq!(notes.matches("several replicas answer at this address").count(), 1, "{notes}");
    assert!(notes.matches("begin again").count() <= 1, "{notes}");
    assert!(ran.err.contains("app: several replicas answered at one address") && ran.err.contains("app=@FILE"), "{}", ran.err);
    assert!(!ran.err.contains("counters reset"), "{}", ran.err);
}

#[test]
fn replicas_that_tell_nothing_are_recognised_by_counters_that_jump_back_and_forth() {
    let folder = Folder::new();
    let ran = folder.run(&[&format!("--metrics=app={}", in_turn(false)), "--no-host", "--tick=50ms", "--seconds=1"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ticks = folder.ticks();
    let requests = ticks.column("app.http_requests_total").unwrap();
    assert!(requests[4..].iter().all(|value| value.is_nan()), "{requests:?}");
    assert!(ticks.column("app.jobs_pending").unwrap().iter().all(|value| value.is_finite()));
    assert!(notes(&ticks).contains("several replicas answer at this address: counters are left out"), "{}", notes(&ticks));
    assert!(!ran.err.contains("counters reset"), "{}", ran.err);
}

#[test]
fn a_file_of_endpoints_becomes_an_instance_each_in_the_header_and_in_the_check() {
    let folder = Folder::new();
    let one = |requests: u32| page(move |asked| format!("http_requests_total {}\n", requests + asked));
    folder.write("apps.txt", &format!("# the shop\nhttp://{}/metrics\n{}\n", one(1000), one(20)));
    let ran = folder.run(&["--metrics=app=@apps.txt", "--no-host", "--tick=50ms", "--seconds=0.5"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ticks = folder.ticks();
    for (column, least) in [("app_1.http_requests_total", 1000.0), ("app_2.http_requests_total", 20.0)] {
        let values = ticks.column(column).unwrap();
        assert!(values.iter().all(|value| *value >= least && *value < least + 50.0), "{column}: {values:?}");
    }
    assert!(ticks.header.targets.iter().all(|target| target.about["one_of"] == "app"), "{:?}", ticks.header.targets);
    let ran = folder.run(&["--metrics=app=@apps.txt", "--no-host", "--check"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.out.matches("\n  one of   app\n").count(), 2, "{}", ran.out);
}
