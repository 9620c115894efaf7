//! The parts by name: rest, warm-up, low load, climb, rungs, plateaus, soak, spike, cool-down.
//!
//! **Method.** The offered rate in straight pieces ([`crate::judge::segment`]). Level pieces are plateaus; three or more in a
//! row, each a jump over the one before, are rungs, the last of them a plateau where it is held twice as long. A short piece
//! far over both its neighbours, reached in a jump, is a spike. A plateau of ten minutes and half the load is a soak. What
//! falls at the end is the cool-down.
//! **How it fails.** A closed loop sends less when the site slows down: its plateau may fall and rise by itself.

use crate::judge::segment::{Piece, Points, pieces};

/// A part of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// rest, warm-up, low load, climb, rung, plateau, soak, spike, descent, cool-down, or as it was given.
    pub name: String,
    /// The first bin, and the one behind the last.
    pub bins: (usize, usize),
}

impl Part {
    fn new(name: &str, from: usize, to: usize) -> Self {
        Self { name: name.to_owned(), bins: (from, to) }
    }

    /// Whether the load is held in it.
    pub fn is_held(&self) -> bool {
        matches!(&*self.name, "plateau" | "soak" | "rung")
    }
}

/// A change under this share is none.
const LEVEL: f64 = 0.05;
/// What a plan or a count can be off by, as a share of the highest rate; and what a target completes wanders by.
const NOISE: f64 = 0.004;
const WANDERS: f64 = 0.05;
/// A spike is so much over its neighbours that they are under this share of it.
const UNDER_SPIKE: f64 = 0.85;
/// A spike is no longer than this share of the load.
const SPIKE_SHARE: f64 = 0.15;
/// Under this share of what was held before, the load has been taken away.
const FALLEN: f64 = 0.5;
/// A soak lasts so many seconds at least.
const SOAK_S: f64 = 600.0;

/// Where the run's own borders are, in bins.
#[derive(Clone, Copy, Debug)]
pub struct Edges {
    /// The load's first bin.
    pub first: usize,
    /// The end of its warm-up.
    pub warm: usize,
    /// The end of the low load.
    pub low_end: usize,
    /// The end of what is judged.
    pub end: usize,
    /// Behind the load's last bin.
    pub last: usize,
    /// Behind the run's last bin.
    pub bins: usize,
}

/// The parts of a run, from its offered rate, `counted` by a driver over so many seconds; without one, from what a target
/// completed.
pub fn parts(offered: &[f64], counted: Option<f64>, edges: Edges, step_s: f64) -> Vec<Part> {
    let lead = ((3.0 / step_s).round() as usize).max(2);
    let least = lead.min((edges.last - edges.first) / 20).max(3);
    let points = Points {
        least,
        finest: counted.map_or(1, |interval| (interval / step_s).round().max(1.0) as usize),
        noise: if counted.is_some() { NOISE } else { WANDERS },
    };
    // The first and the last count of a log may cover a part of their time only.
    let (from, to) = (edges.first + points.finest, edges.last.saturating_sub(points.finest));
    let mut found = pieces(offered, if from < to { (from, to) } else { (edges.first, edges.last) }, points);
    if let Some(piece) = found.first_mut() {
        piece.bins.0 = edges.first;
    }
    if let Some(piece) = found.last_mut() {
        piece.bins.1 = edges.last;
    }
    let mut names = name(&found, lead);
    soaks(&found, &mut names, (edges.last - edges.first) as f64 * step_s, step_s);
    let mut parts = vec![
        Part::new("rest", 0, edges.first),
        Part::new("warm-up", edges.first, edges.warm),
        Part::new("low load", edges.warm, edges.low_end),
    ];
    let fallen = last_fall(&found, &names, edges.end);
    for (piece, name) in found.iter().zip(&names) {
        let (from, to) = (piece.bins.0.max(edges.low_end), piece.bins.1);
        let name = if fallen.is_some_and(|fallen| piece.bins.0 >= fallen) { "cool-down" } else { name };
        // A piece that is nearly all low load is none of its own.
        if from >= to || (from > piece.bins.0 && to - from < least) {
            continue;
        }
        match parts.last_mut() {
            Some(before) if before.name == name && matches!(name, "climb" | "cool-down" | "descent" | "spike") => {
                before.bins.1 = to;
            }
            Some(before) if before.bins.1 < from => {
                before.bins.1 = from;
                parts.push(Part::new(name, from, to));
            }
            _ => parts.push(Part::new(name, from, to)),
        }
    }
    match parts.last_mut() {
        Some(before) if before.name == "cool-down" => before.bins.1 = edges.bins,
        _ => parts.push(Part::new("cool-down", edges.last, edges.bins)),
    }
    parts.retain(|part| part.bins.1 > part.bins.0);
    parts
}

