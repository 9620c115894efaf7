//! The waits of MySQL: sessions, metadata locks, row locks, and the roots of both.

use super::super::{cadence::Clock, count_kinds, first_and_last, metadata, roots as heads_of, rows, waits_for, worst};
use super::{Asked, Found, Gate, Holder, Id, Plan, Read, Session, Sight, ask};
use std::collections::{BTreeSet, HashMap};

/// Who waits, and who holds what is waited for above the engine.
pub async fn read(session: &mut Session, sight: &Sight, gate: Gate, plan: Plan, found: &mut Found) -> Asked<Read> {
    let mut read = Read::default();
    let mut above = Vec::new();
    if plan.counts
        && !gate.nobody_else_runs()
        && let Some(rows) = ask(session, found, "waits above the engine", &metadata::waiters_sql(sight.statements)).await?
    {
        above = metadata::waiters(&rows);
        found.sessions = Some(count_kinds(&above));
    }
    if !plan.waits {
        return Ok(read);
    }
    if !above.is_empty()
        && sight.metadata
        && let Some(rows) = ask(session, found, "metadata locks", metadata::PENDING).await?
    {
        let objects = metadata::pending(&rows, &mut above);
        if let Some(sql) = metadata::granted_sql(&objects)
            && let Some(rows) = ask(session, found, "holders of metadata locks", &sql).await?
        {
            (read.holders, read.explicit) = metadata::granted(&rows, &objects);
        }
    }
    if plan.rows
        && let Some(rows) = ask(session, found, "row-lock waits", &rows::waiters_sql(sight.statements)).await?
    {
        read.waiters = rows::waiters(&rows);
    }
    read.waiters.append(&mut above);
    Ok(read)
}

/// One root a lock.
pub async fn roots(
    session: &mut Session,
    sight: &Sight,
    read: &Read,
    clock: &Clock,
    found: &mut Found,
) -> Asked<HashMap<String, Holder>> {
    let mut holders = read.holders.clone();
    let mut engine = first_and_last(&read.waiters, clock);
    engine.retain(|lock, _| lock.starts_with("innodb "));
    // The session that has waited longest has the fewest before it. It may have got its lock since: then the one that came
    // last is asked about.
    let mut transactions: HashMap<Id, Id> = HashMap::new();
    for attempt in 0..2 {
        let open = engine.iter().filter(|(lock, _)| !holders.contains_key(**lock));
        let asked: HashMap<Id, &str> =
            open.map(|(lock, (first, last))| (if attempt == 0 { *first } else { *last }, *lock)).collect();
        if asked.is_empty() {
            break;
        }
        let threads: Vec<Id> = asked.keys().copied().collect();
        let Some(rows) = ask(session, found, "holders of row locks", &rows::holders_sql(&threads)).await? else { break };
        for (waiter, holder, transaction) in rows::holders(&rows) {
            if let Some(lock) = asked.get(&waiter) {
                holders.entry((*lock).to_owned()).or_default().push(holder);
            }
            transactions.extend(transaction.map(|transaction| (transaction, holder)));
        }
    }
    let waits_for = waits_for(&read.waiters);
    let heads: HashMap<&String, Vec<Id>> = holders.keys().map(|lock| (lock, heads_of(lock, &holders, &waits_for))).collect();
    let threads: BTreeSet<Id> = heads.values().flatten().copied().filter(|id| *id != 0).collect();
    let threads: Vec<Id> = threads.into_iter().collect();
    let mut sessions = HashMap::new();
    if !threads.is_empty()
        && let Some(rows) = ask(session, found, "sessions of holders", &rows::sessions_sql(&threads, sight.statements)).await?
    {
        sessions = rows::sessions(&rows);
    }
    sessions.insert(0, rows::prepared());
    transactions.retain(|_, thread| threads.contains(thread) && !sessions.contains_key(thread));
    if !transactions.is_empty() {
        let asked: Vec<Id> = transactions.keys().copied().collect();
        for row in ask(session, found, "prepared transactions", &rows::prepared_sql(&asked)).await?.into_iter().flatten() {
            if let Some(thread) = rows::number(&row, 0).and_then(|transaction| transactions.get(&transaction)) {
                sessions.insert(*thread, rows::prepared());
            }
        }
    }
    for id in &read.explicit {
        if let Some(holder) = sessions.get_mut(id).filter(|holder| holder.idle) {
            holder.state = Some(metadata::IDLE_EXPLICIT.to_owned());
        }
    }
    Ok(heads.into_iter().filter_map(|(lock, heads)| Some((lock.clone(), worst(&heads, &sessions)?.clone()))).collect())
}
