//! Reading the ticks: row by row, or whole as one series a column.

use super::{Child, FIRST_LINE, Header, Target};
use crate::text::{InputError, Lines, number_at, parse_number, unescape};
use std::io::{BufReader, Read};
use std::path::Path;

/// One row. A missing cell is NaN.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Counts from 0 and skips what was missed.
    pub tick: u64,
    /// The tick's planned time.
    pub unix_ms: i64,
    /// How long after it the reads began.
    pub late_ms: f64,
    /// In the order of [`Header::columns`].
    pub cells: Vec<f64>,
    /// What happened at this tick.
    pub notes: String,
}

/// Reads a file row by row in constant memory.
pub struct Reader {
    lines: Lines<BufReader<Box<dyn Read>>>,
    header: Header,
    /// For each cell of a line: which of the row's fields it is.
    slots: Vec<Slot>,
    children: Vec<Child>,
}

#[derive(Clone, Copy)]
enum Slot {
    Tick,
    UnixMs,
    LateMs,
    Cell(usize),
    Notes,
}

impl Reader {
    /// Reads up to the first row; the file may be a gzip.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        let mut reader = Self { lines: Lines::open(path)?, header: Header::default(), slots: Vec::new(), children: Vec::new() };
        reader.lines.first(FIRST_LINE, "give the sampler's ticks first, then its waits; a driver's log goes behind --driver")?;
        while reader.lines.advance()?.is_some() {
            if reader.lines.line().starts_with(b"#") {
                reader.comment()?;
            } else if !reader.lines.line().is_empty() {
                reader.columns()?;
                return Ok(reader);
            }
        }
        Err(InputError::new(path, "ends before its line of column names").hint("was the sampler stopped before its first tick?"))
    }

    /// What stands before the first row.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The `#child` lines read so far.
    pub fn children(&self) -> &[Child] {
        &self.children
    }

    fn comment(&mut self) -> Result<(), InputError> {
        let text = self.lines.text().into_owned();
        let mut parts = text.splitn(4, '\t');
        let mark = parts.next().unwrap_or_default();
        match mark {
            "#run" => self.header.run = self.lines.json(mark, parts.next())?,
            "#child" => {
                let child = self.lines.json(mark, parts.next())?;
                self.children.push(child);
            }
            "#target" => {
                let (instance, collector) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
                let about = self.lines.json(mark, parts.next())?;
                self.header.targets.push(Target { instance: unescape(instance), collector: unescape(collector), about });
            }
            "#gauge" | "#derived" => {
                let column = unescape(parts.next().unwrap_or_default());
                let meaning = self.lines.json(mark, parts.next())?;
                let list = if mark == "#gauge" { &mut self.header.gauges } else { &mut self.header.derived };
                list.push((column, meaning));
            }
            _ => {}
        }
        Ok(())
    }

    fn columns(&mut self) -> Result<(), InputError> {
        for name in self.lines.columns(&["tick", "unix_ms"])? {
            self.slots.push(match name.as_str() {
                "tick" => Slot::Tick,
                "unix_ms" => Slot::UnixMs,
                "late_ms" => Slot::LateMs,
                "notes" => Slot::Notes,
                _ => {
                    self.header.columns.push(name);
                    Slot::Cell(self.header.columns.len() - 1)
                }
            });
        }
        Ok(())
    }

    /// Reads the next row into `row`; `false` at the end.
    pub fn next_row(&mut self, row: &mut Row) -> Result<bool, InputError> {
        loop {
            let Some(whole) = self.lines.advance()? else { return Ok(false) };
            let line = self.lines.line();
            if line.is_empty() {
                continue;
            }
            if line[0] == b'#' {
                // A cut last line may end inside its JSON.
                match self.comment() {
                    Err(_) if !whole => {}
                    other => other?,
                }
                continue;
            }
            match self.parse(line, row) {
                // Cut in the middle by a killed sampler: not a row.
                Ok(false) | Err(_) if !whole => return Ok(false),
                Ok(false) => {
                    let found = memchr::memchr_iter(b'\t', line).count() + 1;
                    return Err(self.lines.error(format!("expected {} cells, found {found}", self.slots.len())));
                }
                Ok(true) => return Ok(true),
                Err(what) => return Err(self.lines.error(what)),
            }
        }
    }

    /// `Ok(false)` where the number of cells is not the header's.
    fn parse(&self, line: &[u8], row: &mut Row) -> Result<bool, String> {
        row.cells.clear();
        row.cells.resize(self.header.columns.len(), f64::NAN);
        row.notes.clear();
        row.late_ms = f64::NAN;
        let bad =
            |name: &str, cell: &[u8]| format!("expected a number in column {name}, found {:?}", String::from_utf8_lossy(cell));
        let mut start = 0;
        for slot in &self.slots {
            // Behind the last cell there is nothing to begin at.
            if start > line.len() {
                return Ok(false);
            }
            let (value, end) = match number_at(line, start) {
                Some(plain) if !matches!(slot, Slot::Notes) => plain,
                _ => {
                    let end = memchr::memchr(b'\t', &line[start..]).map_or(line.len(), |tab| start + tab);
                    let cell = &line[start..end];
                    if matches!(slot, Slot::Notes) {
                        row.notes = unescape(&String::from_utf8_lossy(cell));
                        (f64::NAN, end)
                    } else {
                        (parse_number(cell).ok_or_else(|| bad(self.name(*slot), cell))?, end)
                    }
                }
            };
            match *slot {
                Slot::Notes => {}
                Slot::Cell(n) => row.cells[n] = value,
                Slot::LateMs => row.late_ms = value,
                Slot::Tick => row.tick = whole(value, "tick")? as u64,
                Slot::UnixMs => row.unix_ms = whole(value, "unix_ms")?,
            }
            start = end + 1;
        }
        Ok(start == line.len() + 1)
    }

    fn name(&self, slot: Slot) -> &str {
        match slot {
            Slot::Tick => "tick",
            Slot::UnixMs => "unix_ms",
            Slot::LateMs => "late_ms",
            Slot::Notes => "notes",
            Slot::Cell(n) => &self.header.columns[n],
        }
    }
}

