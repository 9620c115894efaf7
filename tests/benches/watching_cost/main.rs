//! What watching costs the machine that watches: processor time a tick and the most memory, of the sampler on the host and
//! seven real servers, and beside it of collectd on the same and of Prometheus' exporters scraped at the same rate.
//!
//! ```text
//! cargo bench --bench watching_cost [-- --seconds 60 --fast-seconds 30 --check]
//! ```
//!
//! The servers (MySQL 9, PostgreSQL 18, Redis, memcached, Apache, nginx, php-fpm) are started by `tests/servers` and idle. Each
//! watcher runs alone, one after the other, at one tick a second and then at ten. Its processor time is what the kernel says
//! its threads ran; its first seconds, in which it connects, do not count. The sampler writes its two files meanwhile;
//! collectd (`collectd-core`) has no plugin that writes, and the exporters' answers are read and thrown away by this program,
//! which is not counted: so all that is left out is theirs. What is not installed (`tests/servers/install collectd
//! exporters`) is said and left out. With `--check` the
//! exit code is 1 when a goal is missed.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark stops at the first surprise and prints its answer"
)]

#[path = "../used/options.rs"]
#[allow(dead_code, reason = "made for every benchmark")]
mod options;
mod others;
mod process;

#[path = "../../it/support/server.rs"]
#[allow(dead_code, reason = "made for the tests, which do more with it")]
mod server;

use process::{Cost, Watcher};
use server::Server;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

/// At most so many milliseconds of processor time a tick, megabytes, and of collectd's processor time.
const GOALS: (f64, f64, f64) = (2.0, 25.0, 1.0 / 3.0);

/// The servers, by what their scripts say of them.
pub struct Servers(Vec<Server>);

impl Servers {
    fn start() -> Option<Self> {
        let mut all = Vec::new();
        for name in ["mysql", "postgres18", "redis", "memcached", "apache", "phpfpm"] {
            all.push(Server::start(name, &[])?);
        }
        let behind = all.last()?.get("PHPFPM_ADDRESS").to_owned();
        all.push(Server::start("nginx", &[("NGINX_PHPFPM", &behind)])?);
        Some(Self(all))
    }

    /// A line of the description of the server whose name it begins with.
    pub fn get(&self, key: &str) -> &str {
        let found = self.0.iter().find_map(|server| server.find(key));
        found.unwrap_or_else(|| panic!("no {key}"))
    }
}

fn sampler(servers: &Servers, tick: Duration, folder: &Path) -> Watcher {
    let fpm = servers.get("PHPFPM_STATUS_ADDRESS");
    let mut command = Command::new(env!("CARGO_BIN_EXE_sampler"));
    command
        .args(["--mysql", servers.get("MYSQL_PROBE_URL"), "--postgres", servers.get("POSTGRES18_PROBE_URL")])
        .args(["--redis", servers.get("REDIS_PROBE_URL"), "--memcached", servers.get("MEMCACHED_ADDRESS")])
        .args(["--apache", servers.get("APACHE_STATUS_URL"), "--nginx", servers.get("NGINX_STATUS_URL")])
        .args(["--phpfpm", &format!("{fpm}/fpm-status")])
        .args(["--tick", &format!("{}ms", tick.as_millis()), "--seconds", "3600", "--force", "--out"])
        .arg(folder.join("watched"))
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    Watcher::new("sampler", vec![command.spawn().expect("the sampler starts")])
}

/// How many cells of the sampler's last rows are empty, and how many there are; and the reads that failed.
fn read_of(folder: &Path) -> (usize, usize, usize) {
    let ticks = whatgives::ticks::read(&folder.join("watched.ticks.tsv")).expect("the sampler's file");
    let last = ticks.tick.len().saturating_sub(1);
    let empty = ticks.series.iter().filter(|column| column.get(last).is_none_or(|cell| cell.is_nan())).count();
    let up = ticks.header.columns.iter().filter(|name| name.rsplit_once('.').is_some_and(|(_, last)| last == "up"));
    let failed = up.filter_map(|name| ticks.column(name)).flatten().filter(|up| **up == 0.0).count();
    (empty, ticks.series.len(), failed)
}

struct Plan {
    seconds: f64,
    fast_seconds: f64,
    check: bool,
}

impl Plan {
    fn of_args() -> Self {
        Self {
            seconds: options::number("--seconds", 60.0),
            fast_seconds: options::number("--fast-seconds", 30.0),
            check: options::is_given("--check"),
        }
    }
}

fn line(name: &str, cost: &Cost, of: &Cost) {
    println!(
        "{name:<26} {:>8.2} {:>10.1} {:>9.1}% {:>12} {:>10.1}x",
        cost.ms_a_tick,
        cost.megabytes,
        cost.share * 100.0,
        cost.processes,
        cost.ms_a_tick / of.ms_a_tick
    );
}

fn main() -> ExitCode {
    let plan = Plan::of_args();
    let Some(servers) = Servers::start() else { return ExitCode::FAILURE };
    let folder = tempfile::tempdir().expect("a folder");
    let mut met = true;
    for (tick, seconds) in [(Duration::from_secs(1), plan.seconds), (Duration::from_millis(100), plan.fast_seconds)] {
        let for_long = Duration::from_secs_f64(seconds);
        let own = sampler(&servers, tick, folder.path()).measure(tick, for_long);
        let (empty, columns, failed) = read_of(folder.path());
        let collectd = others::collectd(&servers, tick, folder.path()).map(|watcher| watcher.measure(tick, for_long));
        let exporters = others::exporters(&servers, tick, for_long);
        println!("\nevery {} ms for {seconds} s: the host and seven servers", tick.as_millis());
        println!("{:<26} {:>8} {:>10} {:>10} {:>12} {:>11}", "", "ms/tick", "peak MB", "of a core", "processes", "of ours");
        line("sampler", &own, &own);
        if let Some(collectd) = &collectd {
            line("collectd", collectd, &own);
        }
        for (name, cost) in &exporters {
            line(name, cost, &own);
        }
        if !exporters.is_empty() {
            line("the exporters together", &Cost::sum(exporters.iter().map(|(_, cost)| cost)), &own);
        }
        println!("the sampler read {} of {columns} columns in its last row; {failed} reads failed", columns - empty);
        let mut goal = |what: &str, value: f64, most: f64| {
            met &= value <= most;
            println!("goal, {what} at most {most:.2}: {} ({value:.2})", if value <= most { "met" } else { "MISSED" });
        };
        goal("ms a tick", own.ms_a_tick, GOALS.0);
        goal("MB", own.megabytes, GOALS.1);
        if let Some(collectd) = &collectd {
            goal("of collectd's time", own.ms_a_tick / collectd.ms_a_tick, GOALS.2);
        }
    }
    drop(servers);
    if plan.check && !met { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
