//! An on-sale in one process, watched by the real sampler and judged by the real correlate; no server needed.
//!
//! ```sh
//! cargo run --release --example on_sale                                   # what gives way first?
//! cargo run --release --example on_sale -- --pool 24 --pay-after-commit   # and with the fix?
//! ```
//!
//! A booking service keeps one of its 20 database connections while the payment provider takes 0.4 s. By arithmetic it can
//! take 20 / 0.4 s = 50 holds a second, and visitors come at a rate that climbs well past that. What the answer should be
//! is therefore known: the pool, at 50/s. With `--pay-after-commit` a connection is given back before the slow call.

#![expect(clippy::print_stderr, reason = "a program tells its user what it does")]

#[path = "../open_loop/open_loop.rs"]
mod open_loop;

mod load;
mod service;

use anyhow::{Context as _, ensure};
use clap::Parser;
use load::{CLIMB, REST};
use open_loop::load::runtime;
use open_loop::watched::{this_as, wait_for_first_tick};
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;
use std::{env, fs, thread};

/// The sampler begins before the load and ends after it, when the last in the queue have been served.
const SAMPLED: Duration = Duration::from_secs(43);
const TICK: &str = "200ms";

/// A small on-sale, to see what gives way first.
#[derive(Parser)]
#[command(name = "on_sale")]
struct Options {
    /// Connections in the service's pool
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pool: u32,
    /// The fix: give the connection back before the payment, not after it
    #[arg(long)]
    pay_after_commit: bool,
    /// A new folder for the files [default: one in the folder for temporary files]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

fn main() -> anyhow::Result<ExitCode> {
    // This program starts itself again as the two programs of the package, so that the demonstration needs no path to them.
    let mut args = env::args_os().skip(1).peekable();
    match args.peek().and_then(|first| first.to_str()) {
        Some("sampler") => Ok(whatgives::sample::run(args).into()),
        Some("correlate") => Ok(whatgives::correlate::run(args).into()),
        _ => demonstrate(&Options::parse()),
    }
}

fn demonstrate(options: &Options) -> anyhow::Result<ExitCode> {
    let folder = new_folder(options.out.as_deref())?;
    let prefix = folder.join("on_sale");
    let [ticks, requests] = ["ticks", "requests"].map(|kind| prefix.with_extension(format!("{kind}.tsv")));
    let service = start_service(options)?;
    eprintln!(
        "on_sale: {} connections, {}; {} holds a second for {} s, then up to {} a second in {} s",
        options.pool,
        if options.pay_after_commit { "given back before the payment" } else { "kept during a payment of 0.4 s" },
        REST.from,
        REST.lasts.as_secs(),
        CLIMB.to,
        CLIMB.lasts.as_secs(),
    );

    let mut sampler = this_as("sampler")?
        .arg(format!("--metrics=service=http://{service}/metrics"))
        .arg(format!("--tick={TICK}"))
        .arg(format!("--seconds={}", SAMPLED.as_secs()))
        .args([OsStr::new("--out"), prefix.as_os_str()])
        .spawn()?;
    wait_for_first_tick(&ticks, &mut sampler)?;
    let summary = runtime()?.block_on(load::run(service, &requests)).context("the load")?;
    let status = sampler.wait()?;
    ensure!(status.success(), "the sampler ended with {status}");
    eprintln!("on_sale: {summary}\n");

    let code = this_as("correlate")?.arg(&ticks).arg("--driver").arg(&requests).status()?.code();
    eprintln!("\non_sale: the files are in {}; to ask them again:", folder.display());
    eprintln!("correlate {} --driver {}", ticks.display(), requests.display());
    Ok(code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

fn new_folder(wanted: Option<&Path>) -> anyhow::Result<PathBuf> {
    let folder = match wanted {
        Some(folder) => folder.to_owned(),
        None => env::temp_dir().join(format!("on_sale-{:.0}", whatgives::time::unix_ms() / 1e3)),
    };
    fs::create_dir(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    Ok(folder)
}

/// The service gets a thread to itself, so that the visitors do not wait for it to be sent.
fn start_service(options: &Options) -> anyhow::Result<SocketAddr> {
    let (pool, pay_after_commit) = (options.pool, options.pay_after_commit);
    let (tell, told) = mpsc::channel();
    let runtime = runtime()?;
    thread::spawn(move || {
        // The receiver is there until it has been told.
        let served = runtime.block_on(service::serve(pool, pay_after_commit, |at| tell.send(at).unwrap_or(())));
        if let Err(why) = served {
            eprintln!("on_sale: the service ended: {why}");
        }
    });
    told.recv().context("the service did not start")
}
