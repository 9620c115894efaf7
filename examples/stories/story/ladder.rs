//! Rungs of constant load, each a number of visitors who look at a page of php-fpm and then book on MySQL.

use super::mysql::THINK;
use crate::open_loop::bookings::{answer, book, pool};
use crate::open_loop::http::get;
use crate::open_loop::load::{self, App, Visit};
use crate::open_loop::requests::Outcome;
use crate::stage::Stage;
use std::sync::Arc;
use std::time::Duration;

/// Visitors of each rung. A visit takes some 40 ms in one of the 8 children, 33 in MySQL and 35 of thought: from some 20
/// visitors on the children are all busy.
const RUNGS: [u32; 6] = [1, 2, 4, 8, 16, 32];

pub fn rungs(stage: &Stage) -> anyhow::Result<()> {
    let database = stage.server("mysql", &[])?;
    let php = stage.server("phpfpm", &[])?;
    let backend = php.get("PHPFPM_ADDRESS");
    let web = stage.server("nginx", &[("NGINX_PHPFPM", backend), ("NGINX_PHP_ROOT", php.get("PHPFPM_ROOT"))])?;
    let status = format!("{}/fpm-status", php.get("PHPFPM_STATUS_ADDRESS"));
    let targets = ["--phpfpm", &status, "--listen-queue", php.get("PHPFPM_PORT"), "--mysql", database.get("MYSQL_PROBE_URL")];
    for visitors in RUNGS {
        let label = format!("visitors={visitors}");
        let options: Vec<&str> = targets.into_iter().chain(["--label", &label]).collect();
        stage.sampled(Some(&format!("rung-{visitors:02}")), &options, |log| {
            load::runtime()?.block_on(async {
                let web = web.get("NGINX_URL").to_owned();
                let pool = pool(database.get("MYSQL_URL"), visitors).await?;
                let app: App = Arc::new(move |visit: Visit| {
                    let (pool, web) = (pool.clone(), web.clone());
                    Box::pin(async move {
                        let page = get(&web, "book", "/slow.php?40").await;
                        if page.outcome != Outcome::Ok {
                            return page;
                        }
                        answer(book(&pool, (visit.number % 1000) as u32 + 1, THINK).await)
                    })
                });
                load::closed(visitors, Duration::from_millis(35), Duration::from_secs(10), app, log).await?;
                Ok(())
            })
        })?;
    }
    Ok(())
}
