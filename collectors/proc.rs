//! Files of `/proc`: kept open, read anew from their start each time, and taken apart without trusting them.
//!
//! Every reader here takes whole lines only: a number at a place where the text was cut is not a number. What cannot be
//! read is absent, never 0.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Far more than any file read here holds; past it the file is not what its name says.
const LARGEST: usize = 4 << 20;

/// Room for most files at once. Not more: for a file below `/proc/sys` the kernel zeroes as much memory as it is offered.
const FIRST: usize = 8 << 10;

/// One file of `/proc`, open for the whole run. The kernel writes its text anew whenever it is read from the start.
#[derive(Debug)]
pub(crate) struct ProcFile {
    path: PathBuf,
    file: Option<File>,
}

impl ProcFile {
    /// Names the file; it is opened by the first read, and again after one that failed.
    pub fn new(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    /// The same, opened now: a file below `/proc/thread-self/net` stays the file of the thread that opened it.
    pub fn open(path: PathBuf) -> io::Result<Self> {
        let file = File::open(&path)?;
        Ok(Self { path, file: Some(file) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The whole text, in a buffer that the caller keeps.
    pub fn read<'b>(&mut self, buffer: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
        let file = match self.file.take() {
            Some(file) => file,
            None => File::open(&self.path)?,
        };
        if buffer.is_empty() {
            buffer.resize(FIRST, 0);
        }
        let mut filled = 0;
        loop {
            if filled == buffer.len() {
                if filled >= LARGEST {
                    return Err(io::Error::other(format!("more than {LARGEST} bytes")));
                }
                buffer.resize(2 * filled, 0);
            }
            match file.read_at(&mut buffer[filled..], filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
        self.file = Some(file);
        Ok(&buffer[..filled])
    }
}

/// The lines that have their line end.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    memchr::memchr_iter(b'\n', bytes).map(move |end| &bytes[std::mem::replace(&mut start, end + 1)..end])
}

/// The words of a line.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// A whole number of digits alone.
pub(crate) fn number(word: &[u8]) -> Option<u64> {
    if word.is_empty() || !word.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// A whole number as a value of a gauge.
pub(crate) fn value(word: &[u8]) -> Option<f64> {
    number(word).map(|number| number as f64)
}

/// The values of one protocol in `net/netstat` or `net/snmp`: a line of names, then a line of numbers, both beginning with
/// `protocol` (`TcpExt:`). Kernels differ in what they list, so that a value is found by its name only.
pub(crate) fn protocol<'a>(bytes: &'a [u8], protocol: &'a str) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
    let mut rows = lines(bytes).filter_map(move |line| line.strip_prefix(protocol.as_bytes()));
    let (names, values) = (rows.next().unwrap_or_default(), rows.next().unwrap_or_default());
    // Rows of different lengths do not belong together.
    let fit = words(names).count() == words(values).count();
    words(names).zip(words(values)).filter(move |_| fit)
}

/// The microseconds of a pressure file: `some avg10=98.79 avg60=98.41 avg300=96.10 total=1315565240`.
pub(crate) fn stalled(bytes: &[u8], kind: &[u8]) -> Option<f64> {
    let line = lines(bytes).find(|line| words(line).next() == Some(kind))?;
    words(line).find_map(|word| word.strip_prefix(b"total=")).and_then(value)
}

/// Whether a counter of processor seconds can be what it says: some kernels tear the number of a root group, and some count
/// steal that is more than all processors could lose.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plausible {
    last: Option<(f64, Instant)>,
    refused: u32,
}

impl Plausible {
    /// More than all processors can give in that time is not accepted, nor a fall by more than the share `dip` of the last
    /// value. Three values in a row that do not fit are a new beginning: the counter was made anew.
    pub fn accepts(&mut self, value: f64, now: Instant, cores: f64, dip: f64) -> bool {
        let fits = self.last.is_none_or(|(last, at)| {
            // The kernel brings the number up to date a little late, and all at once.
            let most = now.saturating_duration_since(at).as_secs_f64() * cores * 1.1 + 0.1 * cores;
            value >= last - dip * last && value - last <= most
        });
        self.refused = if fits { 0 } else { self.refused + 1 };
        let accepted = fits || self.refused >= 3;
        if accepted {
            (self.last, self.refused) = (Some((value, now)), 0);
        }
        accepted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_file_is_read_anew_each_time_through_the_same_handle_however_long_it_grows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stat");
        std::fs::write(&path, "one\n").unwrap();
        let (mut file, mut buffer) = (ProcFile::new(path.clone()), Vec::new());
        assert_eq!(file.read(&mut buffer).unwrap(), b"one\n");
        let long = "x".repeat(100_000);
        std::fs::write(&path, &long).unwrap();
        assert_eq!(file.read(&mut buffer).unwrap(), long.as_bytes());
    }

    #[test]
    fn a_file_that_was_absent_is_found_later() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stat");
        let (mut file, mut buffer) = (ProcFile::new(path.clone()), Vec::new());
        assert_eq!(file.read(&mut buffer).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::write(&path, "here\n").unwrap();
        assert_eq!(file.read(&mut buffer).unwrap(), b"here\n");
    }

    #[test]
    fn a_line_without_its_end_is_no_line() {
        assert_eq!(lines(b"a 1\nb 2").collect::<Vec<_>>(), [b"a 1"]);
    }

    #[test]
    fn only_digits_are_a_number() {
        assert_eq!(number(b"42"), Some(42));
        for bad in [&b""[..], b"-1", b"+1", b"1.5", b"ON", b"99999999999999999999999"] {
            assert_eq!(number(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_row_of_names_and_a_row_of_numbers_of_another_length_give_nothing() {
        assert_eq!(protocol(b"Tcp: A B\nTcp: 1 2\n", "Tcp:").count(), 2);
        assert_eq!(protocol(b"Tcp: A B\nTcp: 1\n", "Tcp:").count(), 0);
        assert_eq!(protocol(b"Tcp: A B\n", "Tcp:").count(), 0);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_readers_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            for line in lines(&bytes) {
                for word in words(line) {
                    let _ = number(word);
                }
            }
            let _ = protocol(&bytes, "Tcp:").count();
        }
    }
}
