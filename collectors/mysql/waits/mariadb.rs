//! Row locks of MariaDB: `INNODB_TRX` and `INNODB_LOCKS`. The latter lists only locks that somebody waits for, so a lock of it
//! that nobody requested is held: holders come without `INNODB_LOCK_WAITS`, whose rows are pairs. Sessions come from the process
//! list, which needs PROCESS and tells less without an error if it is missing; `INNODB_TRX` proves it.
//!
//! Both InnoDB tables are read one after the other from the same copy: it is renewed only when it was not read for 100 ms.
//! Of metadata locks the sessions' states tell that somebody waits, and no more.

use super::rows::{float, number};
use super::{Holder, Holders, Id, Waiter, kind_of_state, state_waits};
use crate::sql::statement::Normaliser;
use crate::sql::{Row, cell};
use std::collections::{HashMap, HashSet};

/// Every session but ours; the statement only of those that wait for a lock above the engine.
pub fn sessions_sql() -> String {
    format!(
        "SELECT ID, COMMAND, STATE, TIME_MS, IF({}, INFO, NULL) FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID()",
        state_waits("STATE")
    )
}

/// Every transaction.
pub const TRANSACTIONS: &str = "SELECT trx_id, trx_mysql_thread_id, trx_state, trx_requested_lock_id, trx_wait_started, \
                                TIMESTAMPDIFF(MICROSECOND, trx_wait_started, NOW(6)), trx_query FROM information_schema.INNODB_TRX";

/// The locks that somebody waits for, held and requested.
pub const LOCKS: &str = "SELECT lock_id, lock_trx_id, lock_mode, lock_type, lock_table, lock_index, lock_space, lock_page, lock_rec, lock_data \
                         FROM information_schema.INNODB_LOCKS";

/// The last statement of these connections, where the performance schema is on.
pub fn statements_sql(connections: &[Id]) -> String {
    format!(
        "SELECT th.PROCESSLIST_ID, COALESCE(e.DIGEST_TEXT, e.SQL_TEXT) FROM performance_schema.threads th \
         JOIN performance_schema.events_statements_current e ON e.THREAD_ID = th.THREAD_ID WHERE th.PROCESSLIST_ID IN ({})",
        super::rows::list(connections)
    )
}

/// Parses [`sessions_sql`]: the sessions, and the waiters for locks above the engine.
pub fn sessions(rows: &[Row]) -> (HashMap<Id, Holder>, Vec<Waiter>) {
    let (mut sessions, mut waiters) = (HashMap::with_capacity(rows.len()), Vec::new());
    let mut statements = Normaliser::default();
    for row in rows {
        let Some(id) = number(row, 0) else { continue };
        let idle = cell(row, 1) == Some("Sleep");
        let state = if idle { "idle in transaction" } else { "running" };
        let ms = float(row, 3);
        let holder = Holder {
            session: id.to_string(),
            state: Some(state.to_owned()),
            idle,
            seconds: ms.unwrap_or_default() / 1e3,
            statement: None,
        };
        sessions.insert(id, holder);
        if let Some(kind) = cell(row, 2).and_then(kind_of_state).filter(|_| !idle) {
            waiters.push(Waiter {
                id: Some(id),
                session: id.to_string(),
                kind,
                lock: format!("{kind} of {id}"),
                statement_ms: ms,
                statement: cell(row, 4).map(|text| statements.shown(text)),
                ..Waiter::default()
            });
        }
    }
    (sessions, waiters)
}

/// Parses [`TRANSACTIONS`] and [`LOCKS`]: the waiters, the holders of each lock, and the statements that holders run.
pub fn row_waits(
    transactions: &[Row],
    locks: &[Row],
    sessions: &HashMap<Id, Holder>,
) -> (Vec<Waiter>, Holders, HashMap<Id, String>) {
    let connection: HashMap<&str, Id> =
        transactions.iter().filter_map(|row| Some((cell(row, 0)?, number(row, 1).unwrap_or(0)))).collect();
    let by_id: HashMap<&str, &Row> = locks.iter().filter_map(|row| Some((cell(row, 0)?, row))).collect();
    let mut statements = Normaliser::default();
    let mut requested = HashSet::new();
    let mut waiters = Vec::new();
    let mut running = HashMap::new();
    for row in transactions {
        let id = number(row, 1).unwrap_or(0);
        let statement = cell(row, 6).map(|text| statements.shown(text));
        if cell(row, 2) != Some("LOCK WAIT") {
            running.extend(statement.map(|statement| (id, statement)));
            continue;
        }
        let lock_id = cell(row, 3).unwrap_or_default();
        requested.insert(lock_id);
        let lock = by_id.get(lock_id);
        waiters.push(Waiter {
            id: Some(id).filter(|_| lock.is_some()),
            session: id.to_string(),
            kind: if lock.and_then(|lock| cell(lock, 3)) == Some("TABLE") { "table" } else { "row" },
            lock: lock.map_or_else(|| format!("innodb {lock_id}"), |lock| identity(lock)),
            begun: format!("{} {}", cell(row, 0).unwrap_or_default(), cell(row, 4).unwrap_or_default()),
            object: lock.and_then(|lock| cell(lock, 4)).map(table),
            index: lock.and_then(|lock| cell(lock, 5)).map(str::to_owned),
            row: lock.and_then(|lock| cell(lock, 9)).map(str::to_owned),
            mode: lock.and_then(|lock| cell(lock, 2)).map(str::to_owned),
            since_ms: float(row, 5).map(|micros| micros / 1e3),
            statement_ms: sessions.get(&id).map(|session| session.seconds * 1e3).filter(|ms| *ms > 0.0),
            statement,
        });
    }
    let mut holders = Holders::new();
    for lock in locks.iter().filter(|lock| cell(lock, 0).is_some_and(|id| !requested.contains(id))) {
        // A transaction that is in the locks and not in the list has ended, or belongs to no session.
        if let Some(&holder) = cell(lock, 1).and_then(|transaction| connection.get(transaction)) {
            holders.entry(identity(lock)).or_default().push(holder);
        }
    }
    (waiters, holders, running)
}