fn level(piece: Piece) -> f64 {
    f64::midpoint(piece.from, piece.to)
}

fn is_level(piece: Piece) -> bool {
    (piece.to - piece.from).abs() <= LEVEL * piece.to.abs().max(piece.from.abs())
}

fn name(found: &[Piece], lead: usize) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = found
        .iter()
        .map(|piece| match piece {
            piece if is_level(*piece) => "plateau",
            piece if piece.to > piece.from => "climb",
            _ => "descent",
        })
        .collect();
    rungs(found, &mut names);
    let loaded: usize = found.iter().map(|piece| piece.len()).sum();
    let mut at = 1;
    while at < found.len() {
        let until = (at..found.len().min(at + 3)).rev().find(|until| is_spike(found, (at, *until), loaded, lead));
        if let Some(until) = until {
            names[at..=until].fill("spike");
            at = until;
        }
        at += 1;
    }
    names
}

/// Whether the pieces from `at` to `until` are a short stretch far over what is around it.
fn is_spike(found: &[Piece], (at, until): (usize, usize), loaded: usize, lead: usize) -> bool {
    let run = &found[at..=until];
    let length: usize = run.iter().map(|piece| piece.len()).sum();
    let peak = run.iter().map(|piece| piece.from.max(piece.to)).fold(0.0, f64::max);
    let under = |rate: f64| rate <= UNDER_SPIKE * peak;
    let before = found[at - 1];
    let behind = found.get(until + 1);
    let jumps = before.to <= UNDER_SPIKE * run[0].from || (run[0].to > run[0].from && run[0].len() <= lead.max(loaded / 20));
    let leads = run.iter().all(|piece| !under(level(*piece)) || piece.len() <= lead.max(loaded / 20));
    // The last of several rungs at the end of the load is one more rung.
    let one_more = behind.is_none()
        && at >= 2
        && is_level(before)
        && before.len() <= 2 * length
        && found[at - 2].to <= UNDER_SPIKE * before.from;
    jumps
        && leads
        && under(before.to)
        && behind.is_none_or(|piece| under(piece.from))
        && !one_more
        && length as f64 <= SPIKE_SHARE * loaded as f64
}

