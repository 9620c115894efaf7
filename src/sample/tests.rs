//! Whole runs in this process, against a kind of target that does as it is told.

use super::*;
use crate::ticks::{Ticks, read};
use collectors::api::{Class, Collector, Fault, FaultKind, Gauge, Reading, Section, Support, Unit, Wait};
use std::cell::RefCell;
use std::io::Write;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::Instant;

const GAUGES: &[Gauge] = &[
    Gauge::new("busy", Class::Occupancy, Unit::Count, "Workers that are busy").of("limit"),
    Gauge::counter("asked_total", Class::Throughput, Unit::Count, "Requests"),
    Gauge::new("limit", Class::Constant, Unit::Count, "Workers there are"),
];

/// What a fake target does stands in its endpoint, words between commas: `ok`, `hang@2` (from its third read on, once),
/// `refuse@1`, `slow@300`, `down` (at the start), `reset@3`, `panic@1`, `waits`, `deaf` (never starts), `odd`.
pub(crate) static FAKE: Spec = Spec {
    name: "fake",
    flag: "fake",
    aliases: &["fake-host"],
    value: "WHAT",
    about: "does as it is told",
    needs: "nothing",
    sample_config: "[[fake]]\nendpoint = \"ok\"\n",
    gauges: GAUGES,
    open: |section| {
        if section.settings.contains_key("passwort") {
            return Err(Fault::new(FaultKind::Config, "configuration of fake: unknown field `passwort`"));
        }
        Ok(Box::new(Fake { section: section.clone(), reads: 0, starts: 0, total: 1000.0 }))
    },
};

struct Fake {
    section: Section,
    reads: u64,
    starts: u64,
    total: f64,
}

impl Fake {
    fn told(&self, word: &str) -> bool {
        self.section.endpoint.split(',').any(|told| told == word)
    }

    fn number(&self, word: &str) -> Option<u64> {
        self.section.endpoint.split(',').find_map(|told| told.strip_prefix(word)?.parse().ok())
    }
}

#[async_trait::async_trait]
impl Collector for Fake {
    fn columns(&self) -> Vec<Gauge> {
        GAUGES.to_vec()
    }

    async fn start(&mut self) -> Result<Support, Fault> {
        self.starts += 1;
        if self.told("deaf") {
            std::future::pending::<()>().await;
        }
        if self.told("down") && self.starts < 3 {
            return Err(Fault::new(FaultKind::Unreachable, "connect to fake: connection refused").hint("start it"));
        }
        let mut columns = GAUGES.to_vec();
        if self.told("twice") {
            columns.push(GAUGES[0]);
        }
        Ok(Support {
            product: "Fake".to_owned(),
            version: "1.0".to_owned(),
            endpoint: self.section.endpoint.clone(),
            columns,
            facts: vec![("limit".to_owned(), 10.into()), ("password".to_owned(), "hush".into())],
            sees: vec!["everything".to_owned()],
            ..Support::default()
        })
    }

