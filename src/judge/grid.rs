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
    /// What was added to one bin and not yet put into the columns: rows come one bin after the other, and one row's columns
    /// lie far apart.
    open: usize,
    sums: Vec<f64>,
    weights: Vec<f32>,
}

#[derive(Clone, Debug, Default)]
struct Column {
    sum: Vec<f64>,
    weight: Vec<f32>,
}

impl Grid {
    /// Bins of `width_ms`, the first one centred on `start_ms`; at most `most` of them before neighbours are joined.
    pub fn new(start_ms: f64, width_ms: f64, columns: usize, most: usize) -> Self {
        Self {
            start_ms,
            width_ms,
            most: most.max(2),
            bins: 0,
            columns: vec![Column::default(); columns],
            open: 0,
            sums: vec![0.0; columns],
            weights: vec![0.0; columns],
        }
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

    /// Opens the bin of a time for [`Self::add`]. `false` for a time before the start.
    pub fn open(&mut self, at_ms: f64) -> bool {
        let Some(bin) = self.reach(at_ms) else { return false };
        if bin != self.open {
            self.close();
            self.open = bin;
        }
        true
    }

    /// Adds `sum` with `weight` (readings, or seconds for amounts) to the open bin.
    pub fn add(&mut self, column: usize, sum: f64, weight: f64) {
        self.sums[column] += sum;
        self.weights[column] += weight as f32;
    }

    /// Puts what was added to the open bin into the columns. Before anything is read.
    pub fn close(&mut self) {
        let bin = self.open;
        for (column, (sum, weight)) in self.columns.iter_mut().zip(self.sums.iter_mut().zip(&mut self.weights)) {
            if *weight > 0.0 {
                if column.sum.len() <= bin {
                    column.sum.resize(bin + 1, 0.0);
                    column.weight.resize(bin + 1, 0.0);
                }
                column.sum[bin] += *sum;
                column.weight[bin] += *weight;
                (*sum, *weight) = (0.0, 0.0);
            }
        }
    }

    /// The bin of a time, making room for it.
    fn reach(&mut self, at_ms: f64) -> Option<usize> {
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
        self.close();
        self.open = 0;
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_a_little_early_or_late_falls_in_its_own_bin() {
        let mut grid = Grid::new(1000.0, 1000.0, 1, 100);
        for (n, jitter) in [(0, 0.0), (1, -40.0), (2, 40.0)] {
            grid.open(1000.0 + 1000.0 * f64::from(n) + jitter);
            grid.add(0, f64::from(n), 1.0);
        }
        grid.close();
        assert_eq!(grid.mean(0), [0.0, 1.0, 2.0]);
    }

    #[test]
    fn a_run_that_outgrows_the_bins_is_joined_and_keeps_its_means() {
        let mut grid = Grid::new(0.0, 100.0, 1, 64);
        for n in 0..1000 {
            grid.open(f64::from(n) * 100.0);
            grid.add(0, f64::from(n), 1.0);
        }
        grid.close();
        assert!(grid.len() <= 64 && grid.len() > 30, "{}", grid.len());
        assert_eq!(grid.width_ms(), 1600.0);
        assert_eq!(grid.mean(0)[0], 7.5);
        assert_eq!(grid.start_ms(), 750.0);
    }

    #[test]
    fn what_was_not_read_is_nan_and_a_time_before_the_start_is_refused() {
        let mut grid = Grid::new(0.0, 1000.0, 2, 100);
        grid.open(3000.0);
        grid.add(0, 5.0, 1.0);
        grid.close();
        assert!(grid.mean(0)[1].is_nan());
        assert_eq!(grid.mean(1).len(), 4);
        assert!(grid.mean(1).iter().all(|value| value.is_nan()));
        assert!(!grid.open(-2000.0));
    }

    #[test]
    fn amounts_weighted_by_seconds_are_rates() {
        let mut grid = Grid::new(0.0, 1000.0, 1, 100);
        grid.open(0.0);
        grid.add(0, 30.0, 1.5);
        grid.close();
        assert_eq!(grid.mean(0), [20.0]);
    }
}
