//! What correlate answers on runs whose answer is known.

use crate::support::made::{Made, said};
use crate::support::making::START;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::File;
use std::path::Path;

fn near(value: f64, wanted: f64, share: f64) -> bool {
    (value / wanted - 1.0).abs() <= share
}

#[test]
fn the_pool_is_named_where_its_capacity_is_passed_and_the_door_after_it() {
    let said = Made::default().write().correlate();
    assert_eq!((said.code, said.verdict["verdict"].as_str()), (0, Some("moved")), "{}", said.text);
    assert!(said.first().starts_with("app.pool_wait"), "{}", said.text);
    assert!(near(said.rate(), 100.0, 0.1), "at {}", said.rate());
    let movers: Vec<&str> = said.verdict["movers"].as_array().unwrap().iter().filter_map(|mover| mover["gauge"].as_str()).collect();
    assert_eq!(movers.last(), Some(&"web.listen_queue"), "{movers:?}");
    assert!(near(said.verdict["knee"]["rate_per_s"].as_f64().unwrap(), 100.0, 0.1), "{:#}", said.verdict["knee"]);
    for line in ["First to move", "Resource", "connection pool", "Felt at", "Knee", "Left rest means"] {
        assert!(said.text.contains(line), "{line} in {}", said.text);
    }
}

/// The whole report, as people read it. What changes it is meant to.
#[test]
fn the_report_reads_as_it_stands_here() {
    let said = Made::default().write().correlate();
    assert_eq!(said.text, include_str!("report.txt"), "{}", said.text);
}

#[test]
fn a_pool_that_is_wide_enough_leaves_nothing_to_name_and_that_is_a_full_answer() {
    let said = Made { pool: 400.0, ..Made::default() }.write().correlate();
    assert_eq!((said.code, said.verdict["verdict"].as_str()), (0, Some("rested")), "{}", said.text);
    assert!(said.text.contains("Nothing left rest  up to 200 req/s"), "{}", said.text);
    assert!(said.verdict["first"].is_null() && said.verdict["knee"].is_null());
}

#[test]
fn work_that_no_request_waits_for_is_told_as_such_and_a_queue_that_requests_felt_is_not() {
    let said = Made { pool: 400.0, outbox: 100.0, ..Made::default() }.write().correlate();
    assert_eq!(said.first(), "app.orders_waiting", "{}", said.text);
    assert_eq!(said.verdict["first"]["evidence"], "work that no request waits for", "{}", said.text);
    // 12 more than can be sent make 100 ms a request.
    assert!(near(said.rate(), 105.0, 0.1), "at {}", said.rate());
    // The same pile, of a pool that everybody waits for.
    let said = Made::default().write().correlate();
    assert_eq!(said.verdict["first"]["evidence"], "waiting", "{}", said.text);
}

#[test]
fn places_that_are_all_taken_are_named_where_requests_fail_and_nothing_waits() {
    let full = Made { pool: 400.0, places: 48.0, ..Made::default() };
    let said = Made { failing: (120.0, 0.05), ..full.clone() }.write().correlate();
    assert_eq!((said.code, said.first()), (0, "app.places_taken"), "{}", said.text);
    assert!(near(said.rate(), 120.0, 0.1), "at {}", said.rate());
    assert!(said.text.contains("capacity used up, and no waiting for it was seen"), "{}", said.text);
    // Full and nobody is refused: as many as there can be.
    let said = full.write().correlate();
    assert_eq!((said.code, said.verdict["verdict"].as_str()), (0, Some("rested")), "{}", said.text);
    // What waits goes before what is full, but not where the full had refused people before anybody waited.
    let said = Made { failing: (120.0, 0.05), pool: 100.0, ..full.clone() }.write().correlate();
    assert!(said.first().starts_with("app.pool_wait"), "{}", said.text);
    let said = Made { failing: (120.0, 0.05), pool: 160.0, ..full }.write().correlate();
    assert_eq!(said.first(), "app.places_taken", "{}", said.text);
    assert!(said.text.contains("app.pool_wait"), "{}", said.text);
}

#[test]
fn events_of_which_each_costs_a_moment_count_by_what_they_cost() {
    let files = Made { pool: 400.0, ..Made::default() }.write();
    files.edit("ticks", |lines| {
        let head = lines.iter().find(|line| line.starts_with("tick\t")).expect("the names").clone();
        let at = head.split('\t').position(|name| name == "app.errors_total").expect("the column");
        // From the 70th second on four a second, of 100 requests and more.
        for (second, line) in lines.iter_mut().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).enumerate() {
            let mut cells: Vec<&str> = line.split('\t').collect();
            let events = (4 * second.saturating_sub(70)).to_string();
            cells[at] = &events;
            *line = cells.join("\t");
        }
    });
    let said = files.correlate();
    assert_eq!(said.first(), "app.errors_total", "{}", said.text);
    files.edit("ticks", |lines| {
        let gauge = lines.iter_mut().find(|line| line.starts_with("#gauge\tapp.errors_total")).expect("its line");
        *gauge = gauge.replacen('{', "{\"costs_s\":0.2,", 1);
    });
    let said = files.correlate();
    assert_eq!(said.verdict["verdict"], "rested", "{}", said.text);
}

#[test]
fn without_a_log_the_rate_is_the_web_servers_own_and_said_to_be_inferred() {
    let said = Made::default().write().bare();
    assert!(said.first().starts_with("app.pool_wait"), "{}", said.text);
    assert!(said.warns("no_driver") && said.text.contains("inferred"), "{}", said.text);
    assert!(near(said.rate(), 100.0, 0.1), "at {}", said.rate());
    assert_eq!(said.verdict["run"]["rate_from"], "web.requests_total");
}