fn whole(value: f64, name: &str) -> Result<i64, String> {
    if value.is_nan() { Err(format!("column {name} is empty")) } else { Ok(value as i64) }
}

/// A whole file: one series a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ticks {
    /// What stands before the first row.
    pub header: Header,
    /// The wrapped driver's start and end.
    pub children: Vec<Child>,
    /// Tick numbers.
    pub tick: Vec<u64>,
    /// Planned times.
    pub unix_ms: Vec<i64>,
    /// How late the reads began; NaN where unknown.
    pub late_ms: Vec<f64>,
    /// One series a column, NaN where nothing was read.
    pub series: Vec<Vec<f64>>,
    /// Row index and note, where there is one.
    pub notes: Vec<(usize, String)>,
}

impl Ticks {
    /// The series of a column.
    pub fn column(&self, name: &str) -> Option<&[f64]> {
        self.header.columns.iter().position(|column| column == name).map(|n| self.series[n].as_slice())
    }
}

/// Reads a whole file.
pub fn read(path: &Path) -> Result<Ticks, InputError> {
    let mut reader = Reader::open(path)?;
    let mut ticks = Ticks { series: vec![Vec::new(); reader.header.columns.len()], ..Ticks::default() };
    let mut row = Row::default();
    while reader.next_row(&mut row)? {
        if !row.notes.is_empty() {
            ticks.notes.push((ticks.tick.len(), row.notes.clone()));
        }
        ticks.tick.push(row.tick);
        ticks.unix_ms.push(row.unix_ms);
        ticks.late_ms.push(row.late_ms);
        for (series, cell) in ticks.series.iter_mut().zip(&row.cells) {
            series.push(*cell);
        }
    }
    ticks.header = reader.header;
    ticks.children = reader.children;
    Ok(ticks)
}
