//! What being watched costs a busy server: what it does a second without a watcher, and with the collector at 10 ticks a second;
//! for MySQL and MariaDB also with the plain join of the lock tables at the same rate.
//!
//! ```text
//! cargo bench --bench observer [-- --server mysql|mariadb|postgres|redis|all --rounds 31 --seconds 1 --sessions 100 --rows 3 --check]
//! ```
//!
//! The load of the SQL servers are sessions that each update one of a few hot rows and commit, so that most of them wait and
//! the collector has waits to read; of Redis, sessions that each send a pipeline of SET and GET. The arms alternate within each
//! round, in another order each time; what counts is the median of the rounds' own ratios, for a machine's ups and downs are
//! larger than what is measured, and slower than a round. Beside it stands in which interval the median lies with 95 %
//! certainty, by the ranks of the rounds. Load and watcher run on the same machine as the server, so that what the watcher
//! takes of its processors counts too. The servers are started by `tests/servers`. With `--check` the exit code is 1 when a
//! collector leaves less than 97 % of the work.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark stops at the first surprise and prints its answer"
)]

mod hot_rows;
mod mysql;
#[path = "../used/options.rs"]
mod options;
mod postgres;
mod redis;
#[path = "../../it/support/server.rs"]
#[allow(dead_code, reason = "made for the tests, which do more with it")]
mod server;
#[path = "../used/sessions.rs"]
mod sessions;

use collectors::api::{Collector, Section};
use server::Server;
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use whatgives::judge::robust::{median, sorted};

/// Ten a second.
const TICK: Duration = Duration::from_millis(100);

/// At least so much of the work is left, percent.
const GOAL: f64 = 97.0;

/// How much load there is, and for how long.
pub struct Plan {
    server: String,
    rounds: usize,
    seconds: f64,
    /// Sessions of the load.
    pub sessions: u64,
    /// Hot rows.
    pub rows: u64,
    check: bool,
}

impl Plan {
    fn of_args() -> Self {
        Self {
            server: options::given("--server").unwrap_or_else(|| "all".to_owned()),
            rounds: options::number("--rounds", 31.0) as usize,
            seconds: options::number("--seconds", 1.0),
            sessions: options::number("--sessions", 100.0) as u64,
            rows: options::number("--rows", 3.0) as u64,
            check: options::is_given("--check"),
        }
    }
}

