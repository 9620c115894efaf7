//! The Prometheus text format 0.0.4 and `OpenMetrics`, read by a state machine over bytes.
//!
//! Sources: prometheus.io "Exposition formats" and the `OpenMetrics` specification. What both allow is read: label values with
//! any character, escapes, names with `:`, empty label sets, quoted names, timestamps, exemplars, CRLF, a missing last line
//! end. A timestamp is checked and dropped: the time of our own read is the time. A line that cannot be read is said to be so
//! and gives no value.

use std::borrow::Cow;

/// What a `# TYPE` line says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Type {
    /// Only grows.
    Counter,
    /// A state.
    Gauge,
    /// `_bucket`, `_sum`, `_count`.
    Histogram,
    /// Quantiles, `_sum`, `_count`.
    Summary,
    /// Labels without a number that matters: `info`, `stateset`.
    Info,
    /// Anything else, or nothing said.
    #[default]
    Unknown,
}

/// One line of a page.
#[derive(Clone, Debug, PartialEq)]
pub enum Line<'a> {
    /// A value.
    Sample(Sample<'a>),
    /// The type of a family.
    Type(Cow<'a, str>, Type),
    /// The help of a family.
    Help(Cow<'a, str>, Cow<'a, str>),
    /// `# EOF`: nothing after it counts.
    Eof,
    /// Could not be read, and why.
    Bad(&'static str),
}

/// One value of one series.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<'a> {
    /// The series' name.
    pub name: Cow<'a, str>,
    /// The value; NaN and infinities as they stand there.
    pub value: f64,
    labels: &'a [u8],
}

impl<'a> Sample<'a> {
    /// What stands between the braces, as written: the same text is the same series.
    pub fn raw_labels(&self) -> &'a [u8] {
        self.labels
    }

    /// The labels, in the order of the page.
    pub fn labels(&self) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
        let mut scan = Scan { bytes: self.labels, at: 0 };
        let mut labels = Vec::new();
        // The block was read once already when the line was.
        while let Ok(Some((name, value))) = scan.item() {
            if let Some(value) = value {
                labels.push((name, value));
            }
        }
        labels
    }
}

/// The lines of a page that say something, with their numbers from 1; comments and empty lines are passed over.
pub fn lines(body: &[u8]) -> impl Iterator<Item = (usize, Line<'_>)> {
    let mut ended = false;
    body.split(|byte| *byte == b'\n')
        .enumerate()
        .map_while(move |(at, line)| {
            if ended {
                return None;
            }
            let found = read(line);
            ended = found == Some(Line::Eof);
            Some((at + 1, found))
        })
        .filter_map(|(number, found)| found.map(|line| (number, line)))
}

fn read(line: &[u8]) -> Option<Line<'_>> {
    let line = line.trim_ascii();
    match line.first() {
        None => None,
        Some(b'#') => comment(&line[1..]),
        Some(_) => Some(sample(line).map_or_else(Line::Bad, Line::Sample)),
    }
}

fn comment(text: &[u8]) -> Option<Line<'_>> {
    let mut scan = Scan { bytes: text, at: 0 };
    scan.blanks();
    let word = scan.token();
    scan.blanks();
    match word {
        b"EOF" if scan.at == text.len() => Some(Line::Eof),
        b"TYPE" => {
            let name = scan.family()?;
            scan.blanks();
            let kind = match scan.token() {
                b"counter" => Type::Counter,
                b"gauge" => Type::Gauge,
                b"histogram" | b"gaugehistogram" => Type::Histogram,
                b"summary" => Type::Summary,
                b"info" | b"stateset" => Type::Info,
                _ => Type::Unknown,
            };
            Some(Line::Type(name, kind))
        }
        b"HELP" => {
            let name = scan.family()?;
            scan.blanks();
            Some(Line::Help(name, unescaped(&text[scan.at..])))
        }
        _ => None,
    }
}

