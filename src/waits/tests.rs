use super::*;
use collectors::api::Wait;
use std::fs;

fn wait(waiter: u32, row: &str) -> Wait {
    Wait {
        kind: "row",
        object: Some("shop.slot".into()),
        index: Some("PRIMARY".into()),
        row: Some(row.into()),
        mode: Some("X,REC_NOT_GAP".into()),
        waiter: waiter.to_string(),
        waited_ms: Some(12.34),
        statement: Some("SELECT ? FROM\n`slot` # \"x\"".into()),
        blocker: Some("9".into()),
        blocker_state: Some("idle in transaction".into()),
        blocker_statement: None,
    }
}

fn written(waits: &[Wait], show_rows: bool, per_tick: usize) -> (String, Waits) {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, show_rows, per_tick).unwrap();
    writer.rows(3, 1000, "mysql", waits).unwrap();
    writer.rows(4, 2000, "mysql", waits).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("waits.tsv");
    fs::write(&path, &bytes).unwrap();
    (String::from_utf8(bytes).unwrap(), read(&path).unwrap())
}

#[test]
fn what_was_written_is_read_again_and_a_statement_stands_before_its_first_use() {
    let (text, waits) = written(&[wait(1, "17"), wait(2, "17")], false, 1000);
    assert_eq!(waits.rows.len(), 4);
    let row = &waits.rows[0];
    assert_eq!((row.tick, row.unix_ms, row.count, row.waiter.as_deref(), row.row.as_deref()), (3, 1000, 1, Some("1"), Some("17")));
    assert_eq!((row.waited_ms, row.blocker_statement.as_deref()), (Some(12.3), None));
    assert_eq!(waits.statements["s1"], "SELECT ? FROM\n`slot` # \"x\"");
    assert_eq!(text.matches("#statement").count(), 1);
    assert!(text.find("#statement").unwrap() < text.find("\ts1\t").unwrap());
}

#[test]
fn a_text_key_is_hashed_alike_within_a_run_and_shown_only_on_request() {
    let (text, waits) = written(&[wait(1, "'ada@example.org'"), wait(2, "'bob'")], false, 1000);
    assert!(!text.contains("ada"));
    assert_eq!(waits.rows[0].row, waits.rows[2].row);
    assert_ne!(waits.rows[0].row, waits.rows[1].row);
    let (text, _) = written(&[wait(1, "'ada@example.org'")], true, 1000);
    assert!(text.contains("'ada@example.org'"));
    let (text, _) = written(&[wait(1, "supremum pseudo-record")], false, 1000);
    assert!(text.contains("supremum pseudo-record"));
}

#[test]
fn past_the_limit_the_rest_is_one_row_an_object_and_still_counted() {
    let many: Vec<Wait> = (0..50).map(|n| wait(n, "17")).collect();
    let (_, waits) = written(&many, false, 10);
    assert_eq!(waits.rows.len(), 22);
    assert_eq!(waits.rows.iter().map(|row| row.count).sum::<u64>(), 100);
}

#[test]
fn a_cut_last_line_is_dropped_and_a_bad_line_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("waits.tsv");
    let (text, _) = written(&[wait(1, "17")], false, 10);
    fs::write(&path, &text[..text.len() - 5]).unwrap();
    assert_eq!(read(&path).unwrap().rows.len(), 1);
    fs::write(&path, format!("{text}x\ty\n")).unwrap();
    let why = read(&path).unwrap_err().to_string();
    assert!(why.contains("line 6") && why.contains("found 2"), "{why}");
}
