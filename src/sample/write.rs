//! The two files of a run: opened before anything is asked, so that a bad path fails at once; the header written when the
//! targets have said what they are; then one row a tick, which no disk holds up.

use super::behind::Behind;
use super::config::Wrong;
use crate::{ticks, waits};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek};
use std::path::{Path, PathBuf};

/// A run's file by its kind: `PREFIX.ticks.tsv`, or `ticks.tsv` without a prefix; inside a folder if the prefix ends in `/`.
pub fn path(prefix: Option<&Path>, kind: &str) -> PathBuf {
    let Some(prefix) = prefix else { return PathBuf::from(kind) };
    if prefix.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return prefix.join(kind);
    }
    let mut name = prefix.as_os_str().to_owned();
    name.push(".");
    name.push(kind);
    PathBuf::from(name)
}

/// The two files, opened and locked, not yet written to.
#[derive(Debug)]
pub struct Opened {
    ticks: (PathBuf, File),
    waits: (PathBuf, File),
    /// What this run made, to be removed again if it never begins.
    made: Vec<PathBuf>,
}

impl Opened {
    /// Opens both. Files that are there are refused unless `force`; their content stays until the header is written.
    pub fn open(prefix: Option<&Path>, force: bool) -> Result<Self, Wrong> {
        let paths = [path(prefix, "ticks.tsv"), path(prefix, "waits.tsv")];
        // Both are looked at before either is made.
        let there: Vec<&PathBuf> = paths.iter().filter(|path| path.exists()).collect();
        if let (false, Some(first)) = (force, there.first()) {
            let both = if there.len() == 2 { format!(" and {}", paths[1].display()) } else { String::new() };
            return Err(Wrong::new(format!("{}{both} already there", first.display()))
                .hint("--force overwrites; --out PREFIX gives the run's files another name"));
        }
        let mut made = Vec::new();
        let mut files = Vec::new();
        for path in &paths {
            match open(path) {
                Ok(file) => {
                    if !there.contains(&path) {
                        made.push(path.clone());
                    }
                    files.push(file);
                }
                Err(wrong) => {
                    remove(&made);
                    return Err(wrong);
                }
            }
        }
        let [ticks, waits] = paths;
        match (files.pop(), files.pop()) {
            (Some(second), Some(first)) => Ok(Self { ticks: (ticks, first), waits: (waits, second), made }),
            _ => Err(Wrong::new("the files could not be opened")),
        }
    }

    /// The run never began: files that it made go away again, others stay as they were.
    pub fn discard(self) {
        remove(&self.made);
    }

    /// Writes everything that stands before the first row.
    pub fn begin(self, header: &ticks::Header, show_rows: bool, waits_per_tick: usize) -> io::Result<Files> {
        let (ticks_path, ticks) = emptied(self.ticks)?;
        let (waits_path, waits) = emptied(self.waits)?;
        Ok(Files {
            ticks: ticks::Writer::new(Behind::new(ticks)?, header)?,
            waits: waits::Writer::new(Behind::new(waits)?, show_rows, waits_per_tick)?,
            ticks_path,
            waits_path,
        })
    }
}

fn open(path: &Path) -> Result<File, Wrong> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path).map_err(|why| {
        let wrong = Wrong::new(format!("{} cannot be written: {why}", path.display()));
        match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() && !folder.exists() => {
                wrong.hint(format!("the folder is not there: mkdir -p {}", folder.display()))
            }
            _ => wrong,
        }
    })?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Wrong::new(format!("{} is being written by another sampler", path.display()))
            .hint("--out PREFIX gives this run its own files")),
        // Not every file system has locks; the lock is a courtesy.
        _ => Ok(file),
    }
}

fn emptied((path, mut file): (PathBuf, File)) -> io::Result<(PathBuf, File)> {
    // A pipe or a device cannot be cut, and needs not be.
    if file.metadata()?.is_file() {
        file.set_len(0)?;
        file.rewind()?;
    }
    Ok((path, file))
}

fn remove(made: &[PathBuf]) {
    for path in made {
        // Nothing better can be done about a file that stays.
        let _ = std::fs::remove_file(path);
    }
}

/// The two files of a run that has begun.
pub struct Files {
    /// The ticks.
    pub ticks: ticks::Writer<Behind>,
    /// The waits.
    pub waits: waits::Writer<Behind>,
    /// Where the ticks are.
    pub ticks_path: PathBuf,
    /// Where the waits are.
    pub waits_path: PathBuf,
}

impl Files {
    /// Waits until everything is written.
    pub fn close(self) -> io::Result<()> {
        self.ticks.into_inner().close()?;
        self.waits.into_inner().close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_named_by_the_prefix() {
        assert_eq!(path(None, "ticks.tsv"), Path::new("ticks.tsv"));
        assert_eq!(path(Some(Path::new("a/rung-40")), "ticks.tsv"), Path::new("a/rung-40.ticks.tsv"));
        assert_eq!(path(Some(Path::new("a/v1.2")), "waits.tsv"), Path::new("a/v1.2.waits.tsv"));
        assert_eq!(path(Some(Path::new("a/")), "waits.tsv"), Path::new("a/waits.tsv"));
    }

    #[test]
    fn files_that_are_there_are_refused_and_stay_as_they_are_until_the_run_begins() {
        let dir = tempfile::tempdir().unwrap();
        let prefix = dir.path().join("run");
        let ticks = path(Some(&prefix), "ticks.tsv");
        std::fs::write(&ticks, "old").unwrap();
        let wrong = Opened::open(Some(&prefix), false).unwrap_err().to_string();
        assert!(wrong.contains("run.ticks.tsv already there") && wrong.contains("--force"), "{wrong}");
        assert!(!path(Some(&prefix), "waits.tsv").exists());
        Opened::open(Some(&prefix), true).unwrap().discard();
        assert_eq!(std::fs::read_to_string(&ticks).unwrap(), "old");
        assert!(!path(Some(&prefix), "waits.tsv").exists());
        let opened = Opened::open(Some(&prefix), true).unwrap();
        drop(opened.begin(&ticks::Header::default(), false, 10).unwrap());
        assert!(std::fs::read_to_string(&ticks).unwrap().starts_with(ticks::FIRST_LINE));
    }

    #[test]
    fn two_samplers_cannot_write_the_same_files() {
        let dir = tempfile::tempdir().unwrap();
        let prefix = dir.path().join("run");
        let _first = Opened::open(Some(&prefix), false).unwrap();
        let wrong = Opened::open(Some(&prefix), true).unwrap_err().to_string();
        assert!(wrong.contains("another sampler"), "{wrong}");
    }

    #[test]
    fn a_folder_that_is_not_there_is_named_with_the_mend() {
        let wrong = Opened::open(Some(Path::new("/nonexistent/run")), false).unwrap_err().to_string();
        assert!(wrong.contains("mkdir -p /nonexistent"), "{wrong}");
    }
}
