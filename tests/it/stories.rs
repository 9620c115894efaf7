//! The recorded stories: real runs with a planted cause, judged again by the correlate of today.
//! They are made by `examples/stories`.

#[path = "../../examples/stories/truth.rs"]
mod truth;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use truth::Truth;

fn runs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/runs")
}

fn is_told_as_planted(name: &str) {
    let folder = runs().join(name);
    let truth = Truth::read(&folder).unwrap();
    let correlate = |more: &[&str]| {
        let args = truth::arguments(&folder, &truth).unwrap();
        Command::new(env!("CARGO_BIN_EXE_correlate")).args(args).args(more).output().expect("correlate runs")
    };
    let said = correlate(&["--json"]);
    let verdict = serde_json::from_slice(&said.stdout).unwrap_or_else(|why| panic!("{why}: {said:?}"));
    let wrong = truth.compare(&verdict);
    let text = correlate(&[]).stdout;
    assert!(wrong.is_empty(), "{} (made {})\n{}\n{}", truth.about, truth.made, wrong.join("\n"), String::from_utf8_lossy(&text));
}

macro_rules! stories {
    ($($test:ident $name:literal,)*) => {
        $(#[test]
        fn $test() {
            is_told_as_planted($name);
        })*

        #[test]
        fn every_recorded_story_is_judged_here() {
            let judged = BTreeSet::from([$($name.to_owned()),*]);
            let entries = std::fs::read_dir(runs()).unwrap().map(|entry| entry.unwrap().path());
            let recorded = entries.filter(|path| path.is_dir()).map(|path| path.file_name().unwrap().to_string_lossy().into_owned());
            let recorded: BTreeSet<String> = recorded.filter(|name| !name.starts_with("sim-")).collect();
            assert_eq!(judged, recorded);
        }
    };
}

stories! {
    a_hot_row_of_mysql_is_named "mysql-hot-row",
    bookings_spread_over_many_rows_name_no_lock "mysql-many-rows",
}
