//! An on-sale in small, three times: what gives way is put right, and the next thing gives way.
//!
//! Half of the visitors look at a page, half buy, for which a connection of the database is held for 200 ms. The page is
//! read in ten statements of 30 ms on four other connections, and kept. The shop has half a processor, of which a visit takes
//! 2 ms. In the last seconds far more come.

use super::cpu::Limit;
use crate::open_loop::course::{Course, Leg};
use crate::open_loop::http::get;
use crate::open_loop::load::{self, App, Visit};
use crate::shop::Shop;
use crate::stage::Stage;
use std::sync::Arc;

/// 8 connections carry 40 buyers a second, so 80 visitors.
pub fn pool(stage: &Stage) -> anyhow::Result<()> {
    on_sale(stage, &["--pool=8"])
}

/// With connections enough, and the page kept for 8 s only, since it shows what is left: when it is dropped, all who come
/// before it is there again read it anew, and are in each other's way.
pub fn cache(stage: &Stage) -> anyhow::Result<()> {
    on_sale(stage, &["--pool=80", "--keep=8"])
}

/// With a page that is read again behind the visitors' back, up to some 220 a second are served: only the spike brings more.
pub fn cpu(stage: &Stage) -> anyhow::Result<()> {
    on_sale(stage, &["--pool=80", "--refresh=8"])
}

fn on_sale(stage: &Stage, options: &[&str]) -> anyhow::Result<()> {
    let [cache, database] = [stage.server("redis", &[])?, stage.server("postgres15", &[])?];
    let limit = Limit::to(0.5)?;
    let places = ["--redis", cache.get("REDIS_URL"), "--postgres", database.get("POSTGRES15_URL")];
    let always = ["--statement=200", "--page-pool=4", "--reads=10", "--work=2000", "--think=20"];
    let shop = Shop::open(&[&places[..], &always, options].concat())?;
    limit.holds(shop.pid())?;
    let course = Course(vec![Leg::flat(30.0, 10), Leg::slope(30.0, 110.0, 40), Leg::flat(350.0, 6)]);
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
