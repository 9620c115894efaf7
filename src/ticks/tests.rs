use super::*;
use std::fs;
use std::path::PathBuf;

fn header() -> Header {
    let gauge = Gauge::new("threads_running", Class::Occupancy, Unit::Count, "Threads that run")
        .of("cores")
        .own(1.0)
        .at(Layer::Server, "mysql threads");
    let share =
        Gauge::new("hit_ratio", Class::Ratio, Unit::Ratio, "Hits").derived(api::Source::Share(&["hits_total"], &["misses_total"]));
    Header {
        run: Run { start_unix_ms: 1_795_979_508_000, tick_ms: 1000.0, sampler: "0.1.0".into(), host: "h".into(), ..Run::default() },
        targets: vec![Target { instance: "mysql".into(), collector: "mysql".into(), about: serde_json::Map::new() }],
        gauges: vec![("mysql.threads_running".into(), Meaning::of_gauge("mysql", &gauge))],
        derived: vec![("mysql.hit_ratio".into(), Meaning::of_gauge("mysql", &share))],
        columns: vec!["mysql.up".into(), "mysql.threads_running".into()],
    }
}

fn written(dir: &tempfile::TempDir) -> (PathBuf, Vec<u8>) {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &header()).unwrap();
    writer.row(0, 1_795_979_508_000, 0.4, &[Some(1.0), Some(2.0)], &[]).unwrap();
    writer.child(&Child { command: Some("k6 run x.js".into()), start_unix_ms: Some(1), ..Child::default() }).unwrap();
    writer
        .row(2, 1_795_979_510_000, 0.0, &[Some(0.0), None], &["mysql: no\tanswer \"#1\"".into(), "tick 1 missed".into()])
        .unwrap();
    let path = dir.path().join("ticks.tsv");
    fs::write(&path, &bytes).unwrap();
    (path, bytes)
}

#[test]
fn what_was_written_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _) = written(&dir);
    let ticks = read(&path).unwrap();
    assert_eq!(ticks.header, header());
    assert_eq!(ticks.tick, [0, 2]);
    assert_eq!(ticks.unix_ms, [1_795_979_508_000, 1_795_979_510_000]);
    assert_eq!(ticks.column("mysql.up"), Some(&[1.0, 0.0][..]));
    assert!(ticks.column("mysql.threads_running").unwrap()[1].is_nan());
    assert_eq!(ticks.notes, [(1, "mysql: no\tanswer \"#1\"; tick 1 missed".to_owned())]);
    assert_eq!(ticks.children[0].command.as_deref(), Some("k6 run x.js"));
}

#[test]
fn a_file_cut_at_any_byte_behind_its_column_names_is_read_to_its_last_whole_row() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bytes) = written(&dir);
    let names_end = bytes.windows(6).position(|w| w == b"notes\n").unwrap() + 6;
    for cut in names_end..=bytes.len() {
        fs::write(&path, &bytes[..cut]).unwrap();
        let ticks = read(&path).unwrap_or_else(|why| panic!("cut at {cut}: {why}"));
        assert!(ticks.tick.len() <= 2);
        if cut == bytes.len() {
            assert_eq!(ticks.tick.len(), 2);
        }
    }
}

#[test]
fn unknown_lines_columns_keys_and_classes_are_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ticks.tsv");
    fs::write(
        &path,
        "#whatgives ticks 1\n#run\t{\"tick_ms\":500,\"moon\":\"full\"}\n#future\tx\n#gauge\ta.b\t{\"class\":\"mystery\",\"lag\":2.5,\"shape\":1}\nunix_ms\ttick\ta.b\tzzz\n1000\t0\t5\t\n",
    )
    .unwrap();
    let ticks = read(&path).unwrap();
    assert_eq!(ticks.header.run.tick_ms, 500.0);
    assert_eq!(ticks.header.gauges[0].1.class, None);
    assert_eq!(ticks.header.gauges[0].1.lag, Lag::Refreshed(2.5));
    assert_eq!(ticks.column("a.b"), Some(&[5.0][..]));
}

#[test]
fn a_bad_row_is_named_by_line_and_column() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ticks.tsv");
    for (row, expected) in [
        ("0\t1000\tON\n1\t2\t3\n", "line 3: expected a number in column a.b, found \"ON\""),
        ("0\t1000\n1\t2\t3\n", "line 3: expected 3 cells, found 2"),
    ] {
        fs::write(&path, format!("#whatgives ticks 1\ntick\tunix_ms\ta.b\n{row}")).unwrap();
        let why = read(&path).unwrap_err().to_string();
        assert!(why.contains(expected), "{why}");
    }
}

#[test]
fn another_file_is_refused_with_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.csv");
    fs::write(&path, "metric_name,timestamp\n").unwrap();
    let why = read(&path).unwrap_err().to_string();
    assert!(why.contains("metric_name") && why.contains("--driver"), "{why}");
}
