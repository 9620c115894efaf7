//! Several logs of one run into one: counts and visitors are added, histograms joined; where a log has percentiles only,
//! the highest stands.

use super::steps::{KEPT, OTHER, Steps};
use crate::timeline::{ALL, Interval};
use std::collections::BTreeMap;

/// All files as one, sorted; a single file is left as it is but for its order, and for the sum of its steps where it
/// has none.
pub(super) fn merge(mut files: Vec<Vec<Interval>>) -> Vec<Interval> {
    for file in &mut files {
        add_all(file);
    }
    if files.len() < 2 {
        let mut rows = files.pop().unwrap_or_default();
        rows.sort_by(|a, b| a.unix_ms.cmp(&b.unix_ms).then((a.step != ALL).cmp(&(b.step != ALL))));
        return rows;
    }
    let grid_ms = files.iter().map(|file| usual_ms(file)).fold(1000.0, f64::max).round() as i64;
    let mut cells: BTreeMap<(i64, bool, String), Joined> = BTreeMap::new();
    for (number, file) in files.into_iter().enumerate() {
        for row in file {
            for (key, share) in shares(&row, grid_ms) {
                let whole = share >= 1.0 || key == (row.unix_ms + (row.dur_ms / 2.0) as i64).div_euclid(grid_ms);
                cells.entry((key, row.step != ALL, row.step.clone())).or_default().add(
                    &row,
                    share,
                    whole,
                    number,
                    key * grid_ms,
                    grid_ms,
                );
            }
        }
    }
    cells.into_values().map(Joined::row).collect()
}

/// Adds up rows of the same begin and step.
pub(super) fn same_rows_added(rows: Vec<Interval>) -> Vec<Interval> {
    let mut cells: BTreeMap<(i64, bool, String), Joined> = BTreeMap::new();
    for row in rows {
        let key = (row.unix_ms, row.step != ALL, row.step.clone());
        let (begin, dur) = (row.unix_ms, row.dur_ms.ceil() as i64);
        let joined = cells.entry(key).or_default();
        let number = joined.parts;
        joined.add(&row, 1.0, true, number, begin, dur);
    }
    cells.into_values().map(Joined::row).collect()
}

/// Adds the rows of all steps together to a log that has none.
fn add_all(rows: &mut Vec<Interval>) {
    if rows.iter().any(|row| row.step == ALL) {
        return;
    }
    let sums: Vec<Interval> = rows.iter().map(|row| Interval { step: ALL.to_owned(), ..row.clone() }).collect();
    rows.extend(same_rows_added(sums));
}

/// With the rows of all steps together.
pub(super) fn with_all(mut rows: Vec<Interval>) -> Vec<Interval> {
    add_all(&mut rows);
    rows
}

/// Names of interval logs as those of requests: URLs by their shape, and at most [`KEPT`] apart; true if there were more.
pub(super) fn regroup(intervals: &mut Vec<Interval>) -> bool {
    let mut steps = Steps::default();
    let ids: Vec<Option<u16>> = intervals.iter().map(|row| (row.step != ALL).then(|| steps.id(row.step.as_bytes()))).collect();
    let mut names = steps.names();
    let mut totals: BTreeMap<&str, f64> = BTreeMap::new();
    for (row, id) in intervals.iter().zip(&ids) {
        if let Some(id) = id {
            *totals.entry(&names[usize::from(*id)]).or_default() += [row.ok, row.failed, row.started].iter().flatten().sum::<f64>();
        }
    }
    let capped = totals.len() > KEPT || steps.overflow;
    if capped {
        let mut ordered: Vec<(&str, f64)> = totals.into_iter().collect();
        ordered.sort_by(|a, b| b.1.total_cmp(&a.1));
        let kept: Vec<String> = ordered.iter().take(KEPT - 1).map(|(name, _)| (*name).to_owned()).collect();
        for name in names.iter_mut().filter(|name| !kept.contains(name)) {
            OTHER.clone_into(name);
        }
    }
    let mut changed = false;
    for (row, id) in intervals.iter_mut().zip(&ids) {
        if let Some(id) = id
            && row.step != names[usize::from(*id)]
        {
            row.step.clone_from(&names[usize::from(*id)]);
            changed = true;
        }
    }
    if changed {
        *intervals = same_rows_added(std::mem::take(intervals));
    }
    capped
}

