//! Series of one bin width in bounded memory.
//!
//! A run is read once, row by row. Each column's readings are summed in bins of one width; when a run outgrows the bins,
//! neighbours are joined and the width doubles, so that a day at ten ticks a second costs the memory of a few thousand bins
//! and an hour keeps its seconds. Nothing is interpolated: a bin without a reading is NaN.

/// Bins of one width for many columns.
#[derive(Clone, Debug)]
pub struct Grid {
    start_ms: f64,
    width_ms: f64,
    most: usize,
    bins: usize,
    columns: Vec<Column>,
}

#[derive(Clone, Debug, Default)]
struct Column {
    sum: Vec<f64>,
    weight: Vec<f32>,
}

impl Grid {
    /// Bins of `width_ms`, the first one centred on `start_ms`; at most `most` of them before neighbours are joined.
    pub fn new(start_ms: f64, width_ms: f64, columns: usize, most: usize) -> Self {
        Self { start_ms, width_ms, most: most.max(2), bins: 0, columns: vec![Column::default(); columns] }
    }

    /// How many bins there are.
    pub fn len(&self) -> usize {
        self.bins
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.bins == 0
    }

    /// The width of a bin.
    pub fn width_ms(&self) -> f64 {
        self.width_ms
    }

    /// The middle of the first bin.
    pub fn start_ms(&self) -> f64 {
        self.start_ms
    }

    /// Adds `sum` with `weight` (readings, or seconds for amounts) at a time. `false` for a time before the start.
    pub fn add(&mut self, column: usize, at_ms: f64, sum: f64, weight: f64) -> bool {
        let Some(bin) = self.reach(at_ms) else { return false };
        let column = &mut self.columns[column];
        if column.sum.len() <= bin {
            column.sum.resize(bin + 1, 0.0);
            column.weight.resize(bin + 1, 0.0);
        }
        column.sum[bin] += sum;
        column.weight[bin] += weight as f32;
        true
    }

    /// The bin of a time, making room for it.
    pub fn reach(&mut self, at_ms: f64) -> Option<usize> {
        loop {
            let bin = ((at_ms - self.start_ms) / self.width_ms + 0.5).floor();
            if !(0.0..1e15).contains(&bin) {
                return None;
            }
            if (bin as usize) < self.most {
                self.bins = self.bins.max(bin as usize + 1);
                return Some(bin as usize);
            }
            self.join(2);
        }
    }

    /// Joins every `n` neighbours.
    pub fn join(&mut self, n: usize) {
        if n < 2 {
            return;
        }
        for column in &mut self.columns {
            let bins = column.sum.len().div_ceil(n);
            for bin in 0..bins {
                let from = bin * n..((bin + 1) * n).min(column.sum.len());
                let (sum, weight) = (column.sum[from.clone()].iter().sum(), column.weight[from].iter().sum());
                column.sum[bin] = sum;
                column.weight[bin] = weight;
            }
            column.sum.truncate(bins);
            column.weight.truncate(bins);
        }
        self.bins = self.bins.div_ceil(n);
        // The first bin's left edge stays where it was.
        self.start_ms += (n - 1) as f64 * self.width_ms / 2.0;
        self.width_ms *= n as f64;
    }

    /// A column's mean per bin (a rate, for amounts weighted by seconds); NaN where nothing was added.
    pub fn mean(&self, column: usize) -> Vec<f64> {
        let column = &self.columns[column];
        let mut means = vec![f64::NAN; self.bins];
        for (mean, (sum, weight)) in means.iter_mut().zip(column.sum.iter().zip(&column.weight)) {
            if *weight > 0.0 {
                *mean = sum / f64::from(*weight);
            }
        }
        means
    }

    /// A column's sums per bin; NaN where nothing was added.
    pub fn sum(&self, column: usize) -> Vec<f64> {
        let column = &self.columns[column];
        let mut sums = vec![f64::NAN; self.bins];
        for (slot, (sum, weight)) in sums.iter_mut().zip(column.sum.iter().zip(&column.weight)) {
            if *weight > 0.0 {
                *slot = *sum;
            }
        }
        sums
    }

    /// How many bins of a column hold something.
    pub fn filled(&self, column: usize) -> usize {
        self.columns[column].weight.iter().filter(|weight| **weight > 0.0).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_a_little_early_or_late_falls_in_its_own_bin() {
        let mut grid = Grid::new(1000.0, 1000.0, 1, 100);
        for (n, jitter) in [(0, 0.0), (1, -40.0), (2, 40.0)] {
            grid.add(0, 1000.0 + 1000.0 * f64::from(n) + jitter, f64::from(n), 1.0);
        }
        assert_eq!(grid.mean(0), [0.0, 1.0, 2.0]);
    }

    #[test]
    fn a_run_that_outgrows_the_bins_is_joined_and_keeps_its_means() {
        let mut grid = Grid::new(0.0, 100.0, 1, 64);
        for n in 0..1000 {
            grid.add(0, f64::from(n) * 100.0, f64::from(n), 1.0);
        }
        assert!(grid.len() <= 64 && grid.len() > 30, "{}", grid.len());
        assert_eq!(grid.width_ms(), 1600.0);
        assert_eq!(grid.mean(0)[0], 7.5);
        assert_eq!(grid.start_ms(), 750.0);
    }

    #[test]
    fn what_was_not_read_is_nan_and_a_time_before_the_start_is_refused() {
        let mut grid = Grid::new(0.0, 1000.0, 2, 100);
        grid.add(0, 3000.0, 5.0, 1.0);
        assert!(grid.mean(0)[1].is_nan());
        assert_eq!(grid.mean(1).len(), 4);
        assert!(grid.mean(1).iter().all(|value| value.is_nan()));
        assert!(!grid.add(0, -2000.0, 1.0, 1.0));
    }

    #[test]
    fn amounts_weighted_by_seconds_are_rates() {
        let mut grid = Grid::new(0.0, 1000.0, 1, 100);
        grid.add(0, 0.0, 30.0, 1.5);
        assert_eq!(grid.mean(0), [20.0]);
        assert_eq!(grid.sum(0), [30.0]);
    }
}
