//! What `--forecast` tells of a run in which nothing gave way, and what it refuses to tell.

use crate::support::made::{Said, said};
use std::path::Path;

fn at(story: &str, rate: &str) -> Said {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/runs").join(story);
    let path = |name: &str| folder.join(name).display().to_string();
    said(&path("ticks.tsv"), &["--driver", &path("timeline.tsv"), "--forecast", rate])
}

#[test]
fn what_is_full_first_agrees_with_how_full_it_was_at_the_top_of_the_run() {
    let said = at("sim-nothing", "300/s");
    let forecast = &said.verdict["forecast"];
    let first = &forecast["gauges"][0];
    assert_eq!(forecast["full_first"], first["gauge"], "{forecast:#}");
    let used = said.verdict["run"]["used"].as_array().unwrap().iter().find(|used| used["gauge"] == first["gauge"]).unwrap();
    let full_at = first["full_at_per_s"]["value"].as_f64().unwrap();
    let by_its_share = said.verdict["run"]["top_rate_per_s"].as_f64().unwrap() / used["share"].as_f64().unwrap();
    assert!((full_at / by_its_share - 1.0).abs() < 0.15, "full at {full_at}, by its share at {by_its_share}");
    assert_eq!((&forecast["instances"], &forecast["instances_with_one_lost"]), (&1.into(), &2.into()), "{forecast:#}");
    assert!(said.text.contains("At 300 req/s") && said.text.contains("inferred"), "{}", said.text);
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
