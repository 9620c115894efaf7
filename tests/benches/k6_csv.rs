//! How fast drivers' logs are read: k6's CSV and JSON, JMeter's CSV, each generated here with about 4 million rows, and the
//! same table per second and step by `DuckDB` and Polars on one core, where Python has them (`pip install duckdb polars`).
//!
//! `cargo bench --bench k6_csv [-- ROWS]`; `-- write k6.csv PATH ROWS` only writes a log. Each reading is a process of its own, so that its peak memory is its own.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, reason = "a benchmark prints")]

#[path = "used/used.rs"]
mod used;

use std::ffi::OsStr;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use used::{cpu_seconds, peak_mb};
use whatgives::driver::{self, Options};
use whatgives::timeline::ALL;

const T0: u64 = 1_795_980_282;
/// Rows of one iteration in k6's CSV: nine of its request and four of its own.
const ROWS_AN_ITERATION: u64 = 13;
const STEPS: [(&str, &str); 3] = [
    ("GET", "http://127.0.0.1:18080/events/8812/seats"),
    ("POST", "http://127.0.0.1:18080/events/8812/holds"),
    ("POST", "http://127.0.0.1:18080/checkout/payment"),
];

/// Writes a log of so many rows.
type Write = fn(&Path, u64);

/// What is generated, by name.
const LOGS: [(&str, Write); 3] = [("k6.csv", k6_csv), ("k6.json", k6_json), ("jmeter.jtl", jtl)];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|text| text != "--bench").collect();
    if let [command, path] = arguments.as_slice()
        && command == "read"
    {
        return read(Path::new(path));
    }
    if let [command, name, path, rows] = arguments.as_slice()
        && command == "write"
    {
        let (_, write) = LOGS.iter().find(|(log, _)| log == name).expect("one of the logs");
        return write(Path::new(path), rows.parse().expect("a number of rows"));
    }
    let rows = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(4_000_000);
    let dir = tempfile::tempdir().expect("a temporary folder");
    println!("{:<22} {:>9} {:>7} {:>8} {:>8} {:>9} {:>9}", "", "rows", "MB", "s", "CPU s", "MB/CPU s", "peak MB");
    for (name, write) in LOGS {
        let path = dir.path().join(name);
        write(&path, rows);
        let size = std::fs::metadata(&path).expect("its size").len() as f64 / 1e6;
        let program = std::env::current_exe().expect("this program");
        measured(name, "whatgives", rows, size, on_one_core(program.as_os_str()).args(["read".as_ref(), path.as_os_str()]));
        if name == "k6.csv" {
            for (tool, script) in [("duckdb", DUCKDB), ("polars", POLARS)] {
                let mut command = on_one_core("python3".as_ref());
                command.args(["-c", script]).arg(&path).env("POLARS_MAX_THREADS", "1");
                measured(name, tool, rows, size, &mut command);
            }
        }
        std::fs::remove_file(path).expect("removed");
    }
}

/// A program that has one core, whatever it starts.
fn on_one_core(program: &OsStr) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", "0"]).arg(program);
    command
}

/// Runs a reading three times and prints the one with the least CPU time, without the start of its program: on a machine
/// that others use too, CPU time is what compares.
fn measured(name: &str, tool: &str, rows: u64, size: f64, command: &mut Command) {
    let mut best: Option<([f64; 3], String)> = None;
    for _ in 0..3 {
        let output = command.output().expect("started");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let figures: Vec<f64> = text.split_whitespace().take(3).filter_map(|word| word.parse().ok()).collect();
        let [seconds, cpu, memory] = figures[..] else {
            let why = String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned();
            return println!("{:<22} not measured: {why}", format!("{name} {tool}"));
        };
        if best.as_ref().is_none_or(|([_, least, _], _)| cpu < *least) {
            best = Some(([seconds, cpu, memory], text.split_whitespace().skip(3).collect::<Vec<_>>().join(" ")));
        }
    }
    let ([seconds, cpu, memory], said) = best.expect("three runs");
    let label = format!("{name} {tool}");
    println!("{label:<22} {rows:>9} {size:>7.0} {seconds:>8.3} {cpu:>8.3} {:>9.0} {memory:>9.1}  {said}", size / cpu);
}

/// Reads a log in this process and prints seconds, peak memory in MB and what was found.
fn read(path: &Path) {
    let begin = Instant::now();
    let timeline = driver::read(&[PathBuf::from(path)], &Options::default()).expect("read");
    let seconds = begin.elapsed().as_secs_f64();
    let ok: f64 = timeline.intervals.iter().filter(|row| row.step == ALL).filter_map(|row| row.ok).sum();
    let rows = timeline.intervals.iter().filter(|row| row.step != ALL).count();
    println!("{seconds} {} {} {ok} requests in {rows} seconds and steps", cpu_seconds(), peak_mb());
}

/// A small generator of numbers that look random and are the same every time.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// One request: its step, end in microseconds and duration in milliseconds.
fn requests(rows: u64) -> impl Iterator<Item = (usize, u64, f64, bool)> {
    let mut noise = Noise(88_172_645_463_325_252);
    let count = rows / ROWS_AN_ITERATION;
    (0..count).map(move |n| {
        let ms = 5.0 + 40.0 * noise.next() * noise.next() / (1.02 - noise.next());
        let step = [0, 0, 0, 0, 0, 0, 0, 1, 1, 2][(noise.next() * 10.0) as usize];
        (step, T0 * 1_000_000 + n * 4000 + (ms * 1e3) as u64, ms, noise.next() > 0.01)
    })
}

