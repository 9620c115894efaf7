//! While a saturated server's own page is silent, something in the tick file moves: whether it is up and how long it was
//! waited for, and where others wait in the kernel, its accept queue. The databases, memcached and PgBouncer go on answering
//! on the connection that was opened before, and so does HAProxy's socket: what moves then stands in `moves.rs`.

use super::{haproxy, redis};
use crate::support::sampler::{Folder, Ran, notes, read_columns, signal};
use crate::support::server::Server;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use whatgives::ticks::Ticks;

/// Requests for a page that takes long, answered or closed.
fn slow(port: &str, page: &str, count: usize) -> Vec<JoinHandle<()>> {
    let port: u16 = port.parse().expect("a port");
    let one = |_| {
        // One after the other: of a burst nginx gives up those that it has not heard yet, and not the idle one.
        std::thread::sleep(Duration::from_millis(15));
        let request = format!("GET {page} HTTP/1.0\r\nHost: site\r\n\r\n");
        std::thread::spawn(move || {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
            // A server that closes what it cannot serve may do so before it has heard anything.
            let _ = stream.write_all(request.as_bytes());
            let _ = stream.read_to_end(&mut Vec::new());
        })
    };
    (0..count).map(one).collect()
}

/// Samples the page and the queue before the server every 200 ms, before, during and after this load.
fn sampled(page: &str, door: &str, load: impl FnOnce() -> Vec<JoinHandle<()>>) -> Ticks {
    let folder = Folder::new();
    let child = folder.start(&[page, &format!("--listen-queue=door={door}"), "--no-host", "--tick=200ms", "--seconds=60"]);
    folder.until_rows(5);
    for request in load() {
        request.join().expect("it ends");
    }
    let rows = folder.ticks().tick.len();
    folder.until_rows(rows + 6);
    signal(child.id(), "TERM");
    let ran = Ran::end(child);
    assert_eq!(ran.code, 0, "{}", ran.err);
    folder.ticks()
}

/// The rows in which the page said nothing, after rest and before rest.
fn silent(ticks: &Ticks) -> Vec<usize> {
    let up = ticks.column("web.up").expect("up");
    assert_eq!((up[0], up.last()), (1.0, Some(&1.0)), "{}", notes(ticks));
    let silent: Vec<usize> = (0..up.len()).filter(|row| up[*row] == 0.0).collect();
    assert!(silent.len() >= 3, "the page was never silent: {up:?}");
    for (name, cells) in read_columns(ticks, "web") {
        assert!(silent.iter().all(|row| cells[*row].is_nan()), "{name}: {cells:?}");
    }
    silent
}

/// The most that a column showed in these rows.
fn most(ticks: &Ticks, name: &str, rows: &[usize]) -> f64 {
    rows.iter().map(|row| ticks.column(name).expect("a column")[*row]).filter(|cell| !cell.is_nan()).fold(0.0, f64::max)
}

#[test]
fn while_apaches_page_is_silent_the_wait_for_it_grows_and_the_accept_queue_fills() {
    for mpm in ["event", "prefork"] {
        let options = [("APACHE_MPM", mpm), ("APACHE_WORKERS", "4"), ("APACHE_EXTRA", "KeepAlive Off")];
        let Some(server) = Server::start("apache", &options) else { return };
        let page = format!("--apache=web={}", server.get("APACHE_STATUS_URL"));
        let port = server.get("APACHE_PORT");
        let ticks = sampled(&page, port, || slow(port, "/slow?2500", 12));
        let silent = silent(&ticks);
        assert!(most(&ticks, "web.poll_ms", &silent) > 500.0, "{mpm}: {:?}", ticks.column("web.poll_ms"));
        assert_eq!(ticks.column("door.queue").expect("the queue")[0], 0.0, "at rest");
        assert!(most(&ticks, "door.queue", &silent) >= 4.0, "{mpm}: {:?}", ticks.column("door.queue"));
    }
}

