//! The story of the hot row: bookers lock a slot, think, take a place and commit, at a rate that climbs, on real servers.
//! Where all want one slot its row must be named; where the same load is spread over many, no row lock may be.

use crate::open_loop::bookings;
use crate::open_loop::course::{Course, Leg};
use crate::open_loop::load::{self, App, Visit};
use crate::support::server::Server;
use crate::support::session::{Session, alone};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// The lock is held for 20 ms and a few statements: one row carries some 45 bookings a second, which the climb passes after
/// two thirds of its way.
const THINK: Duration = Duration::from_millis(20);
const COURSE: [Leg; 2] = [Leg::flat(5.0, 8), Leg::slope(5.0, 70.0, 30)];

fn session(server: &Server, product: &str, title: &str, slot: fn(Visit) -> u32) -> Session {
    let targets = ["--mysql", server.get(&format!("{product}_PROBE_URL"))];
    Session::run(&format!("{product}, {title}"), &targets, 44, |log| {
        let run = async {
            let pool = bookings::pool(server.get(&format!("{product}_URL")), 250).await?;
            let app: App = Arc::new(move |visit| {
                let pool = pool.clone();
                Box::pin(async move { bookings::answer(bookings::book(&pool, slot(visit), THINK).await) })
            });
            load::open(Course(COURSE.to_vec()), 1, None, app, log).await
        };
        let summary = load::runtime().expect("a runtime").block_on(run).expect("the load runs");
        assert_eq!(summary.ok, summary.sent, "every booking is committed");
        assert!(summary.sent > 1000, "only {} bookings were sent", summary.sent);
    })
}

fn is_row_lock(gauge: &str) -> bool {
    gauge.starts_with("mysql.") && gauge.contains("row_lock")
}

fn one_slot_is_named(script: &str, product: &str) {
    let _alone = alone();
    let Some(server) = Server::start(script, &[]) else { return };
    let session = session(&server, product, "one slot", |_| 17);
    let verdict = &session.verdict;
    assert_eq!(verdict["verdict"], "moved", "{verdict:#}");
    assert!(is_row_lock(session.first()), "first to move: {:#}", verdict["first"]);

    let told = verdict["waits"].as_array().expect("waits are told");
    let of_slot = |wait: &&Value| wait["object"] == "shop.slot" && wait["index"] == "PRIMARY" && wait["row"] == "17";
    let share: f64 = told.iter().filter(of_slot).filter_map(|wait| wait["share"].as_f64()).sum();
    assert!(share >= 0.9, "{share} of the waiters waited for the slot's row: {told:#?}");
    let state = told.first().and_then(|wait| wait["blocker_state"].as_str());
    assert_eq!(state, Some("idle in transaction"), "the root thinks while it holds the lock: {told:#?}");

    // The file itself, counted without any code of the project: tick unix_ms target kind object index row …
    let waits = session.waits();
    let on_slot = waits.iter().filter(|cells| cells[4..7] == ["shop.slot", "PRIMARY", "17"]).count();
    assert!(on_slot > 100, "only {on_slot} lines of the waits file name the slot's row");
    assert!(on_slot * 10 >= waits.len() * 9, "{on_slot} of {} lines name the slot's row", waits.len());
}

fn many_slots_are_not(script: &str, product: &str) {
    let _alone = alone();
    let Some(server) = Server::start(script, &[]) else { return };
    let session = session(&server, product, "many slots", |visit| (visit.chance * 1000.0).ceil() as u32);
    let named = is_row_lock(session.first()) || session.movers().into_iter().any(is_row_lock);
    assert!(!named, "a row lock was named: {:#}", session.verdict);
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
