//! Web servers with few workers behind a page that sleeps: how many visits they carry is workers over the page's time.

use crate::open_loop::course::{Course, Leg};
use crate::open_loop::http::get;
use crate::open_loop::load::{self, App, Visit};
use crate::server::Server;
use crate::stage::Stage;
use std::path::Path;
use std::sync::Arc;

/// Past 80 visits a second at two thirds of the climb.
fn course() -> Course {
    Course(vec![Leg::flat(10.0, 10), Leg::slope(10.0, 115.0, 40)])
}

fn visits(at: &str, path: &'static str, log: &Path) -> anyhow::Result<()> {
    pages(course(), at, path, log)
}

/// Everybody wants one page.
pub fn pages(course: Course, at: &str, path: &'static str, log: &Path) -> anyhow::Result<()> {
    let at = at.to_owned();
    let app: App = Arc::new(move |_: Visit| {
        let at = at.clone();
        Box::pin(async move { get(&at, "page", path).await })
    });
    load::runtime()?.block_on(load::open(course, 1, None, app, log))?;
    Ok(())
}

/// 8 children of php-fpm behind nginx.
pub fn php_and_nginx(stage: &Stage) -> anyhow::Result<(Server, Server)> {
    let php = stage.server("phpfpm", &[("PHPFPM_CHILDREN", "8"), ("PHPFPM_BACKLOG", "2048")])?;
    let front =
        [("NGINX_PHPFPM", php.get("PHPFPM_ADDRESS")), ("NGINX_PHP_ROOT", php.get("PHPFPM_ROOT")), ("NGINX_CONNECTIONS", "4096")];
    let nginx = stage.server("nginx", &front)?;
    Ok((php, nginx))
}

/// Each child is held for 100 ms.
pub fn phpfpm_children(stage: &Stage) -> anyhow::Result<()> {
    let (php, nginx) = php_and_nginx(stage)?;
    let status = format!("{}/fpm-status", php.get("PHPFPM_STATUS_ADDRESS"));
    let queue = php.get("PHPFPM_ADDRESS");
    let targets = ["--phpfpm", &status, "--nginx", nginx.get("NGINX_STATUS_URL"), "--listen-queue", queue];
    stage.sampled(None, &targets, |log| visits(nginx.get("NGINX_URL"), "/slow.php?100", log))
}

/// 16 threads of Apache, each held for 200 ms.
pub fn apache_workers(stage: &Stage) -> anyhow::Result<()> {
    let apache = stage.server("apache", &[("APACHE_WORKERS", "16"), ("APACHE_BACKLOG", "2048")])?;
    let targets = ["--apache", apache.get("APACHE_STATUS_URL"), "--listen-queue", apache.get("APACHE_PORT")];
    stage.sampled(None, &targets, |log| visits(apache.get("APACHE_URL"), "/slow?200", log))
}

/// 16 processes of Apache, one of which the sampler's own connection holds, each of the others held for 200 ms.
pub fn apache_prefork(stage: &Stage) -> anyhow::Result<()> {
    let apache = stage.server("apache", &[("APACHE_MPM", "prefork"), ("APACHE_WORKERS", "16"), ("APACHE_BACKLOG", "2048")])?;
    let targets = ["--apache", apache.get("APACHE_STATUS_URL"), "--listen-queue", apache.get("APACHE_PORT")];
    stage.sampled(None, &targets, |log| visits(apache.get("APACHE_URL"), "/slow?200", log))
}

/// A server that HAProxy gives 8 requests at once, each taking 100 ms.
pub fn haproxy_queue(stage: &Stage) -> anyhow::Result<()> {
    let nginx = stage.server("nginx", &[("NGINX_CONNECTIONS", "4096")])?;
    let backend = format!("127.0.0.1:{}", nginx.get("NGINX_PORT"));
    let limits = [("HAPROXY_BACKEND", &*backend), ("HAPROXY_MAXCONN", "8"), ("HAPROXY_TOTAL", "4000")];
    let haproxy = stage.server("haproxy", &limits)?;
    let statistics = format!("{};csv", haproxy.get("HAPROXY_STATS_URL"));
    let targets = ["--haproxy", &statistics, "--nginx", nginx.get("NGINX_STATUS_URL")];
    stage.sampled(None, &targets, |log| visits(haproxy.get("HAPROXY_URL"), "/slow?100", log))
}
