//! Locust behind the sampler against php-fpm: a gate ends it, headless by its signal and with its web interface by that, and
//! correlate reads what it wrote.

use crate::support::sampler::{Folder, Ran};
use crate::support::server::Server;
use crate::support::session::alone;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// nginx with eight children of php-fpm behind it.
struct Site {
    fpm: Server,
    nginx: Server,
}

impl Site {
    fn start() -> Option<Self> {
        let fpm = Server::start("phpfpm", &[("PHPFPM_CHILDREN", "8")])?;
        let behind = [("NGINX_PHPFPM", fpm.get("PHPFPM_ADDRESS")), ("NGINX_PHP_ROOT", fpm.get("PHPFPM_ROOT"))];
        let nginx = Server::start("nginx", &behind)?;
        Some(Self { fpm, nginx })
    }
}

/// Where Locust is; where it must be, the test fails without.
fn locust() -> Option<String> {
    let program = std::env::var("WHATGIVES_LOCUST").unwrap_or_else(|_| "locust".to_owned());
    let found = Command::new(&program).arg("--version").output().is_ok_and(|said| said.status.success());
    assert!(found || std::env::var_os("WHATGIVES_SERVERS_REQUIRED").is_none(), "no {program} on this machine");
    if !found {
        eprintln!("NOT TESTED: no Locust on this machine; tests/run installs it");
    }
    found.then_some(program)
}

/// Samples the site around a Locust that sends one visitor more each second, until the gate breaks.
fn stopped(site: &Site, gate: &str, live: &[&str], locust: &str, mode: &[&str]) -> (Folder, Ran) {
    let folder = Folder::new();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/locustfile.py");
    let status = format!("{}/fpm-status", site.fpm.get("PHPFPM_STATUS_ADDRESS"));
    let targets = ["--nginx", site.nginx.get("NGINX_STATUS_URL"), "--phpfpm", &status, "--no-host"];
    let watch = ["--tick=200ms", "--rest=2s", "--cool=600ms", "--stop-when", gate];
    let file = file.display().to_string();
    let driver = ["--", locust, "-f", &file, "--host", site.nginx.get("NGINX_URL"), "--users=40", "--spawn-rate=1"];
    // A minute bounds what a gate that never breaks can cost.
    let log = ["--run-time=60s", "--csv=visitors", "--csv-full-history"];
    let ran = folder.run(&[&targets[..], &watch, live, &driver, &log, mode].concat());
    (folder, ran)
}

/// What Locust wrote each second of all visitors together: seconds, visitors and requests so far.
fn history(folder: &Folder) -> Vec<(f64, f64, f64)> {
    let text = folder.text("visitors_stats_history.csv");
    assert!(text.ends_with('\n'), "its last line is cut");
    let mut rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = rows.next().expect("names");
    let at = |name: &str| names.iter().position(|known| *known == name).expect("a column");
    let [time, users, requests, name] = ["Timestamp", "User Count", "Total Request Count", "Name"].map(at);
    let number = |cell: &str| cell.parse::<f64>().expect("a number");
    rows.filter(|row| row[name] == "Aggregated").map(|row| (number(row[time]), number(row[users]), number(row[requests]))).collect()
}

/// The run ended by the gate, and the files are whole. The seconds from the row with the reason until the driver had ended,
/// and that row.
fn by_the_gate(folder: &Folder, ran: &Ran, gate: &str) -> (f64, usize) {
    assert_eq!(ran.code, 6, "{}", ran.err);
    assert!(ran.err.contains("was told to stop") && !ran.err.contains("killed"), "{}", ran.err);
    let ticks = folder.ticks();
    let notes: Vec<_> =
        ticks.notes.iter().filter(|(_, note)| note.contains(&format!("the gate \"{gate}\" broke: found"))).collect();
    let [(row, _)] = notes[..] else { panic!("the reason stands there once: {notes:?}") };
    assert!(folder.text("ticks.tsv").ends_with('\n') && folder.text("waits.tsv").ends_with('\n'));
    let ended = ticks.children.iter().find_map(|child| child.end_unix_ms).expect("the driver's end is recorded");
    assert!(*ticks.unix_ms.last().expect("rows") >= ended, "sampled to the driver's end and behind it");
    ((ended - ticks.unix_ms[*row]) as f64 / 1e3, *row)
}

/// Locust is gone so many seconds after its gate, at the latest. It takes half a second; ten seconds after it was told to
/// stop it would be killed.
const LATEST_S: f64 = 8.0;

