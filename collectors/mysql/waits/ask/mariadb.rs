//! The waits of MariaDB: the process list, row locks, and their roots.

use super::super::{count_kinds, mariadb, roots as heads_of, rows, waits_for, worst};
use super::{Asked, Found, Gate, Holder, Id, Plan, Read, Session, Sight, ask};
use crate::sql::cell;
use crate::sql::statement::normalise;
use std::collections::{BTreeSet, HashMap};

/// Who waits, who holds, and what sessions do.
pub async fn read(session: &mut Session, gate: Gate, plan: Plan, found: &mut Found) -> Asked<Read> {
    let mut read = Read::default();
    let mut above = Vec::new();
    if (plan.counts && !gate.nobody_else_runs()) || plan.rows {
        let Some(rows) = ask(session, found, "process list", &mariadb::sessions_sql()).await? else { return Ok(read) };
        (read.sessions, above) = mariadb::sessions(&rows);
        found.sessions = Some(count_kinds(&above));
    }
    if !plan.waits {
        return Ok(read);
    }
    if plan.rows
        && let Some(transactions) = ask(session, found, "row-lock waits", mariadb::TRANSACTIONS).await?
        && transactions.iter().any(|row| cell(row, 2) == Some("LOCK WAIT"))
        && let Some(locks) = ask(session, found, "locks", mariadb::LOCKS).await?
    {
        let (waiters, holders, running) = mariadb::row_waits(&transactions, &locks, &read.sessions);
        (read.waiters, read.holders) = (waiters, holders);
        for (id, statement) in running {
            if let Some(holder) = read.sessions.get_mut(&id) {
                holder.statement = Some(statement);
            }
        }
    }
    read.waiters.append(&mut above);
    Ok(read)
}

/// One root a lock.
pub async fn roots(session: &mut Session, sight: &Sight, read: &Read, found: &mut Found) -> Asked<HashMap<String, Holder>> {
    let waits_for = waits_for(&read.waiters);
    let heads: HashMap<&String, Vec<Id>> =
        read.holders.keys().map(|lock| (lock, heads_of(lock, &read.holders, &waits_for))).collect();
    let mut sessions = read.sessions.clone();
    sessions.insert(0, rows::prepared());
    let wordless = |id: &Id| *id != 0 && sessions.get(id).is_some_and(|holder| holder.statement.is_none());
    let silent: BTreeSet<Id> = heads.values().flatten().copied().filter(wordless).collect();
    let silent: Vec<Id> = silent.into_iter().collect();
    if sight.statements
        && !silent.is_empty()
        && let Some(rows) = ask(session, found, "statements of holders", &mariadb::statements_sql(&silent)).await?
    {
        for row in &rows {
            if let Some(holder) = rows::number(row, 0).and_then(|id| sessions.get_mut(&id)) {
                holder.statement = cell(row, 1).map(normalise).filter(|statement| !statement.is_empty());
            }
        }
    }
    Ok(heads.into_iter().filter_map(|(lock, heads)| Some((lock.clone(), worst(&heads, &sessions)?.clone()))).collect())
}
