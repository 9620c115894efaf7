//! The order of the movers, ties, and what the waits file says.
//!
//! **Question.** Of all that moved, what was first, and what exactly waited there? **Method.** Movers are ordered by onset.
//! Those whose intervals overlap the first one's are tied with it; among tied ones the waits file decides where it speaks,
//! else the innermost holder leads: who waits for a lock inside a connection inside a worker makes all three wait. Waiters
//! are counted, one a row and read, never pairs of waiter and blocker. **How it fails.** Two independent resources that give
//! way within the same few seconds cannot be told apart by their times; the report says that they are tied.

use super::movers::{Evidence, Move};
use super::verdict::WaitShare;
use crate::correlate::gather::Frame;
use crate::waits::{WaitRow, Waits};
use collectors::api::Layer;
use std::collections::HashMap;

/// The movers in their order, and what decided it.
#[derive(Clone, Debug, Default)]
pub struct Order {
    /// First to last.
    pub movers: Vec<Move>,
    /// How many of them, from the second on, are tied with the first.
    pub tied: usize,
    /// What decided among the tied ones, where something did.
    pub decided_by: Option<String>,
}

/// Orders the movers; `waiting` are targets whose sessions waited for each other around the first onset.
pub fn order(frame: &Frame, mut movers: Vec<Move>, waits: &[WaitShare]) -> Order {
    // A ceiling speaks only where no waiting does.
    if movers.iter().any(|moved| moved.evidence != Evidence::Ceiling) {
        movers.retain(|moved| moved.evidence != Evidence::Ceiling);
    }
    movers.sort_by_key(|moved| (moved.at, moved.low));
    let Some(earliest) = movers.first() else { return Order::default() };
    let near = |moved: &Move| moved.low <= earliest.high && earliest.low <= moved.high && moved.at <= earliest.high;
    let tied_until = movers.iter().take_while(|moved| near(moved)).count();
    let waiting = |moved: &Move| {
        let gauge = &frame.gauges[moved.gauge];
        gauge.meaning.layer == Some(Layer::Lock) && waits.iter().any(|wait| wait.target == gauge.target)
    };
    let mut decided_by = None;
    if let Some(at) = movers[..tied_until].iter().position(waiting)
        && at > 0
    {
        movers[..=at].rotate_right(1);
        decided_by = Some("the waits file".to_owned());
    }
    Order { movers, tied: tied_until.saturating_sub(1), decided_by }
}

/// What the waiters of `rows` waited for, by share, largest first.
pub fn shares(waits: &Waits, from_ms: f64, to_ms: f64) -> Vec<WaitShare> {
    type Place<'a> = (&'a str, &'a str, Option<&'a str>, Option<&'a str>, Option<&'a str>);
    let mut places: HashMap<Place, (u64, HashMap<&str, u64>)> = HashMap::new();
    let mut all = 0;
    let within = |row: &&WaitRow| (from_ms..=to_ms).contains(&(row.unix_ms as f64));
    for row in waits.rows.iter().filter(within) {
        let place = (&*row.target, &*row.kind, row.object.as_deref(), row.index.as_deref(), row.row.as_deref());
        let (count, states) = places.entry(place).or_default();
        *count += row.count;
        all += row.count;
        if let Some(state) = &row.blocker_state {
            *states.entry(state).or_default() += row.count;
        }
    }
    let mut shares: Vec<WaitShare> = places
        .into_iter()
        .map(|((target, kind, object, index, row), (waiters, states))| WaitShare {
            target: target.to_owned(),
            kind: kind.to_owned(),
            object: object.map(str::to_owned),
            index: index.map(str::to_owned),
            row: row.map(str::to_owned),
            waiters,
            share: waiters as f64 / all as f64,
            blocker_state: states
                .into_iter()
                .max_by(|a, b| a.1.cmp(&b.1).then(b.0.cmp(a.0)))
                .filter(|(_, count)| 2 * count >= waiters)
                .map(|(state, _)| state.to_owned()),
        })
        .collect();
    shares.sort_by(|a, b| {
        b.waiters.cmp(&a.waiters).then_with(|| (&a.target, &a.object, &a.row).cmp(&(&b.target, &b.object, &b.row)))
    });
    shares
}

/// The name of what was waited for: `mysql row lock shop.slot PRIMARY 17`.
pub fn resource(wait: &WaitShare) -> String {
    let mut name = format!("{} {} lock", wait.target, wait.kind);
    for part in [&wait.object, &wait.index, &wait.row].into_iter().flatten() {
        name.push(' ');
        name.push_str(part);
    }
    name
}
