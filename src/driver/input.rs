//! A log as bytes: gzip unwrapped, byte-order mark dropped, lines and quoted records read without ever holding the file.

use super::fields::Fields;
use crate::text::{self, InputError};
use memchr::memchr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// How much is looked at to tell what a log is.
const HEAD: usize = 64 << 10;
/// A longer line is cut: its tail is a body, and nothing that is read stands behind one.
const LONGEST_LINE: usize = 4 << 20;
/// The largest log that is one document: some drivers write their report so.
const DOCUMENT: usize = 32 << 20;
/// A record whose quoted cell runs on over more lines than this has a stray quote.
const LINES_OF_A_RECORD: usize = 32;

/// One line without its end.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    pub bytes: &'a [u8],
    /// Counted from 1.
    pub number: u64,
    /// Whether its end was there; only the last line of a file can lack it.
    pub whole: bool,
}

pub(super) struct Input {
    pub path: PathBuf,
    source: Box<dyn Read>,
    buffer: Vec<u8>,
    at: usize,
    line: u64,
    ended: bool,
    /// Why the bytes stopped before their end.
    pub cut: Option<String>,
}

impl Input {
    /// Opens a file, gzip or not.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        let failed = |why: io::Error| InputError::new(path, format!("cannot be read: {why}"));
        if path.is_dir() {
            return Err(InputError::new(path, "is a folder, not a log"));
        }
        let mut input = Self::of(path, text::open(path).map_err(failed)?);
        input.fill_to(3)?;
        if input.buffer.starts_with(b"\xef\xbb\xbf") {
            input.at = 3;
        }
        Ok(input)
    }

    /// Reads from anything; `path` only names it in errors.
    pub fn of(path: &Path, source: Box<dyn Read>) -> Self {
        Self { path: path.to_owned(), source, buffer: Vec::new(), at: 0, line: 0, ended: false, cut: None }
    }

    /// An error about the file.
    pub fn error(&self, what: impl Into<String>) -> InputError {
        InputError::new(&self.path, what)
    }

    /// The name of the file, without its folder.
    pub fn file_name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The first bytes, not consumed; only before the first line is taken.
    pub fn head(&mut self) -> Result<&[u8], InputError> {
        self.fill_to(HEAD)?;
        let end = self.buffer.len().min(self.at + HEAD);
        Ok(&self.buffer[self.at..end])
    }

    /// Everything that is left, for logs that are one document; refused past `limit`.
    pub fn rest(&mut self, limit: usize) -> Result<&[u8], InputError> {
        self.fill_to(limit + 1)?;
        if self.buffer.len() - self.at > limit {
            return Err(self.error(format!("is one document of more than {} MB", limit >> 20)));
        }
        Ok(&self.buffer[self.at..])
    }

    /// Everything that is left as JSON.
    pub fn json(&mut self) -> Result<serde_json::Value, InputError> {
        let parsed = serde_json::from_slice(self.rest(DOCUMENT)?);
        parsed.map_err(|why| {
            self.error(format!("is no whole JSON document: {why}")).hint("was the driver stopped before it wrote everything?")
        })
    }

    /// Everything that is left as text; not UTF-8 is read with replacement characters.
    pub fn text(&mut self) -> Result<String, InputError> {
        Ok(String::from_utf8_lossy(self.rest(DOCUMENT)?).into_owned())
    }

    /// Makes sure that so many unread bytes are there, or all that are left.
    fn fill_to(&mut self, wanted: usize) -> Result<(), InputError> {
        if self.at > 0 && !self.ended && self.buffer.len() - self.at < wanted {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
        while !self.ended && self.buffer.len() - self.at < wanted {
            let have = self.buffer.len();
            let step = (wanted - (have - self.at)).clamp(HEAD, 1 << 20);
            self.buffer.resize(have + step, 0);
            let read = self.source.read(&mut self.buffer[have..]);
            self.buffer.truncate(have + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => self.ended = true,
                Ok(_) => {}
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                // A cut or damaged gzip is read to where it goes.
                Err(why)
                    if matches!(
                        why.kind(),
                        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData
                    ) =>
                {
                    self.cut = Some(why.to_string());
                    self.ended = true;
                }
                Err(why) => return Err(self.error(format!("cannot be read: {why}"))),
            }
        }
        Ok(())
    }

    /// Where the line that begins `from` bytes after the cursor ends: its end, and how many bytes its line end takes.
    fn line_end(&mut self, from: usize) -> Result<(usize, usize), InputError> {
        let mut searched = from;
        loop {
            let unread = &self.buffer[self.at..];
            if let Some(found) = memchr(b'\n', &unread[searched.min(unread.len())..]) {
                return Ok((searched + found, 1));
            }
            searched = unread.len().max(from);
            if self.ended || searched - from > LONGEST_LINE {
                return Ok((searched, 0));
            }
            self.fill_to(searched + HEAD)?;
        }
    }

    fn skip_line_tail(&mut self) -> Result<(), InputError> {
        loop {
            if let Some(found) = memchr(b'\n', &self.buffer[self.at..]) {
                self.at += found + 1;
                return Ok(());
            }
            self.at = self.buffer.len();
            if self.ended {
                return Ok(());
            }
            self.fill_to(HEAD)?;
        }
    }

    /// The next line; `None` at the end.
    pub fn line(&mut self) -> Result<Option<Line<'_>>, InputError> {
        let (length, end) = self.line_end(0)?;
        if length == 0 && end == 0 {
            return Ok(None);
        }
        self.line += 1;
        let start = self.at;
        self.at += length + end;
        let (mut from, mut to) = (start, start + length);
        let whole = end == 1;
        if !whole && !self.ended {
            // Too long: keep what was seen, step over the rest.
            let kept = self.buffer[from..to].to_vec();
            self.skip_line_tail()?;
            let rest = self.buffer.split_off(self.at);
            self.buffer = kept;
            (from, to, self.at) = (0, self.buffer.len(), self.buffer.len());
            self.buffer.extend_from_slice(&rest);
        }
        if to > from && self.buffer[to - 1] == b'\r' {
            to -= 1;
        }
        Ok(Some(Line { bytes: &self.buffer[from..to], number: self.line, whole }))
    }

    /// The next line that should be a JSON object; empty lines are stepped over. A last line that is cut ends the log.
    pub fn json_line(&mut self, run: &mut super::run::Run<'_>, into: &mut Vec<u8>) -> Result<Option<u64>, InputError> {
        while let Some(line) = self.line()? {
            let text = line.bytes.trim_ascii();
            if text.is_empty() {
                continue;
            }
            if !line.whole && !text.ends_with(b"}") {
                run.caveat(super::caveat::CUT_LOG);
                return Ok(None);
            }
            run.rows += 1;
            into.clear();
            into.extend_from_slice(text);
            return Ok(Some(line.number));
        }
        Ok(None)
    }

    /// The next record of a file with quoted cells, which may run over several lines; `None` at the end. A quote that is
    /// not closed within a few lines ends with its line, and `closed` is false.
    pub fn record(&mut self, fields: &mut Fields, delimiter: u8) -> Result<Option<Record>, InputError> {
        let (mut length, mut end) = self.line_end(0)?;
        if length == 0 && end == 0 {
            return Ok(None);
        }
        let number = self.line + 1;
        let (first, first_end) = (length, end);
        let mut closed = fields.split(&self.buffer[self.at..self.at + length], delimiter);
        let mut lines = 1;
        while !closed && end == 1 && lines < LINES_OF_A_RECORD && length < HEAD {
            let from = length + 1;
            (length, end) = self.line_end(from)?;
            if length == from && end == 0 {
                break;
            }
            closed = fields.split(&self.buffer[self.at..self.at + length], delimiter);
            lines += 1;
        }
        if !closed {
            (length, end, lines) = (first, first_end, 1);
            fields.split(&self.buffer[self.at..self.at + length], delimiter);
        }
        self.at += length + end;
        self.line += lines as u64;
        // Nothing but an open quote to the end of the file is a cut tail, as is a last line without its end.
        let whole = (end == 1 && closed) || !self.at_end()?;
        Ok(Some(Record { number, whole, closed }))
    }

    /// Whether nothing is left.
    fn at_end(&mut self) -> Result<bool, InputError> {
        self.fill_to(1)?;
        Ok(self.buffer.len() == self.at)
    }
}

