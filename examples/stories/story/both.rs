//! Two resources that have nothing to do with each other: half of the visitors want a page of php-fpm (8 children), half order
//! at the door of PgBouncer (8 connections, each held for 100 ms: 80 orders a second, so 160 visits).

use super::{open, postgres, web};
use crate::open_loop::course::{Course, Leg};
use crate::open_loop::http::get;
use crate::open_loop::load::{App, Visit};
use crate::stage::Stage;
use std::sync::Arc;

/// The page takes 100 ms too: both give way at 160 visits a second.
pub fn at_once(stage: &Stage) -> anyhow::Result<()> {
    both(stage, "/slow.php?100")
}

/// The page takes 70 ms: php-fpm gives way at some 225 visits a second, seconds after PgBouncer.
pub fn in_order(stage: &Stage) -> anyhow::Result<()> {
    both(stage, "/slow.php?70")
}

fn both(stage: &Stage, page: &'static str) -> anyhow::Result<()> {
    let (php, nginx) = web::php_and_nginx(stage)?;
    let database = stage.server("postgres15", &[])?;
    let bouncer = postgres::bouncer(stage, &database, 8)?;
    let door = format!("127.0.0.1:{}", bouncer.get("PGBOUNCER_PORT"));
    let status = format!("{}/fpm-status", php.get("PHPFPM_STATUS_ADDRESS"));
    let targets = ["--phpfpm", &status, "--listen-queue", php.get("PHPFPM_ADDRESS"), "--pgbouncer", &door];
    let course = Course(vec![Leg::flat(16.0, 10), Leg::slope(16.0, 280.0, 40)]);
    stage.sampled(None, &targets, |log| {
        open(course, None, log, async {
            let (web, clients) = (nginx.get("NGINX_URL").to_owned(), postgres::clients(&bouncer).await?);
            let app: App = Arc::new(move |visit: Visit| {
                let (web, clients) = (web.clone(), clients.clone());
                Box::pin(async move {
                    if visit.chance > 0.5 {
                        get(&web, "page", page).await
                    } else {
                        postgres::answer(&postgres::sleep(&clients).await)
                    }
                })
            });
            Ok(app)
        })
    })
}