#[test]
fn a_gate_on_a_column_ends_a_headless_locust_and_its_log_names_the_children_of_php_fpm() {
    let _alone = alone();
    let Some(locust) = locust() else { return };
    let Some(site) = Site::start() else { return };
    let gate = "phpfpm.listen_queue <= 8 for 2s";
    let (folder, ran) = stopped(&site, gate, &[], &locust, &["--headless", "--only-summary"]);
    let (after_s, row) = by_the_gate(&folder, &ran, gate);
    println!("Locust ended {after_s:.2} s after the row with the reason");
    assert!((0.0..LATEST_S).contains(&after_s), "{after_s} s: {}", ran.err);
    // The gate was right: the first time that more than 8 waited for 2 s without a pause ends in the row with the reason.
    let ticks = folder.ticks();
    let waiting = ticks.column("phpfpm.listen_queue").expect("the column");
    let at_s = |row: usize| (ticks.unix_ms[row] as f64 + ticks.late_ms[row]) / 1e3;
    let since = waiting[..=row].iter().rposition(|queue| *queue <= 8.0).expect("a short queue at first") + 1;
    assert!((1.999..3.0).contains(&(at_s(row) - at_s(since))), "since row {since}: {waiting:?}");
    let sent = history(&folder);
    let last = sent.windows(2).filter(|pair| pair[1].2 > pair[0].2).map(|pair| pair[1].0).next_back().expect("requests");
    assert!((0.0..LATEST_S + 1.0).contains(&(last - at_s(since))), "sent until {last}, since {}", at_s(since));

    let mut correlate = Command::new(env!("CARGO_BIN_EXE_correlate"));
    let said = correlate.arg(folder.path("ticks.tsv")).arg("--driver").arg(folder.path("visitors_stats_history.csv")).arg("--json");
    let said = said.output().expect("correlate runs");
    let told: Value = serde_json::from_slice(&said.stdout).unwrap_or_else(|why| panic!("{why}: {said:?}"));
    assert_eq!(told["first"]["resource"], "php-fpm children", "{told:#}");
    // With nine visitors the first one waits.
    let onset_s = told["first"]["onset"]["unix_ms"].as_f64().expect("an onset") / 1e3;
    let visitors = sent.iter().take_while(|(at, ..)| *at <= onset_s).last().map_or(0.0, |(_, users, _)| *users);
    assert!((8.0..=13.0).contains(&visitors), "{visitors} visitors at {onset_s}: {:#}", told["first"]);
    // Eight children of 40 ms each: 200 a second at most.
    assert!(told["first"]["rate_per_s"]["value"].as_f64().is_some_and(|rate| rate < 205.0), "{:#}", told["first"]);
    let caveats = told["caveats"].as_array().expect("caveats");
    assert!(caveats.iter().any(|caveat| caveat["code"] == "closed_loop"), "{caveats:#?}");
}

#[test]
fn a_gate_on_what_locust_says_of_itself_ends_its_load_by_its_web_interface() {
    let _alone = alone();
    let Some(locust) = locust() else { return };
    let Some(site) = Site::start() else { return };
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port");
    let (place, port) = (format!("locust://{free}"), format!("--web-port={}", free.port()));
    let gate = "completed <= 90/s over 2s";
    let (folder, ran) = stopped(&site, gate, &["--driver-live", &place], &locust, &["--autostart", "--web-host=127.0.0.1", &port]);
    let (after_s, row) = by_the_gate(&folder, &ran, gate);
    assert!(ran.err.contains(&format!("locust at {free} was told to stop")), "{}", ran.err);
    println!("Locust ended {after_s:.2} s after the row with the reason");
    // The reason stands in the row behind the moment at which it was told.
    assert!((-1.0..LATEST_S).contains(&after_s), "{after_s} s: {}", ran.err);
    let sent = history(&folder);
    let told_s = folder.ticks().unix_ms[row] as f64 / 1e3;
    let (before, ending) = (sent.iter().filter(|(at, ..)| *at < told_s - 1.0), sent.last().expect("rows"));
    // Each visitor makes 25 requests a second at most: it was a few of them that passed 90, and never all.
    assert!((3.0..30.0).contains(&before.map(|(_, users, _)| *users).fold(0.0, f64::max)), "{sent:?}");
    assert!(ending.0 < told_s + LATEST_S + 1.0, "{sent:?}");
}
