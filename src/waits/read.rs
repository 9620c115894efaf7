//! Reading the waits.

use super::FIRST_LINE;
use crate::text::{self, InputError, Lines, unescape};
use std::collections::HashMap;
use std::path::Path;

/// One waiter at one read, or the rest of an object's waiters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WaitRow {
    /// The tick it belongs to.
    pub tick: u64,
    /// When it was read.
    pub unix_ms: i64,
    /// The instance.
    pub target: String,
    /// row, metadata, tuple, …
    pub kind: String,
    /// `schema.table`.
    pub object: Option<String>,
    /// The index.
    pub index: Option<String>,
    /// The row's key or its hash.
    pub row: Option<String>,
    /// The mode that is waited for.
    pub mode: Option<String>,
    /// The session; `None` for a row that stands for several.
    pub waiter: Option<String>,
    /// How many waiters the row stands for.
    pub count: u64,
    /// How long it has waited.
    pub waited_ms: Option<f64>,
    /// The id of its statement.
    pub statement: Option<String>,
    /// The root session.
    pub blocker: Option<String>,
    /// What the root does.
    pub blocker_state: Option<String>,
    /// The id of the root's statement.
    pub blocker_statement: Option<String>,
}

/// A whole file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waits {
    /// In the file's order.
    pub rows: Vec<WaitRow>,
    /// Statements by id.
    pub statements: HashMap<String, String>,
}

/// Reads a whole file, plain or a gzip. A cut last line is dropped.
pub fn read(path: &Path) -> Result<Waits, InputError> {
    let (mut waits, mut names, mut lines) = (Waits::default(), Vec::new(), Lines::open(path)?);
    lines.first(FIRST_LINE, "give the sampler's ticks first, then its waits")?;
    while let Some(whole) = lines.advance()? {
        let text = lines.text();
        if let Some(statement) = text.strip_prefix("#statement\t") {
            if let Some((id, text)) = statement.split_once('\t') {
                waits.statements.insert(id.to_owned(), unescape(text));
            }
        } else if text.starts_with('#') || text.is_empty() {
        } else if names.is_empty() {
            names = lines.columns(&["unix_ms", "target", "kind", "waiter"])?;
        } else {
            match row(&names, &text) {
                Ok(row) => waits.rows.push(row),
                Err(_) if !whole => {}
                Err(what) => return Err(lines.error(what)),
            }
        }
    }
    Ok(waits)
}

fn row(names: &[String], text: &str) -> Result<WaitRow, String> {
    let mut row = WaitRow { count: 1, ..WaitRow::default() };
    for (name, cell) in text::cells(names, text)? {
        let known = || (cell != "-" && !cell.is_empty()).then(|| unescape(cell));
        let bad = || format!("expected a number in column {name}, found {cell:?}");
        match name {
            "tick" => row.tick = cell.parse().map_err(|_| bad())?,
            "unix_ms" => row.unix_ms = cell.parse().map_err(|_| bad())?,
            "target" => row.target = unescape(cell),
            "kind" => row.kind = unescape(cell),
            "object" => row.object = known(),
            "index" => row.index = known(),
            "row" => row.row = known(),
            "mode" => row.mode = known(),
            "waiter" => match cell.strip_prefix('+') {
                Some(count) => row.count = count.parse().map_err(|_| bad())?,
                None => row.waiter = known(),
            },
            "waited_ms" => row.waited_ms = known().map(|cell| cell.parse().map_err(|_| bad())).transpose()?,
            "statement" => row.statement = known(),
            "blocker" => row.blocker = known(),
            "blocker_state" => row.blocker_state = known(),
            "blocker_statement" => row.blocker_statement = known(),
            _ => {}
        }
    }
    Ok(row)
}
