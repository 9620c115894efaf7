//! Rows of cells, with what all such logs share: empty lines, rows too narrow, quotes left open, a cut last row.

use super::caveat;
use super::fields::Fields;
use super::input::Input;
use super::run::Run;
use crate::text::InputError;

/// The rows of one log.
pub(super) struct Table {
    /// The cells of the row that was read last.
    pub fields: Fields,
    /// How many cells a row has at least.
    pub width: usize,
    delimiter: u8,
    quotes: bool,
    /// Whether a last row without its line end is dropped even if it has all cells: where the last cell is a number that
    /// matters, a cut one would pass for a smaller one.
    drop_tail: bool,
    line: Vec<u8>,
}

impl Table {
    /// Rows of at least `width` cells, no header.
    pub fn new(delimiter: u8, width: usize) -> Self {
        Self { fields: Fields::default(), width, delimiter, quotes: true, drop_tail: false, line: Vec::new() }
    }

    /// Rows under a header, which is read and left in `fields`.
    pub fn with_header(input: &mut Input, delimiter: u8) -> Result<Self, InputError> {
        let mut table = Self::new(delimiter, 0);
        while let Some(_header) = input.record(&mut table.fields, delimiter)? {
            if table.fields.len() > 1 {
                break;
            }
        }
        table.width = table.fields.len();
        Ok(table)
    }

    /// Quotes mean nothing.
    pub fn without_quotes(mut self) -> Self {
        self.quotes = false;
        self
    }

    /// The last cell matters.
    pub fn dropping_tail(mut self) -> Self {
        self.drop_tail = true;
        self
    }

    /// Reads the next good row into `fields` and gives its line; bad ones are counted. `None` at the end.
    pub fn next(&mut self, input: &mut Input, run: &mut Run<'_>) -> Result<Option<u64>, InputError> {
        loop {
            let (number, whole, closed) = if self.quotes {
                let Some(record) = input.record(&mut self.fields, self.delimiter)? else { return Ok(None) };
                (record.number, record.whole, record.closed)
            } else {
                let Some(line) = input.line()? else { return Ok(None) };
                self.line.clear();
                self.line.extend_from_slice(line.bytes);
                self.fields.split_plain(&self.line, self.delimiter);
                (line.number, line.whole, true)
            };
            if self.fields.len() == 1 && self.fields.get(0).trim_ascii().is_empty() {
                continue;
            }
            let narrow = self.fields.len() < self.width;
            if !whole && (narrow || !closed || self.drop_tail) {
                run.caveat(caveat::CUT_LOG);
                return Ok(None);
            }
            run.rows += 1;
            if narrow || !closed {
                let why = if closed { "too few cells" } else { "a quote is not closed" };
                run.bad_row(number, format!("{why}: expected {}, found {}", self.width, self.fields.len()));
                continue;
            }
            return Ok(Some(number));
        }
    }

    /// A cell that must be a number; a bad row is counted and gives `None`.
    pub fn number(&self, run: &mut Run<'_>, line: u64, column: usize) -> Option<f64> {
        let value = self.fields.number(Some(column));
        if value.is_none() {
            let found = String::from_utf8_lossy(self.fields.get(column)).into_owned();
            run.bad_row(line, format!("expected a number in cell {}, found {found:?}", column + 1));
        }
        value
    }

    /// A column that must be there.
    pub fn needed(&self, input: &Input, name: &str) -> Result<usize, InputError> {
        self.fields.column(&[name]).ok_or_else(|| input.error(format!("the line of column names has no column {name}")).at(1))
    }
}
