//! The two files open as they are in the programs that people use: pandas, DuckDB and `cut`.

use collectors::api::Wait;
use std::fs::File;
use std::path::Path;
use std::process::Command;
use whatgives::ticks::{self, Header};
use whatgives::waits;

const NASTY: &str = "shop.\"odd # name\"\twith a tab\nand a line\\";

fn write_both(ticks_path: &Path, waits_path: &Path) {
    let header = Header { columns: vec!["mysql.up".into(), "mysql.threads_running".into()], ..Header::default() };
    let mut ticks = ticks::Writer::new(File::create(ticks_path).unwrap(), &header).unwrap();
    let mut waits = waits::Writer::new(File::create(waits_path).unwrap(), true, 1000).unwrap();
    for tick in 0..5 {
        let note = format!("mysql: no answer to {NASTY}");
        ticks.row(tick, 1000 * tick as i64, 0.1, &[Some(1.0), (tick != 3).then_some(2.5)], &[note]).unwrap();
        let wait = Wait {
            kind: "row",
            object: Some(NASTY.into()),
            row: Some("'#\"\t'".into()),
            waiter: "7".into(),
            statement: Some("SELECT ? # \"x\"\n\tFROM `slot`".into()),
            ..Wait::default()
        };
        waits.rows(tick, 1000 * tick as i64, "mysql", &[wait.clone(), wait]).unwrap();
    }
}

#[test]
fn pandas_duckdb_and_cut_see_every_cell_in_its_column_whatever_the_names_hold() {
    let dir = tempfile::tempdir().unwrap();
    let (ticks_path, waits_path) = (dir.path().join("ticks.tsv"), dir.path().join("waits.tsv"));
    write_both(&ticks_path, &waits_path);

    let cut = Command::new("cut").args(["-f", "2"]).arg(&ticks_path).output().unwrap();
    let cut = String::from_utf8(cut.stdout).unwrap();
    let times: Vec<&str> = cut.lines().filter(|line| !line.starts_with('#') && !line.starts_with('{')).collect();
    assert_eq!(times, ["unix_ms", "0", "1000", "2000", "3000", "4000"]);

    let Some(python) = std::env::var_os("WHATGIVES_READERS") else {
        assert!(std::env::var_os("WHATGIVES_SERVERS_REQUIRED").is_none(), "tests/run installs pandas and DuckDB");
        eprintln!("NOT TESTED: no Python with pandas and DuckDB; tests/run installs it");
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/files.py");
    let output = Command::new(python).arg(script).args([&ticks_path, &waits_path]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut escaped = String::new();
    whatgives::text::push_escaped(&mut escaped, NASTY);
    for reader in ["pandas", "duckdb"] {
        assert_eq!(
            found[format!("{reader}_ticks")],
            serde_json::json!({"columns": ["tick", "unix_ms", "late_ms", "mysql.up", "mysql.threads_running", "notes"], "rows": 5})
        );
        assert_eq!(found[format!("{reader}_waits")]["rows"], 10);
        assert_eq!(found[format!("{reader}_waits")]["columns"].as_array().unwrap().len(), 14);
        assert_eq!(found[format!("{reader}_objects")], serde_json::json!([escaped]));
    }
}
