//! Rungs of constant load.

use collectors::api::{Class, Gauge, Layer, Unit};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use whatgives::ticks::{self, Child, Header, Meaning, Target};

const START: i64 = 1_795_000_000_000;

/// A closed loop in front of a service that does so many requests a second: what is in the files follows from Little's law.
#[derive(Clone, Copy)]
struct Made {
    /// What the pool can do, per second.
    capacity: f64,
    /// How long a request takes where nothing waits.
    service_s: f64,
    /// A queue that is long on this rung only.
    hiccup: Option<usize>,
    /// Whether sessions are seen waiting for a row.
    rows: bool,
    /// Whether there are ticks.
    watched: bool,
}

const MADE: Made = Made { capacity: 100.0, service_s: 0.05, hiccup: None, rows: false, watched: true };

impl Made {
    /// Writes `PREFIX-N.*` for every number of visitors.
    fn write(self, folder: &Path, prefix: &str, visitors: &[usize]) {
        for (n, visitors) in visitors.iter().enumerate() {
            let begin = START + 100_000 * n as i64;
            let name = |end: &str| folder.join(format!("{prefix}-{visitors}.{end}"));
            let rate = (*visitors as f64 / self.service_s).min(self.capacity);
            let waiting = *visitors as f64 - rate * self.service_s;
            let latency_ms = 1e3 * *visitors as f64 / rate;
            let count = (rate * 20.0).round();
            let wrk = format!(
                "Running 20s test @ http://127.0.0.1/\n  1 threads and {visitors} connections\n  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency    {latency_ms:.2}ms    1.00ms  {:.2}ms   60.00%\n    Req/Sec   {rate:.2}     1.00   {rate:.2}     70.00%\n  Latency Distribution\n     50%   {latency_ms:.2}ms\n     99%   {:.2}ms\n  {count} requests in 20.00s, 1.00MB read\nRequests/sec:    {rate:.2}\n",
                2.0 * latency_ms,
                1.5 * latency_ms
            );
            fs::write(name("wrk.txt"), wrk).unwrap();
            if self.watched {
                let hiccup = if self.hiccup == Some(*visitors) { 30.0 } else { 0.0 };
                self.ticks(begin, rate, waiting, hiccup, &name("ticks.tsv"));
            }
            if self.rows {
                fs::write(name("waits.tsv"), waits(begin, waiting.round() as usize)).unwrap();
            }
        }
    }

    fn ticks(self, begin: i64, rate: f64, waiting: f64, hiccup: f64, path: &Path) {
        let queue = |name, layer, resource| Gauge::new(name, Class::Queue, Unit::Count, "").at(layer, resource);
        let inner = if self.rows {
            ("db", queue("row_waiting", Layer::Lock, "db row locks"))
        } else {
            ("db", queue("io_waiting", Layer::Disk, "disk"))
        };
        let gauges = [
            ("app", Gauge::counter("requests_total", Class::Throughput, Unit::Count, "").at(Layer::Worker, "workers")),
            ("app", queue("pool_waiting", Layer::Pool, "connection pool")),
            inner,
            ("app", queue("gc_waiting", Layer::App, "garbage collector")),
        ];
        let mut header = Header::default();
        (header.run.start_unix_ms, header.run.tick_ms) = (begin, 1000.0);
        for instance in ["app", "db"] {
            header.targets.push(Target { instance: instance.into(), collector: "made".into(), ..Target::default() });
            header.columns.push(format!("{instance}.up"));
        }
        for (instance, gauge) in &gauges {
            header.columns.push(format!("{instance}.{}", gauge.name));
            header.gauges.push((format!("{instance}.{}", gauge.name), Meaning::of_gauge(instance, gauge)));
        }
        let mut writer = ticks::Writer::new(File::create(path).unwrap(), &header).unwrap();
        for second in 0..26_usize {
            // Three seconds before the driver and three after it: nothing waits there.
            let on = if (3..23).contains(&second) { 1.0 } else { 0.0 };
            if second == 3 {
                writer.child(&Child { start_unix_ms: Some(begin + 3000), ..Child::default() }).unwrap();
            }
            let wave = 1.0 + 0.1 * ((second * 7 % 5) as f64 - 2.0) / 2.0;
            let done = rate * (second as f64 - 2.0).clamp(0.0, 20.0);
            let rows = if self.rows { waiting } else { 0.0 };
            let cells = [1.0, 1.0, done.round(), (on * waiting * wave).round(), (on * rows * wave).round(), on * hiccup].map(Some);
            writer.row(second as u64, begin + 1000 * second as i64, 0.2, &cells, &[]).unwrap();
        }
        writer.child(&Child { end_unix_ms: Some(begin + 23_000), code: Some(0), ..Child::default() }).unwrap();
    }
}

/// So many sessions that wait for one row.
fn waits(begin: i64, waiting: usize) -> String {
    let mut text = "#whatgives waits 1\ntick\tunix_ms\ttarget\tkind\tobject\tindex\trow\tmode\twaiter\twaited_ms\tstatement\tblocker\tblocker_state\tblocker_statement\n".to_owned();
    for second in 3..23 {
        let at = begin + 1000 * second;
        for waiter in 1..=waiting {
            writeln!(text, "{second}\t{at}\tdb\trow\tshop.slot\tPRIMARY\t17\tX\t{waiter}\t9\t-\t99\trunning\t-").unwrap();
        }
    }
    text
}

