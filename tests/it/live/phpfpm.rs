//! The php-fpm collector against a real php-fpm: over FastCGI on a port and on a Unix socket, and through nginx.

use crate::support::collector::{SOON, begun, collector, read, started, until, value};
use crate::support::declared::declared;
use crate::support::server::Server;
use collectors::api::{Capacity, Class, Collector, FaultKind, Support};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_millis(400);

/// Asked beside the pool's children.
async fn beside(server: &Server, settings: &str) -> (Box<dyn Collector>, Support) {
    begun(collector("phpfpm", &format!("{}/fpm-status", server.get("PHPFPM_STATUS_ADDRESS")), settings)).await
}

/// Where the pool itself serves the page.
fn through(server: &Server) -> String {
    let address = server.get("PHPFPM_ADDRESS");
    if address.starts_with('/') { format!("unix:{address}:/fpm-status") } else { format!("{address}/fpm-status") }
}

trait Connection: Read + Write {}
impl<T: Read + Write> Connection for T {}

/// A request over FastCGI that each holds a child for so long.
fn slow(server: &Server, count: usize, ms: u32) -> Vec<JoinHandle<()>> {
    let (address, root) = (server.get("PHPFPM_ADDRESS").to_owned(), server.get("PHPFPM_ROOT").to_owned());
    let mut pairs = Vec::new();
    for (name, text) in [
        ("SCRIPT_NAME", "/slow.php"),
        ("SCRIPT_FILENAME", &format!("{root}/slow.php")),
        ("REQUEST_METHOD", "GET"),
        ("QUERY_STRING", &ms.to_string()),
    ] {
        for part in [name, text] {
            pairs.extend((part.len() as u32 | 1 << 31).to_be_bytes());
        }
        pairs.extend(name.bytes().chain(text.bytes()));
    }
    let mut request = vec![1, 1, 0, 1, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 4, 0, 1];
    request.extend((pairs.len() as u16).to_be_bytes());
    request.extend([0, 0]);
    request.extend(pairs);
    request.extend([1, 4, 0, 1, 0, 0, 0, 0, 1, 5, 0, 1, 0, 0, 0, 0]);
    (0..count)
        .map(|_| {
            let (address, request) = (address.clone(), request.clone());
            std::thread::spawn(move || {
                let mut stream: Box<dyn Connection> = if address.starts_with('/') {
                    Box::new(UnixStream::connect(&address).expect("it listens"))
                } else {
                    Box::new(TcpStream::connect(&address).expect("it listens"))
                };
                stream.write_all(&request).expect("sent");
                let mut answer = Vec::new();
                stream.read_to_end(&mut answer).expect("answered");
                let answer = String::from_utf8_lossy(&answer);
                assert!(answer.contains("slept"), "{answer}");
            })
        })
        .collect()
}

fn join(threads: Vec<JoinHandle<()>>) {
    for thread in threads {
        thread.join().expect("the slow request was answered");
    }
}

#[tokio::test]
async fn an_idle_pool_rests_at_0_beside_it_and_at_1_through_it_our_own() {
    let Some(server) = Server::start("phpfpm", &[]) else { return };
    for (endpoint, own) in [(format!("{}/fpm-status", server.get("PHPFPM_STATUS_ADDRESS")), 0.0), (through(&server), 1.0)] {
        let (mut collector, support) = started("phpfpm", &endpoint).await;
        assert_eq!(support.product, "php-fpm");
        assert!(support.version.starts_with('8'), "{}", support.version);
        assert!(support.facts.contains(&("process_manager".to_owned(), "static".into())), "{:?}", support.facts);
        assert_eq!(support.lacks.iter().any(|lack| lack.what.contains("every child is busy")), own == 1.0);
        let active = support.columns.iter().find(|gauge| gauge.name == "active_processes").expect("a column");
        assert_eq!((active.own, active.capacity), (own, Capacity::Column("max_children")));
        declared(
            &support,
            &[
                ("active_processes", Class::Utilisation, Some("max_children")),
                ("listen_queue", Class::Queue, Some("listen_queue_max")),
                ("max_children_reached_total", Class::Event, None),
            ],
        );
        until(collector.as_mut(), "the master's first look", |reading| reading.get("listen_queue").is_some()).await;
        let reading = until(collector.as_mut(), "rest", |reading| value(reading, "active_processes") == own).await;
        assert_eq!(value(&reading, "idle_processes"), 8.0 - own);
        assert_eq!((value(&reading, "total_processes"), value(&reading, "max_children")), (8.0, 8.0));
        assert_eq!((value(&reading, "listen_queue"), value(&reading, "listen_queue_max")), (0.0, 64.0));
        assert_eq!((value(&reading, "max_children_reached_total"), value(&reading, "slow_requests_total")), (0.0, 0.0));
        let next = read(collector.as_mut()).await;
        assert_eq!(value(&next, "accepted_total") - value(&reading, "accepted_total"), own, "our own read alone, if it counts");
        assert_eq!(next.notes, Vec::<String>::new());
    }
}