fn sample(line: &[u8]) -> Result<Sample<'_>, &'static str> {
    let mut scan = Scan { bytes: line, at: 0 };
    let mut name = scan.name().map(Cow::Borrowed);
    let had_name = name.is_some();
    let gap = scan.blanks();
    let mut labels: &[u8] = b"";
    let braces = scan.eat(b'{');
    if braces {
        let start = scan.at;
        while let Some((item, value)) = scan.item()? {
            if value.is_none() {
                // `{"a quoted name", label="x"}`
                if had_name || name.is_some() {
                    return Err("a second name among the labels");
                }
                name = Some(item);
            }
        }
        labels = &line[start..scan.at];
        if !scan.eat(b'}') {
            return Err("the labels do not end");
        }
    }
    let name = name.ok_or("no name")?;
    scan.blanks();
    if !gap && !braces {
        return Err("no value after the name");
    }
    let value = number(scan.token()).ok_or("the value is no number")?;
    scan.blanks();
    if scan.peek().is_some_and(|byte| byte != b'#') {
        number(scan.token()).ok_or("the timestamp is no number")?;
        scan.blanks();
    }
    // What follows a `#` is an exemplar: one observation, not the series.
    match scan.peek() {
        None | Some(b'#') => Ok(Sample { name, value, labels }),
        Some(_) => Err("more after the value and the timestamp"),
    }
}

fn number(token: &[u8]) -> Option<f64> {
    std::str::from_utf8(token).ok()?.parse().ok()
}

/// `\\`, `\"` and `\n`; another backslash stands for itself.
fn unescaped(text: &[u8]) -> Cow<'_, str> {
    if !text.contains(&b'\\') {
        return String::from_utf8_lossy(text);
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let meant = match (byte, bytes.peek()) {
            (b'\\', Some(b'n')) => Some(b'\n'),
            (b'\\', Some(&next @ (b'\\' | b'"'))) => Some(next),
            _ => None,
        };
        if meant.is_some() {
            bytes.next();
        }
        plain.push(meant.unwrap_or(byte));
    }
    Cow::Owned(String::from_utf8_lossy(&plain).into_owned())
}

/// A position in a line.
struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn take_while(&mut self, of: impl Fn(u8) -> bool) -> &'a [u8] {
        let start = self.at;
        while self.peek().is_some_and(&of) {
            self.at += 1;
        }
        &self.bytes[start..self.at]
    }

    /// Passes blanks; whether there were any.
    fn blanks(&mut self) -> bool {
        !self.take_while(|byte| matches!(byte, b' ' | b'\t')).is_empty()
    }

    fn token(&mut self) -> &'a [u8] {
        self.take_while(|byte| !matches!(byte, b' ' | b'\t'))
    }

    fn name(&mut self) -> Option<&'a str> {
        let start = self.at;
        if self.peek().is_none_or(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let name = self.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':'));
        if name.is_empty() {
            self.at = start;
            return None;
        }
        std::str::from_utf8(name).ok()
    }

    /// A quoted text, unescaped; the position is at its first quote.
    fn quoted(&mut self) -> Result<Cow<'a, str>, &'static str> {
        self.at += 1;
        let start = self.at;
        loop {
            match self.peek() {
                None => return Err("a quoted text does not end"),
                Some(b'\\') => self.at += 2,
                Some(b'"') => break,
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        Ok(unescaped(&self.bytes[start..self.at - 1]))
    }

    /// A family's name after `TYPE` or `HELP`.
    fn family(&mut self) -> Option<Cow<'a, str>> {
        if self.peek() == Some(b'"') { self.quoted().ok() } else { self.name().map(Cow::Borrowed) }
    }

    /// One label, or a quoted name without a value; `None` at the closing brace or the end. Passes the comma after it.
    #[allow(clippy::type_complexity)]
    fn item(&mut self) -> Result<Option<(Cow<'a, str>, Option<Cow<'a, str>>)>, &'static str> {
        self.blanks();
        let (name, is_quoted) = match self.peek() {
            None | Some(b'}') => return Ok(None),
            Some(b'"') => (self.quoted()?, true),
            Some(_) => (Cow::Borrowed(self.name().ok_or("a label without a name")?), false),
        };
        self.blanks();
        let value = if self.eat(b'=') {
            self.blanks();
            if self.peek() != Some(b'"') {
                return Err("a label's value is not quoted");
            }
            Some(self.quoted()?)
        } else if is_quoted {
            None
        } else {
            return Err("a label without a value");
        };
        self.blanks();
        match self.peek() {
            Some(b',') => self.at += 1,
            None | Some(b'}') => {}
            Some(_) => return Err("no comma between labels"),
        }
        Ok(Some((name, value)))
    }
}

#[cfg(test)]
mod tests;
