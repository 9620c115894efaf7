//! Writing the ticks. Whatever happens to the process, what was written is a valid file: each row goes out as one write.

use super::{Child, FIRST_LINE, Header};
use crate::text::{push_escaped, push_number};
use std::io::{self, Write};

/// Writes the header once and then one row a tick.
pub struct Writer<W: Write> {
    out: W,
    columns: usize,
    line: String,
}

impl<W: Write> Writer<W> {
    /// Writes everything before the first row.
    pub fn new(mut out: W, header: &Header) -> io::Result<Self> {
        let mut text = format!("{FIRST_LINE}\n#run\t{}\n", serde_json::to_string(&header.run)?);
        for target in &header.targets {
            text.push_str("#target\t");
            push_escaped(&mut text, &target.instance);
            text.push('\t');
            push_escaped(&mut text, &target.collector);
            text.push('\t');
            text.push_str(&serde_json::to_string(&target.about)?);
            text.push('\n');
        }
        for (mark, gauges) in [("#gauge", &header.gauges), ("#derived", &header.derived)] {
            for (column, meaning) in gauges {
                text.push_str(&[mark, "\t", column, "\t", &serde_json::to_string(meaning)?, "\n"].concat());
            }
        }
        text.push_str("tick\tunix_ms\tlate_ms");
        for column in &header.columns {
            text.push('\t');
            push_escaped(&mut text, column);
        }
        text.push_str("\tnotes\n");
        out.write_all(text.as_bytes())?;
        out.flush()?;
        Ok(Self { out, columns: header.columns.len(), line: text })
    }

    /// Writes a row: a cell for every column of the header, `None` where nothing was read.
    pub fn row(&mut self, tick: u64, unix_ms: i64, late_ms: f64, cells: &[Option<f64>], notes: &[String]) -> io::Result<()> {
        debug_assert_eq!(cells.len(), self.columns, "a row has a cell for every column");
        self.line.clear();
        push_number(&mut self.line, tick as f64);
        self.line.push('\t');
        push_number(&mut self.line, unix_ms as f64);
        self.line.push('\t');
        push_number(&mut self.line, (late_ms * 1e3).round() / 1e3);
        for cell in cells {
            self.line.push('\t');
            if let Some(value) = cell {
                push_number(&mut self.line, *value);
            }
        }
        self.line.push('\t');
        for (n, note) in notes.iter().enumerate() {
            if n > 0 {
                self.line.push_str("; ");
            }
            push_escaped(&mut self.line, note);
        }
        self.line.push('\n');
        self.out.write_all(self.line.as_bytes())?;
        self.out.flush()
    }

    /// What it writes to.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// Records the wrapped driver's start or end.
    pub fn child(&mut self, child: &Child) -> io::Result<()> {
        let line = format!("#child\t{}\n", serde_json::to_string(child)?);
        self.out.write_all(line.as_bytes())?;
        self.out.flush()
    }
}
