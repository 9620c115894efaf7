//! Names of tables and indexes by their numbers, from `pg_class` of the database that we are connected to.
//!
//! The rows of the catalogue are read by their snapshot: somebody who holds the table itself in ACCESS EXCLUSIVE mode does not
//! block it, as `pg_relation_size()` and any read of the table would be. Each number is asked for once.

use crate::sql::{Row, cell};
use std::collections::{BTreeSet, HashMap};

/// What a number stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// `schema.table`; of an index the table that it is of.
    pub table: String,
    /// The index' own name.
    pub index: Option<String>,
    /// The bare name of the relation.
    pub relation: String,
    /// A table that is split into others and holds no rows itself.
    pub partitioned: bool,
}

/// Names known so far.
#[derive(Debug, Default)]
pub struct Names {
    known: HashMap<u32, Name>,
}

/// At most so many are asked for at once; the rest with the next read.
const AT_ONCE: usize = 500;

impl Names {
    /// The name of a relation.
    pub fn get(&self, number: u32) -> Option<&Name> {
        self.known.get(&number)
    }

    /// The statement that asks for those not known yet; none where all are.
    pub fn sql(&self, wanted: &BTreeSet<u32>) -> Option<String> {
        let missing: Vec<String> =
            wanted.iter().filter(|number| !self.known.contains_key(number)).take(AT_ONCE).map(u32::to_string).collect();
        (!missing.is_empty()).then(|| {
            format!(
                "SELECT c.oid, n.nspname, c.relname, c.relkind, t.relname, m.nspname FROM pg_catalog.pg_class c \
                 JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid \
                 LEFT JOIN pg_catalog.pg_class t ON t.oid = i.indrelid LEFT JOIN pg_catalog.pg_namespace m ON m.oid = t.relnamespace \
                 WHERE c.oid IN ({})",
                missing.join(", ")
            )
        })
    }

    /// Takes its answer. A table that is not yet committed is not in it, and is asked for again.
    pub fn learn(&mut self, rows: &[Row]) {
        for row in rows {
            let text = |at: usize| cell(row, at).map(str::to_owned);
            let (Some(number), Some(schema), Some(relation)) = (text(0).and_then(|text| text.parse().ok()), text(1), text(2))
            else {
                continue;
            };
            let name = match (text(4), text(5)) {
                (Some(table), Some(of)) => {
                    Name { table: format!("{of}.{table}"), index: Some(relation.clone()), relation, partitioned: false }
                }
                _ => Name { table: format!("{schema}.{relation}"), index: None, relation, partitioned: cell(row, 3) == Some("p") },
            };
            self.known.insert(number, name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: [Option<&str>; 6]) -> Row {
        cells.into_iter().map(|cell| cell.map(str::to_owned)).collect()
    }

    #[test]
    fn each_number_is_asked_for_once_and_an_index_names_its_table() {
        let mut names = Names::default();
        let wanted = BTreeSet::from([16_385, 16_388]);
        assert!(names.sql(&wanted).is_some_and(|sql| sql.ends_with("c.oid IN (16385, 16388)")));
        names.learn(&[
            row([Some("16385"), Some("public"), Some("slot"), Some("r"), None, None]),
            row([Some("16388"), Some("public"), Some("slot_pkey"), Some("i"), Some("slot"), Some("public")]),
            row([None, Some("x"), Some("y"), Some("r"), None, None]),
        ]);
        assert_eq!(names.sql(&wanted), None);
        assert_eq!(names.get(16_385).map(|name| (name.table.as_str(), name.index.as_deref())), Some(("public.slot", None)));
        assert_eq!(
            names.get(16_388).map(|name| (name.table.as_str(), name.index.as_deref())),
            Some(("public.slot", Some("slot_pkey")))
        );
        assert_eq!(names.sql(&BTreeSet::from([7])).map(|sql| sql.contains("IN (7)")), Some(true));
    }
}
