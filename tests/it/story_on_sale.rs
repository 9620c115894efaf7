//! The story of the on-sale: the service and the visitors of `examples/on_sale`, with both programs run as users run them.
//! The pool must be named at the rate where arithmetic puts it, and nothing with the fix.

#[path = "../../examples/on_sale/load.rs"]
mod load;
#[path = "../../examples/on_sale/service.rs"]
mod service;

use crate::open_loop::load::runtime;
use crate::support::session::{Session, alone};

fn session(pool: u32, pay_after_commit: bool) -> Session {
    let runtime = || runtime().expect("a runtime");
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        runtime().block_on(service::serve(pool, pay_after_commit, |at| tell.send(at).expect("somebody wants to know")))
    });
    let service = told.recv().expect("the service starts");
    let title = format!("{pool} connections, {}", if pay_after_commit { "paid after commit" } else { "paid while held" });
    Session::run(&title, &["--metrics", &format!("service=http://{service}/metrics")], 43, |log| {
        let summary = runtime().block_on(load::run(service, log)).expect("the load runs");
        println!("{summary}");
    })
}

#[test]
fn the_pool_is_named_at_its_size_over_the_time_a_connection_is_held() {
    let _alone = alone();
    let pool = 20;
    let session = session(pool, false);
    assert_eq!(session.verdict["verdict"], "moved", "{:#}", session.verdict);
    assert!(session.first().starts_with("service.pool_acquire"), "first to move: {:#}", session.verdict["first"]);
    let rate = session.verdict["first"]["rate_per_s"]["value"].as_f64().expect("a rate");
    let capacity = f64::from(pool) / service::PAYMENT.as_secs_f64();
    assert!((rate / capacity - 1.0).abs() <= 0.15, "at {rate}/s, and the pool carries {capacity}/s");
}

#[test]
fn with_the_connection_given_back_before_the_payment_nothing_is_named() {
    let _alone = alone();
    let session = session(24, true);
    assert_eq!(session.first(), "", "{:#}", session.verdict);
}
