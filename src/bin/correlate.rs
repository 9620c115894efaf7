//! `correlate`: what gave way first, from the sampler's files and the driver's log.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(whatgives::correlate::run(std::env::args_os()))
}
