//! Drivers of others, started by the sampler against real servers, and what correlate says of their own logs.

use crate::support::server::Server;
use crate::support::session::alone;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// Whether a program is there; where it must be, the test fails.
fn there(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    let required = std::env::var_os("WHATGIVES_SERVERS_REQUIRED").is_some();
    assert!(found || !required, "no {program} on this machine");
    if !found {
        eprintln!("NOT TESTED: no {program} on this machine; tests/run installs it");
    }
    found
}

/// Samples these targets every 200 ms around a driver, whose output becomes PREFIX.log.
fn wrapped(folder: &Path, prefix: &str, targets: &[&str], driver: &[&str]) {
    let mut sampler = Command::new(env!("CARGO_BIN_EXE_sampler"));
    sampler.current_dir(folder).args(targets).args(["--tick=200ms", "--rest=2s", "--cool=1s", "--out", prefix, "--"]).args(driver);
    let output = sampler.output().expect("the sampler starts");
    assert!(output.status.success(), "{driver:?}: {}", String::from_utf8_lossy(&output.stderr));
    std::fs::write(folder.join(format!("{prefix}.log")), output.stdout).expect("written");
}

fn correlate(folder: &Path, args: &[&str]) -> Value {
    let output =
        Command::new(env!("CARGO_BIN_EXE_correlate")).current_dir(folder).args(args).arg("--json").output().expect("it runs");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn rungs_of_wrk_against_php_fpm_name_its_children() {
    let _alone = alone();
    if !there("wrk") {
        return;
    }
    let Some(fpm) = Server::start("phpfpm", &[("PHPFPM_CHILDREN", "8")]) else { return };
    let options =
        [("NGINX_CONNECTIONS", "512"), ("NGINX_PHPFPM", fpm.get("PHPFPM_ADDRESS")), ("NGINX_PHP_ROOT", fpm.get("PHPFPM_ROOT"))];
    let Some(nginx) = Server::start("nginx", &options) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let status = format!("{}/fpm-status", fpm.get("PHPFPM_STATUS_ADDRESS"));
    let targets = ["--nginx", nginx.get("NGINX_STATUS_URL"), "--phpfpm", &status, "--no-host"];
    let page = format!("{}/slow.php?40", nginx.get("NGINX_URL"));
    for connections in ["2", "4", "32"] {
        let driver = ["wrk", "--latency", "-t1", "-c", connections, "-d3s", &page];
        wrapped(folder.path(), &format!("rung-{connections}"), &targets, &driver);
    }
    let told = correlate(folder.path(), &["ladder", "rung-2.ticks.tsv", "rung-4.ticks.tsv", "rung-32.ticks.tsv"]);
    let arm = &told["arms"][0];
    assert_eq!(told["axis"]["unit"], "connections");
    assert_eq!(arm["first"]["resource"], "php-fpm children", "{told:#}");
    assert_eq!((arm["first"]["at"]["low"].as_f64(), arm["first"]["at"]["high"].as_f64()), (Some(4.0), Some(32.0)));
    // Eight children of 40 ms each: 200 a second at most.
    let ceiling = arm["knee"]["rate_per_s"].as_f64().unwrap_or_else(|| panic!("{arm:#}"));
    assert!((120.0..205.0).contains(&ceiling), "{ceiling}");
}

#[test]
fn pgbench_on_one_row_is_a_constant_closed_loop_and_the_row_is_named_from_the_rest_before_it() {
    let _alone = alone();
    if !there("pgbench") {
        return;
    }
    let Some(server) = Server::start("postgres15", &[]) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let script = "BEGIN;\nSELECT taken FROM slot WHERE id = 17 FOR UPDATE;\n\\sleep 20 ms\nUPDATE slot SET taken = taken + 1 WHERE id = 17;\nCOMMIT;\n";
    std::fs::write(folder.path().join("hot.sql"), script).expect("written");
    let driver = ["pgbench", "-n", "-c", "12", "-T", "6", "-P", "1", "-f", "hot.sql", server.get("POSTGRES15_URL")];
    let driver = ["sh", "-c", "exec \"$@\" 2>&1", "sh"].into_iter().chain(driver).collect::<Vec<_>>();
    wrapped(folder.path(), "run", &["--postgres", server.get("POSTGRES15_PROBE_URL"), "--no-host"], &driver);
    let told = correlate(folder.path(), &["run.ticks.tsv", "--driver", "run.log"]);
    assert!(told["first"]["gauge"].as_str().is_some_and(|gauge| gauge.contains("lock_waiting")), "{told:#}");
    assert_eq!(told["waits"][0]["object"], "public.slot", "{told:#}");
    let caveats = told["caveats"].as_array().expect("caveats");
    for code in ["closed_loop", "no_low_load"] {
        assert!(caveats.iter().any(|caveat| caveat["code"] == code), "{code} in {caveats:#?}");
    }
    assert!(told["knee"].is_null());
}
