//! Row locks of MySQL 8.0.1 and later: one row a waiter, through `INNODB_TRX`, by the primary key of `data_locks`.
//!
//! Entering by `trx_requested_lock_id` costs what the waiters cost: 200 of them some 5 ms, and 1 ms beside a transaction that
//! holds 400,000 row locks while nobody waits. Left unread on purpose: `data_locks` by its status (no index: 1.9 s there),
//! `data_lock_waits` as a whole (one row a pair: 20,100 rows for 200 waiters), `sys.innodb_lock_waits` (both).
//! Needs PROCESS, and SELECT on `performance_schema`. `INNODB_TRX` is a copy that is renewed only when it was not read for
//! 100 ms, by anybody.

use super::{Holder, Id, Waiter};
use crate::sql::statement::Normaliser;
use crate::sql::{Row, cell};
use std::collections::HashMap;

/// The waiters. With `statements`, what each of them runs.
pub fn waiters_sql(statements: bool) -> String {
    let (columns, join) = if statements {
        (
            "e.TIMER_WAIT, COALESCE(e.DIGEST_TEXT, e.SQL_TEXT, t.trx_query)",
            " LEFT JOIN performance_schema.events_statements_current e ON e.THREAD_ID = l.THREAD_ID",
        )
    } else {
        ("NULL, t.trx_query", "")
    };
    format!(
        "SELECT t.trx_mysql_thread_id, t.trx_id, t.trx_requested_lock_id, t.trx_wait_started, \
         TIMESTAMPDIFF(MICROSECOND, t.trx_wait_started, NOW(6)), l.THREAD_ID, l.OBJECT_SCHEMA, l.OBJECT_NAME, l.INDEX_NAME, \
         l.LOCK_TYPE, l.LOCK_MODE, l.LOCK_DATA, {columns} \
         FROM information_schema.INNODB_TRX t \
         LEFT JOIN performance_schema.data_locks l ON l.ENGINE_LOCK_ID = t.trx_requested_lock_id AND l.ENGINE = 'INNODB'{join} \
         WHERE t.trx_state = 'LOCK WAIT'"
    )
}

/// The sessions that hold what these threads wait for. One thread a lock is asked about, so the rows are bounded by the
/// waiters; only granted locks count, for waiters queue behind each other too.
pub fn holders_sql(threads: &[Id]) -> String {
    format!(
        "SELECT w.REQUESTING_THREAD_ID, w.BLOCKING_THREAD_ID, w.BLOCKING_ENGINE_TRANSACTION_ID FROM performance_schema.data_lock_waits w \
         JOIN performance_schema.data_locks b ON b.ENGINE_LOCK_ID = w.BLOCKING_ENGINE_LOCK_ID AND b.ENGINE = 'INNODB' \
         WHERE w.REQUESTING_THREAD_ID IN ({}) AND b.LOCK_STATUS = 'GRANTED'",
        list(threads)
    )
}

/// Which of these transactions no session has: prepared (XA), their sessions gone. Their locks still name the dead thread.
pub fn prepared_sql(transactions: &[Id]) -> String {
    format!("SELECT trx_id FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = 0 AND trx_id IN ({})", list(transactions))
}

/// What these threads do. With `statements`, what they run or ran last.
pub fn sessions_sql(threads: &[Id], statements: bool) -> String {
    let (column, join) = if statements {
        (
            "COALESCE(e.DIGEST_TEXT, e.SQL_TEXT, th.PROCESSLIST_INFO)",
            " LEFT JOIN performance_schema.events_statements_current e ON e.THREAD_ID = th.THREAD_ID",
        )
    } else {
        ("th.PROCESSLIST_INFO", "")
    };
    format!(
        "SELECT th.THREAD_ID, th.PROCESSLIST_ID, th.PROCESSLIST_COMMAND, th.PROCESSLIST_TIME, th.NAME, {column} \
         FROM performance_schema.threads th{join} WHERE th.THREAD_ID IN ({})",
        list(threads)
    )
}

/// Numbers with commas between.
pub fn list(ids: &[Id]) -> String {
    ids.iter().map(Id::to_string).collect::<Vec<_>>().join(",")
}

/// Parses [`waiters_sql`]. A stored program gives a row for every level of its statements: the last one counts.
pub fn waiters(rows: &[Row]) -> Vec<Waiter> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut statements = Normaliser::default();
    let mut waiters: Vec<Waiter> = Vec::with_capacity(rows.len());
    for row in rows {
        let Some(waiter) = waiter(row, &mut statements) else { continue };
        if let Some(&place) = places.get(&waiter.session) {
            waiters[place] = waiter;
        } else {
            places.insert(waiter.session.clone(), waiters.len());
            waiters.push(waiter);
        }
    }
    waiters
}