/// The exit code, the text and the JSON of `correlate ladder`.
fn ladder(args: &[&str], folder: &Path) -> (i32, String, Value) {
    let run = |more: &[&str]| {
        let mut correlate = Command::new(env!("CARGO_BIN_EXE_correlate"));
        correlate.current_dir(folder).arg("ladder").args(args).args(more).output().unwrap()
    };
    let (text, json) = (run(&[]), run(&["--json"]));
    assert_eq!(text.status.code(), json.status.code());
    let told =
        serde_json::from_slice(&json.stdout).unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(&json.stderr)));
    (text.status.code().unwrap(), String::from_utf8(text.stdout).unwrap(), told)
}

/// The files of a folder whose names begin with a word, as a shell would give them.
fn globbed(folder: &Path, word: &str) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(word)).collect();
    names.sort();
    names
}

fn of(folder: &Path, word: &str) -> (i32, String, Value) {
    let names = globbed(folder, word);
    ladder(&names.iter().map(String::as_str).collect::<Vec<_>>(), folder)
}

fn warns(arm: &Value, code: &str) -> bool {
    arm["caveats"].as_array().unwrap().iter().any(|caveat| caveat["code"] == code)
}

const RUNGS: [usize; 6] = [1, 2, 4, 8, 16, 32];

#[test]
fn the_pool_is_named_between_the_rungs_where_its_capacity_is_passed() {
    let folder = tempfile::tempdir().unwrap();
    MADE.write(folder.path(), "rung", &RUNGS);
    let (code, text, told) = of(folder.path(), "rung-");
    let arm = &told["arms"][0];
    assert_eq!((code, arm["verdict"].as_str()), (0, Some("moved")), "{text}");
    assert_eq!((told["axis"]["unit"].as_str(), told["axis"]["from"].as_str()), (Some("connections"), Some("the driver's log")));
    // 100 a second at 50 ms each are five visitors.
    let first = &arm["first"];
    assert_eq!(first["gauge"], "app.pool_waiting", "{text}");
    assert_eq!(
        (first["at"]["low"].as_f64(), first["at"]["high"].as_f64(), first["rung"].as_str()),
        (Some(4.0), Some(8.0), Some("rung-8"))
    );
    let knee = &arm["knee"];
    assert!((knee["at"]["value"].as_f64().unwrap() - 5.0).abs() < 0.2, "{knee:#}");
    assert_eq!(
        (knee["at"]["low"].as_f64(), knee["at"]["high"].as_f64(), knee["rate_per_s"].as_f64()),
        (Some(4.0), Some(8.0), Some(100.0))
    );
    let rungs = arm["rungs"].as_array().unwrap();
    assert_eq!(rungs.iter().map(|rung| rung["at"].as_f64().unwrap()).collect::<Vec<_>>(), [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]);
    assert_eq!(rungs.iter().filter(|rung| rung["rest"] == true).count(), 2, "the two lowest of six");
    for line in ["First to move", "between 4 and 8 connections", "Knee", "throughput stops at 100 req/s", "p99 ms"] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[test]
fn among_those_that_leave_together_the_rows_that_are_seen_to_be_waited_for_lead() {
    let folder = tempfile::tempdir().unwrap();
    Made { rows: true, ..MADE }.write(folder.path(), "rung", &RUNGS);
    let (_, text, told) = of(folder.path(), "rung-");
    let arm = &told["arms"][0];
    assert_eq!(arm["first"]["gauge"], "db.row_waiting", "{text}");
    assert_eq!(arm["first"]["resource"], "db row lock shop.slot PRIMARY 17");
    assert_eq!(arm["first"]["tied_with"][0], "app.pool_waiting");
    assert_eq!(arm["waits"][0]["share"], 1.0);
    assert!(text.contains("shop.slot, PRIMARY, row 17"), "{text}");
}

#[test]
fn where_nothing_waits_nothing_is_named_and_there_is_no_knee() {
    let folder = tempfile::tempdir().unwrap();
    Made { capacity: 1e6, ..MADE }.write(folder.path(), "rung", &RUNGS);
    let (code, text, told) = of(folder.path(), "rung-");
    let arm = &told["arms"][0];
    assert_eq!((code, arm["verdict"].as_str()), (0, Some("rested")), "{text}");
    assert!(arm["first"].is_null() && arm["knee"].is_null());
    assert!(text.contains("Nothing left rest  up to 32 connections; 3 gauges judged"), "{text}");
}

#[test]
fn a_queue_that_is_long_on_one_rung_only_did_not_move_with_the_load() {
    let folder = tempfile::tempdir().unwrap();
    Made { capacity: 1e6, hiccup: Some(8), ..MADE }.write(folder.path(), "rung", &RUNGS);
    let (code, text, told) = of(folder.path(), "rung-");
    let arm = &told["arms"][0];
    assert_eq!((code, arm["verdict"].as_str()), (0, Some("rested")), "{text}");
    assert_eq!(arm["not_with_load"][0]["gauge"], "app.gc_waiting");
}

#[test]
fn a_rung_that_failed_is_left_out_and_said() {
    let folder = tempfile::tempdir().unwrap();
    MADE.write(folder.path(), "rung", &RUNGS);
    let wrk = folder.path().join("rung-4.wrk.txt");
    let text = fs::read_to_string(&wrk).unwrap();
    fs::write(&wrk, &text[..text.find("Latency Distribution").unwrap()]).unwrap();
    let (code, text, told) = of(folder.path(), "rung-");
    let arm = &told["arms"][0];
    assert_eq!(code, 0);
    assert!(warns(arm, "rung_failed") && text.contains("rung-4 is left out"), "{text}");
    // What is not known is not guessed: the interval reaches over the rung that is missing.
    assert_eq!(
        (arm["first"]["gauge"].as_str(), arm["first"]["at"]["low"].as_f64()),
        (Some("app.pool_waiting"), Some(2.0)),
        "{text}"
    );
    // Where none is left there is no ladder.
    for rung in RUNGS {
        fs::write(folder.path().join(format!("rung-{rung}.wrk.txt")), "Running 20s test @ http://x\n  Thread Stats\n").unwrap();
    }
    let output =
        Command::new(env!("CARGO_BIN_EXE_correlate")).arg("ladder").arg(folder.path().join("rung-8.ticks.tsv")).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("without any rung that can be used"));
}

