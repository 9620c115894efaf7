//! The reply of `SHOW GLOBAL STATUS` (and other replies of names and values) as numbers. Pure, and strict in one point:
//! what is not a plain number of its kind is missing, never 0.

use crate::fields::Fields;
use crate::sql::{Row, cell};

/// Names and values as the server wrote them.
#[derive(Clone, Debug, Default)]
pub struct Pairs(Fields);

/// Why a name gives no number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The reply has no such name.
    Absent,
    /// It is there, and no number that could be used: the text found.
    Unusable(String),
}

/// Servers write -1, and 2^64 - 1 or a little less (a difference that wrapped), for "not known".
const SENTINEL: i128 = 1 << 63;

impl Pairs {
    /// Takes rows of a name and a value; the last of several values wins. Names are compared without case: products differ.
    pub fn of_rows(rows: &[Row]) -> Self {
        let mut pairs = Fields::default();
        pairs.extend(rows.iter().filter_map(|row| cell(row, 0).zip(cell(row, 1))));
        Self(pairs)
    }

    /// The text behind a name.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get_in_any_case(name)
    }

    /// Whether the name is there, with whatever value.
    pub fn has(&self, name: &str) -> bool {
        self.text(name).is_some()
    }

    /// Nothing was read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A whole number that is not negative and not a sentinel.
    pub fn whole(&self, name: &str) -> Result<i128, Missing> {
        let text = self.text(name).ok_or(Missing::Absent)?;
        text.trim()
            .parse::<i128>()
            .ok()
            .filter(|number| (0..SENTINEL).contains(number))
            .ok_or_else(|| Missing::Unusable(text.chars().take(60).collect()))
    }

    /// A number that is not negative, finite and not a sentinel, whole or with decimals.
    pub fn number(&self, name: &str) -> Result<f64, Missing> {
        let whole = self.whole(name);
        if let Err(Missing::Unusable(text)) = &whole
            && text.contains('.')
            && let Ok(number) = text.trim().parse::<f64>()
            && (0.0..SENTINEL as f64).contains(&number)
        {
            return Ok(number);
        }
        whole.map(|number| number as f64)
    }

    /// The first less the second, worked out whole: positions in the redo log are larger than an `f64` tells apart. The two
    /// are read one after the other inside the server, so that a small negative difference is 0.
    pub fn less(&self, minuend: &str, subtrahend: &str) -> Result<f64, Missing> {
        Ok((self.whole(minuend)? - self.whole(subtrahend)?).max(0) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damaged::{hold, is_written};
    use proptest::prelude::*;

    fn fixture(text: &str) -> Pairs {
        let rows: Vec<Row> = text.lines().map(|line| line.splitn(2, '\t').map(|cell| Some(cell.to_owned())).collect()).collect();
        Pairs::of_rows(&rows)
    }

    const MYSQL: &str = include_str!("../../fixtures/mysql/9.7.4/global_status.tsv");
    const MARIADB: &str = include_str!("../../fixtures/mariadb/10.11.19/global_status.tsv");

    fn mysql() -> Pairs {
        fixture(MYSQL)
    }

    fn mariadb() -> Pairs {
        fixture(MARIADB)
    }

    #[test]
    fn a_real_reply_of_mysql_gives_its_numbers() {
        let status = mysql();
        assert_eq!(status.number("Threads_running"), Ok(2.0));
        assert_eq!(status.number("Innodb_row_lock_time"), Ok(2_476_765.0));
        assert_eq!(status.number("innodb_row_lock_waits"), Ok(205.0));
        assert_eq!(status.less("Innodb_redo_log_current_lsn", "Innodb_redo_log_checkpoint_lsn"), Ok(0.0));
        assert_eq!(status.less("Innodb_buffer_pool_read_requests", "Innodb_buffer_pool_reads"), Ok(5_007_922.0));
        assert_eq!(status.number("Innodb_deadlocks"), Err(Missing::Absent));
    }

    #[test]
    fn a_real_reply_of_mariadb_gives_its_numbers_and_its_sentinels_are_missing() {
        let status = mariadb();
        assert_eq!(status.number("Innodb_checkpoint_age"), Ok(16_354_800.0));
        assert_eq!(status.number("Innodb_deadlocks"), Ok(0.0));
        assert_eq!(status.number("wsrep_local_index"), Err(Missing::Unusable("18446744073709551615".to_owned())));
    }

    #[test]
    fn every_gauge_has_a_source_on_one_product_at_least_that_the_real_replies_know() {
        use super::super::gauges::{ITEMS, Origin};
        let (mysql, mariadb) = (mysql(), mariadb());
        for item in ITEMS {
            let known = item.from.iter().any(|from| match from {
                // Galera's are there only in a cluster.
                Origin::Status(name) => mysql.has(name) || mariadb.has(name) || name.starts_with("wsrep_"),
                Origin::Less(a, b) => [&mysql, &mariadb].iter().any(|status| status.has(a) && status.has(b)),
                Origin::Questions => mysql.has("Questions") && mariadb.has("Questions"),
                Origin::Metric(_) | Origin::Setting(_) | Origin::Sessions(_) | Origin::Cores | Origin::Further(_) => true,
            });
            assert!(known, "{}", item.gauge.name);
        }
    }

    #[test]
    fn on_off_minus_one_wrapped_and_empty_are_missing_with_what_was_found() {
        let status = fixture("a\tON\nb\t-1\nc\t18446744073709551613\nd\t\ne\t1.5\nf\tNaN\ng\t0\nh\t1e999");
        for (name, found) in [("a", "ON"), ("b", "-1"), ("c", "18446744073709551613"), ("d", ""), ("f", "NaN"), ("h", "1e999")] {
            assert_eq!(status.number(name), Err(Missing::Unusable(found.to_owned())), "{name}");
        }
        assert_eq!((status.number("e"), status.number("g")), (Ok(1.5), Ok(0.0)));
        assert_eq!(status.whole("e"), Err(Missing::Unusable("1.5".to_owned())));
    }

    #[test]
    fn null_and_a_row_too_short_are_absent() {
        let status = Pairs::of_rows(&[vec![Some("a".to_owned()), None], vec![Some("b".to_owned())], vec![]]);
        assert_eq!((status.number("a"), status.number("b")), (Err(Missing::Absent), Err(Missing::Absent)));
    }

    #[test]
    fn a_checkpoint_read_after_the_position_is_no_negative_age() {
        let status = fixture("a\t100\nb\t101");
        assert_eq!(status.less("a", "b"), Ok(0.0));
    }

    #[test]
    fn a_reply_cut_or_changed_at_any_byte_gives_what_is_written_there_or_nothing() {
        // The names that are asked for in a run; all 439 would be another size.
        let asked = ["Threads_running", "Innodb_row_lock_current_waits", "Innodb_row_lock_waits", "Uptime", "Questions"];
        for text in [MYSQL, MARIADB] {
            let lines = text.split_inclusive('\n').filter(|line| asked.iter().any(|name| line.starts_with(&format!("{name}\t"))));
            let reply: String = lines.collect();
            let values = |bytes: &[u8]| {
                // The protocol gives whole cells; a row that is not whole is none.
                let text = String::from_utf8_lossy(crate::http::whole_lines(bytes)).into_owned();
                let pairs = fixture(&text);
                asked.into_iter().filter_map(move |name| Some((name, pairs.number(name).ok()?))).collect::<Vec<_>>()
            };
            hold(reply.as_bytes(), values, is_written);
        }
    }

    proptest! {
        #[test]
        fn what_cannot_be_read_never_becomes_a_number(text in "[^0-9]{0,12}") {
            let status = Pairs::of_rows(&[vec![Some("x".to_owned()), Some(text)]]);
            prop_assert!(status.number("x").is_err());
        }

        #[test]
        fn a_number_is_what_stood_there(value in 0_i64..(1 << 53)) {
            let status = Pairs::of_rows(&[vec![Some("X".to_owned()), Some(value.to_string())]]);
            prop_assert_eq!(status.number("x"), Ok(value as f64));
        }

        #[test]
        fn any_rows_are_taken_without_a_panic(rows in proptest::collection::vec(proptest::collection::vec(proptest::option::of(".{0,8}"), 0..4), 0..6)) {
            let status = Pairs::of_rows(&rows);
            for row in &rows {
                if let Some(name) = cell(row, 0) {
                    let _ = (status.number(name), status.less(name, name));
                }
            }
        }
    }
}
