//! Locks above the storage engine on MySQL: metadata locks, global locks, table locks, `GET_LOCK()`. Who waits is told by the
//! sessions' states, for what and behind whom by `metadata_locks`, read only while somebody waits (it has no index on its
//! status). An ALTER that waits makes every later SELECT wait behind it: the root is the reader before it, not the ALTER.

use super::rows::{float, number, picoseconds_to_ms, shown};
use super::{Holders, Id, Waiter, kind_of_state, state_waits};
use crate::mysql::session::quoted;
use crate::sql::statement::Normaliser;
use crate::sql::{Row, cell};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The sessions that wait. With `statements`, what each of them runs.
pub fn waiters_sql(statements: bool) -> String {
    let (columns, join) = if statements {
        (
            "e.EVENT_ID, e.TIMER_WAIT, COALESCE(e.DIGEST_TEXT, e.SQL_TEXT, th.PROCESSLIST_INFO)",
            " LEFT JOIN performance_schema.events_statements_current e ON e.THREAD_ID = th.THREAD_ID",
        )
    } else {
        ("NULL, NULL, th.PROCESSLIST_INFO", "")
    };
    format!(
        "SELECT th.THREAD_ID, th.PROCESSLIST_ID, th.PROCESSLIST_STATE, {columns} FROM performance_schema.threads th{join} WHERE {}",
        state_waits("th.PROCESSLIST_STATE")
    )
}

/// The locks that are waited for.
pub const PENDING: &str = "SELECT OWNER_THREAD_ID, OBJECT_TYPE, OBJECT_SCHEMA, OBJECT_NAME, LOCK_TYPE \
                           FROM performance_schema.metadata_locks WHERE LOCK_STATUS = 'PENDING'";

/// What an idle holder of such a lock does that took it until it gives it back.
pub const IDLE_EXPLICIT: &str = "idle, holds the lock until it gives it back";

/// At most so many objects are looked up in one read; the waits on others stay without a holder.
const OBJECTS: usize = 20;

/// Parses [`waiters_sql`]: one waiter a session, the last level of a stored program.
pub fn waiters(rows: &[Row]) -> Vec<Waiter> {
    let mut found: BTreeMap<Id, Waiter> = BTreeMap::new();
    let mut statements = Normaliser::default();
    for row in rows {
        let (Some(id), Some(kind)) = (number(row, 0), cell(row, 2).and_then(kind_of_state)) else { continue };
        let waiter = Waiter {
            id: Some(id),
            session: cell(row, 1).map_or_else(|| format!("thread {id}"), str::to_owned),
            kind,
            lock: format!("{kind} of {id}"),
            begun: cell(row, 3).unwrap_or_default().to_owned(),
            statement_ms: float(row, 4).map(picoseconds_to_ms),
            statement: cell(row, 5).map(|text| shown(text, &mut statements)),
            ..Waiter::default()
        };
        found.insert(id, waiter);
    }
    found.into_values().collect()
}

/// An object of the server's lock manager.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Object {
    kind: String,
    schema: Option<String>,
    name: Option<String>,
}

impl Object {
    fn identity(&self) -> String {
        format!("{} {}.{}", self.kind, self.schema.as_deref().unwrap_or("-"), self.name.as_deref().unwrap_or("-"))
    }

    /// For the file: `schema.table`, a name alone, or what kind of thing it is.
    fn shown(&self) -> String {
        match (&self.schema, &self.name) {
            (Some(schema), Some(name)) if !schema.is_empty() => format!("{schema}.{name}"),
            (Some(only), None) | (_, Some(only)) if !only.is_empty() => only.clone(),
            _ => self.kind.to_ascii_lowercase(),
        }
    }

    fn condition(&self) -> String {
        let is = |column: &str, value: &Option<String>| match value {
            Some(value) => format!("{column} = '{}'", quoted(value)),
            None => format!("{column} IS NULL"),
        };
        format!(
            "OBJECT_TYPE = '{}' AND {} AND {}",
            quoted(&self.kind),
            is("OBJECT_SCHEMA", &self.schema),
            is("OBJECT_NAME", &self.name)
        )
    }
}

/// Parses [`PENDING`] and tells the waiters what they wait for. Returns the objects and the modes waited for.
pub fn pending(rows: &[Row], waiters: &mut [Waiter]) -> BTreeMap<Object, HashSet<String>> {
    let mut objects: BTreeMap<Object, HashSet<String>> = BTreeMap::new();
    let places: HashMap<Id, usize> = waiters.iter().enumerate().filter_map(|(at, waiter)| Some((waiter.id?, at))).collect();
    for row in rows {
        let (Some(owner), Some(kind)) = (number(row, 0), cell(row, 1)) else { continue };
        let Some(&at) = places.get(&owner) else { continue };
        let object =
            Object { kind: kind.to_owned(), schema: cell(row, 2).map(str::to_owned), name: cell(row, 3).map(str::to_owned) };
        let mode = cell(row, 4).unwrap_or_default().to_owned();
        let waiter = &mut waiters[at];
        waiter.lock = object.identity();
        waiter.object = Some(object.shown());
        waiter.mode = Some(mode.clone()).filter(|mode| !mode.is_empty());
        objects.entry(object).or_default().insert(mode);
    }
    objects
}

/// Who holds these objects: one branch an object, each by its index. `None` where there is nothing to ask.
pub fn granted_sql(objects: &BTreeMap<Object, HashSet<String>>) -> Option<String> {
    let branch = |(at, object): (usize, &Object)| {
        format!(
            "(SELECT {at}, OWNER_THREAD_ID, LOCK_TYPE, LOCK_DURATION FROM performance_schema.metadata_locks WHERE {} AND LOCK_STATUS = 'GRANTED' LIMIT 1000)",
            object.condition()
        )
    };
    let branches: Vec<_> = objects.keys().take(OBJECTS).enumerate().map(branch).collect();
    (!branches.is_empty()).then(|| branches.join(" UNION ALL "))
}

