//! The story of the hot row: bookers lock a slot, think, take a place and commit, at a rate that climbs, on real servers,
//! with both programs run as users run them. Where all want one slot its row must be named; where the same load is spread
//! over many, no row lock may be.

#[path = "../../examples/bookers/booking.rs"]
mod booking;
#[path = "../../examples/open_loop/pace.rs"]
mod pace;
#[path = "../../examples/open_loop/ramp.rs"]
mod ramp;
#[path = "../../examples/open_loop/requests.rs"]
mod requests;

use crate::support::server::Server;
use booking::{Plan, Slots};
use serde_json::Value;
use sqlx::mysql::{MySqlConnectOptions, MySqlSslMode};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The lock is held for 20 ms and a few statements: one row carries some 45 bookings a second, which the climb passes after
/// two thirds of its way.
const RAMP: ramp::Ramp = ramp::Ramp { from: 5.0, rest: Duration::from_secs(8), to: 70.0, climb: Duration::from_secs(30) };

/// One story at a time: they measure waits, and two on one machine would wait for each other.
static ALONE: Mutex<()> = Mutex::new(());

/// The whole session of a user; what `correlate --json` said, and the lines of the waits file.
fn session(server: &Server, product: &str, slots: Slots) -> (Value, Vec<Vec<String>>) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |end: &str| folder.path().join(format!("run.{end}"));
    let mut sampler = Command::new(env!("CARGO_BIN_EXE_sampler"))
        .args(["--mysql", server.get(&format!("{product}_PROBE_URL")), "--tick", "200ms", "--seconds", "44", "--out"])
        .arg(folder.path().join("run"))
        .stderr(Stdio::inherit())
        .spawn()
        .expect("the sampler starts");
    wait_for_first_tick(&file("ticks.tsv"));
    let plan = Plan { ramp: RAMP, seed: Some(1), slots, think: Duration::from_millis(20), connections: 250 };
    let url = server.get(&format!("{product}_URL"));
    let options: MySqlConnectOptions = url.parse().expect("a URL");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let summary = runtime
        .block_on(booking::run(options.ssl_mode(MySqlSslMode::Disabled), plan, &file("requests.tsv")))
        .expect("the load runs");
    assert_eq!(summary.ok, summary.sent, "every booking is committed");
    assert!(summary.sent > 1000, "only {} bookings were sent", summary.sent);
    let status = sampler.wait().expect("the sampler ends");
    assert!(status.success(), "the sampler ended with {status}");

    let correlate = |json: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_correlate"))
            .args([file("ticks.tsv"), file("waits.tsv"), "--driver".into(), file("requests.tsv")])
            .args(json)
            .stderr(Stdio::inherit())
            .output()
            .expect("correlate runs")
    };
    // What a person reads stands in the test's log, beside what is asserted below.
    println!("{product}, {slots:?}:\n{}", String::from_utf8_lossy(&correlate(&[]).stdout));
    let output = correlate(&["--json"]);
    let verdict = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|why| panic!("{why} in {:?}", String::from_utf8_lossy(&output.stdout)));
    let waits = std::fs::read_to_string(file("waits.tsv")).expect("the waits file");
    let lines = waits.lines().filter(|line| !line.starts_with('#')).skip(1);
    (verdict, lines.map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}

fn wait_for_first_tick(ticks: &Path) {
    let begin = Instant::now();
    while !std::fs::read_to_string(ticks).is_ok_and(|text| text.contains("\n0\t")) {
        assert!(begin.elapsed() < Duration::from_secs(15), "the sampler has not begun after 15 s");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn is_row_lock(mover: &Value) -> bool {
    mover["gauge"].as_str().is_some_and(|gauge| gauge.starts_with("mysql.") && gauge.contains("row_lock"))
}

fn one_slot_is_named(script: &str, product: &str) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(server) = Server::start(script, &[]) else { return };
    let (verdict, waits) = session(&server, product, Slots::One(17));
    assert_eq!(verdict["verdict"], "moved", "{verdict:#}");
    assert!(is_row_lock(&verdict["first"]), "first to move: {:#}", verdict["first"]);

    let of_slot = |wait: &&Value| wait["object"] == "shop.slot" && wait["index"] == "PRIMARY" && wait["row"] == "17";
    let told: Vec<&Value> = verdict["waits"].as_array().expect("waits are told").iter().collect();
    let share: f64 = told.iter().copied().filter(of_slot).filter_map(|wait| wait["share"].as_f64()).sum();
    assert!(share >= 0.9, "{share} of the waiters waited for the slot's row: {told:#?}");
    let state = told.first().and_then(|wait| wait["blocker_state"].as_str());
    assert_eq!(state, Some("idle in transaction"), "the root thinks while it holds the lock: {told:#?}");

    // The file itself, counted without any code of ours: tick unix_ms target kind object index row …
    let on_slot = waits.iter().filter(|cells| cells[4..7] == ["shop.slot", "PRIMARY", "17"]).count();
    assert!(on_slot > 100, "only {on_slot} lines of the waits file name the slot's row");
    assert!(on_slot * 10 >= waits.len() * 9, "{on_slot} of {} lines name the slot's row", waits.len());
}

fn many_slots_are_not(script: &str, product: &str) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(server) = Server::start(script, &[]) else { return };
    let (verdict, _) = session(&server, product, Slots::Any(1000));
    let movers = verdict["movers"].as_array().expect("a list of movers");
    assert!(!is_row_lock(&verdict["first"]) && !movers.iter().any(is_row_lock), "a row lock was named: {verdict:#}");
}

#[test]
fn on_mysql_one_slot_for_all_is_named_with_its_row_and_the_session_that_holds_it() {
    one_slot_is_named("mysql", "MYSQL");
}

#[test]
fn on_mysql_the_same_load_on_many_slots_names_no_row_lock() {
    many_slots_are_not("mysql", "MYSQL");
}

#[test]
fn on_mariadb_one_slot_for_all_is_named_with_its_row_and_the_session_that_holds_it() {
    one_slot_is_named("mariadb", "MARIADB");
}

#[test]
fn on_mariadb_the_same_load_on_many_slots_names_no_row_lock() {
    many_slots_are_not("mariadb", "MARIADB");
}
