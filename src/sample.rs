//! `sampler`: polls the targets of a load test on a fixed tick beside any load driver, and writes two plain files.
//!
//! ```text
//! schedule: tick k at t0 + k · period, lateness recorded, missed ticks skipped and marked, never a burst
//!    └► collect: every target at once, each in its own task with its own deadline and its own reason when it fails
//!         └► session: one row {tick, unix_ms, late_ms, per target: up, poll_ms, cells…, notes} and the wait rows
//!              └► write: a row goes out whole and no disk holds a tick up; whatever happens, what was written is a valid file
//! ```

mod background;
mod behind;
mod check;
mod cli;
mod collect;
mod config;
mod drive;
mod header;
mod health;
mod list;
mod progress;
mod redact;
mod replicas;
mod role;
mod say;
mod schedule;
mod session;
mod stop;
mod write;

use crate::exit;
use cli::Action;
use collectors::api::Spec;
use say::Say;
use std::ffi::OsString;
use std::io;
use tokio::runtime::{Builder, Runtime};

/// Runs the sampler with a whole command line, the program's name first. Gives the exit code.
pub fn run(args: impl Iterator<Item = OsString>) -> u8 {
    let world = World {
        runtime: || Builder::new_current_thread().enable_all().build(),
        unix_ms: crate::time::unix_ms,
        resolve: config::resolve,
    };
    run_with(collectors::REGISTRY, args, Say::standard(), world)
}

/// The clocks and timers of a run: the machine's, or a test's own, which move on only when everything waits.
#[derive(Clone, Copy)]
struct World {
    runtime: fn() -> io::Result<Runtime>,
    unix_ms: fn() -> f64,
    resolve: config::Resolver,
}

fn run_with(registry: &[&'static Spec], args: impl Iterator<Item = OsString>, mut say: Say, world: World) -> u8 {
    let args: Vec<OsString> = args.collect();
    let typed = match cli::parse(registry, args.iter().cloned()) {
        Ok(typed) => typed,
        Err((text, true)) => {
            say.trouble(&text);
            return exit::USAGE;
        }
        Err((text, false)) => {
            say.answer(&text);
            return exit::DONE;
        }
    };
    match &typed.action {
        Action::List { markdown } => {
            say.answer(&list::list(registry, *markdown));
            return exit::DONE;
        }
        Action::Stop { prefix } => return background::stop(prefix.as_deref(), &say),
        Action::Run | Action::Check | Action::PrintConfig => {}
    }
    let mut config = match config::effective(registry, &typed) {
        Ok(config) => config,
        Err(wrong) => {
            say.trouble(&wrong.to_string());
            return exit::USAGE;
        }
    };
    say.restrain(config.secrets(), config.quiet);
    if typed.action == Action::PrintConfig {
        say.answer(config::print(&config).trim_end());
        return exit::DONE;
    }
    if let Err(wrong) = config.each_address(world.resolve) {
        say.trouble(&wrong.to_string());
        return exit::USAGE;
    }
    // The one in the background has said it already.
    if !typed.detached {
        config.warnings.iter().for_each(|warning| say.trouble(warning));
        config.notes.iter().for_each(|note| say.tell(note));
    }
    if typed.background && typed.action == Action::Run {
        return background::start(&args, &config, &say);
    }
    let detached = match typed.detached.then(|| background::Detached::enter(&config)).transpose() {
        Ok(detached) => detached,
        Err(wrong) => {
            say.trouble(&wrong.to_string());
            return exit::USAGE;
        }
    };
    let runtime = match (world.runtime)() {
        Ok(runtime) => runtime,
        Err(why) => {
            say.trouble(&format!("the sampler cannot run: {why}"));
            return exit::SAMPLER_FAILED;
        }
    };
    let code = runtime.block_on(async {
        match typed.action {
            Action::Check => check::check(&config, &say).await,
            _ => session::sample(&config, &say, detached, world.unix_ms).await,
        }
    });
    // A read that hangs in a blocking call must not hold the end up.
    runtime.shutdown_background();
    code
}

#[cfg(test)]
mod tests;