/// Level pieces one over the other.
fn rungs(found: &[Piece], names: &mut [&'static str]) {
    let mut at = 0;
    while at < found.len() {
        let mut until = at + 1;
        while until < found.len()
            && names[at] == "plateau"
            && names[until] == "plateau"
            && found[until].from > (1.0 + LEVEL) * found[until - 1].to
        {
            until += 1;
        }
        if until - at >= 3 {
            let mut lengths: Vec<usize> = found[at..until - 1].iter().map(|piece| piece.len()).collect();
            lengths.sort_unstable();
            let long = found[until - 1].len() >= 2 * lengths[lengths.len() / 2];
            names[at..until - usize::from(long)].fill("rung");
        }
        at = until;
    }
}

fn soaks(found: &[Piece], names: &mut [&'static str], loaded_s: f64, step_s: f64) {
    for (piece, name) in found.iter().zip(names) {
        let seconds = piece.len() as f64 * step_s;
        if *name == "plateau" && seconds >= SOAK_S && seconds >= 0.5 * loaded_s {
            *name = "soak";
        }
    }
}

/// From where on the load is far under what was held before, a spike apart, and stays there: its end.
fn last_fall(found: &[Piece], names: &[&str], end: usize) -> Option<usize> {
    let held = |at: &usize| names[*at] != "spike" && found[*at].bins.0 < end;
    let top = (0..found.len()).filter(held).map(|at| level(found[at])).fold(0.0, f64::max);
    let last = (0..found.len()).rfind(|at| names[*at] == "spike" || level(found[*at]) > FALLEN * top)?;
    Some(found.get(last + 1)?.bins.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plan of (seconds, rate at their begin, rate at their end), and no load for five seconds before and behind it.
    fn named(plan: &[(usize, f64, f64)]) -> Vec<(String, usize)> {
        let mut offered = vec![0.0; 5];
        for (seconds, from, to) in plan {
            offered.extend((0..*seconds).map(|n| from + (to - from) * n as f64 / *seconds as f64));
        }
        let last = offered.len();
        offered.extend([0.0; 5]);
        let edges = Edges { first: 5, warm: 5, low_end: 5, end: last, last, bins: last + 5 };
        let found = parts(&offered, Some(1.0), edges, 1.0);
        assert!(found.windows(2).all(|pair| pair[0].bins.1 == pair[1].bins.0), "no holes in {found:?}");
        found.into_iter().filter(|part| part.name != "rest").map(|part| (part.name, part.bins.1 - part.bins.0)).collect()
    }

    fn names(plan: &[(usize, f64, f64)]) -> Vec<String> {
        named(plan).into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn a_ramp_with_a_plateau_a_spike_and_what_follows() {
        assert_eq!(
            names(&[(60, 20.0, 20.0), (180, 20.0, 200.0), (60, 200.0, 200.0), (20, 300.0, 300.0), (40, 20.0, 20.0)]),
            ["plateau", "climb", "plateau", "spike", "cool-down"]
        );
    }

    #[test]
    fn a_last_count_of_half_its_time_does_not_tilt_the_spike_that_it_ends() {
        let plan = [(10, 10.0, 10.0), (40, 10.0, 110.0), (5, 350.0, 350.0), (1, 175.0, 175.0)];
        assert_eq!(names(&plan)[1..], ["climb", "spike", "cool-down"]);
    }

    #[test]
    fn a_spike_in_the_middle_of_a_plateau_leaves_two_plateaus() {
        let found = named(&[(60, 100.0, 100.0), (15, 500.0, 500.0), (60, 100.0, 100.0)]);
        assert_eq!(found, [("plateau".into(), 60), ("spike".into(), 15), ("plateau".into(), 60), ("cool-down".into(), 5)]);
        assert_eq!(
            names(&[(60, 100.0, 100.0), (4, 100.0, 500.0), (10, 500.0, 500.0), (4, 500.0, 100.0), (60, 100.0, 100.0)])[1],
            "spike"
        );
    }

    #[test]
    fn stairs_are_rungs_and_the_last_one_a_plateau_where_it_is_held() {
        let stairs: Vec<(usize, f64, f64)> = (1..=8).map(|n| (15, 20.0 * f64::from(n), 20.0 * f64::from(n))).collect();
        assert_eq!(names(&stairs), ["rung", "rung", "rung", "rung", "rung", "rung", "rung", "rung", "cool-down"]);
        let held = [&stairs[..7], &[(60, 160.0, 160.0)]].concat();
        assert_eq!(names(&held)[6..8], ["rung", "plateau"]);
    }

    #[test]
    fn doubling_rungs_end_in_a_rung_and_not_in_a_spike() {
        let stairs: Vec<(usize, f64, f64)> = (0..7).map(|n| (20, 2_f64.powi(n), 2_f64.powi(n))).collect();
        assert!(names(&stairs)[..7].iter().all(|name| name == "rung"), "{:?}", names(&stairs));
    }

    #[test]
    fn several_plateaus_and_a_soak_are_told_apart() {
        assert_eq!(
            names(&[(60, 50.0, 50.0), (40, 50.0, 100.0), (90, 100.0, 100.0), (40, 100.0, 200.0), (90, 200.0, 200.0)]),
            ["plateau", "climb", "plateau", "climb", "plateau", "cool-down"]
        );
        assert_eq!(names(&[(60, 10.0, 100.0), (900, 100.0, 100.0)]), ["climb", "soak", "cool-down"]);
    }
}