/// The bytes that are left, for readers of their own.
impl Read for Input {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.fill_to(1).map_err(|why| io::Error::other(why.what))?;
        let unread = &self.buffer[self.at..];
        let taken = unread.len().min(into.len());
        into[..taken].copy_from_slice(&unread[..taken]);
        self.at += taken;
        Ok(taken)
    }
}

/// What is known of a record beside its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Its first line, counted from 1.
    pub number: u64,
    /// Whether its line end was there.
    pub whole: bool,
    /// Whether its quotes were closed.
    pub closed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn of(text: &'static [u8]) -> Input {
        Input::of(Path::new("t"), Box::new(text))
    }

    fn lines(mut input: Input) -> Vec<(String, bool)> {
        let mut out = Vec::new();
        while let Some(line) = input.line().unwrap() {
            out.push((String::from_utf8_lossy(line.bytes).into_owned(), line.whole));
        }
        out
    }

    #[test]
    fn lines_end_in_lf_or_crlf_and_the_last_may_lack_its_end() {
        assert_eq!(lines(of(b"a\r\n\nb\nc")), [("a".into(), true), (String::new(), true), ("b".into(), true), ("c".into(), false)]);
        assert_eq!(lines(of(b"")), []);
    }

    #[test]
    fn a_line_longer_than_the_limit_is_cut_and_the_next_one_is_read() {
        let mut text = vec![b'x'; LONGEST_LINE + 300_000];
        text.extend_from_slice(b"\nnext\n");
        let mut input = Input::of(Path::new("t"), Box::new(io::Cursor::new(text)));
        let line = input.line().unwrap().unwrap();
        assert!(line.bytes.len() > LONGEST_LINE && !line.whole && line.number == 1);
        let line = input.line().unwrap().unwrap();
        assert_eq!((line.bytes, line.number, line.whole), (&b"next"[..], 2, true));
        assert!(input.line().unwrap().is_none());
    }

    #[test]
    fn a_quoted_cell_may_run_over_lines_and_a_stray_quote_costs_its_own_line_only() {
        let mut input = of(b"1,\"two\nlines\",3\n4,\"stray,5\n6,7,8\n");
        let mut fields = Fields::default();
        let record = input.record(&mut fields, b',').unwrap().unwrap();
        assert!(record.closed && record.whole && record.number == 1);
        assert_eq!(fields.get(1), b"two\nlines");
        let record = input.record(&mut fields, b',').unwrap().unwrap();
        assert!(!record.closed && record.number == 3);
        let record = input.record(&mut fields, b',').unwrap().unwrap();
        assert!(record.closed && record.number == 4);
        assert_eq!(fields.get(2), b"8");
        assert_eq!(input.record(&mut fields, b',').unwrap(), None);
    }

    #[test]
    fn a_tail_cut_inside_a_quote_is_not_whole() {
        let mut input = of(b"1,2\n3,\"Number of sam");
        let mut fields = Fields::default();
        assert!(input.record(&mut fields, b',').unwrap().unwrap().whole);
        let record = input.record(&mut fields, b',').unwrap().unwrap();
        assert!(!record.whole && !record.closed);
    }

    #[test]
    fn a_gzip_is_unwrapped_and_a_cut_one_is_read_to_where_it_goes() {
        let lines: Vec<String> = (0..20_000).map(|n| format!("line {n} {}\n", n * 7919 % 1009)).collect();
        let text = lines.concat();
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gz.write_all(b"\xef\xbb\xbf").unwrap();
        gz.write_all(text.as_bytes()).unwrap();
        let gz = gz.finish().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.gz");
        std::fs::write(&path, &gz).unwrap();
        let mut input = Input::open(&path).unwrap();
        assert_eq!(input.line().unwrap().unwrap().bytes, b"line 0 0");
        std::fs::write(&path, &gz[..gz.len() / 2]).unwrap();
        let mut input = Input::open(&path).unwrap();
        let mut read = 0;
        while input.line().unwrap().is_some() {
            read += 1;
        }
        assert!((5000..15_000).contains(&read), "{read} lines");
        assert!(input.cut.is_some());
    }
}
