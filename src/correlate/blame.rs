//! The order of the movers, ties, and what the waits file says.
//!
//! **Question.** Of all that moved, what was first, and what exactly waited there? **Method.** Movers are ordered by onset.
//! Those whose order against the first one is in doubt are tied with it. Of those that can as well have been before it the
//! waits file says which was, where it speaks, else the innermost leads: who waits for a lock inside a connection inside a
//! worker makes all three wait. A capacity used up is no waiting, and leads only where it explains what no waiting does.
//! Waiters are counted, one a row and read, never pairs of waiter and blocker. **How it fails.** Two independent resources
//! that give way within the same few seconds cannot be told apart by their times; the report says that they are tied.

use super::movers::{Evidence, Move};
use super::verdict::{Symptom, WaitShare};
use crate::correlate::gather::Frame;
use crate::waits::{WaitRow, Waits};
use collectors::api::{Class, Layer};
use std::collections::{HashMap, HashSet};

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

/// Rows of one object with less than this share of all waiters each are told together.
const FEW: f64 = 0.1;

/// Orders the movers; `waits` is who waited for whom from around the first onset on, `felt` what users felt.
pub fn order(frame: &Frame, mut movers: Vec<Move>, waits: &[WaitShare], felt: &[Symptom]) -> Order {
    // A ceiling speaks where no waiting does; and where users had felt something, with the ceiling reached, before any did.
    let waited = movers.iter().filter(|moved| moved.evidence != Evidence::Ceiling).map(|moved| moved.onset.low).min();
    if let Some(waited) = waited {
        let unexplained =
            felt.iter().any(|symptom| symptom.measure != "refused" && symptom.onset.elapsed_s < frame.elapsed_s(waited));
        movers.retain(|moved| moved.evidence != Evidence::Ceiling || unexplained && moved.onset.high < waited);
    }
    movers.sort_by_key(|moved| (moved.onset.at, moved.onset.low));
    let Some(earliest) = movers.first().cloned() else { return Order::default() };
    let led = by_waits(frame, &movers, &earliest, waits)
        .map(|at| (at, "the waits file"))
        .or_else(|| innermost(frame, &movers, &earliest).map(|at| (at, "its place as the innermost of them")));
    let decided_by = led.map(|(at, why)| {
        movers[..=at].rotate_right(1);
        why.to_owned()
    });
    let first = movers.remove(0);
    let (near, far): (Vec<Move>, Vec<Move>) = movers.into_iter().partition(|moved| in_doubt(moved, &first));
    let count = near.len();
    Order { movers: std::iter::once(first).chain(near).chain(far).collect(), tied: count, decided_by }
}

/// A lock's gauge of a target whose sessions are seen waiting for each other, tied with the earliest.
fn by_waits(frame: &Frame, movers: &[Move], earliest: &Move, waits: &[WaitShare]) -> Option<usize> {
    let spoken = |moved: &Move| {
        let gauge = &frame.gauges[moved.gauge];
        gauge.meaning.layer == Some(Layer::Lock) && waits.iter().any(|wait| wait.target == gauge.target)
    };
    let at = movers.iter().position(|moved| tied(moved, earliest) && spoken(moved))?;
    (at > 0).then_some(at)
}

/// The innermost of those tied with the earliest, where it is further in than that. What all share stands outside the order.
fn innermost(frame: &Frame, movers: &[Move], earliest: &Move) -> Option<usize> {
    let layer = |moved: &Move| frame.gauges[moved.gauge].meaning.layer.filter(|layer| *layer != Layer::Host);
    let outer = layer(earliest)?;
    // Requests in service hold whatever waits further in; what the application itself queues (calls of another service,
    // messages to send later) does not: a resource beside those, whose time counts.
    if outer == Layer::App && frame.gauges[earliest.gauge].class != Some(Class::Utilisation) {
        return None;
    }
    let inner = movers
        .iter()
        .enumerate()
        .filter(|(_, moved)| moved.evidence == Evidence::Waits && tied(moved, earliest))
        .filter_map(|(n, moved)| Some((layer(moved)?, n)))
        .filter(|(layer, _)| *layer > outer)
        .max_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
    inner.map(|(_, at)| at)
}

