//! Caches that give way: too small for what they are to keep, blocked by a script, or empty at one moment for all.

use crate::open_loop::course::{Course, Leg};
use crate::open_loop::http::get;
use crate::open_loop::load::{self, Answer, App, Visit};
use crate::open_loop::requests::Outcome;
use crate::shop::{self, Shop};
use crate::stage::Stage;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a visitor may stay away; memcached keeps what it knows of him for a second more.
const STAYS: Duration = Duration::from_secs(5);

/// Half of the visits are new visitors, of whom memcached is to keep 20 kB for 6 s, half are visitors who come back within 5.
/// So the visitors of 3 s of visits are to be kept, and its 8 pages of 1 MB have 48 places of that size each: up to 128
/// visits a second.
pub fn memcached_evictions(stage: &Stage) -> anyhow::Result<()> {
    let cache = stage.server("memcached", &[("MEMCACHED_ARGS", "-m 8 -c 100")])?;
    let database = stage.server("postgres15", &[])?;
    let shop = Shop::open(&[
        "--memcached",
        cache.get("MEMCACHED_ADDRESS"),
        "--keep=6",
        "--size=20000",
        "--postgres",
        database.get("POSTGRES15_URL"),
        "--pool=60",
        "--statement=200",
        "--think=20",
    ])?;
    let course = Course(vec![Leg::flat(20.0, 12), Leg::slope(20.0, 180.0, 40)]);
    let targets = ["--memcached", cache.get("MEMCACHED_ADDRESS"), "--metrics", &shop.metrics()];
    stage.sampled(None, &targets, |log| {
        let (at, here) = (shop.address.clone(), Arc::new(Mutex::new(VecDeque::new())));
        let app: App = Arc::new(move |visit: Visit| {
            let (at, here) = (at.clone(), Arc::clone(&here));
            Box::pin(async move {
                if let Some(number) = comes_back(&here, visit.chance) {
                    return get(&at, "come back", &format!("/page?visitor-{number}")).await;
                }
                let answer = get(&at, "come", &format!("/session?visitor-{}", visit.number)).await;
                here.lock().unwrap_or_else(PoisonError::into_inner).push_back((Instant::now(), visit.number));
                answer
            })
        });
        load::runtime()?.block_on(load::open(course, 1, None, app, log))?;
        Ok(())
    })
}

/// Which of those who came lately, if it is not somebody new.
fn comes_back(here: &Mutex<VecDeque<(Instant, u64)>>, chance: f64) -> Option<u64> {
    let mut here = here.lock().unwrap_or_else(PoisonError::into_inner);
    while here.front().is_some_and(|(came, _)| came.elapsed() > STAYS) {
        here.pop_front();
    }
    let one_of = ((2.0 * chance - 1.0) * here.len() as f64).ceil();
    (chance > 0.5).then(|| here.get((one_of as usize).checked_sub(1)?).map(|(_, number)| *number))?
}

/// Keeps the one thread of Redis busy for so many turns.
const SCRIPT: &str = "for turn = 1, tonumber(ARGV[1]) do end return 1";

/// Every other visit runs a script for which Redis stands still for 10 ms: it carries 200 visits a second, and everybody waits.
pub fn redis_slow_script(stage: &Stage) -> anyhow::Result<()> {
    let server = stage.server("redis", &[])?;
    let course = Course(vec![Leg::flat(20.0, 10), Leg::slope(20.0, 260.0, 40)]);
    let turns = load::runtime()?.block_on(turns_for(Duration::from_millis(10), server.get("REDIS_URL")))?;
    stage.sampled(None, &["--redis", server.get("REDIS_PROBE_URL")], |log| {
        load::runtime()?.block_on(async {
            let connection = shop::patient(server.get("REDIS_URL")).await?;
            let app: App = Arc::new(move |visit: Visit| {
                let mut connection = connection.clone();
                Box::pin(async move {
                    let (step, command) = if visit.chance > 0.5 {
                        ("count", script(turns))
                    } else {
                        ("look", redis::cmd("EXISTS").arg("catalog").to_owned())
                    };
                    let asked = command.query_async::<i64>(&mut connection).await;
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    let outcome = if asked.is_ok() { Outcome::Ok } else { Outcome::Fail };
                    Answer { step, outcome, code: None }
                })
            });
            load::open(course, 1, None, app, log).await?;
            Ok(())
        })
    })
}

fn script(turns: u64) -> redis::Cmd {
    redis::cmd("EVAL").arg(SCRIPT).arg(0).arg(turns).to_owned()
}

/// How many turns take so long on this machine: the quickest of a few tries, since others may use the processor too.
async fn turns_for(lasts: Duration, url: &str) -> anyhow::Result<u64> {
    const TRIED: u64 = 2_000_000;
    let mut connection = shop::patient(url).await?;
    let mut quickest = Duration::MAX;
    for _ in 0..10 {
        let begin = Instant::now();
        script(TRIED).query_async::<i64>(&mut connection).await?;
        quickest = quickest.min(begin.elapsed());
    }
    Ok((TRIED as f64 * lasts.as_secs_f64() / quickest.as_secs_f64()) as u64)
}

/// One page that all want is dropped every 8 s, and all who come before it is there again read it anew: ten statements of
/// 30 ms on any of four connections, so that one who comes alone has read it in 300 ms, and of many nobody for long.
pub fn redis_stampede(stage: &Stage) -> anyhow::Result<()> {
    let cache = stage.server("redis", &[])?;
    let database = stage.server("postgres15", &[])?;
    let shop = Shop::open(&[
        "--redis",
        cache.get("REDIS_URL"),
        "--keep=8",
        "--postgres",
        database.get("POSTGRES15_URL"),
        "--pool=4",
        "--statement=30",
        "--reads=10",
        "--think=80",
    ])?;
    let course = Course(vec![Leg::flat(15.0, 10), Leg::slope(15.0, 45.0, 50)]);
    let targets = ["--redis", cache.get("REDIS_PROBE_URL"), "--metrics", &shop.metrics()];
    stage.sampled(None, &targets, |log| {
        let at = shop.address.clone();
        let app: App = Arc::new(move |_: Visit| {
            let at = at.clone();
            Box::pin(async move { get(&at, "page", "/page?catalog").await })
        });
        load::runtime()?.block_on(load::open(course, 1, None, app, log))?;
        Ok(())
    })
}
