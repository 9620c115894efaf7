//! `sampler`: polls the targets on a fixed tick beside any load driver.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(whatgives::sample::run(std::env::args_os()))
}
