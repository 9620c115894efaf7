//! The host collector on the machine that tests run on.

use crate::support::collector::{begun, collector, started, value};

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

#[tokio::test]
async fn burning_processors_shows_in_busy_time_the_run_queue_and_the_samplers_own_time() {
    let (mut host, support) = started("host", "").await;
    let rest = host.read().await.expect("read");
    let cores = value(&rest, "cores");
    assert_eq!(cores, std::fs::read_to_string("/proc/cpuinfo").expect("cpuinfo").matches("processor\t").count() as f64);
    let running = support.columns.iter().find(|gauge| gauge.name == "procs_running").expect("a run queue");
    assert!(value(&rest, "procs_running") >= running.own, "whoever reads runs");

    // A container may use fewer than the machine has.
    let usable = std::thread::available_parallelism().expect("a number").get();
    let end = Instant::now() + Duration::from_millis(1500);
    let burners: Vec<_> = (0..2 * usable)
        .map(|_| {
            std::thread::spawn(move || {
                while Instant::now() < end {
                    std::hint::spin_loop();
                }
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let (from, start) = (host.read().await.expect("read"), Instant::now());
    let mut queue = Vec::new();
    while start.elapsed() < Duration::from_secs(1) {
        tokio::time::sleep(Duration::from_millis(50)).await;
        queue.push(value(&host.read().await.expect("read"), "procs_running"));
    }
    let (to, took) = (host.read().await.expect("read"), start.elapsed().as_secs_f64());
    for burner in burners {
        burner.join().expect("it burned");
    }
    let grown = |name: &str| value(&to, name) - value(&from, name);
    // What a hypervisor takes away is not the machine's idleness.
    let busy = grown("cpu_busy_seconds_total") + grown("cpu_steal_seconds_total");
    let usable = usable as f64;
    assert!(busy > 0.8 * usable * took && busy < 1.1 * cores * took + 0.1, "{busy} s of {cores} processors in {took} s");
    assert!(grown("self_cpu_seconds_total") > 0.2 * took, "the burners are threads of the reader");
    queue.sort_by(f64::total_cmp);
    let median = queue[queue.len() / 2];
    assert!(median >= usable + running.own, "{median} running with {} burners on {usable} processors", 2.0 * usable);
    if support.columns.iter().any(|gauge| gauge.name == "psi_cpu_some_us_total") {
        let waited = grown("psi_cpu_some_us_total") / 1e6;
        assert!(waited > 0.5 * took && waited < 1.2 * took, "{waited} s in which some thread waited, in {took} s");
    }
}

#[tokio::test]
async fn bytes_sent_over_an_interface_are_counted_at_once() {
    let (mut host, _) = begun(collector("host", "", "interfaces = [\"lo\"]")).await;
    let from = host.read().await.expect("read");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut client = TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
    let (mut server, _) = listener.accept().expect("accepted");
    let sender = std::thread::spawn(move || {
        client.write_all(&vec![7; 1 << 20]).expect("sent");
        client
    });
    server.read_exact(&mut vec![0; 1 << 20]).expect("received");
    let _still_open = sender.join().expect("sent");
    let to = host.read().await.expect("read");
    for name in ["net_lo_rx_bytes_total", "net_lo_tx_bytes_total"] {
        let grown = value(&to, name) - value(&from, name);
        assert!(grown >= f64::from(1 << 20), "{name}: {grown}");
    }
    assert_eq!(value(&to, "net_lo_rx_drops_total"), value(&from, "net_lo_rx_drops_total"));
    assert!(value(&to, "tcp_established") >= 2.0);
}

#[tokio::test]
async fn every_column_of_the_start_has_a_value_in_every_read_and_memory_adds_up() {
    let (mut host, support) = started("host", "").await;
    for _ in 0..5 {
        let reading = host.read().await.expect("read");
        assert_eq!(reading.notes, Vec::<String>::new());
        for gauge in &support.columns {
            assert!(value(&reading, gauge.name) >= 0.0, "{}", gauge.name);
        }
    }
    let reading = host.read().await.expect("read");
    assert!(value(&reading, "memory_available_bytes") < value(&reading, "memory_total_bytes"));
    assert!(value(&reading, "self_memory_bytes") > 1e6);
    assert!(value(&reading, "file_handles") < value(&reading, "file_handles_max"));
}
