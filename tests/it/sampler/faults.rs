//! A target in trouble costs its own cells, with a reason, and nothing else.

use crate::support::memcached::{Manner, Memcached};
use crate::support::sampler::{Folder, Ran, notes, signal};
use std::io::{BufRead, BufReader};
use std::time::Duration;

/// Two targets, the first of which gets into trouble in the middle; a calm stretch before and after.
fn in_trouble(trouble: impl FnOnce(&Memcached)) -> (Folder, Ran, Memcached) {
    let folder = Folder::new();
    let (sick, well) = (Memcached::start(), Memcached::start());
    let child = folder.start(&[
        &format!("--memcached=sick={}", sick.address),
        &format!("--memcached=well={}", well.address),
        "--no-host",
        "--tick=200ms",
        "--seconds=30",
    ]);
    folder.until_rows(4);
    trouble(&sick);
    let rows = folder.ticks().tick.len();
    folder.until_rows(rows + 5);
    signal(child.id(), "TERM");
    let ran = Ran::end(child);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ticks = folder.ticks();
    let up = ticks.column("sick.up").unwrap();
    // The other one goes on. A machine that stands still for longer than a read may take costs it a cell, seldom.
    let gaps = |name: &str| ticks.column(name).unwrap().iter().filter(|up| **up == 0.0).count();
    assert!(gaps("well.up") < gaps("sick.up"), "{}", notes(&ticks));
    assert_eq!((up[0], up[up.len() - 1]), (1.0, 1.0), "{}", notes(&ticks));
    // Where it did not answer, its cells are empty, never 0.
    let gets = ticks.column("sick.cmd_get_total").unwrap();
    assert!(up.iter().zip(gets).all(|(up, gets)| (*up == 0.0) == gets.is_nan()), "{}", notes(&ticks));
    (folder, ran, sick)
}