#[tokio::test]
async fn exhausted_children_silence_the_pools_page_while_the_other_goes_on_and_the_kernels_queue_is_first() {
    let Some(server) = Server::start("phpfpm", &[]) else { return };
    let (mut beside, _) = beside(&server, "").await;
    let (mut through, _) = started("phpfpm", &through(&server)).await;
    let (mut kernel, _) = started("listen", server.get("PHPFPM_ADDRESS")).await;
    until(beside.as_mut(), "the master's first look", |reading| reading.get("listen_queue").is_some()).await;
    assert_eq!(value(&read(kernel.as_mut()).await, "queue"), 0.0);

    let all = slow(&server, 14, 3000);
    // The page first and the kernel's queue right after it: the page never knows of more.
    let (mut kernel_saw, mut page_saw) = (None, None);
    let began = Instant::now();
    while page_saw.is_none() {
        let page = read(beside.as_mut()).await;
        let queue = value(&read(kernel.as_mut()).await, "queue");
        assert!(value(&page, "listen_queue") <= queue, "the page says {}, the kernel {queue}", value(&page, "listen_queue"));
        kernel_saw = kernel_saw.or((queue == 6.0).then(|| began.elapsed()));
        page_saw = (value(&page, "listen_queue") == 6.0).then(|| began.elapsed());
        assert!(began.elapsed() < Duration::from_secs(3), "the page never showed the queue; the kernel did after {kernel_saw:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(kernel_saw <= page_saw, "{kernel_saw:?} {page_saw:?}");
    let full = read(beside.as_mut()).await;
    assert_eq!((value(&full, "active_processes"), value(&full, "max_children")), (8.0, 8.0));
    assert_eq!((value(&full, "idle_processes"), value(&full, "listen_queue_max")), (0.0, 64.0));
    assert_eq!(value(&read(kernel.as_mut()).await, "limit"), 64.0);
    // One that starts only now still sees that its page is served beside the pool.
    let (_, support) = self::beside(&server, "").await;
    let active = support.columns.iter().find(|gauge| gauge.name == "active_processes").expect("a column");
    assert_eq!(active.own, 0.0);
    {
        let mut late = through.read();
        assert!(tokio::time::timeout(DEADLINE, &mut late).await.is_err(), "the page needs a child and none is free");
        // Meanwhile the other goes on, and sees our own read among those that wait.
        let reading = tokio::time::timeout(SOON, beside.read()).await.expect("in time").expect("an answer");
        assert_eq!(value(&reading, "idle_processes"), 0.0);
        assert_eq!(value(&read(kernel.as_mut()).await, "queue"), 7.0);
        let reading = tokio::time::timeout(Duration::from_secs(10), late).await.expect("ends").expect("an answer");
        assert!(value(&reading, "active_processes") >= 1.0);
    }
    join(all);
    until(beside.as_mut(), "an empty queue", |reading| value(reading, "listen_queue") == 0.0).await;
    // A child is busy for a moment longer than its answer takes.
    let rest = until(beside.as_mut(), "rest", |reading| value(reading, "active_processes") == 0.0).await;
    assert_eq!(value(&rest, "idle_processes"), 8.0);
    assert_eq!(value(&read(kernel.as_mut()).await, "queue"), 0.0);
}

#[tokio::test]
async fn on_a_unix_socket_the_pages_queue_is_missing_and_the_kernels_tells() {
    let Some(server) = Server::start("phpfpm", &[("PHPFPM_UNIX", "1"), ("PHPFPM_BACKLOG", "16")]) else { return };
    let (mut beside, support) = beside(&server, "").await;
    assert!(support.lacks.iter().any(|lack| lack.what.contains("listen queue")), "{:?}", support.lacks);
    let (mut pool, support) = started("phpfpm", &through(&server)).await;
    assert_eq!(support.endpoint, through(&server));
    until(pool.as_mut(), "rest", |reading| value(reading, "active_processes") == 1.0).await;
    let (mut kernel, _) = started("listen", server.get("PHPFPM_ADDRESS")).await;
    let all = slow(&server, 14, 2500);
    until(kernel.as_mut(), "requests in the kernel's queue", |reading| value(reading, "queue") == 6.0).await;
    // Longer than the master needs to look.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let full = read(beside.as_mut()).await;
    assert_eq!((value(&full, "active_processes"), value(&full, "max_children")), (8.0, 8.0));
    assert_eq!((full.get("listen_queue"), full.get("listen_queue_max")), (None, None), "php-fpm says 0 of 0, with 6 waiting");
    join(all);
}

#[tokio::test]
async fn a_full_backlog_is_a_fault_that_says_so() {
    let Some(server) = Server::start("phpfpm", &[("PHPFPM_UNIX", "1"), ("PHPFPM_BACKLOG", "2"), ("PHPFPM_CHILDREN", "1")]) else {
        return;
    };
    let (mut pool, _) = started("phpfpm", &through(&server)).await;
    let (mut kernel, _) = started("listen", server.get("PHPFPM_ADDRESS")).await;
    let all = slow(&server, 4, 1500);
    // The kernel lets one more wait than the limit says.
    until(kernel.as_mut(), "a full queue", |reading| value(reading, "queue") == 3.0).await;
    let fault = pool.read().await.expect_err("no room in the queue");
    assert_eq!(fault.kind, FaultKind::Unreachable);
    assert!(fault.message.contains("its accept queue is full"), "{fault}");
    join(all);
    until(pool.as_mut(), "rest", |reading| value(reading, "active_processes") == 1.0).await;
}

#[tokio::test]
async fn a_dynamic_pool_counts_once_that_it_reached_its_limit_and_does_not_tell_the_limit() {
    let extra = "pm = dynamic\npm.max_children = 4\npm.start_servers = 2\npm.min_spare_servers = 1\npm.max_spare_servers = 3\n\
        request_slowlog_timeout = 1s\nslowlog = /dev/null";
    let Some(server) = Server::start("phpfpm", &[("PHPFPM_EXTRA", extra)]) else { return };
    let (mut beside, support) = beside(&server, "").await;
    assert!(support.lacks.iter().any(|lack| lack.mend.as_ref().is_some_and(|mend| mend.contains("max_children = N"))));
    assert_eq!(read(beside.as_mut()).await.get("max_children"), None);
    let (mut configured, _) = self::beside(&server, "max_children = 4").await;
    let all = slow(&server, 9, 2500);
    let full = until(beside.as_mut(), "the limit was reached", |reading| value(reading, "max_children_reached_total") == 1.0).await;
    assert_eq!((value(&full, "idle_processes"), value(&full, "total_processes")), (0.0, 4.0));
    let full = read(configured.as_mut()).await;
    assert_eq!((value(&full, "active_processes"), value(&full, "max_children")), (4.0, 4.0));
    until(beside.as_mut(), "slow requests", |reading| value(reading, "slow_requests_total") >= 4.0).await;
    join(all);
    let after = read(beside.as_mut()).await;
    assert_eq!(value(&after, "max_children_reached_total"), 1.0, "once for the whole saturation");
}

#[tokio::test]
async fn through_nginx_the_page_is_read_over_http_and_hangs_with_the_pool() {
    let Some(pool) = Server::start("phpfpm", &[("PHPFPM_CHILDREN", "3")]) else { return };
    let options = [("NGINX_PHPFPM", pool.get("PHPFPM_ADDRESS")), ("NGINX_PHP_ROOT", pool.get("PHPFPM_ROOT"))];
    let Some(nginx) = Server::start("nginx", &options) else { return };
    // Without a path the usual ones are tried.
    let (mut web, support) = started("phpfpm", nginx.get("NGINX_URL")).await;
    assert_eq!(support.endpoint, format!("{}?json", nginx.get("NGINX_FPM_STATUS_URL")));
    let rest = until(web.as_mut(), "rest", |reading| value(reading, "active_processes") == 1.0).await;
    assert_eq!(value(&rest, "max_children"), 3.0);
    let (mut kernel, _) = started("listen", pool.get("PHPFPM_ADDRESS")).await;
    let all = slow(&pool, 5, 2500);
    until(kernel.as_mut(), "requests that wait", |reading| value(reading, "queue") == 2.0).await;
    {
        let mut late = web.read();
        assert!(tokio::time::timeout(DEADLINE, &mut late).await.is_err(), "nginx waits for a child like everybody");
        tokio::time::timeout(Duration::from_secs(10), late).await.expect("ends").expect("an answer");
    }
    join(all);
    let fault = collector("phpfpm", &format!("{}/index.html", nginx.get("NGINX_URL")), "").start().await.expect_err("no status");
    assert!(fault.message.contains("an HTML page"), "{fault}");
}

#[tokio::test]
async fn a_killed_server_costs_its_reads_and_one_note() {
    let Some(mut server) = Server::start("phpfpm", &[]) else { return };
    let (mut beside, _) = beside(&server, "").await;
    join(slow(&server, 5, 1));
    assert_eq!(value(&read(beside.as_mut()).await, "accepted_total"), 5.0);
    server.signal_all("KILL");
    let fault = loop {
        match beside.read().await {
            Ok(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(fault) => break fault,
        }
    };
    assert_eq!(fault.kind, FaultKind::Unreachable, "{fault}");
    // The server's clock of its start has whole seconds.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    server.start_again();
    let reading = read(beside.as_mut()).await;
    assert_eq!((value(&reading, "accepted_total"), value(&reading, "total_processes")), (0.0, 8.0));
    assert_eq!(reading.restarted.as_deref(), Some("restarted, counters begin again"));
    assert_eq!(read(beside.as_mut()).await.notes, Vec::<String>::new());
}

#[tokio::test]
async fn a_stopped_server_is_silent_and_another_kind_is_named() {
    let Some(server) = Server::start("phpfpm", &[]) else { return };
    let (mut beside, _) = beside(&server, "").await;
    server.signal_all("STOP");
    tokio::time::sleep(Duration::from_millis(100)).await;
    let silent = tokio::time::timeout(Duration::from_millis(300), beside.read()).await;
    server.signal_all("CONT");
    assert!(silent.is_err(), "{silent:?}");
    until(beside.as_mut(), "rest", |reading| value(reading, "active_processes") == 0.0).await;
    let fault = collector("phpfpm", &format!("{}/nowhere", server.get("PHPFPM_ADDRESS")), "").start().await.expect_err("no page");
    assert!(fault.message.contains("404 Primary script unknown"), "{fault}");

    let Some(nginx) = Server::start("nginx", &[]) else { return };
    let fault =
        collector("phpfpm", &format!("127.0.0.1:{}/x", nginx.get("NGINX_PORT")), "").start().await.expect_err("a web server");
    assert!(fault.message.contains("HTTP/1.1 400") && fault.hint.is_some_and(|hint| hint.contains("http://")), "{}", fault.message);
}
