//! Processor time that is limited: the shop in a control group of its own.

use crate::open_loop::course::{Course, Leg};
use crate::open_loop::http::get;
use crate::open_loop::load::{self, App, Visit};
use crate::shop::Shop;
use crate::stage::Stage;
use anyhow::Context as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A control group that may use a share of one processor. Needs the right to make one.
pub struct Limit {
    groups: Vec<PathBuf>,
}

impl Limit {
    const PERIOD_US: u32 = 100_000;

    /// Makes the group.
    pub fn to(processors: f64) -> anyhow::Result<Self> {
        let root = Path::new("/sys/fs/cgroup");
        let (period, quota) = (Self::PERIOD_US, (processors * f64::from(Self::PERIOD_US)) as u32);
        // The first version has a tree for every controller; what is used is told by another than what limits.
        let first = root.join("cpu/cpu.cfs_quota_us").exists();
        let (trees, share, file, text) = if first {
            let trees = vec![root.join("cpu"), root.join("cpuacct")];
            (trees, ("cpu.shares", "262144"), "cpu.cfs_quota_us", quota.to_string())
        } else {
            (vec![root.to_owned()], ("cpu.weight", "10000"), "cpu.max", format!("{quota} {period}"))
        };
        let name = format!("whatgives-story-{}", std::process::id());
        let limit = Self { groups: trees.into_iter().map(|tree| tree.join(&name)).collect() };
        for group in &limit.groups {
            fs::create_dir_all(group).with_context(|| format!("make the control group {}", group.display()))?;
        }
        set(&limit.groups[0].join(file), &text)?;
        // Before all others, so that nothing but its limit stands in its way.
        set(&limit.groups[0].join(share.0), share.1)?;
        Ok(limit)
    }

    /// Puts a process there. It has to end before the value.
    pub fn holds(&self, pid: u32) -> anyhow::Result<()> {
        self.groups.iter().try_for_each(|group| set(&group.join("cgroup.procs"), &pid.to_string()))
    }
}

fn set(file: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(file, text).with_context(|| format!("set {}", file.display()))
}

impl Drop for Limit {
    fn drop(&mut self) {
        for group in &self.groups {
            // An empty one is all that may be left over.
            let _ = fs::remove_dir(group);
        }
    }
}

/// Each visit takes 4 ms of a processor, of which the shop has 0.4: it carries 100 visits a second.
pub fn limited(stage: &Stage) -> anyhow::Result<()> {
    let limit = Limit::to(0.4)?;
    let shop = Shop::open(&["--work=4000", "--think=40"])?;
    limit.holds(shop.pid())?;
    let pid = shop.pid().to_string();
    let course = Course(vec![Leg::flat(10.0, 10), Leg::slope(10.0, 135.0, 40)]);
    let targets = ["--cgroup", &pid, "--process", &pid, "--listen-queue", &shop.address];
    stage.sampled(None, &targets, |log| {
        let at = shop.address.clone();
        let app: App = Arc::new(move |_: Visit| {
            let at = at.clone();
            Box::pin(async move { get(&at, "visit", "/").await })
        });
        load::runtime()?.block_on(load::open(course, 1, None, app, log))?;
        Ok(())
    })
}