fn pause(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

#[test]
fn a_target_that_hangs_is_silent_until_it_answers_and_never_asked_twice_at_once() {
    let (folder, ran, sick) = in_trouble(|sick| {
        sick.behave(Manner::Hangs);
        pause(1200);
        sick.behave(Manner::Answers);
    });
    let ticks = folder.ticks();
    assert!(notes(&ticks).contains("sick: no answer in "), "{}", notes(&ticks));
    // Longer than one read may take: it is waited for over several ticks.
    let waited = ticks.column("sick.poll_ms").unwrap().iter().fold(0.0, |most: f64, ms| most.max(*ms));
    assert!(waited > 600.0, "{waited}");
    assert_eq!((sick.most_at_once(), sick.accepted()), (1, 1), "one question at once, one connection");
    assert!(ran.err.contains("sick: ") && ran.err.contains("no answer ×"), "{}", ran.err);
}

#[test]
fn a_target_that_restarts_is_connected_anew_and_its_reset_noted_once() {
    let (folder, ran, sick) = in_trouble(|sick| {
        sick.behave(Manner::Closes);
        sick.restart();
        pause(600);
        sick.restart();
        sick.behave(Manner::Answers);
    });
    let ticks = folder.ticks();
    let notes = notes(&ticks);
    assert_eq!(notes.matches("counters reset").count(), 1, "{notes}");
    assert!(notes.contains("sick: ") && ran.err.contains("sick: counters reset 1 time"), "{notes}\n{}", ran.err);
    assert!(sick.accepted() >= 2);
}

#[test]
fn an_answer_of_another_kind_is_named_and_costs_its_own_cells() {
    let (folder, ..) = in_trouble(|sick| {
        sick.behave(Manner::Nonsense);
        pause(600);
        sick.behave(Manner::Answers);
    });
    let notes = notes(&folder.ticks());
    assert!(notes.contains("a web server listens there") && notes.contains("nonsense, as at tick"), "{notes}");
}

#[test]
fn a_target_that_refuses_at_the_start_ends_the_run_with_5_and_leaves_no_files() {
    let folder = Folder::new();
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let flag = format!("--memcached=127.0.0.1:{port}");
    let ran = folder.run(&[&flag, "--seconds=1"]);
    assert_eq!(ran.code, 5);
    assert!(ran.err.contains("Connection refused") && ran.err.contains("hint: "), "{}", ran.err);
    assert_eq!(std::fs::read_dir(folder.0.path()).unwrap().count(), 0);
    let ran = folder.run(&[&flag, "--seconds=0.3", "--tick=100ms", "--allow-down"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ticks = folder.ticks();
    assert!(ticks.column("memcached.up").unwrap().iter().all(|up| *up == 0.0), "{}", notes(&ticks));
    assert!(notes(&ticks).contains("Connection refused"), "{}", notes(&ticks));
}

#[test]
fn what_a_target_that_is_down_at_the_start_has_no_columns_for_is_said_with_what_gives_them() {
    let folder = Folder::new();
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let at = format!("127.0.0.1:{port}");
    let open = [
        ("--haproxy=t=http://AT/stats;csv", "proxies = [\"web\", \"app\"]"),
        ("--pgbouncer=t=postgres://probe@AT/pgbouncer", "pools = [\"DATABASE/USER\"]"),
        ("--status=t=http://AT/page", "--apache, --nginx"),
        ("--metrics=t=http://AT/metrics", "[[metrics.series]] name"),
        ("--json=t=http://AT/numbers", "[[json.value]] path"),
        ("--query=t=postgres://probe@AT/shop::SELECT 1 AS depth", "[[query.column]] name"),
    ];
    let down = ["--no-host", "--allow-down", "--tick=100ms", "--seconds=0.2", "--force"];
    for (flag, mend) in open {
        let ran = folder.run(&[&[flag.replace("AT", &at).as_str()], &down[..]].concat());
        let said = ran.err.split_once("t: not seen: ").unwrap_or_else(|| panic!("{flag}: {}", ran.err)).1;
        assert!(ran.code == 0 && said.contains(&format!("\nhint: {mend}")), "{flag}: {}", ran.err);
    }
    // Named, they have their columns, and nothing is missing.
    let named = "[[haproxy]]
endpoint = \"http://AT/stats;csv\"
proxies = [\"web\"]
[[pgbouncer]]
endpoint = \"postgres://probe@AT/pgbouncer\"
pools = [\"shop/app\"]
[[metrics]]
endpoint = \"http://AT/metrics\"
series = [{ name = \"pool_pending\" }]
[[json]]
endpoint = \"http://AT/numbers\"
value = [{ path = \"pool.pending\" }]
[[query]]
url = \"postgres://probe@AT/shop\"
sql = \"SELECT 1 AS depth\"
column = [{ name = \"depth\", class = \"queue\" }]
";
    folder.write("c.toml", &named.replace("AT", &at));
    let ran = folder.run(&[&["--config=c.toml"], &down[..]].concat());
    assert!(ran.code == 0 && !ran.err.contains("not seen"), "{}", ran.err);
    let ticks = folder.ticks();
    for column in [
        "haproxy.web_frontend_sessions",
        "pgbouncer.pool_shop_app_clients_waiting",
        "metrics.pool_pending",
        "json.pool_pending",
        "query.depth",
    ] {
        let cells = ticks.column(column).unwrap_or_else(|| panic!("no {column} in {:?}", ticks.header.columns));
        assert!(!cells.is_empty() && cells.iter().all(|cell| cell.is_nan()), "{column}: {cells:?}");
    }
}

#[test]
fn a_sampler_that_is_killed_leaves_both_files_whole_to_the_last_tick() {
    let folder = Folder::new();
    let mut child = folder.start(&["--tick=20ms", "--seconds=30"]);
    folder.until_rows(20);
    child.kill().unwrap();
    child.wait().unwrap();
    let text = folder.text("ticks.tsv");
    assert!(text.ends_with('\n'), "each row goes out whole");
    assert!(folder.ticks().tick.len() >= 20 && folder.waits().rows.is_empty());
}

#[test]
fn a_file_that_can_no_longer_be_written_ends_the_sampling_but_not_the_driver() {
    let folder = Folder::new();
    let pipe = folder.path("x.ticks.tsv");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Reads until the driver has started, and goes away.
    let reader = std::thread::spawn(move || {
        let lines = BufReader::new(std::fs::File::open(pipe).unwrap()).lines();
        lines.map_while(Result::ok).take_while(|line| !line.starts_with("#child")).count()
    });
    let args = ["--out=x", "--force", "--tick=50ms", "--rest=0", "--cool=0", "--", "sh", "-c", "sleep 0.5; echo driven"];
    let ran = folder.run(&args);
    assert!(reader.join().unwrap() > 3);
    assert_eq!((ran.code, ran.out.as_str()), (125, "driven\n"), "{}", ran.err);
    assert_eq!(ran.err.matches("x.ticks.tsv cannot be written: Broken pipe").count(), 1, "{}", ran.err);
}

#[test]
fn a_file_that_takes_nothing_for_a_while_costs_no_tick_and_gets_every_row() {
    let folder = Folder::new();
    let pipe = folder.path("x.ticks.tsv");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn(move || {
        let file = std::fs::File::open(pipe).unwrap();
        std::thread::sleep(Duration::from_millis(1500));
        BufReader::new(file).lines().map_while(Result::ok).filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).collect()
    });
    // What stands before the first row fills the pipe.
    let label = format!("--label=much={}", "x".repeat(100_000));
    let ran = folder.run(&["--out=x", "--force", "--tick=150ms", "--seconds=2.4", &label]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let rows: Vec<String> = reader.join().unwrap();
    let ticks: Vec<u64> = rows.iter().map(|row| row.split('\t').next().unwrap().parse().unwrap()).collect();
    // Ten ticks fell into that time. A machine that stands still may cost one or two.
    assert!(ticks.first() == Some(&0) && ticks.last() >= Some(&14), "{ticks:?}");
    assert!(ticks.windows(2).all(|two| two[1] - two[0] <= 3), "{ticks:?}");
}

#[test]
fn a_target_that_goes_on_failing_is_asked_at_every_tick_without_a_pause() {
    let folder = Folder::new();
    let sick = Memcached::start();
    let child = folder.start(&[&format!("--memcached={}", sick.address), "--no-host", "--tick=50ms", "--seconds=60"]);
    folder.until_rows(3);
    sick.behave(Manner::Closes);
    let before = sick.accepted();
    let rows = folder.ticks().tick.len();
    folder.until_rows(rows + 60);
    signal(child.id(), "TERM");
    let ran = Ran::end(child);
    let ticks = folder.ticks();
    // Each failed read begins with a connection of its own: as many as there were ticks. The first one may go to the read
    // that was under way, and a machine that stands still may make a read late.
    let failed = ticks.column("memcached.up").unwrap().iter().filter(|up| **up == 0.0).count() as u64;
    assert!(failed >= 58 && sick.accepted() - before >= failed * 9 / 10, "{failed} {} {}", sick.accepted() - before, ran.err);
    let last = &ticks.column("memcached.up").unwrap()[ticks.tick.len() - 30..];
    assert!(last.iter().all(|up| *up == 0.0) && sick.most_at_once() == 1, "{}", notes(&ticks));
}
