//! A spike over a shop whose connections carry 80 buyers a second: 30 come before it and after it, 200 in its three seconds.

use crate::open_loop::course::{Course, Leg};
use crate::open_loop::http::get;
use crate::open_loop::load::{self, Answer, App, Visit};
use crate::open_loop::requests::Outcome;
use crate::shop::Shop;
use crate::stage::Stage;
use std::sync::Arc;
use std::time::Duration;

/// Buyers wait: the 360 too many of the spike are served at 50 a second, beside those who always come, in 7 s.
pub fn recovers(stage: &Stage) -> anyhow::Result<()> {
    spike(stage, Duration::MAX, 1)
}

/// Buyers ask again after 600 ms, up to five times, while the shop still works for those who have gone: the spike leaves a
/// queue of 4 s behind, so that all of them ask five times, which is 150 a second.
pub fn no_recovery(stage: &Stage) -> anyhow::Result<()> {
    spike(stage, Duration::from_millis(600), 5)
}

fn spike(stage: &Stage, patience: Duration, tries: u32) -> anyhow::Result<()> {
    let database = stage.server("postgres15", &[])?;
    let shop = Shop::open(&["--postgres", database.get("POSTGRES15_URL"), "--pool=8", "--statement=100"])?;
    let course = Course(vec![Leg::flat(30.0, 20), Leg::flat(200.0, 3), Leg::flat(30.0, 30)]);
    stage.sampled(None, &["--metrics", &shop.metrics()], |log| {
        let at = shop.address.clone();
        let app: App = Arc::new(move |_: Visit| {
            let at = at.clone();
            Box::pin(async move {
                for _ in 0..tries {
                    if let Ok(answer) = tokio::time::timeout(patience, get(&at, "buy", "/buy")).await {
                        return answer;
                    }
                }
                Answer { step: "buy", outcome: Outcome::Timeout, code: None }
            })
        });
        load::runtime()?.block_on(load::open(course, 1, None, app, log))?;
        Ok(())
    })
}
