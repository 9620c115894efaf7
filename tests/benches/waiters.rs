//! How long one whole read takes while sessions wait for one row, beside a read while nobody waits; and, for MySQL and MariaDB,
//! while a transaction holds 400,000 row locks that nobody waits for.
//!
//! ```text
//! cargo bench --bench waiters [-- --server mysql|mariadb|postgres15|postgres18|all --reads 21 --check]
//! ```
//!
//! Reads are 160 ms apart; of those with waiters, the ones count that gave waits, for after a dear read the next ones go without
//! for a while. The servers are started by `tests/servers`. With `--check` the exit code is 1 when the median read with 200
//! waiters takes more than 50 ms.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark stops at the first surprise and prints its answer"
)]

#[path = "../it/support/collector.rs"]
#[allow(dead_code, reason = "made for the tests, which do more with it")]
mod collector;
#[path = "used/options.rs"]
mod options;
#[path = "../it/support/server.rs"]
#[allow(dead_code, reason = "made for the tests, which do more with it")]
mod server;
#[path = "used/sessions.rs"]
mod sessions;

use collector::{read, started};
use collectors::api::Collector;
use server::Server;
use sessions::connect;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use whatgives::judge::robust::median;

const SERVERS: [&str; 4] = ["mysql", "mariadb", "postgres15", "postgres18"];

const GOAL_MS: f64 = 50.0;

/// How far reads are apart.
const APART: Duration = Duration::from_millis(160);

/// A server to be read, by its script's name.
struct Subject {
    server: Server,
    name: &'static str,
}

impl Subject {
    fn start(name: &'static str) -> Option<Self> {
        let args = match name {
            "mysql" | "mariadb" => "--max-connections=260 --innodb-buffer-pool-size=192M",
            _ => "-c max_connections=260",
        };
        let variable = format!("{}_ARGS", name.to_uppercase());
        Server::start(name, &[(&variable, args)]).map(|server| Self { server, name })
    }

    fn is_postgres(&self) -> bool {
        self.name.starts_with("postgres")
    }

    fn url(&self, account: &str) -> &str {
        self.server.get(&format!("{}_{account}URL", self.name.to_uppercase()))
    }

    fn table(&self) -> &'static str {
        if self.is_postgres() { "slot" } else { "shop.slot" }
    }

    async fn collector(&self) -> Box<dyn Collector> {
        let name = if self.is_postgres() { "postgres" } else { "mysql" };
        started(name, self.url("PROBE_")).await.0
    }
}

/// What so many reads took, milliseconds, each with as many waits as there must be.
async fn reads(collector: &mut dyn Collector, reads: usize, waiters: usize) -> Vec<f64> {
    let mut took = Vec::new();
    for _ in 0..40 * reads {
        tokio::time::sleep(APART).await;
        let began = Instant::now();
        let reading = read(collector).await;
        let ms = began.elapsed().as_secs_f64() * 1e3;
        // A waiter that looks for a deadlock is awake for a moment.
        if reading.waits.len() * 100 >= waiters * 95 {
            took.push(ms);
        }
        if took.len() == reads {
            break;
        }
    }
    assert_eq!(took.len(), reads, "reads with {waiters} waits");
    took
}

/// A line of the table; the median.
fn line(what: &str, took: &[f64], rest: Option<f64>) -> f64 {
    let (median, longest) = (median(took.iter().copied()), took.iter().copied().fold(f64::NAN, f64::max));
    println!("{what:<34} {median:>9.1} {longest:>10.1} {:>8.1}", median / rest.unwrap_or(median));
    median
}

/// The table of one server; its median read with 200 waiters.
async fn measure(subject: &Subject, count: usize) -> f64 {
    let mut collector = subject.collector().await;
    println!("\n{:<34} {:>9} {:>10} {:>8}", subject.name, "median ms", "longest ms", "of rest");
    let rest = line("nobody waits", &reads(collector.as_mut(), count, 0).await, None);
    let mut last = f64::NAN;
    for waiters in [1, 40, 200] {
        let update = format!("UPDATE {} SET taken = taken + 1 WHERE id = 17", subject.table());
        let mut holder = connect(subject.url("")).await;
        holder.run("BEGIN").await;
        holder.run(&update).await;
        let mut tasks = Vec::new();
        for _ in 0..waiters {
            let (mut session, update) = (connect(subject.url("")).await, update.clone());
            tasks.push(tokio::spawn(async move { session.run(&update).await }));
        }
        let took = reads(collector.as_mut(), count, waiters).await;
        last = line(&format!("{waiters} waiting for one row"), &took, Some(rest));
        holder.run("ROLLBACK").await;
        for task in tasks {
            task.await.expect("a waiter ends");
        }
    }
    if !subject.is_postgres() {
        let mut holder = connect(subject.url("")).await;
        let fill = if subject.name == "mysql" {
            "SET SESSION cte_max_recursion_depth = 500000; INSERT INTO shop.big \
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000) SELECT i, 0 FROM n"
        } else {
            "INSERT INTO shop.big SELECT seq, 0 FROM seq_1_to_400000"
        };
        holder.run("USE shop; CREATE TABLE shop.big (id INT PRIMARY KEY, x INT)").await;
        holder.run(fill).await;
        holder.run("BEGIN").await;
        holder.run("UPDATE shop.big SET x = 1 WHERE id > 0").await;
        let took = reads(collector.as_mut(), count, 0).await;
        line("400,000 row locks, nobody waits", &took, Some(rest));
        holder.run("ROLLBACK").await;
    }
    last
}

fn main() -> ExitCode {
    let wanted = options::given("--server").unwrap_or_else(|| "all".to_owned());
    let count = options::number("--reads", 21.0) as usize;
    let names: Vec<&str> = SERVERS.into_iter().filter(|name| ["all", name].contains(&wanted.as_str())).collect();
    assert!(!names.is_empty(), "--server {wanted}: expected one of {}, or all", SERVERS.join(", "));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut met = true;
    for name in names {
        let Some(subject) = Subject::start(name) else { return ExitCode::FAILURE };
        let median = runtime.block_on(measure(&subject, count));
        let goal = if median <= GOAL_MS { "met" } else { "MISSED" };
        println!("goal, a read with 200 waiters takes {GOAL_MS:.0} ms at most: {goal} ({median:.1} ms)");
        met &= median <= GOAL_MS;
    }
    if options::is_given("--check") && !met { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
