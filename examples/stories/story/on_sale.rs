//! An on-sale in small, three times: what gives way is put right, and the next thing gives way.
//!
//! Four of five visitors look at a page, one buys; for either one of 24 connections of the database is held for 300 ms. The
//! shop has half a processor, of which a visit takes 2 ms. In the last seconds far more come.

use super::cpu::Limit;
use crate::http::get;
use crate::load::{self, App, Visit};
use crate::open_loop::course::{Course, Leg};
use crate::shop::Shop;
use crate::stage::Stage;
use std::sync::Arc;

/// The connections carry 80 visitors a second.
pub fn pool(stage: &Stage) -> anyhow::Result<()> {
    on_sale(stage, Page::Read)
}

/// With the page in a cache for 8 s the connections are enough; but when it is dropped, all who come read it anew.
pub fn cache(stage: &Stage) -> anyhow::Result<()> {
    on_sale(stage, Page::Kept)
}

/// With the page read again before it is dropped, up to some 220 visitors a second are served: only the spike brings more.
pub fn cpu(stage: &Stage) -> anyhow::Result<()> {
    on_sale(stage, Page::Refreshed)
}

/// How the page comes to those who look.
#[derive(Clone, Copy)]
enum Page {
    /// From the database, each time.
    Read,
    /// From the cache, as long as it keeps it.
    Kept,
    /// From the cache, which is given it anew in time.
    Refreshed,
}

fn on_sale(stage: &Stage, page: Page) -> anyhow::Result<()> {
    let [cache, database] = [stage.server("redis", &[])?, stage.server("postgres15", &[])?];
    let limit = Limit::to(0.5)?;
    let mut options = vec!["--postgres", database.get("POSTGRES15_URL"), "--pool=24", "--statement=300"];
    options.extend(["--work=2000", "--think=20", "--keep=8"]);
    match page {
        Page::Read => {}
        Page::Kept => options.extend(["--redis", cache.get("REDIS_URL")]),
        Page::Refreshed => options.extend(["--redis", cache.get("REDIS_URL"), "--refresh"]),
    }
    let shop = Shop::open(&options)?;
    limit.holds(shop.pid())?;
    let course = Course(vec![Leg::flat(10.0, 10), Leg::slope(10.0, 110.0, 40), Leg::flat(350.0, 6)]);
    let (metrics, pid) = (shop.metrics(), shop.pid().to_string());
    let targets = ["--redis", cache.get("REDIS_PROBE_URL"), "--metrics", &metrics, "--cgroup", &pid];
    stage.sampled(None, &targets, |log| {
        let at = shop.address.clone();
        let app: App = Arc::new(move |visit: Visit| {
            let at = at.clone();
            let (step, path) = if visit.chance > 0.8 { ("buy", "/buy") } else { ("look", "/page?sale") };
            Box::pin(async move { get(&at, step, path).await })
        });
        load::runtime()?.block_on(load::open(course, 1, None, app, log))?;
        Ok(())
    })
}
