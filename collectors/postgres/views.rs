//! The statistics views that are read, and which of their columns this server has.

use crate::sql::{Row, cell};
use std::collections::{BTreeMap, BTreeSet};

/// A source of one row of the tick's statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum View {
    /// Everybody but ourselves.
    Sessions,
    /// Counters of every database.
    Databases,
    /// The background writer, before 17 with the checkpoints.
    Bgwriter,
    /// The checkpoints, from 17 on.
    Checkpointer,
    /// The WAL, from 14 on.
    Wal,
    /// Reads and writes by who did them, from 16 on.
    Io,
    /// Replicas that are connected.
    Replication,
    /// Replication slots.
    Slots,
    /// Places in the WAL: functions, which a fork may not have.
    Position,
    /// Settings and the like.
    Server,
}

impl View {
    /// All of them, in the order of the statement.
    pub const ALL: [Self; 10] = [
        Self::Sessions,
        Self::Databases,
        Self::Bgwriter,
        Self::Checkpointer,
        Self::Wal,
        Self::Io,
        Self::Replication,
        Self::Slots,
        Self::Position,
        Self::Server,
    ];

    /// Its name in `pg_catalog`; `None` where the expressions need no view.
    pub fn relation(self) -> Option<&'static str> {
        match self {
            Self::Sessions => Some("pg_stat_activity"),
            Self::Databases => Some("pg_stat_database"),
            Self::Bgwriter => Some("pg_stat_bgwriter"),
            Self::Checkpointer => Some("pg_stat_checkpointer"),
            Self::Wal => Some("pg_stat_wal"),
            Self::Io => Some("pg_stat_io"),
            Self::Replication => Some("pg_stat_replication"),
            Self::Slots => Some("pg_replication_slots"),
            Self::Position | Self::Server => None,
        }
    }

    /// Its part of the statement behind the expressions.
    pub fn from(self) -> String {
        match (self, self.relation()) {
            (Self::Sessions, Some(relation)) => format!(" FROM pg_catalog.{relation} WHERE pid <> pg_backend_pid()"),
            (_, Some(relation)) => format!(" FROM pg_catalog.{relation}"),
            (_, None) => String::new(),
        }
    }

    /// For people.
    pub fn shows(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Databases => "counters of the databases",
            Self::Bgwriter => "the background writer",
            Self::Checkpointer => "checkpoints",
            Self::Wal => "the WAL's counters",
            Self::Io => "who reads and writes",
            Self::Replication => "replicas",
            Self::Slots => "replication slots",
            Self::Position => "places in the WAL",
            Self::Server => "settings",
        }
    }
}

/// Which views and columns this server has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalogue {
    columns: BTreeMap<String, BTreeSet<String>>,
}

impl Catalogue {
    /// The statement that asks for it: the catalogue only, which no lock on a user's table blocks.
    pub fn sql() -> String {
        let mut names: Vec<&str> = View::ALL.iter().filter_map(|view| view.relation()).collect();
        names.push("pg_locks");
        format!(
            "SELECT c.relname, a.attname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid \
             WHERE c.relnamespace = 'pg_catalog'::regnamespace AND c.relname IN ('{}') AND a.attnum > 0 AND NOT a.attisdropped",
            names.join("', '")
        )
    }

    /// Its answer.
    pub fn of_rows(rows: &[Row]) -> Self {
        let mut columns: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for row in rows {
            if let (Some(relation), Some(column)) = (cell(row, 0), cell(row, 1)) {
                columns.entry(relation.to_owned()).or_default().insert(column.to_owned());
            }
        }
        Self { columns }
    }

    /// Whether the relation has these columns.
    pub fn has(&self, relation: &str, columns: &[&str]) -> bool {
        self.columns.get(relation).is_some_and(|known| columns.iter().all(|column| known.contains(*column)))
    }

    /// Whether the view is there with these columns.
    pub fn can(&self, view: View, columns: &[&str]) -> bool {
        view.relation().is_none_or(|relation| self.has(relation, columns))
    }
}