#[test]
fn while_a_php_fpm_page_through_its_own_pool_is_silent_the_pools_accept_queue_fills() {
    let Some(fpm) = Server::start("phpfpm", &[("PHPFPM_CHILDREN", "3")]) else { return };
    let Some(nginx) =
        Server::start("nginx", &[("NGINX_PHPFPM", fpm.get("PHPFPM_ADDRESS")), ("NGINX_PHP_ROOT", fpm.get("PHPFPM_ROOT"))])
    else {
        return;
    };
    let page = format!("--phpfpm=web={}", nginx.get("NGINX_FPM_STATUS_URL"));
    let ticks = sampled(&page, fpm.get("PHPFPM_PORT"), || slow(nginx.get("NGINX_PORT"), "/slow.php?2500", 9));
    let silent = silent(&ticks);
    assert!(most(&ticks, "web.poll_ms", &silent) > 500.0, "{:?}", ticks.column("web.poll_ms"));
    assert!(most(&ticks, "door.queue", &silent) >= 5.0, "{:?}", ticks.column("door.queue"));
}

#[test]
fn while_nginx_closes_every_connection_its_page_is_down_with_a_reason_and_its_counter_tells_after() {
    let Some(server) = Server::start("nginx", &[("NGINX_CONNECTIONS", "16")]) else { return };
    let page = format!("--nginx=web={}", server.get("NGINX_STATUS_URL"));
    let port = server.get("NGINX_PORT");
    let ticks = sampled(&page, port, || slow(port, "/slow?2500", 30));
    let silent = silent(&ticks);
    // Nobody waits long before it: what it cannot serve it closes. The reason stands in the row.
    assert!(silent.iter().any(|row| ticks.notes.iter().any(|(noted, note)| noted == row && note.starts_with("web: "))));
    let dropped = ticks.column("web.dropped_total").expect("the counter");
    assert_eq!(dropped[0], 0.0, "at rest");
    assert!(dropped.last().is_some_and(|dropped| *dropped >= 10.0), "{dropped:?}");
}

#[test]
fn while_a_full_haproxy_lets_no_page_through_the_wait_for_it_grows_and_the_accept_queue_fills() {
    // A page whose connection is not kept.
    let Some(pair) = haproxy::Pair::start(&[("HAPROXY_TOTAL", "10")], "    option httpclose") else { return };
    let page = format!("--haproxy=web={}", pair.haproxy.get("HAPROXY_STATS_URL"));
    let port = pair.haproxy.get("HAPROXY_PORT");
    let ticks = sampled(&page, port, || slow(port, "/slow?2500", 14));
    let silent = silent(&ticks);
    assert!(most(&ticks, "web.poll_ms", &silent) > 500.0, "{:?}", ticks.column("web.poll_ms"));
    assert_eq!(ticks.column("door.queue").expect("the queue")[0], 0.0, "at rest");
    assert!(most(&ticks, "door.queue", &silent) >= 3.0, "{:?}", ticks.column("door.queue"));
}

#[test]
fn while_a_script_holds_redis_up_the_wait_for_its_answer_grows_and_newcomers_fill_the_accept_queue() {
    for name in redis::BOTH {
        // On a busy machine two seconds of processor time take long, and after 5 s it would answer that it is busy.
        let args = [(&*format!("{}_ARGS", name.to_uppercase()), "--busy-reply-threshold 60000")];
        let Some(server) = Server::start(name, &args) else { return };
        let port = redis::of(&server, name, "PORT");
        let asks = |words: &[&str]| {
            let (port, words): (_, Vec<String>) = (port.to_owned(), words.iter().map(|word| (*word).to_owned()).collect());
            std::thread::spawn(move || {
                redis::Client::new(&port).ask(&words.iter().map(String::as_str).collect::<Vec<_>>());
            })
        };
        // As many rounds as take two seconds, however fast this machine is.
        let script = "local n = 0 for i = 1, tonumber(ARGV[1]) do n = n + i % 7 end return n";
        let began = Instant::now();
        assert!(redis::Client::new(port).ask(&["EVAL", script, "0", "20000000"]).starts_with(':'));
        let rounds = (2e7 * 2.0 / began.elapsed().as_secs_f64()).to_string();
        let ticks = sampled(&format!("--redis=web={}", redis::of(&server, name, "URL")), port, || {
            let mut all = vec![asks(&["EVAL", script, "0", &rounds])];
            std::thread::sleep(Duration::from_millis(200));
            all.extend((0..5).map(|_| asks(&["PING"])));
            all
        });
        let silent = silent(&ticks);
        assert!(most(&ticks, "web.poll_ms", &silent) > 700.0, "{name}: {:?}", ticks.column("web.poll_ms"));
        assert_eq!(ticks.column("door.queue").expect("the queue")[0], 0.0, "at rest");
        assert!(most(&ticks, "door.queue", &silent) >= 4.0, "{name}: {:?}", ticks.column("door.queue"));
    }
}
