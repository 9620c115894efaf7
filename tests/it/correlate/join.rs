//! Several samplers' files of one run, one a machine.

use crate::support::made::{Said, said};
use std::fs;
use std::path::{Path, PathBuf};

/// What one sampler of the simulated run with a hot row saw.
#[derive(Clone)]
struct Machine {
    host: &'static str,
    /// Its targets, by their instances in the simulated run, and what they are called here.
    targets: &'static [(&'static str, &'static str)],
    /// Only these columns of them; all where empty.
    columns: &'static [&'static str],
    /// How far its clock is behind.
    behind_s: f64,
    /// Every how many-th second it ticks.
    every: usize,
    /// Rows that it does not have.
    gap: (usize, usize),
}

const WEB: Machine = Machine {
    host: "web1",
    targets: &[("app", "app"), ("web", "web"), ("host", "host")],
    columns: &[],
    behind_s: 0.0,
    every: 1,
    gap: (0, 0),
};
const DB: Machine = Machine { host: "db", targets: &[("mysql", "mysql"), ("redis", "redis"), ("dbhost", "host")], ..WEB };

fn row_lock() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/runs/sim-row-lock")
}

impl Machine {
    /// Whether a column is this machine's, and what it is called here.
    fn column(&self, name: &str) -> Option<String> {
        let (instance, gauge) = name.split_once('.')?;
        let own = self.targets.iter().find(|(theirs, _)| *theirs == instance)?.1;
        (self.columns.is_empty() || self.columns.contains(&name)).then(|| format!("{own}.{gauge}"))
    }

