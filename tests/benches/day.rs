//! How fast a run is judged as it grows from an hour to a day: 10 ticks a second, 300 columns, on one core; and how long pandas
//! takes only to read the same ticks, where Python has it.
//!
//! `cargo bench --bench day [-- HOURS…]` (1, 6 and 24). Every run is made here, with a pool that gives way in the middle of the climb;
//! correlate reads it as a process of its own, with its page, so that its peak memory is its own. `WHATGIVES_PYTHON` names the
//! Python.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, reason = "a benchmark prints")]

#[path = "used/used.rs"]
mod used;

#[allow(dead_code, reason = "each maker uses its part")]
#[path = "../it/support/making.rs"]
mod making;

use collectors::api::{Class, Gauge, Layer, Unit};
use making::{Chance, Making, START};
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use used::{cpu_seconds, peak_mb};

const TICKS_A_SECOND: usize = 10;
const COLUMNS: usize = 300;
const POOL: f64 = 100.0;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|text| text != "--bench").collect();
    if arguments.first().is_some_and(|word| word == "correlate") {
        let code = whatgives::correlate::run(arguments);
        println!("{code} {} {}", cpu_seconds(), peak_mb());
        return;
    }
    let hours: Vec<f64> = arguments.iter().filter_map(|text| text.parse().ok()).collect();
    let hours = if hours.is_empty() { vec![1.0, 6.0, 24.0] } else { hours };
    let dir = tempfile::tempdir().expect("a temporary folder");
    println!("{:<18} {:>9} {:>7} {:>8} {:>8} {:>9} {:>9} {:>8}", "", "rows", "MB", "s", "CPU s", "rows/s", "peak MB", "page MB");
    for hours in hours {
        let rows = (hours * 3600.0) as usize * TICKS_A_SECOND;
        let (ticks, log, page) = (dir.path().join("ticks.tsv"), dir.path().join("timeline.tsv"), dir.path().join("run.html"));
        make(&ticks, &log, rows);
        let size = std::fs::metadata(&ticks).expect("its size").len() as f64 / 1e6;
        let program = std::env::current_exe().expect("this program");
        let mut correlate = Command::new("taskset");
        correlate.args(["-c", "0"]).arg(program).arg("correlate").arg(&ticks).arg("--driver").arg(&log).arg("--report").arg(&page);
        measured("correlate", hours, rows, size, &mut correlate, Some(&page));
        let python = std::env::var("WHATGIVES_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let mut pandas = Command::new("taskset");
        pandas.args(["-c", "0", &python, "-c", PANDAS]).arg(&ticks);
        measured("pandas reads", hours, rows, size, &mut pandas, None);
    }
}

fn measured(what: &str, hours: f64, rows: usize, size: f64, command: &mut Command, page: Option<&Path>) {
    let begin = Instant::now();
    let output = command.output().expect("started");
    let seconds = begin.elapsed().as_secs_f64();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let last: Vec<f64> = text.lines().last().unwrap_or_default().split(' ').filter_map(|word| word.parse().ok()).collect();
    let [code, cpu, memory] = last[..] else {
        let why = String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned();
        return println!("{what:<12} {hours:>4} h  not measured: {why}");
    };
    assert_eq!(code, 0.0, "{text}");
    let page = page.map_or(String::new(), |page| format!("{:.2}", std::fs::metadata(page).expect("the page").len() as f64 / 1e6));
    println!(
        "{what:<12} {hours:>4}h {rows:>9} {size:>7.0} {seconds:>8.2} {cpu:>8.2} {:>9.0} {memory:>9.1} {page:>8}",
        rows as f64 / seconds
    );
    if let Some(first) = text.lines().find(|line| line.contains("First to move")) {
        println!("    {}", first.trim());
    }
}

/// A climb from 10 to 200 requests a second over the whole run, with a quarter of it at rest; a pool of 100 a second.
fn offered(share: f64) -> f64 {
    10.0 + 190.0 * ((share - 0.25) / 0.75).max(0.0)
}

/// The ticks and a driver's log by the second.
fn make(ticks: &Path, log: &Path, rows: usize) {
    let classes = [Class::Queue, Class::WaitSum, Class::Throughput, Class::Utilisation, Class::Level, Class::Event];
    let mut gauges = vec![("app", Gauge::new("pool_waiting", Class::Queue, Unit::Count, "").at(Layer::Pool, "connection pool"))];
    for n in 0..COLUMNS - 2 {
        let name: &'static str = Box::leak(format!("gauge_{n}").into_boxed_str());
        let class = classes[n % classes.len()];
        let gauge = match class {
            Class::WaitSum => Gauge::counter(name, class, Unit::Milliseconds, ""),
            Class::Throughput | Class::Event => Gauge::counter(name, class, Unit::Count, ""),
            _ => Gauge::new(name, class, Unit::Count, ""),
        };
        gauges.push(("app", gauge));
    }
    let mut making = Making::new(ticks, log, 1000 / TICKS_A_SECOND as u64, &gauges);
    let (mut chance, mut waiting, mut counters) = (Chance(88_172_645_463_325_252), 0.0_f64, vec![0.0; COLUMNS]);
    let mut cells = vec![Some(0.0); COLUMNS];
    for row in 0..rows {
        let rate = offered(row as f64 / rows as f64);
        waiting = (waiting + (rate - POOL) / TICKS_A_SECOND as f64).clamp(0.0, 200.0);
        cells[0] = Some(1.0);
        cells[1] = Some(waiting.round());
        for n in 0..COLUMNS - 2 {
            let noise = chance.uniform();
            cells[n + 2] = Some(match classes[n % classes.len()] {
                Class::Throughput => {
                    counters[n] += (rate.min(POOL) / TICKS_A_SECOND as f64 * (0.9 + 0.2 * noise)).round();
                    counters[n]
                }
                Class::WaitSum => {
                    counters[n] += (noise * 3.0).round();
                    counters[n]
                }
                Class::Event => 0.0,
                Class::Utilisation => (rate * 0.1 + noise).round(),
                Class::Level => 4096.0 + (noise * 100.0).round(),
                _ => f64::from(u8::from(noise > 0.98)),
            });
        }
        making.tick(row, &cells);
        if row % TICKS_A_SECOND == 0 {
            let unix_ms = START + (row * 1000 / TICKS_A_SECOND) as i64;
            let latency = 50.0 + 1000.0 * waiting / POOL;
            making.timeline.intervals.push(making::second(unix_ms, rate, rate, rate.min(POOL), latency));
        }
    }
    making.finish();
}

const PANDAS: &str = "
import sys, time, resource, pandas
p = time.process_time()
rows = len(pandas.read_csv(sys.argv[1], sep='\\t', comment='#'))
print(0, time.process_time() - p, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
";
