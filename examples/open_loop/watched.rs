//! The sampler beside a load.

use anyhow::{bail, ensure};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

/// This program again, as one of the two of the package.
pub fn this_as(program: &str) -> io::Result<Command> {
    let mut command = Command::new(env::current_exe()?);
    command.arg(program);
    Ok(command)
}

/// Until the sampler has read every target once.
pub fn wait_for_first_tick(ticks: &Path, sampler: &mut Child) -> anyhow::Result<()> {
    let begin = Instant::now();
    while !fs::read_to_string(ticks).is_ok_and(|text| text.contains("\n0\t")) {
        if let Some(status) = sampler.try_wait()? {
            bail!("the sampler ended with {status}");
        }
        ensure!(begin.elapsed() < Duration::from_secs(15), "the sampler has not begun after 15 s");
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
