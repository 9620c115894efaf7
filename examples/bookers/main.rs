//! Bookers: an open-loop load on MySQL or MariaDB with a lock held while a booker thinks. On one slot its row gives way at
//! 1 / (think time + what the statements take); spread over many slots the same load finds nothing in its way.
//!
//! ```sh
//! sampler --mysql mysql://probe@127.0.0.1/ --tick 200ms --seconds 45 --out hot &
//! cargo run --release --example bookers -- --url mysql://app@127.0.0.1/ --slot 17 --log hot.requests.tsv
//! correlate hot.ticks.tsv --driver hot.requests.tsv
//! ```

#![expect(clippy::print_stderr, reason = "a program tells its user how it ended")]

#[path = "../open_loop/open_loop.rs"]
mod open_loop;

mod booking;

use anyhow::{Context as _, bail, ensure};
use booking::{Plan, Slots};
use clap::{ArgGroup, Parser};
use open_loop::ramp::Ramp;
use sqlx::mysql::MySqlConnectOptions;
use std::path::PathBuf;
use std::time::Duration;
use whatgives::time::parse_duration;

/// Books slots on MySQL or MariaDB at a rising rate.
#[derive(Parser)]
#[command(name = "bookers", group(ArgGroup::new("which").required(true).args(["slot", "slots"])))]
struct Options {
    /// The server; with a password better in the environment as `BOOKERS_URL`, where others cannot read it
    #[arg(long, value_name = "URL")]
    url: Option<MySqlConnectOptions>,
    /// All book this slot
    #[arg(long, value_name = "ID")]
    slot: Option<u32>,
    /// Each books any of the slots 1 to N
    #[arg(long, value_name = "N")]
    slots: Option<u32>,
    /// Bookings a second at the start
    #[arg(long, default_value_t = 5.0, value_parser = rate)]
    from: f64,
    /// How long the start lasts
    #[arg(long, default_value = "8s", value_parser = parse_duration)]
    rest: Duration,
    /// Bookings a second at the end
    #[arg(long, default_value_t = 70.0, value_parser = rate)]
    to: f64,
    /// How long the climb from the one to the other lasts
    #[arg(long, default_value = "30s", value_parser = parse_duration)]
    climb: Duration,
    /// How long a booker holds the lock before going on
    #[arg(long, default_value = "20ms", value_parser = parse_duration)]
    think: Duration,
    /// Come at random as independent visitors do, repeatable by this seed [default: evenly spaced]
    #[arg(long)]
    seed: Option<u64>,
    /// Connections to the server
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
    /// Where to write the log of requests, for `correlate --driver`
    #[arg(long, value_name = "FILE")]
    log: PathBuf,
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if rate > 0.0 && rate <= 1e6 => Ok(rate),
        _ => Err("expected a rate per second above 0".to_owned()),
    }
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let server = match (options.url, std::env::var("BOOKERS_URL")) {
        (Some(url), _) => url,
        (None, Ok(url)) => url.parse().context("BOOKERS_URL")?,
        (None, Err(_)) => bail!("which server? give --url mysql://USER@HOST/ or set BOOKERS_URL"),
    };
    let Options { from, rest, to, climb, .. } = options;
    ensure!(from <= to && !climb.is_zero(), "the rate must not fall, and the climb needs some time");
    let plan = Plan {
        ramp: Ramp { from, rest, to, climb },
        seed: options.seed,
        slots: options.slot.map_or(Slots::Any(options.slots.unwrap_or(1)), Slots::One),
        think: options.think,
        connections: options.connections,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let summary = runtime.block_on(booking::run(server, plan, &options.log))?;
    eprintln!("{} of {} bookings committed; log: {}", summary.ok, summary.sent, options.log.display());
    Ok(())
}
