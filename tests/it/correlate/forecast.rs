//! What `--forecast` tells of a run in which nothing gave way, and what it refuses to tell.

use crate::support::made::{Busy, Made, Said, said};
use std::path::Path;

fn at(story: &str, rate: &str) -> Said {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/runs").join(story);
    let path = |name: &str| folder.join(name).display().to_string();
    said(&path("ticks.tsv"), &["--driver", &path("timeline.tsv"), "--forecast", rate])
}

#[test]
fn when_it_is_full_agrees_with_how_full_it_was_at_the_top_of_the_run() {
    let said = at("sim-nothing", "300/s");
    let forecast = &said.verdict["forecast"];
    let gauges = forecast["gauges"].as_array().unwrap();
    assert_eq!(forecast["full_first"], gauges[0]["gauge"], "{forecast:#}");
    let used = said.verdict["run"]["used"].as_array().unwrap();
    // The middle of a few counted connections is a whole number; that of a percentage tells its share well enough.
    let percentages: Vec<_> = gauges.iter().filter(|told| told["capacity"] == 100.0).collect();
    assert!(percentages.len() >= 3, "{forecast:#}");
    for told in percentages {
        let share = used.iter().find(|used| used["gauge"] == told["gauge"]).unwrap()["share"].as_f64().unwrap();
        let full_at = told["full_at_per_s"]["value"].as_f64().unwrap();
        let by_its_share = said.verdict["run"]["top_rate_per_s"].as_f64().unwrap() / share;
        assert!((full_at / by_its_share - 1.0).abs() < 0.15, "{}: {full_at}, by its share {by_its_share}", told["gauge"]);
    }
    assert_eq!((&forecast["instances"], &forecast["instances_with_one_lost"]), (&1.into(), &2.into()), "{forecast:#}");
    assert!(said.text.contains("At 300 req/s") && said.text.contains("inferred"), "{}", said.text);
}

/// A run that ends at half the rate at which the first of its resources is full.
fn half_way(seed: u64, first: Busy) -> Said {
    let later = Busy { name: "later", capacity: 100.0, full_at: 1.7 * first.full_at, idle: 0.02, power: 1.0, counted: false };
    let rates = (0.05 * first.full_at, 0.5 * first.full_at);
    let made =
        Made { low: 30, climb: 90, top: 0, rates, pool: 4.0 * first.full_at, seed, busy: vec![later, first], ..Made::default() };
    made.write().correlate_with(&["--forecast", &first.full_at.to_string()])
}

#[test]
fn at_half_the_way_what_is_full_first_and_its_rate_are_told_right() {
    let percent = Busy { name: "first", capacity: 100.0, full_at: 200.0, idle: 0.01, power: 1.0, counted: false };
    let counted = Busy { capacity: 12.0, idle: 0.0, counted: true, ..percent };
    let (mut answered, mut right, mut asked) = (0, 0, 0);
    // Of a cache that hits more the more it is asked, and of what is held longer the more others wait, the work per request
    // is another at twice the rate.
    let shapes =
        [percent, Busy { power: 0.88, ..percent }, Busy { power: 1.08, ..percent }, counted, Busy { capacity: 5.0, ..counted }];
    for (seed, first) in (1..=6).flat_map(|seed| shapes.map(|first| (seed, first))) {
        let said = half_way(seed, first);
        let forecast = &said.verdict["forecast"];
        asked += 1;
        let Some(named) = forecast["full_first"].as_str() else { continue };
        answered += 1;
        let full_at = forecast["gauges"][0]["full_at_per_s"]["value"].as_f64().unwrap();
        right += usize::from(named == "web.first" && (full_at / first.full_at - 1.0).abs() < 0.15);
    }
    assert!(10 * answered >= 6 * asked, "{answered} of {asked} answered");
    assert!(10 * right >= 8 * answered, "{right} of {answered} right");
}

#[test]
fn what_is_busy_without_any_load_and_does_not_grow_is_not_taken_for_growth() {
    let first = Busy { name: "first", capacity: 100.0, full_at: 200.0, idle: 0.3, power: 1.0, counted: false };
    let constant = Busy { name: "constant", capacity: 10.0, full_at: f64::INFINITY, idle: 0.9, power: 1.0, counted: false };
    let made =
        Made { low: 30, climb: 90, top: 0, rates: (10.0, 100.0), pool: 800.0, busy: vec![constant, first], ..Made::default() };
    let said = made.write().correlate_with(&["--forecast", "200"]);
    let forecast = &said.verdict["forecast"];
    assert_eq!(forecast["full_first"], "web.first", "{forecast:#}");
    let full_at = forecast["gauges"][0]["full_at_per_s"]["value"].as_f64().unwrap();
    assert!((full_at / 200.0 - 1.0).abs() < 0.15, "{full_at}");
}

#[test]
fn what_is_full_only_far_beyond_the_run_is_not_told() {
    let far = Busy { name: "far", capacity: 100.0, full_at: 600.0, idle: 0.01, power: 1.0, counted: false };
    let made = Made { low: 30, climb: 90, top: 0, rates: (10.0, 100.0), pool: 800.0, busy: vec![far], ..Made::default() };
    let said = made.write().correlate_with(&["--forecast", "300"]);
    let refused = said.verdict["forecast"]["refused"].as_str().unwrap_or_default();
    assert!(refused.contains("full below 4 times the highest load") && refused.contains("web.far, 5"), "{refused}");
}

#[test]
fn a_rate_too_far_away_and_one_beyond_the_knee_are_refused_with_the_reason() {
    for (story, told) in [("sim-nothing", "more than 4 times the highest load"), ("sim-row-lock", "beyond the run's own knee")] {
        let said = at(story, if story == "sim-nothing" { "100000" } else { "500" });
        let refused = said.verdict["forecast"]["refused"].as_str().unwrap_or_default();
        assert!(refused.contains(told), "{refused}");
        assert!(said.verdict["forecast"]["full_first"].is_null() && said.text.contains("not told: "), "{}", said.text);
    }
}
