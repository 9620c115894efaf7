//! What the plain files share: cells without quoting, numbers without exponents, and errors that name file and line.

use flate2::read::MultiGzDecoder;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

/// An input file that cannot be used: which, where, what was found.
#[derive(Debug, thiserror::Error)]
#[error("{}{}: {what}{}", path.display(), line.map(|n| format!(" line {n}")).unwrap_or_default(), hint.as_ref().map(|h| format!("\nhint: {h}")).unwrap_or_default())]
pub struct InputError {
    /// The file.
    pub path: PathBuf,
    /// The line, counted from 1.
    pub line: Option<u64>,
    /// What was expected and what was found.
    pub what: String,
    /// What mends it.
    pub hint: Option<String>,
}

impl InputError {
    /// An error about a file as a whole.
    pub fn new(path: &Path, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: None, what: what.into(), hint: None }
    }

    /// Names the line.
    #[must_use]
    pub fn at(mut self, line: u64) -> Self {
        self.line = Some(line);
        self
    }

    /// Says what mends it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Opens a file for reading; a gzip, told by its first bytes, is unwrapped.
pub fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    let mut file = File::open(path)?;
    let mut magic = Vec::new();
    file.by_ref().take(2).read_to_end(&mut magic)?;
    let packed = magic == [0x1f, 0x8b];
    let whole = Cursor::new(magic).chain(file);
    Ok(if packed { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) })
}

/// The lines of a plain file, one after the other.
pub struct Lines<R> {
    path: PathBuf,
    input: R,
    line: Vec<u8>,
    number: u64,
}

impl Lines<BufReader<Box<dyn Read>>> {
    /// Of a file, plain or a gzip.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        let file = open(path).map_err(|why| InputError::new(path, format!("cannot be opened: {why}")))?;
        Ok(Self::new(path, BufReader::with_capacity(1 << 18, file)))
    }
}

impl<R: BufRead> Lines<R> {
    /// Of anything; `path` only names it in errors.
    pub fn new(path: &Path, input: R) -> Self {
        Self { path: path.to_owned(), input, line: Vec::new(), number: 0 }
    }

    /// Reads the next line; `Some(false)` for a last one that has no end.
    pub fn advance(&mut self) -> Result<Option<bool>, InputError> {
        self.line.clear();
        self.number += 1;
        let n = self.input.read_until(b'\n', &mut self.line).map_err(|why| self.error(format!("cannot be read: {why}")))?;
        if n == 0 {
            return Ok(None);
        }
        let whole = self.line.last() == Some(&b'\n');
        while matches!(self.line.last(), Some(b'\n' | b'\r')) {
            self.line.pop();
        }
        Ok(Some(whole))
    }

    /// The line that was read last, without its end.
    pub fn line(&self) -> &[u8] {
        &self.line
    }

    /// The same as text; a byte order mark is none of it.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&self.line))
    }

    /// An error about that line.
    pub fn error(&self, what: impl Into<String>) -> InputError {
        InputError::new(&self.path, what).at(self.number)
    }

    /// What stands as JSON behind the mark that the line begins with.
    pub fn json<T: DeserializeOwned>(&self, mark: &str, text: Option<&str>) -> Result<T, InputError> {
        let parsed = serde_json::from_str(text.unwrap_or_default());
        parsed.map_err(|why| self.error(format!("the {mark} line is not as expected: {why}")))
    }

    /// Reads the first line, which must be this one.
    pub fn first(&mut self, expected: &str, hint: &str) -> Result<(), InputError> {
        if self.advance()?.is_none() {
            return Err(InputError::new(&self.path, "is empty"));
        }
        let text = self.text();
        if text.trim_end() == expected {
            return Ok(());
        }
        let found: String = text.chars().take(60).collect();
        Err(self.error(format!("expected {expected:?}, found {found:?}")).hint(hint))
    }

    /// The line as the names of the columns, among which these must be.
    pub fn columns(&self, needed: &[&str]) -> Result<Vec<String>, InputError> {
        let names: Vec<String> = self.text().split('\t').map(unescape).collect();
        match needed.iter().find(|needed| !names.iter().any(|name| name == **needed)) {
            Some(needed) => Err(self.error(format!("the line of column names has no column {needed}"))),
            None => Ok(names),
        }
    }
}

/// The cells of a line, each with its column's name.
pub fn cells<'a>(names: &'a [String], line: &'a str) -> Result<impl Iterator<Item = (&'a str, &'a str)>, String> {
    let found = line.split('\t').count();
    if found != names.len() {
        return Err(format!("expected {} cells, found {found}", names.len()));
    }
    Ok(names.iter().map(String::as_str).zip(line.split('\t')))
}

/// Appends a text cell: tab, line ends and backslash escaped, and `#` and `"` too, at which pandas and DuckDB would cut or
/// join cells.
pub fn push_escaped(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\\' => out.push_str("\\\\"),
            '#' => out.push_str("\\x23"),
            '"' => out.push_str("\\x22"),
            c => out.push(c),
        }
    }
}

