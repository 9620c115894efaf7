//! What being watched costs a contended MySQL: commits a second of sessions that update a few hot rows, without a watcher, with
//! the collector at 10 ticks a second, and with the plain join of `data_lock_waits` and `data_locks` at the same rate.
//!
//! ```text
//! cargo bench --bench mysql_observer [-- --rounds 15 --seconds 1 --sessions 100 --rows 3 --product mysql|mariadb --check]
//! ```
//!
//! The arms alternate within each round, in another order each time; what counts is the median of the rounds' own ratios, for a
//! machine's ups and downs are larger than what is measured, and slower than a round. The server is the one of `MYSQL_URL` (an account that may create a schema; `--product`
//! then says what it is), or one started by `tests/servers`. With `--check` the exit code is 1 when the collector leaves less
//! than 95 % of the commits.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark stops at the first surprise and prints its answer"
)]

#[path = "../tests/it/support/server.rs"]
#[allow(dead_code, reason = "made for the tests, which do more with it")]
mod server;

use collectors::api::{Collector, Section};
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlSslMode};
use sqlx::{ConnectOptions, Executor};
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Ten a second.
const TICK: Duration = Duration::from_millis(100);

const JOIN_MYSQL: &str = "SELECT r.THREAD_ID, r.OBJECT_SCHEMA, r.OBJECT_NAME, r.INDEX_NAME, r.LOCK_DATA, b.THREAD_ID \
     FROM performance_schema.data_lock_waits w \
     JOIN performance_schema.data_locks r ON r.ENGINE_LOCK_ID = w.REQUESTING_ENGINE_LOCK_ID \
     JOIN performance_schema.data_locks b ON b.ENGINE_LOCK_ID = w.BLOCKING_ENGINE_LOCK_ID";
const JOIN_MARIADB: &str = "SELECT r.lock_trx_id, r.lock_table, r.lock_index, r.lock_data, b.lock_trx_id \
     FROM information_schema.INNODB_LOCK_WAITS w \
     JOIN information_schema.INNODB_LOCKS r ON r.lock_id = w.requested_lock_id \
     JOIN information_schema.INNODB_LOCKS b ON b.lock_id = w.blocking_lock_id";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arm {
    Nobody,
    Collector,
    Join,
}

const ARMS: [(Arm, &str); 3] = [(Arm::Nobody, "nobody watches"), (Arm::Collector, "the collector"), (Arm::Join, "the plain join")];

struct Plan {
    rounds: usize,
    seconds: f64,
    sessions: u64,
    rows: u64,
    product: String,
    check: bool,
}

impl Plan {
    fn of_args() -> Self {
        let mut plan = Self { rounds: 15, seconds: 1.0, sessions: 100, rows: 3, product: "mysql".to_owned(), check: false };
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            let mut number = || args.next().and_then(|value| value.parse::<f64>().ok()).expect("a number after the option");
            match arg.as_str() {
                "--rounds" => plan.rounds = number() as usize,
                "--seconds" => plan.seconds = number(),
                "--sessions" => plan.sessions = number() as u64,
                "--rows" => plan.rows = number() as u64,
                "--product" => plan.product = args.next().expect("mysql or mariadb"),
                "--check" => plan.check = true,
                // What cargo itself passes.
                _ => {}
            }
        }
        plan
    }
}

/// What a watcher saw in one arm.
#[derive(Debug, Default)]
struct Seen {
    reads: usize,
    read_ms: Vec<f64>,
    rows: usize,
    with_rows: usize,
    changed: usize,
    last: BTreeSet<String>,
}

async fn session(options: &MySqlConnectOptions) -> MySqlConnection {
    options.connect().await.expect("the server lets one more session in")
}

async fn run(session: &mut MySqlConnection, statement: &str) -> usize {
    let statement = sqlx::AssertSqlSafe(statement.to_owned());
    session.fetch_all(sqlx::raw_sql(statement)).await.expect("the statement runs").len()
}

/// The load: sessions that each take a hot row, round and round, and commit; in a thread of its own.
struct Load {
    commits: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
}

impl Load {
    fn start(options: MySqlConnectOptions, plan: &Plan) -> Self {
        let (commits, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (sessions, rows) = (plan.sessions, plan.rows);
        let (counted, stopped) = (Arc::clone(&commits), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let mut tasks = Vec::new();
                for number in 0..sessions {
                    let mut session = session(&options).await;
                    let (commits, stop) = (Arc::clone(&counted), Arc::clone(&stopped));
                    tasks.push(tokio::spawn(async move {
                        let mut turn = number;
                        while !stop.load(Ordering::Relaxed) {
                            let row = turn % rows;
                            run(&mut session, "BEGIN").await;
                            run(&mut session, &format!("UPDATE whatgives_observer.hot SET n = n + 1 WHERE id = {row}")).await;
                            run(&mut session, "COMMIT").await;
                            commits.fetch_add(1, Ordering::Relaxed);
                            turn += 1;
                        }
                    }));
                }
                for task in tasks {
                    task.await.expect("a session of the load");
                }
            });
        });
        Self { commits, stop, thread }
    }

    fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the load ends");
    }
}

async fn collector(url: &str) -> Box<dyn Collector> {
    let spec = collectors::REGISTRY.iter().find(|spec| spec.name == "mysql").expect("mysql is registered");
    let section = Section {
        instance: "mysql".to_owned(),
        endpoint: url.to_owned(),
        settings: toml::Table::new(),
        timeout: Duration::from_secs(1),
        tick: TICK,
    };
    let mut collector = (spec.open)(&section).expect("the settings are right");
    collector.start().await.expect("the server answers");
    collector
}

