//! Every gauge of PostgreSQL: what it means, and the expression that gives it, by what the server has.
//!
//! An expression belongs to a view and needs some of its columns; of several the first is taken whose columns exist (they
//! moved and changed between 12 and 18). Every expression gives exactly one value, so that all fit into one row.

mod sessions;
mod statistics;

use super::views::View;
use crate::api::{Class, Gauge, Lag, Layer, Unit};

/// Under which condition a gauge makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Always.
    Always,
    /// The server measures the time of its reads and writes.
    IoTiming,
    /// It is a standby.
    Standby,
    /// Something replicates from it.
    Replicas,
    /// It has replication slots.
    Slots,
    /// Lock waits are read: the value comes from them, not from the tick's statement.
    Waits,
    /// The server's cores are known: no statement tells them.
    Cores,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// The view.
    pub view: View,
    /// The columns of it that must exist.
    pub needs: &'static [&'static str],
    /// One value.
    pub expression: &'static str,
}

/// A gauge and its sources, the first that exists counts.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// The gauge.
    pub gauge: Gauge,
    /// When it makes sense.
    pub when: When,
    /// Where it comes from; empty for what is not part of the tick's statement.
    pub from: &'static [Origin],
}

const fn item(gauge: Gauge, from: &'static [Origin]) -> Item {
    Item { gauge, when: When::Always, from }
}

impl Item {
    const fn when(mut self, when: When) -> Self {
        self.when = when;
        self
    }
}

const fn origin(view: View, needs: &'static [&'static str], expression: &'static str) -> Origin {
    Origin { view, needs, expression }
}

const SERVER: Layer = Layer::Server;
const LOCK: Layer = Layer::Lock;
const DISK: Layer = Layer::Disk;
const N: Unit = Unit::Count;

const SESSIONS: &str = "postgres sessions";
const TRANSACTIONS: &str = "postgres transactions";
const WAL: &str = "postgres WAL";
const FILES: &str = "postgres data files";

/// Counters reach the statistics at the end of a transaction, at most once a second.
const FLUSHED: Lag = Lag::Refreshed(1.0);

const fn now(name: &'static str, class: Class, help: &'static str) -> Gauge {
    Gauge::new(name, class, N, help)
}

const fn constant(name: &'static str, unit: Unit, help: &'static str) -> Gauge {
    Gauge::new(name, Class::Constant, unit, help)
}

/// The age of the oldest wait for a lock, by the waits.
pub const LOCK_WAIT_AGE: &str = "lock_wait_age_seconds";
/// How many sessions wait for a lock: while it is 0, nothing more is asked.
pub const LOCK_WAITING: &str = "lock_waiting";
/// Cores of the server's machine.
pub const CORES: &str = "cores";

/// All of them, in the order of the columns.
pub const ITEMS: &[Item] = &joined();

const COUNT: usize = sessions::ITEMS.len() + statistics::ITEMS.len();

const fn joined() -> [Item; COUNT] {
    let mut items = [sessions::ITEMS[0]; COUNT];
    let mut at = 0;
    while at < COUNT {
        items[at] = if at < sessions::ITEMS.len() { sessions::ITEMS[at] } else { statistics::ITEMS[at - sessions::ITEMS.len()] };
        at += 1;
    }
    items
}

/// The gauges alone, for the registry.
pub const GAUGES: &[Gauge] = &gauges();

const fn gauges() -> [Gauge; ITEMS.len()] {
    let mut gauges = [ITEMS[0].gauge; ITEMS.len()];
    let mut at = 0;
    while at < ITEMS.len() {
        gauges[at] = ITEMS[at].gauge;
        at += 1;
    }
    gauges
}