/// Parses [`granted_sql`]: the holders of each lock, those that conflict with somebody who waits, and of these the sessions
/// that took the lock until they give it back (LOCK TABLES, `GET_LOCK`, FLUSH TABLES WITH READ LOCK).
pub fn granted(rows: &[Row], objects: &BTreeMap<Object, HashSet<String>>) -> (Holders, HashSet<Id>) {
    let (mut holders, mut explicit) = (Holders::new(), HashSet::new());
    let objects: Vec<_> = objects.iter().collect();
    for row in rows {
        let place = number(row, 0).and_then(|at| objects.get(at as usize));
        let (Some((object, wanted)), Some(owner)) = (place, number(row, 1)) else { continue };
        let held = cell(row, 2).unwrap_or_default();
        // Every writer holds the server's and the schema's lock in this mode; only another mode is in the way of it.
        if held == "INTENTION_EXCLUSIVE" && wanted.iter().all(|mode| mode == "INTENTION_EXCLUSIVE") {
            continue;
        }
        holders.entry(object.identity()).or_default().push(owner);
        if cell(row, 3) == Some("EXPLICIT") {
            explicit.insert(owner);
        }
    }
    (holders, explicit)
}

#[cfg(test)]
mod tests {
    use super::super::rows_of as rows;
    use super::super::{roots, waits_for};
    use super::*;
    use crate::damaged::{every_change, every_cut};

    #[test]
    fn the_root_of_readers_behind_an_alter_is_the_reader_before_it() {
        let mut found = waiters(&rows(
            "50\t10\tWaiting for table metadata lock\t3\t2000000000\tALTER TABLE slot ADD c INT\n51\t11\tWaiting for table metadata lock\t5\t1000000000\tSELECT * FROM slot WHERE id = 3\n52\t12\texecuting\t5\t1\tSELECT 1",
        ));
        assert_eq!(found.len(), 2);
        let objects = pending(&rows("50\tTABLE\tshop\tslot\tEXCLUSIVE\n51\tTABLE\tshop\tslot\tSHARED_READ"), &mut found);
        assert_eq!(found[0].object.as_deref(), Some("shop.slot"));
        assert_eq!(
            (found[1].mode.as_deref(), found[1].statement.as_deref()),
            (Some("SHARED_READ"), Some("SELECT * FROM slot WHERE id = ?"))
        );
        let sql = granted_sql(&objects).unwrap();
        assert!(sql.contains("OBJECT_SCHEMA = 'shop' AND OBJECT_NAME = 'slot'"), "{sql}");
        let (holders, explicit) =
            granted(&rows("0\t50\tSHARED_UPGRADABLE\tTRANSACTION\n0\t44\tSHARED_READ\tTRANSACTION"), &objects);
        assert!(explicit.is_empty());
        let heads = roots(&found[1].lock, &holders, &waits_for(&found));
        assert!(heads.contains(&44), "{heads:?}");
    }

    #[test]
    fn rows_cut_or_changed_at_any_byte_never_give_more_waiters_or_a_holder_that_is_not_told() {
        let waits = "50\t10\tWaiting for table metadata lock\t3\t2000000000\tALTER TABLE slot ADD c INT\n51\t11\tUser lock\t5\t1000000000\tSELECT 1\n";
        let wanted = "50\tTABLE\tshop\tslot\tEXCLUSIVE\n51\tUSER LEVEL LOCK\tNULL\tx\tEXCLUSIVE\n";
        let held = "0\t50\tSHARED_UPGRADABLE\tTRANSACTION\n0\t44\tSHARED_READ\tTRANSACTION\n";
        let texts = [waits, wanted, held].map(str::to_owned);
        for at in 0..texts.len() {
            let bytes = texts[at].as_bytes();
            for damaged in every_cut(bytes).map(<[u8]>::to_vec).chain(every_change(bytes)) {
                let mut texts = texts.clone();
                texts[at] = String::from_utf8_lossy(&damaged).into_owned();
                let mut found = waiters(&rows(&texts[0]));
                assert!(found.len() <= texts[0].lines().count(), "{texts:?}");
                let objects = pending(&rows(&texts[1]), &mut found);
                let (holders, _) = granted(&rows(&texts[2]), &objects);
                for holder in holders.values().flatten() {
                    assert!(texts[2].contains(&holder.to_string()), "{holder} in {texts:?}");
                }
            }
        }
    }

    #[test]
    fn writers_are_not_in_the_way_of_writers_behind_a_global_read_lock() {
        let mut found = waiters(&rows("60\t20\tWaiting for global read lock\t1\t1\tUPDATE t SET a = 1"));
        let objects = pending(&rows("60\tGLOBAL\tNULL\tNULL\tINTENTION_EXCLUSIVE"), &mut found);
        assert_eq!(found[0].object.as_deref(), Some("global"));
        let (holders, explicit) = granted(&rows("0\t61\tINTENTION_EXCLUSIVE\tSTATEMENT\n0\t62\tSHARED\tEXPLICIT"), &objects);
        assert_eq!(holders.values().flatten().copied().collect::<Vec<_>>(), [62]);
        assert!(explicit.contains(&62));
    }

    #[test]
    fn a_name_with_a_quote_stays_inside_its_quotes() {
        let object = Object { kind: "TABLE".to_owned(), schema: Some("a'b\\".to_owned()), name: None };
        assert_eq!(object.condition(), "OBJECT_TYPE = 'TABLE' AND OBJECT_SCHEMA = 'a''b\\\\' AND OBJECT_NAME IS NULL");
    }
}