/// The usual length of an interval: the median.
pub(super) fn usual_ms(rows: &[Interval]) -> f64 {
    let mut lengths: Vec<f64> = rows.iter().filter(|row| row.step == ALL).map(|row| row.dur_ms).collect();
    lengths.sort_by(f64::total_cmp);
    lengths.get(lengths.len() / 2).copied().unwrap_or(1000.0)
}

/// Which cells of a grid a row covers, and how much of it lies in each.
fn shares(row: &Interval, grid_ms: i64) -> Vec<(i64, f64)> {
    let (begin, end) = (row.unix_ms as f64, row.unix_ms as f64 + row.dur_ms);
    let (first, last) = (row.unix_ms.div_euclid(grid_ms), ((end - 1e-6) as i64).div_euclid(grid_ms));
    if last <= first || row.dur_ms <= 0.0 {
        return vec![(first, 1.0)];
    }
    let grid = grid_ms as f64;
    // A row longer than a thousand cells is a summary: it belongs where it begins.
    if last - first > 1000 {
        return vec![(first, 1.0)];
    }
    (first..=last)
        .map(|key| {
            let (from, to) = (key as f64 * grid, (key + 1) as f64 * grid);
            (key, (end.min(to) - begin.max(from)).max(0.0) / row.dur_ms)
        })
        .filter(|(_, share)| *share > 0.0)
        .collect()
}

#[derive(Default)]
struct Joined {
    row: Interval,
    /// The latest state of each file: when, and in flight and visitors then.
    states: BTreeMap<usize, (f64, Option<f64>, Option<f64>)>,
    end: f64,
    parts: usize,
    with_hist: usize,
}

impl Joined {
    fn add(&mut self, from: &Interval, share: f64, whole: bool, file: usize, cell_ms: i64, grid_ms: i64) {
        let (begin, end) = (from.unix_ms.max(cell_ms), (from.unix_ms as f64 + from.dur_ms).min((cell_ms + grid_ms) as f64));
        let to = &mut self.row;
        if self.parts == 0 {
            to.step.clone_from(&from.step);
            to.unix_ms = begin;
        }
        to.unix_ms = to.unix_ms.min(begin);
        self.end = self.end.max(end);
        self.parts += 1;
        for (to, from) in [
            (&mut to.offered, from.offered),
            (&mut to.started, from.started),
            (&mut to.ok, from.ok),
            (&mut to.failed, from.failed),
            (&mut to.refused, from.refused),
            (&mut to.dropped, from.dropped),
        ] {
            *to = match (*to, from) {
                (Some(a), Some(b)) => Some(a + b * share),
                (a, b) => a.or(b.map(|b| b * share)),
            };
        }
        let state = self.states.entry(file).or_insert((f64::MIN, None, None));
        if end >= state.0 {
            *state = (end, from.in_flight.or(state.1), from.vus.or(state.2));
        }
        for (to, from) in [
            (&mut to.p50_ms, from.p50_ms),
            (&mut to.p95_ms, from.p95_ms),
            (&mut to.p99_ms, from.p99_ms),
            (&mut to.max_ms, from.max_ms),
        ] {
            *to = match (*to, from) {
                (Some(a), Some(b)) => Some(a.max(b)),
                (a, b) => a.or(b),
            };
        }
        if let (true, Some(hist)) = (whole, &from.hist) {
            to.hist.get_or_insert_default().merge(hist);
        }
        self.with_hist += usize::from(from.hist.is_some() || from.ok == Some(0.0));
    }