fn identity(lock: &Row) -> String {
    let part = |at| cell(lock, at).unwrap_or("-");
    format!("innodb {} {} {} {}:{}:{}", part(3), part(4), part(5), part(6), part(7), part(8))
}

/// `` `shop`.`slot` /* Partition `p0` */ `` is `shop.slot`.
fn table(name: &str) -> String {
    let mut parts = Vec::new();
    let mut rest = name.trim();
    while parts.len() < 2 {
        let Some(inner) = rest.strip_prefix('`') else { break };
        let mut part = String::new();
        let mut chars = inner.char_indices().peekable();
        let mut end = inner.len();
        while let Some((at, c)) = chars.next() {
            if c != '`' {
                part.push(c);
            } else if chars.peek().is_some_and(|(_, next)| *next == '`') {
                part.push('`');
                chars.next();
            } else {
                end = at + 1;
                break;
            }
        }
        parts.push(part);
        rest = inner[end..].trim_start_matches('.');
    }
    if parts.is_empty() { name.to_owned() } else { parts.join(".") }
}

#[cfg(test)]
mod tests {
    use super::super::rows_of as rows;
    use super::*;
    use crate::damaged::{every_change, every_cut};
    use proptest::prelude::*;

    #[test]
    fn two_hundred_waiters_of_a_real_server_have_one_holder_which_is_idle() {
        let (sessions, others) = sessions(&rows(include_str!("../../../fixtures/mariadb/10.11.19/sessions_200.tsv")));
        let transactions = rows(include_str!("../../../fixtures/mariadb/10.11.19/transactions_200.tsv"));
        let locks = rows(include_str!("../../../fixtures/mariadb/10.11.19/locks_200.tsv"));
        let (waiters, holders, running) = row_waits(&transactions, &locks, &sessions);
        assert!(others.is_empty() && running.is_empty());
        assert_eq!((waiters.len(), holders.len()), (200, 1));
        let heads = super::super::roots(&waiters[0].lock, &holders, &super::super::waits_for(&waiters));
        assert_eq!(heads.len(), 1);
        assert_eq!(sessions[&heads[0]].state.as_deref(), Some("idle in transaction"));
        for waiter in &waiters {
            assert_eq!(
                (waiter.object.as_deref(), waiter.index.as_deref(), waiter.row.as_deref(), waiter.mode.as_deref()),
                (Some("shop.slot"), Some("PRIMARY"), Some("17"), Some("X"))
            );
            assert!(waiter.statement_ms.is_some_and(|ms| ms > 500.0), "{waiter:?}");
            assert_eq!(waiter.statement.as_deref(), Some("UPDATE shop.slot SET taken=taken+? WHERE id=?"));
        }
    }

    #[test]
    fn a_table_s_name_loses_its_back_quotes() {
        assert_eq!(table("`shop`.`slot`"), "shop.slot");
        assert_eq!(table("`a``b`.`c.d` /* Partition `p0` */"), "a`b.c.d");
        assert_eq!(table("plain"), "plain");
    }

    #[test]
    fn a_session_that_waits_for_a_metadata_lock_is_counted_and_one_that_sleeps_is_not() {
        let (_, found) = sessions(&rows(
            "7\tQuery\tWaiting for table metadata lock\t1500.5\tSELECT 5\n8\tSleep\t\t9\tNULL\n9\tQuery\tUser lock\t20\tSELECT GET_LOCK('x', 5)",
        ));
        assert_eq!(found.iter().map(|waiter| waiter.kind).collect::<Vec<_>>(), ["metadata", "advisory"]);
        assert_eq!((found[0].statement.as_deref(), found[0].statement_ms), (Some("SELECT ?"), Some(1500.5)));
        assert_eq!(found[1].statement.as_deref(), Some("SELECT GET_LOCK(...)"));
    }

    #[test]
    fn real_rows_cut_or_changed_at_any_byte_never_give_more_waiters() {
        let few = |text: &str| text.split_inclusive('\n').filter(|line| !line.starts_with('#')).take(3).collect::<String>();
        let texts = [
            few(include_str!("../../../fixtures/mariadb/10.11.19/transactions_200.tsv")),
            few(include_str!("../../../fixtures/mariadb/10.11.19/locks_200.tsv")),
            few(include_str!("../../../fixtures/mariadb/10.11.19/sessions_200.tsv")),
        ];
        for at in 0..texts.len() {
            let bytes = texts[at].as_bytes();
            for damaged in every_cut(bytes).map(<[u8]>::to_vec).chain(every_change(bytes)) {
                let mut texts = texts.clone();
                texts[at] = String::from_utf8_lossy(&damaged).into_owned();
                let [transactions, locks, sessions] = texts.each_ref().map(|text| rows(text));
                let (found, _) = super::sessions(&sessions);
                let (waiters, _, _) = row_waits(&transactions, &locks, &found);
                assert!(waiters.len() <= transactions.len(), "{texts:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_rows_are_parsed_without_a_panic(cells in proptest::collection::vec(proptest::collection::vec(proptest::option::of("[`./*a-z0-9]{0,9}"), 0..11), 0..6)) {
            let (found, _) = sessions(&cells);
            let (waiters, _, _) = row_waits(&cells, &cells, &found);
            prop_assert!(waiters.len() <= cells.len());
            for row in &cells {
                if let Some(name) = cell(row, 0) { let _ = table(name); }
            }
        }
    }
}