#[test]
fn two_arms_stand_side_by_side_each_with_its_own_answer() {
    let folder = tempfile::tempdir().unwrap();
    Made { rows: true, ..MADE }.write(folder.path(), "s", &RUNGS);
    Made { capacity: 400.0, ..MADE }.write(folder.path(), "m", &RUNGS);
    let (single, spread) = (globbed(folder.path(), "s-"), globbed(folder.path(), "m-"));
    let mut args = vec!["--arm", "single"];
    args.extend(single.iter().map(String::as_str));
    args.extend(["--arm", "spread"]);
    args.extend(spread.iter().map(String::as_str));
    let (code, text, told) = ladder(&args, folder.path());
    assert_eq!(code, 0);
    let arms = told["arms"].as_array().unwrap();
    assert_eq!((arms[0]["name"].as_str(), arms[1]["name"].as_str()), (Some("single"), Some("spread")));
    assert_eq!(
        (arms[0]["first"]["gauge"].as_str(), arms[1]["first"]["gauge"].as_str()),
        (Some("db.row_waiting"), Some("app.pool_waiting"))
    );
    assert_eq!((arms[0]["first"]["at"]["high"].as_f64(), arms[1]["first"]["at"]["high"].as_f64()), (Some(8.0), Some(32.0)));
    for part in ["single: db.row_waiting", "spread: app.pool_waiting", "single req/s", "spread req/s"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn a_label_of_the_sampler_is_the_axis_before_anything_else() {
    let folder = tempfile::tempdir().unwrap();
    MADE.write(folder.path(), "rung", &RUNGS);
    for rung in RUNGS {
        let path = folder.path().join(format!("rung-{rung}.ticks.tsv"));
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("\"labels\":{}", &format!("\"labels\":{{\"bookers\":\"{}\"}}", 10 * rung))).unwrap();
    }
    let (_, text, told) = of(folder.path(), "rung-");
    assert_eq!(told["axis"]["unit"], "bookers", "{text}");
    assert_eq!(told["arms"][0]["first"]["at"]["high"], 80.0);
}

#[test]
fn the_printed_results_of_drivers_alone_give_throughput_latency_and_the_knee() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/driver");
    let (code, text, told) = ladder(&["wrk/wrk_c2.txt", "wrk/wrk_c8.txt", "wrk/wrk_c32.txt"], &fixtures);
    let arm = &told["arms"][0];
    assert_eq!((code, &arm["verdict"], &arm["first"]), (0, &Value::Null, &Value::Null), "{text}");
    // The server behind these has eight workers of 20 ms each.
    let knee = &arm["knee"];
    assert_eq!((knee["at"]["low"].as_f64(), knee["at"]["high"].as_f64()), (Some(8.0), Some(32.0)), "{knee:#}");
    assert!((knee["rate_per_s"].as_f64().unwrap() - 390.0).abs() < 15.0, "{knee:#}");
    // Rungs of an open loop: the rate is in their names, and one is a compressed log of single requests.
    let (code, text, told) = ladder(&["oha/ladder_q100.csv", "oha/ladder_q450.csv.gz"], &fixtures);
    let rungs = told["arms"][0]["rungs"].as_array().unwrap();
    assert_eq!((code, rungs[0]["at"].as_f64(), rungs[1]["at"].as_f64()), (0, Some(100.0), Some(450.0)), "{text}");
    assert!(rungs[1]["p95_ms"].as_f64().unwrap() > rungs[0]["p95_ms"].as_f64().unwrap(), "{text}");
    assert!(warns(&told["arms"][0], "few_rungs"), "{text}");
}
