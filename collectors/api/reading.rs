//! What one read of a target gives, what a target says of itself, and what goes wrong.

use super::Gauge;

/// One session that waits for a lock, at the time of one read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wait {
    /// row, table, metadata, tuple, transaction, relation, advisory, extend, …
    pub kind: &'static str,
    /// `schema.table`, where the server tells.
    pub object: Option<String>,
    /// The index, where the server tells.
    pub index: Option<String>,
    /// The row as the server writes it. User data: the writer hashes text keys unless told otherwise.
    pub row: Option<String>,
    /// The mode that is waited for.
    pub mode: Option<String>,
    /// The waiting session's id.
    pub waiter: String,
    /// How long it has waited, milliseconds.
    pub waited_ms: Option<f64>,
    /// The waiting statement, literals replaced by `?`.
    pub statement: Option<String>,
    /// The root: the session at the head of the chain, which itself waits for nothing.
    pub blocker: Option<String>,
    /// What the root does, for example `idle in transaction`.
    pub blocker_state: Option<String>,
    /// The root's statement, literals replaced by `?`.
    pub blocker_statement: Option<String>,
}

/// Everything that one read of a target gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Gauge name and raw value. What was not read is not here.
    pub values: Vec<(&'static str, f64)>,
    /// One entry a waiter.
    pub waits: Vec<Wait>,
    /// What happened that a reader of the row should know, without the target's name.
    pub notes: Vec<String>,
    /// Why the counters begin again, where the target says that they do. The caller notes it: several replicas behind one
    /// address look the same, and only who sees them return can tell.
    pub restarted: Option<String>,
    /// What tells the answering process from another one: its start, its number. Where a target says nothing of the kind, none.
    pub process: Option<String>,
}

impl Reading {
    /// Records a value. Values that are not finite are missing.
    pub fn put(&mut self, name: &'static str, value: f64) {
        if value.is_finite() {
            self.values.push((name, value));
        }
    }

    /// Records a value where there is one.
    pub fn put_some(&mut self, name: &'static str, value: Option<f64>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }

    /// A value by its gauge's name; `None` where it was not read.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.values.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

/// What kind of trouble a [`Fault`] is; the sampler's exit code and the report depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The configuration is wrong: nothing was asked.
    Config,
    /// Nobody answers there, or the connection broke.
    Unreachable,
    /// The target refuses these credentials or this connection.
    Refused,
    /// The target answers, but a privilege is missing.
    Denied,
    /// It answered something that is not what was asked for.
    Nonsense,
}

/// Why a target could not be opened, started or read: what, of which target, where, and what was found.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// The kind of trouble.
    pub kind: FaultKind,
    /// What was tried and what was found. Never a secret.
    pub message: String,
    /// What mends it, ready to paste.
    pub hint: Option<String>,
}

impl Fault {
    /// A fault without a hint.
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }

    /// Adds what mends it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Something that a target does not let us see, and the mend.
#[derive(Clone, Debug, PartialEq)]
pub struct Lack {
    /// What stays unseen.
    pub what: String,
    /// The statement or the line of configuration that grants it.
    pub mend: Option<String>,
}

/// What a target turned out to be when it was first asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Support {
    /// MySQL, MariaDB, memcached, Apache, …
    pub product: String,
    /// As the target says it.
    pub version: String,
    /// The collector that reads it, where the target was given without its kind; its instance is called after that.
    pub recognised: Option<&'static str>,
    /// Where it was found to answer, without any secret: `db:3306`, `http://web/server-status?auto`.
    pub endpoint: String,
    /// The columns of this run, in their order; settled here.
    pub columns: Vec<Gauge>,
    /// Read once: capacities and settings for the file's header.
    pub facts: Vec<(String, serde_json::Value)>,
    /// What can be seen, for people, each a short phrase.
    pub sees: Vec<String>,
    /// What cannot.
    pub lacks: Vec<Lack>,
}