fn waiter(row: &Row, statements: &mut Normaliser) -> Option<Waiter> {
    let session = cell(row, 0)?.to_owned();
    let lock_id = cell(row, 2).unwrap_or_default();
    let table = cell(row, 9) == Some("TABLE");
    let object = match (cell(row, 6), cell(row, 7)) {
        (Some(schema), Some(table)) => Some(format!("{schema}.{table}")),
        _ => None,
    };
    Some(Waiter {
        id: number(row, 5),
        session,
        kind: if table { "table" } else { "row" },
        lock: format!("innodb {}", place(lock_id, table)),
        begun: format!("{} {}", cell(row, 1).unwrap_or_default(), cell(row, 3).unwrap_or_default()),
        object,
        index: cell(row, 8).map(str::to_owned),
        row: cell(row, 11).map(str::to_owned),
        mode: cell(row, 10).map(str::to_owned),
        since_ms: float(row, 4).map(|micros| micros / 1e3),
        statement_ms: float(row, 12).map(picoseconds_to_ms),
        statement: cell(row, 13).map(|text| shown(text, statements)),
    })
}

/// The record or table behind a lock. Its id ends in `space:page:record:address`, or `table:address`; what stands before,
/// the transaction and how often its memory was used, differs between locks of the same record.
fn place(lock_id: &str, table: bool) -> &str {
    let parts = if table { 2 } else { 4 };
    let Some((all, _)) = lock_id.rsplit_once(':') else { return lock_id };
    let start = lock_id.rmatch_indices(':').nth(parts - 1).map(|(at, _)| at + 1);
    start.map_or(all, |start| &all[start.min(all.len())..])
}

/// A statement without its values. The digest of one that was sent prepared begins with a word that was never in it.
pub fn shown(statement: &str, statements: &mut Normaliser) -> String {
    let text = statements.shown(statement);
    match text.strip_prefix("EXECUTE ") {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_alphabetic()) && rest.contains(' ') && !rest.contains(" USING @") => {
            rest.to_owned()
        }
        _ => text,
    }
}

/// Performance schema timers.
pub fn picoseconds_to_ms(picoseconds: f64) -> f64 {
    picoseconds / 1e9
}

/// A cell as an unsigned number.
pub fn number(row: &Row, at: usize) -> Option<Id> {
    cell(row, at).and_then(|text| text.parse().ok())
}

/// A cell as a time that is not negative.
pub fn float(row: &Row, at: usize) -> Option<f64> {
    cell(row, at).and_then(|text| text.parse::<f64>().ok()).filter(|value| value.is_finite() && *value >= 0.0)
}

/// Parses [`holders_sql`]: the thread that was asked about, one that holds, and its transaction. A recovered transaction has
/// no thread: 0.
pub fn holders(rows: &[Row]) -> Vec<(Id, Id, Option<Id>)> {
    rows.iter().filter_map(|row| Some((number(row, 0)?, number(row, 1).unwrap_or(0), number(row, 2)))).collect()
}

/// Parses [`sessions_sql`].
pub fn sessions(rows: &[Row]) -> HashMap<Id, Holder> {
    let mut statements = Normaliser::default();
    let holder = |row: &Row| {
        let id = number(row, 0)?;
        let idle = cell(row, 2) == Some("Sleep");
        let session = cell(row, 1).map_or_else(|| format!("thread {id} {}", cell(row, 4).unwrap_or_default()), str::to_owned);
        let state = if idle { "idle in transaction" } else { "running" };
        Some((
            id,
            Holder {
                session: session.trim_end().to_owned(),
                state: Some(state.to_owned()),
                idle,
                seconds: float(row, 3).unwrap_or_default(),
                statement: cell(row, 5).map(|text| shown(text, &mut statements)),
            },
        ))
    };
    rows.iter().filter_map(holder).collect()
}