/// Watches for so long in one way, and counts commits meanwhile. Returns commits a second.
async fn arm(
    arm: Arm,
    seconds: f64,
    load: &Load,
    watcher: &mut dyn Collector,
    joiner: &mut MySqlConnection,
    join: &str,
    seen: &mut Seen,
) -> f64 {
    let (began, before) = (Instant::now(), load.commits());
    let end = began + Duration::from_secs_f64(seconds);
    let mut tick = 0;
    loop {
        tick += 1;
        let at = began + TICK * tick;
        if at >= end {
            break;
        }
        tokio::time::sleep_until(at.into()).await;
        let read = Instant::now();
        match arm {
            Arm::Nobody => continue,
            Arm::Collector => {
                let reading = watcher.read().await.expect("the server answers");
                let now: BTreeSet<String> = reading.waits.iter().map(|wait| format!("{} {:?}", wait.waiter, wait.row)).collect();
                seen.rows += now.len();
                if !now.is_empty() {
                    seen.with_rows += 1;
                    seen.changed += usize::from(now != seen.last);
                    seen.last = now;
                }
            }
            Arm::Join => seen.rows += run(joiner, join).await,
        }
        seen.reads += 1;
        seen.read_ms.push(read.elapsed().as_secs_f64() * 1e3);
        // A late read costs its ticks: no burst.
        tick = tick.max((began.elapsed().as_secs_f64() / TICK.as_secs_f64()) as u32);
    }
    tokio::time::sleep_until(end.into()).await;
    (load.commits() - before) as f64 / began.elapsed().as_secs_f64()
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn main() -> ExitCode {
    let plan = Plan::of_args();
    let mariadb = plan.product == "mariadb";
    let (server, url) = match std::env::var("MYSQL_URL") {
        Ok(url) => (None, url),
        Err(_) => match server::Server::start(&plan.product, &[]) {
            Some(server) => {
                let url = server.get(if mariadb { "MARIADB_URL" } else { "MYSQL_URL" }).to_owned();
                (Some(server), url)
            }
            None => return ExitCode::FAILURE,
        },
    };
    let options: MySqlConnectOptions = url.parse().expect("MYSQL_URL is a URL");
    let options = options.ssl_mode(MySqlSslMode::Preferred);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let met = runtime.block_on(async {
        let mut own = session(&options).await;
        run(&mut own, "DROP DATABASE IF EXISTS whatgives_observer").await;
        run(&mut own, "CREATE DATABASE whatgives_observer").await;
        run(&mut own, "CREATE TABLE whatgives_observer.hot (id INT PRIMARY KEY, n BIGINT) ENGINE = InnoDB").await;
        for row in 0..plan.rows {
            run(&mut own, &format!("INSERT INTO whatgives_observer.hot VALUES ({row}, 0)")).await;
        }
        let mut watcher = collector(&url).await;
        let load = Load::start(options.clone(), &plan);
        tokio::time::sleep(Duration::from_secs(2)).await;
        let mut rates: [Vec<f64>; 3] = Default::default();
        let mut seen: [Seen; 3] = Default::default();
        let join = if mariadb { JOIN_MARIADB } else { JOIN_MYSQL };
        for round in 0..plan.rounds {
            for step in 0..ARMS.len() {
                // Another order each round, and each arm as often first as last.
                let at = (round + if round % 2 == 0 { step } else { ARMS.len() - step }) % ARMS.len();
                let rate = arm(ARMS[at].0, plan.seconds, &load, watcher.as_mut(), &mut own, join, &mut seen[at]).await;
                rates[at].push(rate);
            }
        }
        load.end();
        run(&mut own, "DROP DATABASE whatgives_observer").await;
        println!(
            "{}: {} sessions update {} hot rows and commit; {} rounds of {} s each",
            plan.product, plan.sessions, plan.rows, plan.rounds, plan.seconds
        );
        println!(
            "{:<16} {:>10} {:>8} {:>12} {:>12} {:>16}",
            "watched by", "commits/s", "of free", "reads", "read ms", "rows a read"
        );
        let of_free = |at: usize| {
            let ratios: Vec<f64> = rates[at].iter().zip(&rates[0]).map(|(rate, free)| rate / free).collect();
            median(&ratios)
        };
        for (at, (_, name)) in ARMS.iter().enumerate() {
            let (rate, seen) = (median(&rates[at]), &seen[at]);
            let each = if seen.reads > 0 { format!("{:.0}", seen.rows as f64 / seen.reads as f64) } else { "-".to_owned() };
            let took = if seen.reads > 0 { format!("{:.1}", median(&seen.read_ms)) } else { "-".to_owned() };
            println!("{name:<16} {rate:>10.0} {:>7.1}% {:>12} {took:>12} {each:>16}", 100.0 * of_free(at), seen.reads);
        }
        let watched = &seen[1];
        println!(
            "the collector's wait rows were fresh: {} of its {} reads with waits showed other waiters than the one before",
            watched.changed, watched.with_rows
        );
        let share = of_free(1);
        println!(
            "goal, the collector leaves 95 % of the commits: {} ({:.1} %)",
            if share >= 0.95 { "met" } else { "MISSED" },
            100.0 * share
        );
        share >= 0.95
    });
    drop(server);
    if plan.check && !met { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
