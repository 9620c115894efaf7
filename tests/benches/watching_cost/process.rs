//! Processes of a watcher, and what the kernel says that they cost.

use std::process::Child;
use std::time::{Duration, Instant};

/// Until it has connected to everything.
const WARM_UP: Duration = Duration::from_secs(5);

/// A watcher that runs; it is ended when this is dropped.
pub struct Watcher {
    name: String,
    children: Vec<Child>,
}

/// What it cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Processor time a tick, milliseconds.
    pub ms_a_tick: f64,
    /// The most memory that was resident, 10^6 bytes.
    pub megabytes: f64,
    /// Processor time of one processor's.
    pub share: f64,
    /// How many processes.
    pub processes: usize,
}

impl Cost {
    /// Of several watchers that run at once.
    pub fn sum<'c>(all: impl Iterator<Item = &'c Self>) -> Self {
        all.fold(Self::default(), |sum, cost| Self {
            ms_a_tick: sum.ms_a_tick + cost.ms_a_tick,
            megabytes: sum.megabytes + cost.megabytes,
            share: sum.share + cost.share,
            processes: sum.processes + cost.processes,
        })
    }
}

impl Watcher {
    pub fn new(name: &str, children: Vec<Child>) -> Self {
        Self { name: name.to_owned(), children }
    }

    /// Waits until it has settled and measures for so long.
    pub fn measure(self, tick: Duration, for_long: Duration) -> Cost {
        std::thread::sleep(WARM_UP);
        self.measure_now(tick, for_long)
    }

    /// The same of one that has settled.
    pub fn measure_now(mut self, tick: Duration, for_long: Duration) -> Cost {
        let (began, before) = (Instant::now(), self.ran_ns());
        std::thread::sleep(for_long);
        let (seconds, ran) = (began.elapsed().as_secs_f64(), (self.ran_ns() - before) / 1e9);
        let ended = self.children.iter_mut().find_map(|child| child.try_wait().expect("its state"));
        assert!(ended.is_none(), "{} ended by itself: {ended:?}", self.name);
        Cost {
            ms_a_tick: ran * 1e3 / (seconds / tick.as_secs_f64()),
            megabytes: self.children.iter().map(|child| peak_bytes(child.id())).sum::<f64>() / 1e6,
            share: ran / seconds,
            processes: self.children.len(),
        }
    }

    /// How long all threads ran, nanoseconds.
    fn ran_ns(&self) -> f64 {
        self.children.iter().map(|child| ran_ns(child.id())).sum()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A process's own count is in hundredths of a second; the scheduler's, by thread, is exact. No watcher ends threads while
/// it is measured.
fn ran_ns(pid: u32) -> f64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("the watcher runs");
    let texts = tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok());
    texts.filter_map(|text| text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok())).sum()
}

fn peak_bytes(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the watcher runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") * 1024.0
}