/// What k6 tells of a request.
fn of_request(ms: f64, good: bool) -> [(&'static str, f64); 9] {
    [
        ("http_reqs", 1.0),
        ("http_req_duration", ms),
        ("http_req_blocked", 0.004),
        ("http_req_connecting", 0.0),
        ("http_req_tls_handshaking", 0.0),
        ("http_req_sending", 0.02),
        ("http_req_waiting", ms - 0.05),
        ("http_req_receiving", 0.03),
        ("http_req_failed", if good { 0.0 } else { 1.0 }),
    ]
}

/// And of an iteration.
fn of_iteration(ms: f64) -> [(&'static str, f64); 4] {
    [("data_sent", 96.0), ("data_received", 167.0), ("iteration_duration", ms + 0.1), ("iterations", 1.0)]
}

fn k6_csv(path: &Path, rows: u64) {
    let mut out = BufWriter::with_capacity(1 << 20, std::fs::File::create(path).expect("created"));
    writeln!(out, "metric_name,timestamp,metric_value,check,error,error_code,expected_response,group,method,name,proto,scenario,service,status,subproto,tls_version,url,extra_tags,metadata").unwrap();
    for (step, end_us, ms, good) in requests(rows) {
        let (end, (method, url), status) = (end_us / 1_000_000, STEPS[step], if good { 200 } else { 503 });
        let tags = format!(",,,,{good},,{method},{url},HTTP/1.1,onsale,,{status},,,{url},,");
        for (metric, value) in of_request(ms, good) {
            writeln!(out, "{metric},{end},{value:.6}{tags}").unwrap();
        }
        for (metric, value) in of_iteration(ms) {
            writeln!(out, "{metric},{end},{value:.6},,,,,,,,,onsale,,,,,,,").unwrap();
        }
    }
    out.flush().unwrap();
}

fn k6_json(path: &Path, rows: u64) {
    let mut out = BufWriter::with_capacity(1 << 20, std::fs::File::create(path).expect("created"));
    for (step, end_us, ms, good) in requests(rows) {
        let ((method, url), status) = (STEPS[step], if good { 200 } else { 503 });
        let time = format!(
            "2026-11-29T{:02}:{:02}:{:02}.{:06}Z",
            8 + end_us / 1_000_000 % 86_400 / 7200,
            end_us / 1_000_000 % 7200 / 120,
            end_us / 1_000_000 % 60,
            end_us % 1_000_000
        );
        let tags = format!(
            "{{\"expected_response\":\"{good}\",\"group\":\"\",\"method\":\"{method}\",\"name\":\"{url}\",\"proto\":\"HTTP/1.1\",\"scenario\":\"onsale\",\"status\":\"{status}\",\"url\":\"{url}\"}}"
        );
        for (metric, value) in of_request(ms, good) {
            writeln!(
                out,
                "{{\"metric\":\"{metric}\",\"type\":\"Point\",\"data\":{{\"time\":\"{time}\",\"value\":{value},\"tags\":{tags}}}}}"
            )
            .unwrap();
        }
        for (metric, value) in of_iteration(ms) {
            writeln!(out, "{{\"metric\":\"{metric}\",\"type\":\"Point\",\"data\":{{\"time\":\"{time}\",\"value\":{value},\"tags\":{{\"scenario\":\"onsale\"}}}}}}").unwrap();
        }
    }
    out.flush().unwrap();
}

/// As many rows, each a request.
fn jtl(path: &Path, rows: u64) {
    let mut out = BufWriter::with_capacity(1 << 20, std::fs::File::create(path).expect("created"));
    writeln!(out, "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage,bytes,sentBytes,grpThreads,allThreads,URL,Latency,IdleTime,Connect").unwrap();
    for (n, (step, end_us, ms, good)) in requests(rows * ROWS_AN_ITERATION).enumerate() {
        let ((_, url), status, ms) = (STEPS[step], if good { 200 } else { 503 }, ms as u64);
        let start = end_us / 13_000 + T0 * 1000 / 13 * 12 - ms;
        writeln!(
            out,
            "{start},{ms},{},{status},OK,buyers 1-{},text,{good},,167,119,40,40,{url},{ms},0,0",
            ["seat map", "hold", "pay"][step],
            n % 40
        )
        .unwrap();
    }
    out.flush().unwrap();
}

const DUCKDB: &str = r#"
import sys, time, resource, duckdb
c = duckdb.connect(); c.execute("set threads=1"); c.execute("set enable_progress_bar=false")
t, p = time.time(), time.process_time()
r = c.execute("""select timestamp::bigint as s, name, count(*) filter (expected_response = 'true') as ok, count(*) filter (expected_response = 'false') as failed,
  quantile_disc(metric_value::double, [0.5, 0.95, 0.99]) filter (expected_response = 'true') as q, max(metric_value::double)
  from read_csv(?, header=true, all_varchar=true) where metric_name = 'http_req_duration' group by s, name order by s, name""", [sys.argv[1]]).fetchall()
print(time.time() - t, time.process_time() - p, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, sum(x[2] for x in r), "requests in", len(r), "seconds and steps")
"#;

const POLARS: &str = r#"
import sys, time, resource, polars as pl
t, p = time.time(), time.process_time()
ok = pl.col("expected_response") == "true"
v = pl.col("metric_value").cast(pl.Float64).filter(ok)
r = (pl.scan_csv(sys.argv[1], infer_schema=False).filter(pl.col("metric_name") == "http_req_duration")
  .group_by("timestamp", "name").agg(ok.sum().alias("ok"), (~ok).sum().alias("failed"), v.quantile(0.5).alias("p50"), v.quantile(0.95).alias("p95"), v.quantile(0.99).alias("p99"), v.max().alias("max"))
  .sort("timestamp", "name").collect(engine="streaming"))
print(time.time() - t, time.process_time() - p, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, r["ok"].sum(), "requests in", len(r), "seconds and steps")
"#;
