//! An on-sale in small, three times: what gives way is put right, and the next thing gives way.
//!
//! Half of the visitors look at a page that the cache keeps for 8 s, half buy, for which one connection of the database is
//! held for 100 ms. The shop has half a processor, of which a visit takes 2 ms. In the last seconds far more come.

use super::cpu::Limit;
use crate::http::get;
use crate::load::{self, App, Visit};
use crate::open_loop::course::{Course, Leg};
use crate::shop::Shop;
use crate::stage::Stage;
use std::sync::Arc;

/// Four connections: 40 buyers a second, so 80 visitors.
pub fn pool(stage: &Stage) -> anyhow::Result<()> {
    on_sale(stage, &["--pool=4"])
}

/// With connections enough, nothing stands between the visitors and the database when the page is dropped.
pub fn cache(stage: &Stage) -> anyhow::Result<()> {
    on_sale(stage, &["--pool=60"])
}

/// With the page read again before it is dropped, up to some 220 visitors a second are served: only the spike brings more.
pub fn cpu(stage: &Stage) -> anyhow::Result<()> {
    on_sale(stage, &["--pool=60", "--refresh"])
}

fn on_sale(stage: &Stage, options: &[&str]) -> anyhow::Result<()> {
    let [cache, database] = [stage.server("redis", &[])?, stage.server("postgres15", &[])?];
    let limit = Limit::to(0.5)?;
    let places = ["--redis", cache.get("REDIS_URL"), "--postgres", database.get("POSTGRES15_URL")];
    let shop = Shop::open(&[&places[..], &["--keep=8", "--work=2000", "--think=20"], options].concat())?;
    limit.holds(shop.pid())?;
    let course = Course(vec![Leg::flat(10.0, 10), Leg::slope(10.0, 110.0, 40), Leg::flat(350.0, 6)]);
    let (metrics, pid) = (shop.metrics(), shop.pid().to_string());
    let targets = ["--redis", cache.get("REDIS_PROBE_URL"), "--metrics", &metrics, "--cgroup", &pid];
    stage.sampled(None, &targets, |log| {
        let at = shop.address.clone();
        let app: App = Arc::new(move |visit: Visit| {
            let at = at.clone();
            let (step, path) = if visit.chance > 0.5 { ("buy", "/buy") } else { ("look", "/page?sale") };
            Box::pin(async move { get(&at, step, path).await })
        });
        load::runtime()?.block_on(load::open(course, 1, None, app, log))?;
        Ok(())
    })
}
