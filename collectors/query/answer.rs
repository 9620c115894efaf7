//! One row of text cells to numbers. Pure.

use crate::sql::Row;

/// A cell as a number. NULL and what is no finite number is none; PostgreSQL writes yes and no as `t` and `f`.
pub(super) fn number(cell: Option<&str>) -> Option<f64> {
    match cell?.trim() {
        "t" => Some(1.0),
        "f" => Some(0.0),
        text => text.parse::<f64>().ok().filter(|value| value.is_finite()),
    }
}

/// What rows say: the one row, or why there is none.
pub(super) fn one(rows: &[Row]) -> Result<&Row, String> {
    match rows {
        [row] => Ok(row),
        [] => Err("no row".to_owned()),
        more => Err(format!("expected one row, found {}", more.len())),
    }
}

/// Whether a statement only asks: one statement, of a kind that reads. The session is read only besides.
pub(super) fn only_reads(sql: &str) -> Result<&str, String> {
    let sql = sql.trim().trim_end_matches(';').trim_end();
    let first: String = sql.trim_start_matches('(').trim_start().chars().take_while(char::is_ascii_alphabetic).collect();
    if !["SELECT", "WITH", "SHOW", "VALUES", "TABLE"].contains(&first.to_ascii_uppercase().as_str()) {
        return Err(format!("expected SELECT, WITH, SHOW, VALUES or TABLE, found {first:?}"));
    }
    let mut quote = None;
    for byte in sql.bytes() {
        match (quote, byte) {
            (None, b';') => return Err("more than one statement".to_owned()),
            (None, b'\'' | b'"' | b'`') => quote = Some(byte),
            (Some(open), close) if open == close => quote = None,
            _ => {}
        }
    }
    Ok(sql)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn null_and_texts_are_missing_and_never_0() {
        assert_eq!(
            (number(Some("12.50")), number(Some("-3")), number(Some("t")), number(Some("f"))),
            (Some(12.5), Some(-3.0), Some(1.0), Some(0.0))
        );
        for cell in [None, Some(""), Some("NaN"), Some("Infinity"), Some("2026-11-29"), Some("00:00:07"), Some("ON")] {
            assert_eq!(number(cell), None, "{cell:?}");
        }
    }

    #[test]
    fn one_row_is_wanted() {
        let row: Row = vec![Some("1".to_owned())];
        assert_eq!(one(std::slice::from_ref(&row)), Ok(&row));
        assert_eq!(one(&[]), Err("no row".to_owned()));
        assert!(one(&[row.clone(), row]).unwrap_err().contains("found 2"));
    }

    #[test]
    fn only_statements_that_read_are_taken_and_one_of_them() {
        assert_eq!(only_reads(" select count(*) from t; "), Ok("select count(*) from t"));
        assert!(only_reads("WITH a AS (SELECT 1) SELECT * FROM a WHERE b = 'x;y'").is_ok());
        for sql in ["DELETE FROM t", "SELECT 1; DROP TABLE t", "", "CALL p()", "SET x = 1"] {
            assert!(only_reads(sql).is_err(), "{sql}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics_and_no_word_is_a_number(text in ".{0,60}", word in "[g-su-zG-SU-Z]{1,9}") {
            let _ = (number(Some(&text)), only_reads(&text));
            prop_assert!(number(Some(&word)).is_none() || word.eq_ignore_ascii_case("inf"));
        }
    }
}