/// A transaction that was prepared (XA) and whose session is gone.
pub fn prepared() -> Holder {
    Holder {
        session: "-".to_owned(),
        state: Some("prepared transaction without a session".to_owned()),
        idle: true,
        ..Holder::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows_of as rows;
    use super::*;
    use crate::damaged::{every_change, every_cut};
    use proptest::prelude::*;

    #[test]
    fn two_hundred_waiters_of_a_real_server_are_two_hundred_on_one_record() {
        let found = waiters(&rows(include_str!("../../../fixtures/mysql/9.7.4/row_waiters_200.tsv")));
        assert_eq!(found.len(), 200);
        let locks: std::collections::HashSet<_> = found.iter().map(|waiter| waiter.lock.as_str()).collect();
        assert_eq!(locks.len(), 1, "{locks:?}");
        for waiter in &found {
            assert_eq!(
                (waiter.kind, waiter.object.as_deref(), waiter.index.as_deref(), waiter.row.as_deref(), waiter.mode.as_deref()),
                ("row", Some("shop.slot"), Some("PRIMARY"), Some("17"), Some("X,REC_NOT_GAP"))
            );
            assert_eq!(waiter.statement.as_deref(), Some("UPDATE `shop` . `slot` SET `taken` = `taken` + ? WHERE `id` = ?"));
            assert!(waiter.id.is_some() && waiter.statement_ms.is_some_and(|ms| ms > 1000.0) && waiter.since_ms.is_some());
        }
    }

    #[test]
    fn a_waiter_whose_lock_was_gone_is_kept_without_its_object() {
        let found = waiters(&rows(
            "9\t77\t1:2:3:4:5\t2026-11-29 20:00:00\t1000\tNULL\tNULL\tNULL\tNULL\tNULL\tNULL\tNULL\tNULL\tUPDATE t SET a = 5",
        ));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].id, &found[0].object, &found[0].row, found[0].kind), (None, &None, &None, "row"));
        assert_eq!(found[0].statement.as_deref(), Some("UPDATE t SET a = ?"));
    }

    #[test]
    fn a_procedure_s_levels_are_one_waiter_with_its_inner_statement() {
        let line =
            |statement: &str| format!("9\t77\t1:2:3:4:5\tt\t1000\t40\ts\tt\tPRIMARY\tRECORD\tX\t1\t1000000000\t{statement}\n");
        let found = waiters(&rows(&(line("CALL p ( )") + &line("UPDATE t SET a = ?"))));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].statement.as_deref(), found[0].statement_ms), (Some("UPDATE t SET a = ?"), Some(1.0)));
    }

    #[test]
    fn a_prepared_statement_is_shown_as_it_was_written() {
        let shown = |text| shown(text, &mut Normaliser::default());
        assert_eq!(shown("EXECUTE DELETE FROM `t` WHERE `a` = ?"), "DELETE FROM `t` WHERE `a` = ?");
        assert_eq!(shown("EXECUTE `s` USING @a"), "EXECUTE `s` USING @a");
        assert_eq!(shown("EXECUTE s USING @a"), "EXECUTE s USING @a");
    }

    #[test]
    fn the_record_of_a_lock_stands_before_the_address_in_its_id() {
        assert_eq!(place("93825657644040:14:2:5:18:93825809203744", false), "2:5:18");
        assert_eq!(place("139:2:5:18:94", false), "2:5:18");
        assert_eq!(place("139:7:1082:94", true), "1082");
        assert_eq!((place("odd", false), place("a:b", false), place("", true)), ("odd", "a", ""));
    }

    #[test]
    fn holders_without_a_session_are_prepared_transactions_and_the_rest_are_told_apart() {
        assert_eq!(holders(&rows("40\t41\t9\n42\tNULL\tNULL")), [(40, 41, Some(9)), (42, 0, None)]);
        let found = sessions(&rows(
            "41\t7\tSleep\t3\tthread/sql/one_connection\tSELECT * FROM t WHERE id = 17 FOR UPDATE\n42\tNULL\tNULL\tNULL\tthread/innodb/purge\tNULL",
        ));
        let idle = &found[&41];
        assert_eq!((idle.session.as_str(), idle.state.as_deref(), idle.seconds), ("7", Some("idle in transaction"), 3.0));
        assert_eq!(idle.statement.as_deref(), Some("SELECT * FROM t WHERE id = ? FOR UPDATE"));
        assert_eq!(found[&42].session, "thread 42 thread/innodb/purge");
    }

    #[test]
    fn real_rows_cut_or_changed_at_any_byte_never_give_more_waiters_and_no_other_wait_of_0() {
        let all = include_str!("../../../fixtures/mysql/9.7.4/row_waiters_200.tsv");
        let some: String = all.split_inclusive('\n').filter(|line| !line.starts_with('#')).take(3).collect();
        let damaged = every_cut(some.as_bytes()).map(<[u8]>::to_vec).chain(every_change(some.as_bytes()));
        for text in damaged.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()) {
            let rows = rows(&text);
            let found = waiters(&rows);
            assert!(found.len() <= rows.len(), "{text}");
            let new_zero = |ms: Option<f64>| ms == Some(0.0) && !text.contains("\t0\t");
            assert!(!found.iter().any(|waiter| new_zero(waiter.statement_ms) || new_zero(waiter.since_ms)), "{text}");
            let _ = (holders(&rows), sessions(&rows));
        }
    }

    proptest! {
        #[test]
        fn any_rows_are_parsed_without_a_panic_and_never_give_more_waiters(cells in proptest::collection::vec(proptest::collection::vec(proptest::option::of(".{0,9}"), 0..15), 0..6)) {
            prop_assert!(waiters(&cells).len() <= cells.len());
            let _ = (holders(&cells), sessions(&cells));
        }
    }
}
