use super::super::config::Config;
use super::super::tests::{FAKE, WORLD};
use super::super::{cli, config};
use super::*;
use std::ffi::OsString;

const MS: Duration = Duration::from_millis(1);

fn config(endpoints: &[&str]) -> Config {
    let flags = endpoints.iter().map(|what| format!("--fake={what}"));
    let args = ["sampler".to_owned(), "--tick=50ms".to_owned()].into_iter().chain(flags).map(OsString::from);
    config::effective(&[&FAKE], &cli::parse(&[&FAKE], args).unwrap()).unwrap()
}

fn up(outcomes: &[Outcome]) -> Vec<bool> {
    outcomes.iter().map(|outcome| matches!(outcome, Outcome::Answered { .. })).collect()
}

async fn ticks(collect: &mut Collect, schedule: &mut Schedule, number: usize) -> Vec<Vec<bool>> {
    let mut all = Vec::new();
    while all.len() < number {
        sleep_until(schedule.next_at()).await;
        let tick = schedule.take(Instant::now()).unwrap();
        all.push(up(&collect.tick(&tick, schedule).await));
    }
    all
}

fn on_runtime<T>(work: impl Future<Output = T>) -> T {
    (WORLD.runtime)().unwrap().block_on(work)
}

fn schedule() -> Schedule {
    Schedule::new(Instant::now(), 0.0, 50 * MS)
}

#[test]
fn a_start_that_gets_no_answer_is_reported_in_its_time_and_the_others_are_not_held_up() {
    on_runtime(async {
        let config = config(&["deaf", "ok"]);
        let mut collect = Collect::open(&config.targets, config.tick).unwrap();
        let began = Instant::now();
        let found = collect.start(100 * MS).await;
        assert_eq!(began.elapsed().as_millis(), 100);
        assert!(found[0].as_ref().is_err_and(|fault| fault.message == "no answer in 100ms"));
        assert!(found[1].is_ok());
        // The deaf one stays under way; it costs the other nothing.
        assert_eq!(ticks(&mut collect, &mut schedule(), 2).await, [[false, true], [false, true]]);
    });
}

#[test]
fn a_read_that_never_ends_is_cancelled_and_the_target_asked_again() {
    on_runtime(async {
        // Each read takes 200 ms, and is given up after 120 ms.
        let config = config(&["slow@200"]);
        let mut collect = Collect::open_with(&config.targets, config.tick, 120 * MS).unwrap();
        assert!(collect.start(100 * MS).await[0].is_ok());
        let mut schedule = schedule();
        assert_eq!(ticks(&mut collect, &mut schedule, 3).await, [[false]; 3]);
        assert!(collect.slots[0].busy_since.is_some());
        // Freed at 120 ms, asked anew at the fourth tick.
        let sent = collect.slots[0].sent;
        ticks(&mut collect, &mut schedule, 1).await;
        assert_eq!(collect.slots[0].sent, sent + 1);
    });
}

#[test]
fn a_slow_target_delays_neither_the_row_beyond_its_deadline_nor_the_next_tick() {
    on_runtime(async {
        let config = config(&["slow@400", "ok"]);
        let mut collect = Collect::open(&config.targets, config.tick).unwrap();
        collect.start(100 * MS).await;
        let mut schedule = schedule();
        for _ in 0..6 {
            sleep_until(schedule.next_at()).await;
            let tick = schedule.take(Instant::now()).unwrap();
            assert_eq!(tick.missed, 0);
            assert_eq!(up(&collect.tick(&tick, &schedule).await), [false, true]);
            assert!(tick.at.elapsed() < 50 * MS);
        }
    });
}

#[test]
fn reads_of_one_tick_run_at_once() {
    on_runtime(async {
        let config = config(&["slow@25", "slow@25", "slow@25"]);
        let mut collect = Collect::open(&config.targets, config.tick).unwrap();
        collect.start(100 * MS).await;
        assert_eq!(ticks(&mut collect, &mut schedule(), 2).await, [[true; 3], [true; 3]]);
    });
}
