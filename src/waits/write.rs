//! Writing the waits.

use super::{COLUMNS, FIRST_LINE};
use crate::text::{push_escaped, push_number};
use collectors::api::Wait;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};

/// Writes the head once and then the waits of each read.
pub struct Writer<W: Write> {
    out: W,
    statements: HashMap<String, String>,
    hasher: RandomState,
    show_rows: bool,
    per_tick: usize,
    text: String,
}

impl<W: Write> Writer<W> {
    /// `show_rows` writes text keys as they are; `per_tick` bounds the rows of one target's read.
    pub fn new(mut out: W, show_rows: bool, per_tick: usize) -> io::Result<Self> {
        out.write_all(format!("{FIRST_LINE}\n{}\n", COLUMNS.join("\t")).as_bytes())?;
        out.flush()?;
        let hasher = RandomState::new();
        Ok(Self { out, statements: HashMap::new(), hasher, show_rows, per_tick, text: String::new() })
    }

    /// What it writes to.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// Writes the waits of one read of one target.
    pub fn rows(&mut self, tick: u64, unix_ms: i64, target: &str, waits: &[Wait]) -> io::Result<()> {
        if waits.is_empty() {
            return Ok(());
        }
        self.text.clear();
        let (each, rest) = waits.split_at(waits.len().min(self.per_tick));
        for wait in each {
            self.row(tick, unix_ms, target, wait, None);
        }
        // The rest, one row an object, in the order in which the objects come.
        let mut objects: Vec<(&Wait, usize)> = Vec::new();
        for wait in rest {
            match objects.iter_mut().find(|(first, _)| first.object == wait.object && first.kind == wait.kind) {
                Some((_, count)) => *count += 1,
                None => objects.push((wait, 1)),
            }
        }
        for (first, count) in objects {
            let summed = Wait { kind: first.kind, object: first.object.clone(), ..Wait::default() };
            self.row(tick, unix_ms, target, &summed, Some(count));
        }
        self.out.write_all(self.text.as_bytes())?;
        self.out.flush()
    }

    fn row(&mut self, tick: u64, unix_ms: i64, target: &str, wait: &Wait, count: Option<usize>) {
        let statement = self.statement(wait.statement.as_deref());
        let blocker_statement = self.statement(wait.blocker_statement.as_deref());
        let row = wait.row.as_deref().map(|row| self.key(row));
        let waiter = count.map_or_else(|| wait.waiter.clone(), |n| format!("+{n}"));
        let text = &mut self.text;
        push_number(text, tick as f64);
        text.push('\t');
        push_number(text, unix_ms as f64);
        for cell in [
            Some(target),
            Some(wait.kind),
            wait.object.as_deref(),
            wait.index.as_deref(),
            row.as_deref(),
            wait.mode.as_deref(),
            Some(waiter.as_str()),
        ] {
            push_cell(text, cell);
        }
        match wait.waited_ms {
            Some(ms) if ms.is_finite() => {
                text.push('\t');
                push_number(text, (ms * 10.0).round() / 10.0);
            }
            _ => push_cell(text, None),
        }
        for cell in [statement.as_deref(), wait.blocker.as_deref(), wait.blocker_state.as_deref(), blocker_statement.as_deref()] {
            push_cell(text, cell);
        }
        text.push('\n');
    }

    /// The id of a statement; its line stands before the first use.
    fn statement(&mut self, statement: Option<&str>) -> Option<String> {
        let statement = statement?;
        if let Some(id) = self.statements.get(statement) {
            return Some(id.clone());
        }
        let id = format!("s{}", self.statements.len() + 1);
        // The line goes out before the rows of this read.
        let mut line = format!("#statement\t{id}\t");
        push_escaped(&mut line, statement);
        line.push('\n');
        self.text.insert_str(self.text.rfind('\n').map_or(0, |at| at + 1), &line);
        self.statements.insert(statement.to_owned(), id.clone());
        Some(id)
    }

    /// Numbers and InnoDB's own names of the page ends are no user data; anything else is hashed.
    fn key(&self, row: &str) -> String {
        let numbers = row.chars().all(|c| c.is_ascii_digit() || matches!(c, ' ' | ',' | '-' | '.' | '(' | ')' | ':'));
        let page_end = row.starts_with("supremum") || row.starts_with("infimum");
        if self.show_rows || numbers || page_end { row.to_owned() } else { format!("h{:016x}", self.hasher.hash_one(row)) }
    }
}

fn push_cell(text: &mut String, cell: Option<&str>) {
    text.push('\t');
    match cell {
        Some(cell) if !cell.is_empty() => push_escaped(text, cell),
        _ => text.push('-'),
    }
}