    async fn read(&mut self) -> Result<Reading, Fault> {
        let read = self.reads;
        self.reads += 1;
        if let Some(ms) = self.number("slow@") {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        if let Some(ms) = self.number("once@").filter(|_| read == 2) {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        if self.number("panic@") == Some(read) {
            // Without the hook, which would print a backtrace for a good part of a second.
            std::panic::resume_unwind(Box::new("told to panic"));
        }
        if self.number("refuse@").is_some_and(|from| (from..from + 3).contains(&read)) {
            return Err(Fault::new(FaultKind::Refused, "no more; connections\nhere").hint("later"));
        }
        if self.number("reset@") == Some(read) {
            self.total = 0.0;
        }
        self.total += 10.0;
        let mut reading = Reading::default();
        reading.put("busy", read as f64);
        reading.put("asked_total", self.total);
        reading.put("limit", 10.0);
        if self.told("odd") {
            reading.put("unheard_of", 1.0);
            reading.notes.push("something odd".to_owned());
        }
        if self.told("waits") {
            reading.waits.push(Wait { kind: "row", waiter: "1".to_owned(), ..Wait::default() });
        }
        Ok(reading)
    }
}

/// Time moves on when everything waits, and by nothing else: however busy the machine is, each run is the same.
pub(crate) const WORLD: World =
    World { runtime: || Builder::new_current_thread().enable_all().start_paused(true).build(), unix_ms, resolve: |_| Vec::new() };

fn unix_ms() -> f64 {
    thread_local!(static START: Instant = Instant::now());
    1_795_979_508_000.0 + START.with(|start| start.elapsed().as_secs_f64() * 1e3)
}

#[derive(Clone, Default)]
struct Kept(Rc<RefCell<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Ran {
    code: u8,
    out: String,
    err: String,
    prefix: PathBuf,
    dir: tempfile::TempDir,
}

impl Ran {
    fn ticks(&self) -> Ticks {
        read(&write::path(Some(&self.prefix), "ticks.tsv")).unwrap_or_else(|why| panic!("{why}\n{}", self.err))
    }

    fn notes(&self) -> String {
        let notes: Vec<String> = self.ticks().notes.iter().map(|(row, note)| format!("{row} {note}\n")).collect();
        notes.concat()
    }
}

fn run_in(dir: tempfile::TempDir, args: &[&str]) -> Ran {
    let prefix = dir.path().join("run");
    let (out, err) = (Kept::default(), Kept::default());
    let say = Say::to(Box::new(out.clone()), Box::new(err.clone()), false);
    let out_flag = format!("--out={}", prefix.display());
    let args = ["sampler", &out_flag].iter().chain(args).map(OsString::from).collect::<Vec<_>>();
    let code = run_with(&[&FAKE], args.into_iter(), say, WORLD);
    let text = |kept: Kept| String::from_utf8(kept.0.take()).unwrap();
    Ran { code, out: text(out), err: text(err), prefix, dir }
}

fn sampled(args: &[&str]) -> Ran {
    run_in(tempfile::tempdir().unwrap(), args)
}

#[test]
fn a_run_has_a_row_for_every_tick_and_the_waits_beside_it() {
    let ran = sampled(&["--fake=ok", "--fake-host", "second=waits", "--tick=50ms", "--seconds=0.5", "--label=mix=70:30"]);
    assert_eq!(ran.code, exit::DONE, "{}", ran.err);
    let ticks = ran.ticks();
    assert_eq!(ticks.tick, (0..10).collect::<Vec<u64>>());
    assert!(ticks.unix_ms.windows(2).all(|two| two[1] - two[0] == 50));
    assert_eq!(ticks.column("fake.up").unwrap(), [1.0; 10]);
    assert_eq!(ticks.column("second.busy").unwrap()[9], 9.0);
    assert_eq!(ticks.header.run.labels["mix"], "70:30");
    assert_eq!(ticks.header.targets[0].about["limit"], 10);
    assert!(!ticks.header.targets[0].about.contains_key("password"));
    let waits = crate::waits::read(&write::path(Some(&ran.prefix), "waits.tsv")).unwrap();
    assert_eq!(waits.rows.len(), 10);
    assert!(ran.err.contains("fake: Fake 1.0 at ok, 3 columns") && ran.err.contains("10 ticks · "), "{}", ran.err);
    assert_eq!(ran.out, "");
}

#[test]
fn a_target_that_is_late_costs_its_own_cells_and_is_never_asked_twice_at_once() {
    // The third read takes 130 ms: it is late at its own tick, still under way at the next two, and then done.
    let ran = sampled(&["--fake=ok", "--fake=late=once@130", "--tick=50ms", "--seconds=0.4"]);
    let ticks = ran.ticks();
    assert_eq!(ticks.column("fake.up").unwrap(), [1.0; 8]);
    assert_eq!(ticks.column("late.up").unwrap(), [1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
    // The late answer was dropped, and nothing was read in between.
    assert_eq!(ticks.column("late.busy").unwrap()[5], 3.0);
    assert!(
        ran.notes().contains("2 late: no answer in 40 ms\n3 late: no answer in 50 ms\n4 late: no answer in 100 ms\n"),
        "{}",
        ran.notes()
    );
    let waited = ticks.column("late.poll_ms").unwrap();
    assert_eq!(waited[2..5], [40.0, 50.0, 100.0]);
    assert!(ran.err.contains("late: 3 of 8 reads empty: no answer ×3"), "{}", ran.err);
}

#[test]
fn a_refusal_is_noted_once_in_full_and_then_shortened() {
    let ran = sampled(&["--fake=refuse@1", "--tick=50ms", "--seconds=0.3"]);
    assert_eq!(ran.notes(), "1 fake: no more, connections here\n2 fake: refused, as at tick 1\n3 fake: refused, as at tick 1\n");
    assert_eq!(ran.ticks().column("fake.up").unwrap(), [1.0, 0.0, 0.0, 0.0, 1.0, 1.0]);
    assert!(ran.ticks().column("fake.busy").unwrap()[1].is_nan());
}

#[test]
fn a_reset_a_value_without_a_column_and_a_collectors_own_note_are_noted() {
    let ran = sampled(&["--fake=a=reset@2", "--fake=b=odd", "--tick=50ms", "--seconds=0.2"]);
    let notes = ran.notes();
    assert!(notes.contains("2 a: counters reset; b: something odd\n"), "{notes}");
    assert_eq!(notes.matches("without a column, since not there at the start: unheard_of").count(), 1);
    assert!(ran.err.contains("a: counters reset 1 time"), "{}", ran.err);
}

#[test]
fn a_collector_that_fails_inside_is_replaced_and_costs_its_own_cells() {
    let ran = sampled(&["--fake=a=panic@1", "--fake=b=ok", "--tick=50ms", "--seconds=0.3"]);
    let ticks = ran.ticks();
    assert_eq!(ticks.column("b.up").unwrap(), [1.0; 6]);
    // Its second read panics; the one that replaces it does the same at its second.
    assert_eq!(ticks.column("a.up").unwrap(), [1.0, 0.0, 1.0, 0.0, 1.0, 0.0]);
}

#[test]
fn a_target_that_is_down_at_the_start_ends_the_run_unless_that_is_allowed() {
    let ran = sampled(&["--fake=down", "--tick=50ms", "--seconds=0.3"]);
    assert_eq!(ran.code, exit::TARGET_UNREADABLE);
    assert!(ran.err.contains("connection refused\nhint: start it") && ran.err.contains("--allow-down"), "{}", ran.err);
    assert_eq!(std::fs::read_dir(ran.dir.path()).unwrap().count(), 0, "no file stays behind");
    let ran = sampled(&["--fake=down", "--allow-down", "--tick=50ms", "--seconds=0.3"]);
    assert_eq!(ran.code, exit::DONE);
    assert_eq!(ran.ticks().column("fake.up").unwrap(), [0.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    assert!(ran.notes().contains("1 fake: answers now, Fake 1.0"), "{}", ran.notes());
}

#[test]
fn a_target_read_less_often_leaves_its_cells_empty_without_a_note() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("c.toml");
    std::fs::write(&config, "tick = \"50ms\"\nseconds = 0.3\n[[fake]]\nname = \"rare\"\nendpoint = \"ok\"\nevery = \"100ms\"\n")
        .unwrap();
    let ran = run_in(dir, &["--config", config.to_str().unwrap()]);
    assert_eq!(ran.code, exit::DONE, "{}", ran.err);
    let up: Vec<bool> = ran.ticks().column("rare.up").unwrap().iter().map(|up| *up == 1.0).collect();
    assert_eq!(up, [true, false, true, false, true, false]);
    assert_eq!(ran.notes(), "");
}

#[test]
fn a_column_twice_is_refused_before_anything_is_written() {
    let ran = sampled(&["--fake=twice", "--seconds=1"]);
    assert_eq!(ran.code, exit::USAGE);
    assert!(ran.err.contains("two columns would be called fake.busy"), "{}", ran.err);
    assert_eq!(std::fs::read_dir(ran.dir.path()).unwrap().count(), 0);
}

#[test]
fn a_check_says_what_each_target_is_and_what_one_read_gave() {
    let ran = sampled(&["--check", "--fake=ok", "--fake=second=odd"]);
    assert_eq!(ran.code, exit::DONE);
    assert!(ran.out.contains("fake  Fake 1.0 at ok\n  sees     everything\n  one read 3 of 3 columns in "), "{}", ran.out);
    let ran = sampled(&["--check", "--fake=ok", "--fake=second=down"]);
    assert_eq!(ran.code, exit::TARGET_UNREADABLE);
    assert!(ran.out.contains("second\n  not readable: connect to fake: connection refused\n  hint: start it"), "{}", ran.out);
    assert_eq!(std::fs::read_dir(ran.dir.path()).unwrap().count(), 0);
}
