//! Which file is which, and the drivers' logs.

use crate::driver::caveat::RELATIVE_CLOCK;
use crate::text::InputError;
use crate::timeline::Timeline;
use crate::{driver, ticks, waits};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// One sampler's files.
#[derive(Clone, Debug, PartialEq)]
pub struct Files {
    /// The ticks.
    pub ticks: PathBuf,
    /// The waits, where there are any.
    pub waits: Option<PathBuf>,
}

impl Files {
    /// What stands before `ticks.tsv` in the name of the ticks.
    pub fn prefix(&self) -> String {
        let name = self.ticks.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let short = name.strip_suffix(".tsv").unwrap_or(&name);
        short.strip_suffix("ticks").unwrap_or(short).trim_end_matches(['.', '-', '_']).to_owned()
    }
}

/// Tells ticks from waits by their first line; the waits of the same PREFIX beside the ticks are used where none were given.
pub fn files(given: &[PathBuf]) -> Result<Vec<Files>, InputError> {
    let (mut tick_files, mut wait_files) = (Vec::new(), Vec::new());
    for path in given {
        match first_line(path)?.as_str() {
            waits::FIRST_LINE => wait_files.push(path.clone()),
            // What is neither is read as ticks, whose reader says what it found instead.
            _ => tick_files.push(path.clone()),
        }
    }
    if let ([_], [_, second, ..]) = (&tick_files[..], &wait_files[..]) {
        return Err(InputError::new(second, "is a second file of waits beside one file of ticks")
            .hint("give PREFIX.ticks.tsv and PREFIX.waits.tsv, one pair a sampler"));
    }
    if tick_files.is_empty() {
        let path = given.first().cloned().unwrap_or_default();
        return Err(InputError::new(&path, "is a file of waits, and no ticks were given")
            .hint("correlate PREFIX.ticks.tsv PREFIX.waits.tsv"));
    }
    let alone = tick_files.len() == 1;
    let mut all = Vec::new();
    for ticks in tick_files {
        if all.iter().any(|files: &Files| files.ticks == ticks) {
            return Err(InputError::new(&ticks, "is given twice"));
        }
        let own = named_beside(&ticks);
        let at = wait_files.iter().position(|path| alone || Some(path) == own.as_ref());
        let waits = at.map(|at| wait_files.remove(at)).or_else(|| waits_beside(&ticks));
        all.push(Files { ticks, waits });
    }
    match wait_files.first() {
        None => Ok(all),
        Some(path) => Err(InputError::new(path, "is a file of waits whose ticks are not told by its name")
            .hint("of several files of ticks each has its waits as PREFIX.waits.tsv beside PREFIX.ticks.tsv")),
    }
}

fn first_line(path: &Path) -> Result<String, InputError> {
    let file = File::open(path).map_err(|why| InputError::new(path, format!("cannot be opened: {why}")))?;
    let mut line = Vec::new();
    BufReader::new(file).read_until(b'\n', &mut line).map_err(|why| InputError::new(path, format!("cannot be read: {why}")))?;
    Ok(String::from_utf8_lossy(&line).trim_start_matches('\u{feff}').trim_end().to_owned())
}

/// What the waits of these ticks are called.
fn named_beside(ticks: &Path) -> Option<PathBuf> {
    let prefix = ticks.file_name()?.to_str()?.strip_suffix("ticks.tsv")?;
    Some(ticks.with_file_name(format!("{prefix}waits.tsv")))
}

/// The waits of the same PREFIX beside the ticks.
pub fn waits_beside(ticks: &Path) -> Option<PathBuf> {
    named_beside(ticks).filter(|waits| first_line(waits).is_ok_and(|line| line == waits::FIRST_LINE))
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

/// Whether a file is the sampler's: ticks or waits.
pub fn is_ours(path: &Path) -> bool {
    first_line(path).is_ok_and(|line| [ticks::FIRST_LINE, waits::FIRST_LINE].contains(&&*line))
}

/// Whether a file begins as a file of ticks does.
pub fn is_ticks(path: &Path) -> bool {
    first_line(path).is_ok_and(|line| line == ticks::FIRST_LINE)
}
