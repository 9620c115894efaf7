//! The neutral timeline itself ([`crate::timeline`]).

use super::input::Input;
use super::run::{Kind, Run};
use super::{Head, Options, Reader, caveat, checks};
use crate::text::InputError;
use crate::timeline::{FIRST_LINE, Timeline};
use std::io::BufReader;

/// The neutral timeline.
pub(super) struct Neutral;

/// Reads it exactly as it stands.
pub(super) fn read(input: &mut Input, options: &Options) -> Result<Timeline, InputError> {
    let path = input.path.clone();
    let timeline = Timeline::read(&path, BufReader::new(&mut *input))?;
    if timeline.intervals.is_empty() {
        return Err(input.error("holds no interval"));
    }
    if timeline.driver.more.get("kind").is_none_or(|kind| kind == Kind::Timeline.name()) && !options.allow_holes {
        checks::refuse_hole(input, &timeline, options)?;
    }
    Ok(timeline)
}

impl Reader for Neutral {
    fn name(&self) -> &'static str {
        "timeline"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["neutral"]
    }

    fn about(&self) -> &'static str {
        "whatgives' own timeline, as `correlate --timeline` writes it"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.starts_with(FIRST_LINE)
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        let timeline = read(input, run.options)?;
        let driver = timeline.driver;
        run.driver(driver.driver);
        run.offered(driver.offered);
        if driver.latency == "all" {
            run.latency = "all";
        }
        if driver.window_ms > 0.0 {
            run.window_ms = Some(run.window_ms.unwrap_or(0.0).max(driver.window_ms));
        }
        for code in &driver.caveats {
            if let Some((known, ..)) = caveat::CAVEATS.iter().find(|(known, ..)| known == code) {
                run.caveat(known);
            }
        }
        run.rows += timeline.intervals.len() as u64;
        run.files.push(timeline.intervals);
        Ok(())
    }
}
