//! The files of a recorded story as they stand there, read in the plainest way and by nothing of the program: what a test
//! expects of a story is worked out from these.

use std::io::Read as _;
use std::path::{Path, PathBuf};

/// A table of a file: its names and its rows of cells.
struct Table {
    names: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn read(path: &Path) -> Self {
        let mut text = String::new();
        let file = std::fs::File::open(path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("a gzip of text");
        let mut lines =
            text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').map(str::to_owned).collect());
        Self { names: lines.next().expect("a line of names"), rows: lines.collect() }
    }

    fn at(&self, name: &str) -> usize {
        self.names.iter().position(|known| known == name).unwrap_or_else(|| panic!("no column {name}"))
    }
}

/// One request of the driver's log.
pub struct Sent {
    /// When it was due, began and ended, microseconds.
    pub due_us: i64,
    pub start_us: i64,
    pub end_us: i64,
    pub step: String,
    pub outcome: String,
}

impl Sent {
    /// How long it took.
    pub fn ms(&self) -> f64 {
        (self.end_us - self.start_us) as f64 / 1e3
    }
}

/// What happened in some seconds of the log.
pub struct Window<'a> {
    pub seconds: f64,
    pub ended: Vec<&'a Sent>,
    pub started: f64,
    pub due: f64,
}

impl Window<'_> {
    /// How many of those that ended are of this kind.
    pub fn count(&self, is: impl Fn(&Sent) -> bool) -> f64 {
        self.ended.iter().filter(|sent| is(sent)).count() as f64
    }

    /// The share of those that ended.
    pub fn share(&self, is: impl Fn(&Sent) -> bool) -> f64 {
        self.count(is) / self.ended.len() as f64
    }

    /// The time that a share of the ok ones did not exceed: the nearest rank of all of them, sorted.
    pub fn percentile(&self, share: f64) -> f64 {
        let mut ms: Vec<f64> = self.ended.iter().filter(|sent| sent.outcome == "ok").map(|sent| sent.ms()).collect();
        ms.sort_by(f64::total_cmp);
        ms[((share * ms.len() as f64).ceil() as usize).max(1) - 1]
    }
}

/// A recorded story.
pub struct Story {
    pub folder: PathBuf,
    ticks: Table,
    pub requests: Vec<Sent>,
}

/// A value at a time, Unix milliseconds.
pub type Seen = (f64, f64);

impl Story {
    pub fn read(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/runs").join(name);
        let log = Table::read(&folder.join("requests.tsv.gz"));
        let [due, start, ms, step, outcome] = ["sched_us", "start_us", "ms", "step", "outcome"].map(|name| log.at(name));
        let request = |row: &Vec<String>| {
            let start_us: i64 = row[start].parse().expect("a time");
            let ms: f64 = row[ms].parse().expect("a duration");
            Sent {
                due_us: row[due].parse().expect("a time"),
                start_us,
                end_us: start_us + (ms * 1e3).round() as i64,
                step: row[step].clone(),
                outcome: row[outcome].clone(),
            }
        };
        Self { ticks: Table::read(&folder.join("ticks.tsv.gz")), requests: log.rows.iter().map(request).collect(), folder }
    }

    /// A column where it was read, each value at the moment of its read.
    pub fn column(&self, name: &str) -> Vec<Seen> {
        let [at, planned, late] = [name, "unix_ms", "late_ms"].map(|name| self.ticks.at(name));
        let number = |cell: &String| cell.parse::<f64>().ok();
        self.ticks.rows.iter().filter_map(|row| Some((number(&row[planned])? + number(&row[late])?, number(&row[at])?))).collect()
    }

    /// A counter as its rate per second between two reads.
    pub fn rate(&self, name: &str) -> Vec<Seen> {
        let read = self.column(name);
        read.windows(2).map(|pair| (pair[1].0, 1e3 * (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0))).collect()
    }

    /// When the sampler planned its first tick, Unix milliseconds.
    pub fn start_ms(&self) -> f64 {
        self.ticks.rows[0][self.ticks.at("unix_ms")].parse().expect("a time")
    }

    /// The first and the last moment of the log, microseconds.
    fn span(&self) -> (i64, i64) {
        let begin = self.requests.iter().flat_map(|sent| [sent.due_us, sent.start_us]).min().expect("requests");
        (begin, self.requests.iter().map(|sent| sent.end_us).max().expect("requests"))
    }

    /// What the whole log says.
    pub fn whole(&self) -> Window<'_> {
        let (begin, end) = self.span();
        self.window(begin, end + 1)
    }

    fn window(&self, from: i64, to: i64) -> Window<'_> {
        let within = |us: i64| (from..to).contains(&us);
        let count = |us: fn(&Sent) -> i64| self.requests.iter().filter(|sent| within(us(sent))).count() as f64;
        Window {
            seconds: (to - from) as f64 / 1e6,
            ended: self.requests.iter().filter(|sent| within(sent.end_us)).collect(),
            started: count(|sent| sent.start_us),
            due: count(|sent| sent.due_us),
        }
    }

    /// Whole seconds of the clock, `over` of them together: one value for each second in which such a window ends, and one
    /// for the second in which the log ends.
    pub fn windows(&self, over: i64, value: impl Fn(&Window) -> f64) -> Vec<Seen> {
        let (begin, end) = self.span();
        let second = 1_000_000;
        let first = begin.div_euclid(second) + 1;
        let last = end.div_euclid(second);
        let full = (first + over..=last).map(|to| (to * second, value(&self.window((to - over) * second, to * second))));
        let full: Vec<(i64, f64)> = full.chain([(end, value(&self.window((last + 1 - over) * second, end + 1)))]).collect();
        full.into_iter().filter(|(_, value)| value.is_finite()).map(|(us, value)| (us as f64 / 1e3, value)).collect()
    }

    /// How many were due per second around a moment, 3 s in all.
    pub fn due_around(&self, unix_ms: f64) -> f64 {
        let middle = (unix_ms * 1e3) as i64;
        self.window(middle - 1_500_000, middle + 1_500_000).due / 3.0
    }
}
