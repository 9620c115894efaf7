//! Another machine through its node exporter, and a Prometheus that scrapes it: this machine, so that both can be compared.

use crate::support::collector::{begun, open};
use crate::support::sampler::Folder;
use crate::support::server::Server;
use collectors::api::{Capacity, Class, Collector, FaultKind, Lag, Layer, Spec, Support};
use std::time::{Duration, Instant};

async fn started(spec: &Spec, endpoint: &str, settings: &str) -> (Box<dyn Collector>, Support) {
    begun(open(spec, "db", endpoint, settings)).await
}

/// Keeps one processor busy until it is dropped.
struct Burner(std::sync::Arc<std::sync::atomic::AtomicBool>);

impl Burner {
    fn new() -> Self {
        let ended = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let seen = ended.clone();
        std::thread::spawn(move || {
            while !seen.load(std::sync::atomic::Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        Self(ended)
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_node_exporters_page_gives_what_our_own_machine_gives_while_a_processor_is_busy() {
    let Some(exporter) = Server::start("node_exporter", &[]) else { return };
    let (mut node, support) = started(&collectors::metrics::SPEC, exporter.get("NODE_EXPORTER_URL"), "").await;
    let (mut host, own) = started(&collectors::host::SPEC, "", "").await;
    assert_eq!(support.product, "node_exporter");
    assert_eq!(support.columns.iter().filter(|gauge| gauge.guessed).count(), 0);
    let busy = support.columns.iter().find(|gauge| gauge.name == "cpu_busy_seconds_total").expect("CPU");
    assert_eq!((busy.class, busy.capacity, busy.layer), (Class::Utilisation, Capacity::Column("cores"), Some(Layer::Host)));
    let alike = own.columns.iter().filter(|gauge| support.columns.iter().any(|other| other == *gauge)).count();
    assert!(alike >= 40, "{alike} columns are declared alike");

    let burner = Burner::new();
    let read = async |collector: &mut Box<dyn Collector>| collector.read().await.expect("it answers");
    let (far, near, began) = (read(&mut node).await, read(&mut host).await, Instant::now());
    for _ in 0..15 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        read(&mut node).await;
    }
    let (far_after, near_after, took) = (read(&mut node).await, read(&mut host).await, began.elapsed().as_secs_f64());
    drop(burner);
    let grown = |name: &str| {
        let difference = |before: &collectors::api::Reading, after: &collectors::api::Reading| {
            after.get(name).expect(name) - before.get(name).expect(name)
        };
        (difference(&far, &far_after), difference(&near, &near_after))
    };
    let (there, here) = grown("cpu_busy_seconds_total");
    let (stolen, _) = grown("cpu_steal_seconds_total");
    assert!(there + stolen > 0.7 * took, "{there} s busy in {took} s");
    assert!((there - here).abs() < 0.15 * took, "{there} s by the exporter, {here} s by /proc, in {took} s");
    for name in ["cores", "memory_total_bytes", "file_handles_max"] {
        assert_eq!(far.get(name), near.get(name), "{name}");
    }
    let (there, here) = (far.get("memory_available_bytes").expect("memory"), near.get("memory_available_bytes").expect("memory"));
    assert!((there - here).abs() < 0.1 * here, "{there} bytes by the exporter, {here} by /proc");
    assert!(far_after.get("procs_running").expect("a run queue") >= busy.own);
    assert!(far.get("fs_root_avail_bytes").is_some_and(|free| free > 0.0), "{:?}", far.values);
}

#[test]
fn the_sampler_writes_another_machines_columns_under_the_name_it_was_given() {
    let Some(exporter) = Server::start("node_exporter", &[]) else { return };
    let folder = Folder::new();
    // As people write it: no path.
    let flag = format!("--metrics=db=127.0.0.1:{}", exporter.get("NODE_EXPORTER_PORT"));
    let ran = folder.run(&[&flag, "--no-host", "--tick=200ms", "--seconds=1"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ticks = folder.ticks();
    assert!(ticks.column("db.cores").expect("cores").iter().all(|cores| *cores >= 1.0));
    let busy = ticks.column("db.cpu_busy_seconds_total").expect("CPU");
    assert!(busy.windows(2).all(|pair| pair[1] >= pair[0]) && busy[0] > 0.0, "{busy:?}");
}

#[tokio::test]
async fn a_prometheus_server_answers_queries_old_and_wrong_ones_too() {
    let Some(exporter) = Server::start("node_exporter", &[]) else { return };
    let target = format!("127.0.0.1:{}", exporter.get("NODE_EXPORTER_PORT"));
    let Some(server) = Server::start("prometheus", &[("PROMETHEUS_TARGET", &target)]) else { return };
    let (url, spec) = (server.get("PROMETHEUS_URL"), &collectors::promql::SPEC);
    let (mut running, support) = started(spec, &format!("{url}::node_procs_running"), "lag = 1").await;
    let gauge = support.columns[0];
    assert_eq!((gauge.name, gauge.lag), ("value", Lag::Refreshed(1.0)));
    // Before its first scrape there is no value, and none is not 0.
    let began = Instant::now();
    let first = loop {
        match running.read().await.expect("it answers").get("value") {
            Some(value) => break value,
            None => assert!(began.elapsed() < Duration::from_secs(20), "never scraped"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert!(first >= 1.0, "the exporter itself runs while it is read");
    let (mut cores, _) = started(spec, &format!("{url}::count(node_cpu_seconds_total{{mode=\"idle\"}})"), "").await;
    let there = cores.read().await.expect("it answers").get("value").expect("processors");
    let cpus = std::fs::read_to_string("/proc/cpuinfo").expect("cpuinfo").matches("processor\t").count();
    assert_eq!(there, cpus as f64);
    // Its own page is scraped at another moment than the exporter's.
    let (mut jobs, _) = started(spec, &format!("{url}::count(up)"), "").await;
    while jobs.read().await.expect("it answers").get("value") != Some(2.0) {
        assert!(began.elapsed() < Duration::from_secs(20), "one is never scraped");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let (mut apart, support) = started(spec, &format!("{url}::up"), "label = \"job\"").await;
    assert_eq!(support.columns.iter().map(|gauge| gauge.name).collect::<Vec<_>>(), ["node", "self"]);
    assert_eq!(apart.read().await.expect("it answers").get("node"), Some(1.0));
    for (query, says) in [("node_procs_running{", "parse error"), ("up[5m]", "found a matrix"), ("nothing_of_this_name", "")] {
        match open(spec, "db", &format!("{url}::{query}"), "").start().await {
            Err(fault) => assert!(fault.kind == FaultKind::Nonsense && fault.message.contains(says) && !says.is_empty(), "{fault}"),
            Ok(support) => assert!(says.is_empty() && support.lacks[0].what.contains("no series matches yet"), "{support:?}"),
        }
    }
    let mut wrong = open(spec, "db", &format!("{}::up", exporter.get("NODE_EXPORTER_URL")), "");
    let fault = wrong.start().await.expect_err("it is no Prometheus server");
    assert!(fault.message.contains("api/v1/query") && fault.hint.is_some(), "{fault}");
}

#[tokio::test]
async fn a_json_page_of_a_real_server_gives_its_numbers_and_names_what_is_none() {
    let Some(server) = Server::start("prometheus", &[]) else { return };
    let (url, spec) = (format!("{}/api/v1/status/tsdb", server.get("PROMETHEUS_URL")), &collectors::json::SPEC);
    let began = Instant::now();
    // Its first series come with its first scrape of itself.
    let series = loop {
        let (mut page, _) = started(spec, &url, "").await;
        let reading = page.read().await.expect("it answers");
        match reading.values.iter().find(|(name, value)| name.ends_with("numseries") && *value > 0.0) {
            Some((_, value)) => break *value,
            None => assert!(began.elapsed() < Duration::from_secs(20), "{reading:?}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert!(series > 10.0, "{series}");
    let fault = open(spec, "db", &format!("{}/nothing", server.get("PROMETHEUS_URL")), "").start().await.expect_err("no page");
    assert!(fault.message.contains("404"), "{fault}");
}
