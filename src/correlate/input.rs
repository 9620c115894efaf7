//! Which file is which, and the drivers' logs.

use crate::driver::caveat::RELATIVE_CLOCK;
use crate::text::{self, InputError};
use crate::timeline::Timeline;
use crate::{driver, ticks, waits};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// The sampler's files of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Files {
    /// The ticks.
    pub ticks: PathBuf,
    /// The waits, where there are any.
    pub waits: Option<PathBuf>,
}

/// Tells ticks from waits by their first line; the waits of the same PREFIX beside the ticks are used where none were given.
pub fn files(given: &[PathBuf]) -> Result<Files, InputError> {
    let (mut tick_files, mut wait_files) = (Vec::new(), Vec::new());
    for path in given {
        match first_line(path)?.as_str() {
            waits::FIRST_LINE => wait_files.push(path.clone()),
            // What is neither is read as ticks, whose reader says what it found instead.
            _ => tick_files.push(path.clone()),
        }
    }
    let one = |list: &[PathBuf], what: &str| match list {
        [] => Ok(None),
        [path] => Ok(Some(path.clone())),
        [_, second, ..] => Err(InputError::new(second, format!("is a second file of {what}"))
            .hint("give one run's files: PREFIX.ticks.tsv and PREFIX.waits.tsv; a driver's log goes behind --driver")),
    };
    let Some(ticks) = one(&tick_files, "ticks")? else {
        let path = given.first().cloned().unwrap_or_default();
        return Err(InputError::new(&path, "is a file of waits, and no ticks were given")
            .hint("correlate PREFIX.ticks.tsv PREFIX.waits.tsv"));
    };
    let waits = one(&wait_files, "waits")?.or_else(|| beside(&ticks));
    Ok(Files { ticks, waits })
}

fn first_line(path: &Path) -> Result<String, InputError> {
    let file = text::open(path).map_err(|why| InputError::new(path, format!("cannot be opened: {why}")))?;
    let mut line = Vec::new();
    BufReader::new(file).read_until(b'\n', &mut line).map_err(|why| InputError::new(path, format!("cannot be read: {why}")))?;
    Ok(String::from_utf8_lossy(&line).trim_start_matches('\u{feff}').trim_end().to_owned())
}

fn beside(ticks: &Path) -> Option<PathBuf> {
    let name = ticks.file_name()?.to_str()?;
    let prefix = name.strip_suffix(".gz").unwrap_or(name).strip_suffix("ticks.tsv")?;
    let names = [format!("{prefix}waits.tsv"), format!("{prefix}waits.tsv.gz")];
    let mut there = names.iter().map(|name| ticks.with_file_name(name));
    there.find(|waits| first_line(waits).is_ok_and(|line| line == waits::FIRST_LINE))
}

/// The drivers' logs of one run as one timeline; `None` where none was given.
pub fn driver(paths: &[PathBuf], options: &driver::Options) -> Result<Option<Timeline>, InputError> {
    let Some(first) = paths.first() else { return Ok(None) };
    let timeline = driver::read(paths, options)?;
    if timeline.driver.caveats.iter().any(|code| code == RELATIVE_CLOCK) {
        return Err(InputError::new(first, "has times since the driver's own start only, and that start is not known").hint(
            "--driver-start $(date +%s), taken when the driver was started; or let the sampler start it: sampler … -- DRIVER",
        ));
    }
    Ok(Some(timeline))
}

/// Whether a file begins as a file of ticks does.
pub fn is_ticks(path: &Path) -> bool {
    first_line(path).is_ok_and(|line| line == ticks::FIRST_LINE)
}
