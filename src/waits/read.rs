//! Reading the waits.

use super::FIRST_LINE;
use crate::text::{self, InputError, unescape};
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
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
    let file = text::open(path).map_err(|why| InputError::new(path, format!("cannot be opened: {why}")))?;
    let mut input = BufReader::new(file);
    let (mut waits, mut names, mut line, mut number) = (Waits::default(), Vec::new(), Vec::new(), 0);
    loop {
        line.clear();
        number += 1;
        let error = |what: String| InputError::new(path, what).at(number);
        if input.read_until(b'\n', &mut line).map_err(|why| error(format!("cannot be read: {why}")))? == 0 {
            break;
        }
        let whole = line.last() == Some(&b'\n');
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches(['\n', '\r']);
        if number == 1 {
            if text.trim_start_matches('\u{feff}') != FIRST_LINE {
                return Err(error(format!("expected {FIRST_LINE:?}, found {:?}", text.chars().take(60).collect::<String>()))
                    .hint("give the sampler's ticks first, then its waits"));
            }
        } else if let Some(statement) = text.strip_prefix("#statement\t") {
            if let Some((id, text)) = statement.split_once('\t') {
                waits.statements.insert(id.to_owned(), unescape(text));
            }
        } else if text.starts_with('#') || text.is_empty() {
        } else if names.is_empty() {
            names = text.split('\t').map(str::to_owned).collect();
            for needed in ["unix_ms", "target", "kind", "waiter"] {
                if !names.iter().any(|name| name == needed) {
                    return Err(error(format!("the line of column names has no column {needed}")));
                }
            }
        } else {
            match row(&names, text) {
                Ok(row) => waits.rows.push(row),
                Err(_) if !whole => {}
                Err(what) => return Err(error(what)),
            }
        }
    }
    if number == 1 {
        return Err(InputError::new(path, "is empty"));
    }
    Ok(waits)
}

fn row(names: &[String], text: &str) -> Result<WaitRow, String> {
    let cells: Vec<&str> = text.split('\t').collect();
    if cells.len() != names.len() {
        return Err(format!("expected {} cells, found {}", names.len(), cells.len()));
    }
    let mut row = WaitRow { count: 1, ..WaitRow::default() };
    for (name, cell) in names.iter().zip(cells) {
        let known = || (cell != "-" && !cell.is_empty()).then(|| unescape(cell));
        let bad = || format!("expected a number in column {name}, found {cell:?}");
        match name.as_str() {
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