/// Work that was done, counted by the sessions of a load, which end when they are told to.
#[derive(Clone, Default)]
pub struct Work {
    done: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Work {
    /// So much more is done; whether to go on.
    pub fn did(&self, more: u64) -> bool {
        self.done.fetch_add(more, Ordering::Relaxed);
        !self.stop.load(Ordering::Relaxed)
    }
}

/// A watcher other than the collector, to compare it with.
#[async_trait::async_trait(?Send)]
pub trait Other {
    /// One read; how many rows it gave.
    async fn read(&mut self) -> usize;
}

/// A server that is watched: what stands in the command line, and how it is prepared and loaded.
pub struct Subject {
    /// The collector's name.
    pub collector: &'static str,
    /// The address for it.
    pub url: String,
    /// One line: the load.
    pub load: String,
    /// What is counted.
    pub unit: &'static str,
    /// Another way to watch it.
    pub other: Option<(&'static str, Box<dyn Other>)>,
    /// The load, in a thread of its own.
    pub thread: std::thread::JoinHandle<()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arm {
    Nobody,
    Collector,
    Other,
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

async fn collector(name: &str, url: &str) -> Box<dyn Collector> {
    let spec = collectors::REGISTRY.iter().find(|spec| spec.name == name).expect("it is registered");
    let section = Section {
        instance: name.to_owned(),
        endpoint: url.to_owned(),
        settings: toml::Table::new(),
        timeout: Duration::from_secs(1),
        tick: TICK,
    };
    let mut collector = (spec.open)(&section).expect("the settings are right");
    collector.start().await.expect("the server answers");
    collector
}

/// Watches for so long in one way, and counts work meanwhile. Returns work a second.
async fn arm(
    arm: Arm,
    seconds: f64,
    work: &Work,
    watcher: &mut dyn Collector,
    other: Option<&mut dyn Other>,
    seen: &mut Seen,
) -> f64 {
    let done = || work.done.load(Ordering::Relaxed);
    let (began, before) = (Instant::now(), done());
    let end = began + Duration::from_secs_f64(seconds);
    let mut tick = 0;
    let mut other = other;
    loop {
        tick += 1;
        let at = began + TICK * tick;
        if at >= end {
            break;
        }
        tokio::time::sleep_until(at.into()).await;
        let read = Instant::now();
        match (arm, &mut other) {
            (Arm::Nobody, _) => continue,
            (Arm::Other, Some(other)) => seen.rows += other.read().await,
            _ => {
                let reading = watcher.read().await.expect("the server answers");
                let now: BTreeSet<String> = reading.waits.iter().map(|wait| format!("{} {:?}", wait.waiter, wait.row)).collect();
                seen.rows += now.len();
                if !now.is_empty() {
                    seen.with_rows += 1;
                    seen.changed += usize::from(now != seen.last);
                    seen.last = now;
                }
            }
        }
        seen.reads += 1;
        seen.read_ms.push(read.elapsed().as_secs_f64() * 1e3);
        // A late read costs its ticks: no burst.
        tick = tick.max((began.elapsed().as_secs_f64() / TICK.as_secs_f64()) as u32);
    }
    tokio::time::sleep_until(end.into()).await;
    (done() - before) as f64 / began.elapsed().as_secs_f64()
}

/// A median, and between which of the values it lies with 95 % certainty.
struct Middle {
    low: f64,
    median: f64,
    high: f64,
}

impl Middle {
    fn of(values: &[f64]) -> Self {
        let values = sorted(values.iter().copied());
        let at =
            |rank: f64| values.get(rank.clamp(0.0, (values.len() as f64 - 1.0).max(0.0)) as usize).copied().unwrap_or(f64::NAN);
        // How many of the values lie below the median is a matter of chance like the heads of as many coins.
        let (middle, chance) = (values.len() as f64 / 2.0, 1.96 * (values.len() as f64).sqrt() / 2.0);
        Self { low: at((middle - chance).floor()), median: median(values.iter().copied()), high: at((middle + chance).ceil()) }
    }
}

/// All rounds of one server; the share of its work that the collector leaves, percent.
async fn observe(name: &str, plan: &Plan, work: &Work, mut subject: Subject) -> f64 {
    let mut watcher = collector(subject.collector, &subject.url).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut arms = vec![(Arm::Nobody, "nobody watches"), (Arm::Collector, "the collector")];
    arms.extend(subject.other.as_ref().map(|(name, _)| (Arm::Other, *name)));
    let mut rates = vec![Vec::new(); arms.len()];
    let mut seen: Vec<Seen> = arms.iter().map(|_| Seen::default()).collect();
    for round in 0..plan.rounds {
        for step in 0..arms.len() {
            // Another order each round, and each arm as often first as last.
            let at = (round + if round % 2 == 0 { step } else { arms.len() - step }) % arms.len();
            let other = subject.other.as_mut().map(|(_, other)| other.as_mut() as &mut dyn Other);
            rates[at].push(arm(arms[at].0, plan.seconds, work, watcher.as_mut(), other, &mut seen[at]).await);
        }
    }
    work.stop.store(true, Ordering::Relaxed);
    subject.thread.join().expect("the load ends");
    println!("\n{name}: {}; {} rounds of {} s each", subject.load, plan.rounds, plan.seconds);
    let head = format!("{}/s", subject.unit);
    println!(
        "{:<16} {head:>12} {:>8} {:>16} {:>8} {:>9} {:>12}",
        "watched by", "of free", "95 % certain", "reads", "read ms", "rows a read"
    );
    let of_free = |at: usize| {
        let ratios: Vec<f64> = rates[at].iter().zip(&rates[0]).map(|(rate, free)| 100.0 * rate / free).collect();
        Middle::of(&ratios)
    };
    for (at, (_, name)) in arms.iter().enumerate() {
        let (rate, seen) = (median(rates[at].iter().copied()), &seen[at]);
        let each = if seen.reads > 0 { format!("{:.0}", seen.rows as f64 / seen.reads as f64) } else { "-".to_owned() };
        let took = if seen.reads > 0 { format!("{:.1}", median(seen.read_ms.iter().copied())) } else { "-".to_owned() };
        let Middle { low, median, high } = of_free(at);
        let sure = format!("{low:.1} to {high:.1}");
        println!("{name:<16} {rate:>12.0} {median:>7.1}% {sure:>16} {:>8} {took:>9} {each:>12}", seen.reads);
    }
    let watched = &seen[1];
    if watched.with_rows > 0 {
        println!(
            "its wait rows were fresh: {} of its {} reads with waits showed other waiters than the one before",
            watched.changed, watched.with_rows
        );
    }
    let share = of_free(1).median;
    let goal = if share >= GOAL { "met" } else { "MISSED" };
    println!("goal, the collector leaves {GOAL:.0} % of the work: {goal} ({share:.1} %)");
    share
}

fn main() -> ExitCode {
    let plan = Plan::of_args();
    let all = ["mysql", "mariadb", "postgres", "redis"];
    let wanted: Vec<&str> = all.into_iter().filter(|name| ["all", name].contains(&plan.server.as_str())).collect();
    assert!(!wanted.is_empty(), "--server {}: expected one of {}, or all", plan.server, all.join(", "));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut met = true;
    for name in wanted {
        let script = if name == "postgres" { "postgres18" } else { name };
        let Some(server) = Server::start(script, &[]) else { return ExitCode::FAILURE };
        let work = Work::default();
        let share = runtime.block_on(async {
            let subject = match name {
                "postgres" => postgres::subject(&server, &plan, &work).await,
                "redis" => redis::subject(&server, &plan, &work),
                _ => mysql::subject(&server, name, &plan, &work).await,
            };
            observe(name, &plan, &work, subject).await
        });
        met &= share >= GOAL;
    }
    if plan.check && !met { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