/// Whether the order of two movers is not known: the likeliest onset of one of them is inside the other's interval.
fn in_doubt(one: &Move, other: &Move) -> bool {
    let (early, late) = if one.onset.at <= other.onset.at { (one.onset, other.onset) } else { (other.onset, one.onset) };
    late.at <= early.high || late.low <= early.at
}

/// Whether a later mover can as well have been the earlier one: each one's likeliest onset is inside the other's interval.
fn tied(later: &Move, earlier: &Move) -> bool {
    later.onset.low <= earlier.onset.at && later.onset.at <= earlier.onset.high && earlier.onset.low <= later.onset.at
}

/// What the waiters waited for between two times, by share, largest first; and how many rows told of a waiter again that an
/// earlier row of the same read had told of (pairs of waiter and blocker): those are not counted.
pub fn shares(waits: &Waits, from_ms: f64, to_ms: f64) -> (Vec<WaitShare>, usize) {
    type Place<'a> = (&'a str, &'a str, Option<&'a str>, Option<&'a str>, Option<&'a str>);
    let mut places: HashMap<Place, (u64, HashMap<&str, u64>)> = HashMap::new();
    let (mut all, mut twice, mut seen) = (0, 0, HashSet::new());
    let within = |row: &&WaitRow| (from_ms..=to_ms).contains(&(row.unix_ms as f64));
    for row in waits.rows.iter().filter(within) {
        if let Some(waiter) = &row.waiter
            && !seen.insert((row.unix_ms, &*row.target, &**waiter))
        {
            twice += 1;
            continue;
        }
        let place = (&*row.target, &*row.kind, row.object.as_deref(), row.index.as_deref(), row.row.as_deref());
        let (count, states) = places.entry(place).or_default();
        *count += row.count;
        all += row.count;
        if let Some(state) = &row.blocker_state {
            *states.entry(state).or_default() += row.count;
        }
    }
    // PostgreSQL tells a row by where it lies, and every update moves it: rows with few waiters each are told as one.
    let few = |count: u64| (count as f64) < FEW * all as f64;
    let mut small: HashMap<Place, u32> = HashMap::new();
    for (place, _) in places.iter().filter(|(_, (count, _))| few(*count)) {
        *small.entry((place.0, place.1, place.2, place.3, None)).or_default() += 1;
    }
    let mut told: HashMap<Place, (u64, HashMap<&str, u64>)> = HashMap::new();
    for (place, (count, states)) in places {
        let table = (place.0, place.1, place.2, place.3, None);
        let together = few(count) && small.get(&table).is_some_and(|rows| *rows > 1);
        let entry = told.entry(if together { table } else { place }).or_default();
        entry.0 += count;
        for (state, count) in states {
            *entry.1.entry(state).or_default() += count;
        }
    }
    let mut shares: Vec<WaitShare> = told
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
    (shares, twice)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::correlate::gather::Gauge;
    use crate::judge::onset::Dated;
    use crate::ticks::Meaning;

    fn row(unix_ms: i64, waiter: Option<&str>, object: &str, count: u64, state: &str) -> WaitRow {
        WaitRow {
            unix_ms,
            target: "mysql".into(),
            kind: "row".into(),
            object: Some(object.into()),
            index: Some("PRIMARY".into()),
            row: Some("17".into()),
            waiter: waiter.map(str::to_owned),
            count,
            blocker_state: Some(state.into()),
            ..WaitRow::default()
        }
    }

    fn moved(low: usize, at: usize, high: usize) -> Move {
        let onset = Dated { low, at, high };
        Move { gauge: 0, onset, alarm: high, resting: (0.0, 0.0, 0.0), evidence: Evidence::Waits }
    }

    #[test]
    fn an_order_that_the_two_intervals_do_not_tell_is_in_doubt_whichever_is_given_first() {
        let wide = moved(252, 274, 316);
        // One inside of the wide one's interval; one that begins inside of it; one far behind.
        for (other, doubted) in [(moved(284, 300, 312), true), (moved(310, 330, 340), false), (moved(390, 400, 410), false)] {
            assert_eq!((in_doubt(&wide, &other), in_doubt(&other, &wide)), (doubted, doubted), "{other:?}");
        }
        // Who is tied is in doubt too, but not the other way round.
        assert!(tied(&moved(270, 280, 290), &moved(265, 275, 285)) && in_doubt(&moved(270, 280, 290), &moved(265, 275, 285)));
        assert!(!tied(&moved(284, 300, 312), &wide));
    }

    #[test]
    fn of_two_that_are_tied_the_inner_leads_unless_the_first_is_a_queue_of_the_applications_own() {
        let cases = [
            (Layer::Worker, Class::Queue, true),
            (Layer::Pool, Class::Queue, true),
            (Layer::App, Class::Utilisation, true),
            (Layer::App, Class::Queue, false),
            (Layer::App, Class::Occupancy, false),
        ];
        for (outer, class, led) in cases {
            let mut frame = Frame::empty(0.0, 1.0, 400);
            for (name, layer, class) in [("app.outer", outer, class), ("redis.pending_cmds", Layer::Server, Class::Queue)] {
                let meaning = Meaning { layer: Some(layer), ..Meaning::default() };
                let target = name.split('.').next().unwrap_or_default().to_owned();
                let class = Some(class);
                frame.put(Gauge { name: name.to_owned(), target, meaning, class, guessed: false, values: Vec::new() });
            }
            let (first, second) = (moved(161, 167, 191), Move { gauge: 1, ..moved(153, 180, 238) });
            let order = order(&frame, vec![first, second], &[], &[]);
            assert_eq!((order.movers[0].gauge == 1, order.decided_by.is_some(), order.tied), (led, led, 1), "{outer:?} {class:?}");
        }
    }

    #[test]
    fn waiters_are_counted_and_not_rows_and_what_came_before_is_left_out() {
        let rows = vec![
            row(500, Some("1"), "shop.old", 1, "running"),
            row(1000, Some("1"), "shop.slot", 1, "idle in transaction"),
            row(1000, Some("2"), "shop.slot", 1, "idle in transaction"),
            row(1000, Some("3"), "shop.order", 1, "running"),
            row(2000, None, "shop.slot", 7, "running"),
            row(2000, Some("1"), "shop.slot", 1, "idle in transaction"),
        ];
        let (shares, twice) = shares(&Waits { rows, ..Waits::default() }, 900.0, 5000.0);
        assert_eq!(twice, 0);
        assert_eq!((shares[0].object.as_deref(), shares[0].waiters), (Some("shop.slot"), 10));
        assert!((shares[0].share - 10.0 / 11.0).abs() < 1e-12);
        assert_eq!(shares[0].blocker_state.as_deref(), Some("running"), "the root of most of them");
        assert_eq!(shares.len(), 2);
        assert_eq!(resource(&shares[0]), "mysql row lock shop.slot PRIMARY 17");
    }

    #[test]
    fn a_row_that_moves_with_every_update_is_told_as_its_table_and_one_with_many_waiters_by_itself() {
        let at = |place: u32| WaitRow { row: Some(format!("(0,{place})")), ..row(1000, None, "public.slot", 1, "running") };
        let moving: Vec<WaitRow> = (0..30).map(at).collect();
        let (shares, _) = shares(&Waits { rows: moving.clone(), ..Waits::default() }, 0.0, 5000.0);
        assert_eq!((shares.len(), shares[0].row.as_deref(), shares[0].waiters), (1, None, 30));
        assert_eq!(resource(&shares[0]), "mysql row lock public.slot PRIMARY");
        let hot = (0..30).map(|_| at(99));
        let (shares, _) = super::shares(&Waits { rows: hot.chain(moving).collect(), ..Waits::default() }, 0.0, 5000.0);
        assert_eq!((shares.len(), shares[0].waiters), (2, 30));
        assert!(shares.iter().any(|wait| wait.row.as_deref() == Some("(0,99)")));
    }

    #[test]
    fn a_waiter_told_again_in_the_same_read_is_a_pair_and_counted_once() {
        let rows = vec![
            row(1000, Some("1"), "shop.slot", 1, "-"),
            row(1000, Some("1"), "shop.slot", 1, "-"),
            row(1200, Some("1"), "shop.slot", 1, "-"),
        ];
        let (shares, twice) = shares(&Waits { rows, ..Waits::default() }, 0.0, 5000.0);
        assert_eq!((shares[0].waiters, twice), (2, 1));
    }
}