/// The text of a cell written by [`push_escaped`]. A backslash that begins no known escape stays as it is.
pub fn unescape(cell: &str) -> String {
    let mut out = String::with_capacity(cell.len());
    let mut rest = cell;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (text, used) = match rest.as_bytes().get(1) {
            Some(b't') => ('\t', 2),
            Some(b'n') => ('\n', 2),
            Some(b'r') => ('\r', 2),
            Some(b'\\') => ('\\', 2),
            Some(b'x') if rest.starts_with("\\x23") => ('#', 4),
            Some(b'x') if rest.starts_with("\\x22") => ('"', 4),
            _ => ('\\', 1),
        };
        out.push(text);
        rest = &rest[used..];
    }
    out.push_str(rest);
    out
}

/// Appends a number: a dot, no thousands separator, no exponent. A value that is not finite is an empty cell.
pub fn push_number(out: &mut String, value: f64) {
    use std::fmt::Write as _;
    // Most values are counts, and a whole number is written in a fraction of the time that a float takes.
    let whole = value as i64;
    // `Display` of a float never writes an exponent; writing to a String cannot fail.
    let _ = match value {
        _ if whole as f64 == value && whole.unsigned_abs() < 1 << f64::MANTISSA_DIGITS => write!(out, "{whole}"),
        _ if value.is_finite() => write!(out, "{value}"),
        _ => Ok(()),
    };
}

/// Reads a number cell: NaN for an empty one, `None` for something that is no number.
pub fn parse_number(cell: &[u8]) -> Option<f64> {
    match number_at(cell, 0) {
        Some((value, end)) if end == cell.len() => Some(value),
        _ => std::str::from_utf8(cell).ok()?.parse().ok(),
    }
}

/// Reads the number cell of a line that begins at `start`: its value, NaN for an empty one, and where it ends (at a tab or
/// behind the last byte). `None` for what is not a plain number of up to 15 digits, which [`parse_number`] may still know.
/// One pass over the bytes: a file of a day has a quarter of a milliard cells.
pub fn number_at(line: &[u8], start: usize) -> Option<(f64, usize)> {
    const POWERS: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
    let negative = line.get(start) == Some(&b'-');
    let first = start + usize::from(negative);
    let (mut at, mut whole) = (first, 0_u64);
    let mut digits = |at: &mut usize| {
        while let Some(digit) = line.get(*at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
            whole = whole.wrapping_mul(10).wrapping_add(u64::from(digit));
            *at += 1;
        }
    };
    digits(&mut at);
    let mut seen = at - first;
    let mut scale = 0;
    if line.get(at) == Some(&b'.') {
        let dot = at + 1;
        at = dot;
        digits(&mut at);
        scale = at - dot;
        seen += scale;
    }
    if !matches!(line.get(at), None | Some(b'\t')) {
        return None;
    }
    // Up to 15 digits are exact in a double, and so is the quotient by a power of ten: no need for the general parser.
    match seen {
        0 if at == start => Some((f64::NAN, at)),
        1..=15 => {
            let value = if scale == 0 { whole as f64 } else { whole as f64 / POWERS[scale] };
            Some((if negative { -value } else { value }, at))
        }
        _ => None,
    }
}

/// A number with a unit of size, without one as it is; `None` where the unit is none.
pub fn scaled(number: f64, unit: &str) -> Option<f64> {
    let scale: f64 = match unit {
        "" | "B" => 1.0,
        "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some(number * scale)
}

/// The known word nearest to a misspelt one, if it is near.
pub fn closest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = word.len() / 3 + 1;
    known.map(|other| (distance(word, other), other)).filter(|(d, _)| *d <= near).min().map(|(_, other)| other)
}

/// Edits from one word to the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_survives_a_cell_and_the_cell_has_no_tab_line_end_hash_or_quote(text in any::<String>()) {
            let mut cell = String::new();
            push_escaped(&mut cell, &text);
            prop_assert!(!cell.contains(['\t', '\n', '\r', '#', '"']));
            prop_assert_eq!(unescape(&cell), text);
        }

        #[test]
        fn any_finite_number_survives_a_cell(value in proptest::num::f64::NORMAL | proptest::num::f64::ZERO) {
            let mut cell = String::new();
            push_number(&mut cell, value);
            prop_assert!(!cell.contains(['e', 'E']));
            prop_assert_eq!(parse_number(cell.as_bytes()), Some(value));
        }

        #[test]
        fn the_fast_path_agrees_with_the_general_parser(text in "-?[0-9]{1,9}(\\.[0-9]{1,6})?") {
            prop_assert_eq!(parse_number(text.as_bytes()), text.parse().ok());
        }
    }

    #[test]
    fn whole_numbers_are_written_as_floats_are_however_large() {
        for value in [0.0, 1.0, -5.0, 4_294_967_296.0, 9_007_199_254_740_991.0, 9_007_199_254_740_992.0, -1e16, 1e19, 1e300] {
            let mut cell = String::new();
            push_number(&mut cell, value);
            assert_eq!(cell, value.to_string());
        }
        for (value, written) in [(-0.0, "0"), (f64::NAN, ""), (f64::INFINITY, ""), (f64::NEG_INFINITY, "")] {
            let mut cell = String::new();
            push_number(&mut cell, value);
            assert_eq!(cell, written);
        }
    }

    #[test]
    fn an_empty_cell_is_missing_and_a_word_is_no_number() {
        assert!(parse_number(b"").is_some_and(f64::is_nan));
        assert_eq!(parse_number(b"ON"), None);
        assert_eq!(parse_number(b"1.2.3"), None);
        assert_eq!(parse_number(b"-"), None);
        assert_eq!(parse_number(b"."), None);
    }
}