    fn row(mut self) -> Interval {
        self.row.dur_ms = (self.end - self.row.unix_ms as f64).max(0.0);
        let sum = |values: Vec<Option<f64>>| {
            let known: Vec<f64> = values.into_iter().flatten().collect();
            (!known.is_empty()).then(|| known.iter().sum())
        };
        self.row.in_flight = sum(self.states.values().map(|state| state.1).collect());
        self.row.vus = sum(self.states.values().map(|state| state.2).collect());
        if self.with_hist == self.parts {
            // All latencies are here, so the percentiles are exact.
            let hist = self.row.hist.take().unwrap_or_default();
            let told = super::aggregate::percentiles(hist);
            return Interval { p50_ms: told.p50_ms, p95_ms: told.p95_ms, p99_ms: told.p99_ms, hist: told.hist, ..self.row };
        }
        // Some have no histogram: a partial one would pass for the whole.
        self.row.hist = None;
        self.row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(unix_ms: i64, dur_ms: f64, step: &str, ok: f64, p95: f64) -> Interval {
        Interval { unix_ms, dur_ms, step: step.into(), ok: Some(ok), p95_ms: Some(p95), vus: Some(ok), ..Interval::default() }
    }

    #[test]
    fn two_files_of_the_same_seconds_are_added_and_the_higher_percentile_stands() {
        let a = vec![row(1000, 1000.0, ALL, 3.0, 10.0), row(2000, 1000.0, ALL, 4.0, 20.0)];
        let b = vec![row(1000, 1000.0, ALL, 5.0, 15.0), row(2000, 500.0, ALL, 6.0, 12.0)];
        let merged = merge(vec![a, b]);
        let told: Vec<_> = merged.iter().map(|r| (r.unix_ms, r.dur_ms, r.ok, r.p95_ms, r.vus)).collect();
        assert_eq!(told, [(1000, 1000.0, Some(8.0), Some(15.0), Some(8.0)), (2000, 1000.0, Some(10.0), Some(20.0), Some(10.0))]);
    }

    #[test]
    fn ten_second_rows_and_one_second_rows_meet_on_the_wider_grid() {
        let a = vec![row(0, 10_000.0, ALL, 100.0, 1.0), row(10_000, 10_000.0, ALL, 50.0, 1.0)];
        let b: Vec<_> = (5..15).map(|s| row(s * 1000, 1000.0, ALL, 1.0, 2.0)).collect();
        let merged = merge(vec![a, b]);
        let told: Vec<_> = merged.iter().map(|r| (r.unix_ms, r.ok)).collect();
        assert_eq!(told, [(0, Some(105.0)), (10_000, Some(55.0))]);
    }

    #[test]
    fn urls_of_interval_logs_are_grouped_and_the_rarest_of_many_names_are_together() {
        let mut rows = merge(vec![vec![row(0, 1000.0, "/e/1/x", 1.0, 1.0), row(0, 1000.0, "/e/2/x", 2.0, 3.0)]]);
        assert!(!regroup(&mut rows));
        let told: Vec<_> = rows.iter().map(|row| (row.step.as_str(), row.ok)).collect();
        assert_eq!(told, [(ALL, Some(3.0)), ("/e/{}/x", Some(3.0))]);
        let mut rows = merge(vec![(0..60).map(|n| row(0, 1000.0, &format!("name {n}"), f64::from(n), 1.0)).collect()]);
        assert!(regroup(&mut rows));
        assert_eq!(rows.len(), 1 + KEPT);
        let other = rows.iter().find(|row| row.step == OTHER).and_then(|row| row.ok);
        assert_eq!(other, Some(f64::from((0..=10).sum::<i32>())));
    }

    #[test]
    fn a_log_of_steps_only_gets_the_sum_of_all() {
        let merged = merge(vec![vec![row(0, 1000.0, "a", 1.0, 1.0), row(0, 1000.0, "b", 2.0, 3.0)]]);
        assert_eq!((merged[0].step.as_str(), merged[0].ok, merged[0].p95_ms), (ALL, Some(3.0), Some(3.0)));
        assert_eq!(merged.len(), 3);
    }
}