#[test]
fn the_keys_of_the_json_stand_in_their_order() {
    let said = Made::default().write().correlate();
    let keys: Vec<&String> = said.verdict.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "whatgives",
            "run",
            "verdict",
            "first",
            "movers",
            "symptoms",
            "waits",
            "phases",
            "knee",
            "growth",
            "recovery",
            "steps",
            "gates",
            "caveats"
        ]
    );
    let first = said.verdict["first"].as_object().unwrap();
    for key in ["gauge", "target", "class", "resting", "onset", "rate_per_s", "tied_with", "resource", "basis"] {
        assert!(first.contains_key(key), "{key} in {first:?}");
    }
}

#[test]
fn a_short_run_with_rest_before_the_load_is_judged_as_well() {
    let made = Made { before: 10, low: 5, climb: 30, top: 5, rates: (10.0, 160.0), pool: 80.0, ..Made::default() };
    let said = made.write().correlate();
    assert!(said.first().starts_with("app.pool_wait"), "{}", said.text);
    assert!(near(said.rate(), 80.0, 0.15), "at {}", said.rate());
    assert_eq!(said.verdict["phases"][0]["name"], "rest");
}

#[test]
fn a_flat_run_over_its_capacity_is_named_from_the_rest_before_it_and_the_rate_is_a_bound() {
    let made = Made { before: 15, low: 0, climb: 0, top: 40, rates: (120.0, 120.0), ..Made::default() };
    let said = made.write().correlate();
    assert!(said.first().starts_with("app.pool_wait"), "{}", said.text);
    assert!(said.warns("no_low_load"), "{}", said.text);
}

#[test]
fn explain_says_in_words_and_in_a_table_why() {
    let files = Made::default().write();
    let explain = |gauge: &str| {
        let mut correlate = std::process::Command::new(env!("CARGO_BIN_EXE_correlate"));
        let output =
            correlate.arg(files.path("ticks")).arg("--driver").arg(files.path("timeline")).args(["--explain", gauge]).output();
        let output = output.unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, text, _) = explain("app.pool_waiting");
    assert_eq!(code, Some(0));
    assert!(text.starts_with("# app.pool_waiting: class queue; connection pool\n# it left its rest at t+"), "{text}");
    let table: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(table.len(), 141, "a head and one line a bin");
    assert!(table.iter().all(|line| line.split('\t').count() == 10));
    let (code, _, why) = explain("app.pool_waitin");
    assert_eq!(code, Some(2));
    assert!(why.contains("hint: app.pool_waiting"), "{why}");
}

#[test]
fn files_packed_as_gzips_are_judged_as_the_plain_ones_are_and_the_waits_beside_them_are_found() {
    let files = Made::default().write();
    let head = "#whatgives waits 1\nunix_ms\ttarget\tkind\tobject\twaiter\n";
    std::fs::write(files.path("waits"), format!("{head}{}\tapp\trow\tshop.slot\t7\n", START + 100_000)).unwrap();
    let mut plain = files.correlate();
    assert_eq!(plain.verdict["waits"][0]["object"], "shop.slot", "{:#}", plain.verdict["waits"]);
    let [ticks, waits, timeline] = ["ticks", "waits", "timeline"].map(|kind| {
        let path = files.path(kind);
        let packed = path.with_extension("tsv.gz");
        let mut out = GzEncoder::new(File::create(&packed).unwrap(), Compression::fast());
        std::io::copy(&mut File::open(&path).unwrap(), &mut out).unwrap();
        out.finish().unwrap();
        std::fs::remove_file(path).unwrap();
        packed.display().to_string()
    });
    let mut packed = said(&ticks, &["--driver", &timeline]);
    assert_eq!(packed.verdict["run"]["waits"], waits);
    for said in [&mut plain, &mut packed] {
        for path in ["ticks", "waits"] {
            said.verdict["run"][path].take();
        }
    }
    assert_eq!(plain.verdict, packed.verdict);
}

/// The simulated runs in the tree: the planted resource, its gauges and its onset are in their truth.
fn simulated(story: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/runs").join(story);
    let truth: toml::Table = std::fs::read_to_string(folder.join("truth.toml")).unwrap().parse().unwrap();
    let ticks = folder.join("ticks.tsv").display().to_string();
    let timeline = folder.join("timeline.tsv").display().to_string();
    for args in [vec!["--driver", &timeline], vec![]] {
        let said = said(&ticks, &args);
        assert_eq!(said.code, 0, "{}", said.text);
        let gauges: Vec<&str> = truth["gauges"].as_array().unwrap().iter().filter_map(|gauge| gauge.as_str()).collect();
        if gauges.is_empty() {
            assert_eq!(said.first(), "", "{}", said.text);
            continue;
        }
        assert!(gauges.contains(&said.first()), "{} is none of {gauges:?}", said.first());
        let rate = truth["rate_at_onset"].as_float().unwrap();
        let told = &said.verdict["first"]["rate_per_s"];
        let (low, high) = (told["low"].as_f64().unwrap(), told["high"].as_f64().unwrap());
        assert!(low <= rate && rate <= high, "{rate} is not between {low} and {high}");
    }
}

#[test]
fn a_simulated_hot_row_is_named() {
    simulated("sim-row-lock");
}

#[test]
fn a_simulated_cache_that_evicts_is_named() {
    simulated("sim-cache-memory");
}

#[test]
fn a_simulated_run_in_which_nothing_saturates_names_nothing() {
    simulated("sim-nothing");
}
