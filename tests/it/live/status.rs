//! `--status URL` against real servers: recognised, named after what they are, and read.

use crate::support::sampler::Folder;
use crate::support::server::Server;

#[test]
fn each_server_is_recognised_and_its_columns_are_called_after_it() {
    let Some(apache) = Server::start("apache", &[]) else { return };
    let Some(pool) = Server::start("phpfpm", &[]) else { return };
    let options = [("NGINX_PHPFPM", pool.get("PHPFPM_ADDRESS")), ("NGINX_PHP_ROOT", pool.get("PHPFPM_ROOT"))];
    let Some(nginx) = Server::start("nginx", &options) else { return };
    let Some(haproxy) = Server::start("haproxy", &[("HAPROXY_BACKEND", &format!("127.0.0.1:{}", nginx.get("NGINX_PORT")))]) else {
        return;
    };
    let folder = Folder::new();
    let metrics = format!("--status=lb={}", haproxy.get("HAPROXY_METRICS_URL"));
    let ran = folder.run(&[
        // As `--status-url=http://SITE:8080` is written: no path.
        &format!("--status-url={}", apache.get("APACHE_URL")),
        &format!("--status={}", nginx.get("NGINX_STATUS_URL")),
        &format!("--status={}", nginx.get("NGINX_FPM_STATUS_URL")),
        &format!("--status={}", haproxy.get("HAPROXY_STATS_URL")),
        &metrics,
        "--tick=200ms",
        "--seconds=1",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ticks = folder.ticks();
    for (column, rest) in [
        ("apache.busy_workers", 1.0),
        ("nginx.active", 1.0),
        ("phpfpm.active_processes", 1.0),
        ("haproxy.app_queue", 0.0),
        ("lb.haproxy_process_current_connections", 2.0),
    ] {
        let values = ticks.column(column).unwrap_or_else(|| panic!("no column {column}: {}", ran.err));
        assert_eq!(values.len(), 5, "{column}");
        assert!(values.iter().all(|value| *value >= rest && *value <= rest + 2.0), "{column}: {values:?}");
    }
    let kinds: Vec<_> = ticks.header.targets.iter().map(|target| (target.instance.as_str(), target.collector.as_str())).collect();
    for target in [("apache", "apache"), ("nginx", "nginx"), ("phpfpm", "phpfpm"), ("haproxy", "haproxy"), ("lb", "metrics")] {
        assert!(kinds.contains(&target), "{target:?} in {kinds:?}");
    }
    assert!(ran.err.contains("nginx: nginx at http://127.0.0.1:"), "{}", ran.err);
}

#[test]
fn the_check_says_what_was_recognised_and_what_is_no_status_page() {
    let Some(nginx) = Server::start("nginx", &[]) else { return };
    let folder = Folder::new();
    let ran = folder.run(&[&format!("--status={}", nginx.get("NGINX_STATUS_URL")), "--check", "--no-host"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.starts_with("nginx  nginx at http://") && ran.out.contains("recognised as nginx"), "{}", ran.out);
    let ran = folder.run(&[&format!("--status={}/index.html", nginx.get("NGINX_URL")), "--check", "--no-host"]);
    assert_eq!(ran.code, 5, "{}", ran.out);
    assert!(ran.out.contains("expected a status page, found an HTML page") && ran.out.contains("It works."), "{}", ran.out);
}