    fn write(&self, folder: &Path) -> String {
        let (mut text, mut keep, mut row) = (String::new(), Vec::new(), 0);
        for line in fs::read_to_string(row_lock().join("ticks.tsv")).unwrap().lines() {
            let cells: Vec<&str> = line.split('\t').collect();
            let line = match cells[0] {
                "#run" => {
                    let mut run: serde_json::Value = serde_json::from_str(cells[1]).unwrap();
                    run["host"] = self.host.into();
                    run["tick_ms"] = (1000 * self.every).into();
                    run["start_unix_ms"] = (run["start_unix_ms"].as_i64().unwrap() - (1e3 * self.behind_s) as i64).into();
                    format!("#run\t{run}")
                }
                "#target" => match self.targets.iter().find(|(theirs, _)| *theirs == cells[1]) {
                    Some((_, own)) => format!("#target\t{own}\t{}\t{{}}", cells[2]),
                    None => continue,
                },
                "#gauge" => match self.column(cells[1]) {
                    Some(own) => {
                        let renamed = |text: String, (theirs, own): &(&str, &str)| {
                            text.replace(&format!("\"{theirs}."), &format!("\"{own}."))
                        };
                        format!("#gauge\t{own}\t{}", self.targets.iter().fold(cells[2].to_owned(), renamed))
                    }
                    None => continue,
                },
                "tick" => {
                    keep = cells.iter().map(|name| (name.contains('.')).then(|| self.column(name))).collect();
                    cells
                        .iter()
                        .zip(&keep)
                        .filter_map(|(name, own)| own.clone().unwrap_or_else(|| Some((*name).to_owned())))
                        .collect::<Vec<_>>()
                        .join("\t")
                }
                mark if mark.starts_with('#') => line.to_owned(),
                _ => {
                    row += 1;
                    if row % self.every != 0 || (self.gap.0..self.gap.1).contains(&row) {
                        continue;
                    }
                    let own = cells.iter().enumerate().filter(|(at, _)| keep[*at] != Some(None));
                    own.map(|(at, cell)| match at {
                        0 => (row / self.every).to_string(),
                        1 => (cell.parse::<f64>().unwrap() - 1e3 * self.behind_s).to_string(),
                        _ => (*cell).to_owned(),
                    })
                    .collect::<Vec<_>>()
                    .join("\t")
                }
            };
            text.push_str(&line);
            text.push('\n');
        }
        let path = folder.join(format!("{}.ticks.tsv", self.host));
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

/// What correlate says of the files of these machines, with the driver's log.
fn together(machines: &[Machine]) -> Said {
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<String> = machines.iter().map(|machine| machine.write(folder.path())).collect();
    let timeline = row_lock().join("timeline.tsv").display().to_string();
    let mut args: Vec<&str> = files[1..].iter().map(String::as_str).collect();
    args.extend(["--driver", &timeline]);
    said(&files[0], &args)
}

fn onset(said: &Said) -> f64 {
    said.verdict["first"]["onset"]["elapsed_s"].as_f64().unwrap_or_else(|| panic!("{}", said.text))
}

/// What the one file of the whole run says.
fn whole() -> Said {
    let timeline = row_lock().join("timeline.tsv").display().to_string();
    said(&row_lock().join("ticks.tsv").display().to_string(), &["--driver", &timeline])
}

#[test]
fn two_machines_files_answer_as_one_and_what_both_call_host_is_told_apart() {
    let said = together(&[WEB, DB]);
    assert_eq!((said.code, said.first()), (0, "mysql.row_lock_current_waits"), "{}", said.text);
    assert!((onset(&said) - onset(&whole())).abs() <= 1.0, "{}", said.text);
    let names = said.verdict["run"].to_string() + &said.verdict["movers"].to_string();
    assert!(names.contains("db/host.") && names.contains("web1/host.") && !names.contains("\"host."), "{names}");
    let files = said.verdict["run"]["files"].as_array().unwrap();
    assert_eq!((files.len(), files[1]["host"].as_str()), (2, Some("db")));
    let clock = &files[1]["clock"];
    assert!(clock["low_ms"].as_f64().unwrap() <= 0.0 && clock["high_ms"].as_f64().unwrap() >= 0.0, "{clock:#}");
    assert!(said.text.contains("db and web1 agree, to 0."), "{}", said.text);
}

#[test]
fn a_machine_whose_clock_is_apart_is_moved_before_anything_is_ordered() {
    for behind_s in [49.3, -7.4] {
        let said = together(&[WEB, Machine { behind_s, ..DB }]);
        assert_eq!(said.first(), "mysql.row_lock_current_waits", "{}", said.text);
        assert!((onset(&said) - onset(&whole())).abs() <= 2.0, "{} {}", onset(&whole()), said.text);
        let clock = &said.verdict["run"]["files"][1]["clock"];
        let of = |key: &str| clock[key].as_f64().unwrap() / 1e3;
        assert!(of("low_ms") <= behind_s && behind_s <= of("high_ms") && of("moved_ms") == of("offset_ms"), "{clock:#}");
        assert!(said.warns("clocks_apart") && said.text.contains("the clock of db is"), "{}", said.text);
    }
}

#[test]
fn machines_that_tick_at_different_periods_are_laid_on_the_coarser_one() {
    let slow = Machine { every: 2, columns: &["web.requests_total", "web.listen_queue"], ..WEB };
    let said = together(&[slow, DB]);
    assert_eq!(said.first(), "mysql.row_lock_current_waits", "{}", said.text);
    assert!((onset(&said) - onset(&whole())).abs() <= 4.0, "{}", said.text);
    assert_eq!(said.verdict["run"]["tick_ms"], 2000.0);
}

#[test]
fn a_gap_in_one_file_is_a_gap_of_its_own_columns_only() {
    let said = together(&[Machine { gap: (60, 75), ..WEB }, DB]);
    assert_eq!(said.first(), "mysql.row_lock_current_waits", "{}", said.text);
    assert!((onset(&said) - onset(&whole())).abs() <= 1.0, "{}", said.text);
    assert!(!said.warns("silent_at_onset"), "{}", said.text);
    // The other way round the gap is over the onset, and it is said.
    let at = onset(&whole()) as usize;
    let said = together(&[WEB, Machine { gap: (at - 12, at + 12), ..DB }]);
    let interval = &said.verdict["first"]["onset"];
    assert!(said.first().starts_with("mysql.row_lock"), "{}", said.text);
    assert!(interval["high_s"].as_f64().unwrap() - interval["low_s"].as_f64().unwrap() >= 20.0, "{interval:#}");
}

#[test]
fn each_file_has_its_waits_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let files = [WEB, DB].map(|machine| machine.write(folder.path()));
    let start: i64 = 1_000
        * (fs::read_to_string(&files[1]).unwrap().lines().last().unwrap().split('\t').nth(1).unwrap().parse::<i64>().unwrap()
            / 1_000);
    let mut waits = "#whatgives waits 1\ntick\tunix_ms\ttarget\tkind\tobject\tindex\trow\tmode\twaiter\twaited_ms\tstatement\tblocker\tblocker_state\tblocker_statement\n".to_owned();
    for back in (60..260).rev() {
        let at = start - 1000 * back;
        waits.push_str(&format!("{back}\t{at}\tmysql\trow\tshop.slot\tPRIMARY\t17\tX\t5\t9\t-\t1\trunning\t-\n"));
    }
    fs::write(folder.path().join("db.waits.tsv"), &waits).unwrap();
    let timeline = row_lock().join("timeline.tsv").display().to_string();
    let answer = said(&files[0], &[&files[1], "--driver", &timeline]);
    assert_eq!(answer.verdict["first"]["resource"], "mysql row lock shop.slot PRIMARY 17", "{}", answer.text);
    // A file of waits that belongs to neither is asked for.
    let stray = folder.path().join("other.tsv");
    fs::write(&stray, &waits).unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_correlate")).args(&files).arg(&stray).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("PREFIX.waits.tsv"));
}

#[test]
fn files_that_have_no_moment_in_common_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let files = [WEB, Machine { behind_s: 86_400.0, ..DB }].map(|machine| machine.write(folder.path()));
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_correlate")).args(&files).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no moment in common"));
}
