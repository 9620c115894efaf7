//! A query of one's own, to MySQL, MariaDB or PostgreSQL: the depth of an outbox, the age of a queue.
//!
//! One row, one number or several, each a column by its name. One kept connection, read only, with limits of time on the
//! server's side for statements and locks; nothing is left behind that runs on. Right: SELECT on what is asked. NULL and
//! what is no number is missing, and so is everything when there is no row, or more than one. What the query costs is the
//! user's: ask it less often with `every`.

mod answer;
mod session;

use crate::api::{Collector, Fault, FaultKind, Gauge, Lack, Reading, Section, Spec, Support, intern};
use crate::declared::{Declared, settle, split};
use crate::metrics::plan::column_name;
use crate::metrics::text::Type;
use crate::settings;
use crate::sql::{Row, cell};
use serde::Deserialize;
use session::{Session, Target, Who, fault};
use std::collections::BTreeSet;

/// A query.
pub const SPEC: Spec = Spec {
    name: "query",
    flag: "query",
    aliases: &["sql"],
    value: "URL::SELECT …",
    about: "one row of a query: --query outbox=postgres://probe@db/shop::SELECT count(*) AS depth FROM outbox",
    needs: "GRANT SELECT ON <what is asked> TO probe",
    sample_config: r#"[[query]]
name = "outbox"
url = "postgres://probe@127.0.0.1/shop"   # or mysql://…
# password_file = "/etc/whatgives/postgres"
sql = "SELECT count(*) AS depth, extract(epoch FROM now() - min(created)) AS oldest_age_seconds FROM outbox"
every = "5s"

[[query.column]]                          # what is not said is guessed from the column's name
name = "depth"
class = "queue"
layer = "app"
"#,
    gauges: &[],
    open,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    sql: Option<String>,
    #[serde(default)]
    column: Vec<toml::Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
}

struct Query {
    instance: String,
    target: Target,
    sql: String,
    /// Of the whole section, for a query of one number; and by the columns' names.
    declared: Declared,
    by_name: Vec<(String, Declared)>,
    session: Option<Session>,
    columns: Vec<(usize, Gauge)>,
    /// What was noted already.
    noted: BTreeSet<&'static str>,
}

fn open(section: &Section) -> Result<Box<dyn Collector>, Fault> {
    let mut rest = section.clone();
    let who = Who::take(&section.instance, &mut rest.settings)?;
    let declared = Declared::take(&section.instance, &mut rest.settings)?;
    let own: Own = settings::parse(&rest)?;
    let wrong = |why: String| Fault::new(FaultKind::Config, format!("configuration of {}: {why}", section.instance));
    let (place, asked) = split(&section.endpoint);
    let sql = match (asked, own.sql) {
        (Some(_), Some(_)) => return Err(wrong("the query is given twice, behind :: and as sql".to_owned())),
        (given, set) => given.map(str::to_owned).or(set).unwrap_or_default(),
    };
    if sql.trim().is_empty() {
        return Err(wrong("no query".to_owned()).hint("--query name=URL::SELECT …, or sql = \"SELECT …\" in the configuration"));
    }
    let sql = answer::only_reads(&sql).map_err(|why| wrong(format!("the query: {why}")))?.to_owned();
    let mut by_name = Vec::new();
    for mut table in own.column {
        let declared = Declared::take(&section.instance, &mut table)?;
        let named: Named = settings::parse(&Section { settings: table, ..section.clone() })?;
        by_name.push((named.name, declared));
    }
    let target = Target::new(section, place, who)?;
    Ok(Box::new(Query {
        instance: section.instance.clone(),
        target,
        sql,
        declared,
        by_name,
        session: None,
        columns: Vec::new(),
        noted: BTreeSet::new(),
    }))
}

impl Query {
    /// The rows, over a connection that goes on where the server answered.
    async fn ask(&mut self) -> Result<(Vec<String>, Vec<Row>), Fault> {
        // Taken out while it is in use: a read that is cancelled leaves none behind that waits for an old answer.
        let mut session = match self.session.take() {
            Some(session) => session,
            None => Session::open(&self.target).await?,
        };
        let answered = session.ask(&self.sql).await;
        if answered.as_ref().err().is_none_or(|error| !session::is_goodbye(error)) {
            self.session = Some(session);
        }
        answered.map_err(|error| fault(&self.target, "query", &error))
    }

    /// What the configuration says of a column of the answer, by its name.
    fn declared(&self, name: &str) -> Option<&Declared> {
        let clean = column_name(&[name]);
        self.by_name.iter().find(|(known, _)| known == name || *known == clean).map(|(_, declared)| declared)
    }

    /// The gauge of a column of the answer; `single` where it is the only one.
    fn gauge(&self, name: &str, single: bool) -> Gauge {
        let clean = column_name(&[name]);
        // `count(*)` and `?column?` are no names: then the instance's says more.
        let named =
            clean.as_str() == name.to_ascii_lowercase() && !(single && ["count", "sum", "max", "min", "avg"].contains(&&*clean));
        let (column, said) = if named { (clean.as_str(), clean.as_str()) } else { ("value", self.instance.as_str()) };
        let mut gauge = self.declared(name).unwrap_or(&self.declared).gauge(column, said, Type::Gauge);
        if gauge.resource.is_empty() {
            gauge.resource = intern(&self.instance);
        }
        gauge
    }

    fn settle(&mut self, names: &[String], row: &Row) -> Result<(), Fault> {
        let mut at = Vec::new();
        let mut gauges = Vec::new();
        for (index, name) in names.iter().enumerate() {
            // A text beside the numbers is for people.
            if self.declared(name).is_none() && cell(row, index).is_some_and(|text| answer::number(Some(text)).is_none()) {
                continue;
            }
            at.push(index);
            gauges.push(self.gauge(name, names.len() == 1));
        }
        if let Some((unknown, _)) =
            self.by_name.iter().find(|(known, _)| !names.iter().any(|name| name == known || column_name(&[name]) == *known))
        {
            return Err(Fault::new(
                FaultKind::Config,
                format!("configuration of {}: the query has no column {unknown:?}, it has {}", self.instance, names.join(", ")),
            ));
        }
        settle(&self.instance, &mut gauges)?;
        self.columns = at.into_iter().zip(gauges).collect();
        Ok(())
    }

    fn reading(&mut self, rows: &[Row]) -> Reading {
        let mut reading = Reading::default();
        let row = match answer::one(rows) {
            Ok(row) => row,
            Err(why) => {
                reading.notes.push(why);
                return reading;
            }
        };
        for (index, gauge) in &self.columns {
            let text = cell(row, *index);
            let number = answer::number(text);
            reading.put_some(gauge.name, number);
            // What stands there may be a user's: it is not repeated.
            if text.is_some() && number.is_none() && self.noted.insert(gauge.name) {
                reading.notes.push(format!("{}: not a number", gauge.name));
            }
        }
        reading
    }
}

#[async_trait::async_trait]
impl Collector for Query {
    fn columns(&self) -> Vec<Gauge> {
        if !self.columns.is_empty() {
            return self.columns.iter().map(|(_, gauge)| *gauge).collect();
        }
        let mut named: Vec<Gauge> = self.by_name.iter().map(|(name, _)| self.gauge(name, false)).collect();
        // What is wrong with them is said when they are settled by an answer.
        if settle(&self.instance, &mut named).is_ok() { named } else { Vec::new() }
    }

    fn unsettled(&self) -> Option<Lack> {
        self.by_name.is_empty().then(|| Lack {
            what: "its columns: how they are called the answer tells at the start".to_owned(),
            mend: Some("[[query.column]] name = \"…\" names one".to_owned()),
        })
    }

    async fn start(&mut self) -> Result<Support, Fault> {
        self.session = None;
        self.noted.clear();
        let (names, rows) = self.ask().await?;
        let row = answer::one(&rows).map_err(|why| {
            Fault::new(FaultKind::Nonsense, format!("query of {}: {why}", self.target.name))
                .hint("aggregates always give one row: SELECT count(*) …; else LIMIT 1")
        })?;
        self.settle(&names, row)?;
        if self.columns.is_empty() {
            let message = format!("query of {}: no number among {}", self.target.name, names.join(", "));
            return Err(Fault::new(FaultKind::Nonsense, message)
                .hint("times and intervals as seconds: extract(epoch FROM …) in PostgreSQL, TIMESTAMPDIFF(SECOND, …) in MySQL"));
        }
        let reading = self.reading(&rows);
        let mut support = Support {
            product: self.target.product.to_owned(),
            endpoint: self.target.endpoint.clone(),
            columns: self.columns(),
            facts: vec![("query".to_owned(), crate::sql::statement::normalise(&self.sql).into())],
            ..Support::default()
        };
        for gauge in &support.columns {
            if !reading.values.iter().any(|(name, _)| *name == gauge.name) {
                support.lacks.push(Lack { what: format!("{} (NULL yet)", gauge.name), mend: None });
            }
        }
        let guessed = support.columns.iter().filter(|gauge| gauge.guessed).count();
        support.sees.push(match guessed {
            0 => format!("{} numbers", support.columns.len()),
            _ => format!(
                "{} numbers, {guessed} with a class guessed from the name; say it with class = \"…\"",
                support.columns.len()
            ),
        });
        Ok(support)
    }

    async fn read(&mut self) -> Result<Reading, Fault> {
        let (_, rows) = self.ask().await?;
        Ok(self.reading(&rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Class;

    fn opened(endpoint: &str, text: &str) -> Result<Box<dyn Collector>, Fault> {
        open(&Section::of("outbox", endpoint, text))
    }

    fn query(text: &str) -> Query {
        let section = Section::of("jobs_pending", "", "");
        let mut table: toml::Table = toml::from_str(text).unwrap();
        let declared = Declared::take("x", &mut table).unwrap();
        Query {
            instance: section.instance.clone(),
            target: Target::new(&section, "postgres://db", Who::default()).unwrap(),
            sql: String::new(),
            declared,
            by_name: Vec::new(),
            session: None,
            columns: Vec::new(),
            noted: BTreeSet::new(),
        }
    }

    fn row(cells: &[Option<&str>]) -> Row {
        cells.iter().map(|cell| cell.map(str::to_owned)).collect()
    }

    #[test]
    fn columns_are_named_by_the_query_and_one_without_a_name_is_the_value() {
        let mut one = query("");
        one.settle(&["count(*)".to_owned()], &row(&[Some("3")])).unwrap();
        assert_eq!((one.columns[0].1.name, one.columns[0].1.class, one.columns[0].1.guessed), ("value", Class::Queue, true));
        let mut said = query("class = \"age\"\nunit = \"s\"");
        said.settle(&["count".to_owned()], &row(&[Some("3")])).unwrap();
        assert_eq!((said.columns[0].1.name, said.columns[0].1.class, said.columns[0].1.guessed), ("value", Class::Age, false));
        let mut several = query("");
        let names = ["depth", "label", "oldest_age_seconds", "none"].map(str::to_owned);
        several.settle(&names, &row(&[Some("3"), Some("abc"), Some("1.5"), None])).unwrap();
        assert_eq!(
            several.columns.iter().map(|(_, gauge)| gauge.name).collect::<Vec<_>>(),
            ["depth", "oldest_age_seconds", "none"]
        );
        assert_eq!(several.reading(&[row(&[Some("4"), Some("x"), None, Some("?")])]).values, [("depth", 4.0)]);
    }

    #[test]
    fn no_row_and_several_rows_are_missing_and_never_0() {
        let mut query = query("");
        query.settle(&["depth".to_owned()], &row(&[Some("3")])).unwrap();
        for rows in [vec![], vec![row(&[Some("1")]), row(&[Some("2")])]] {
            let reading = query.reading(&rows);
            assert!(reading.values.is_empty() && reading.notes.len() == 1, "{reading:?}");
        }
    }

    #[test]
    fn what_writes_or_is_no_query_is_refused_before_anything_is_asked() {
        for (endpoint, text, says) in [
            ("postgres://db/x::DELETE FROM t", "", "DELETE"),
            ("postgres://db/x", "", "no query"),
            ("postgres://db/x::SELECT 1", "sql = \"SELECT 1\"", "twice"),
            ("redis://db::SELECT 1", "", "mysql://"),
            ("mysql://db::SELECT 1", "tls = \"maybe\"", "maybe"),
            ("mysql://db::SELECT 1", "clas = \"queue\"", "clas"),
        ] {
            let fault = opened(endpoint, text).err().unwrap();
            assert!(fault.kind == FaultKind::Config && fault.message.contains(says), "{endpoint}: {fault}");
        }
        let fault = opened("postgres://u:hush@db:x::SELECT 1", "").err().unwrap();
        assert!(!fault.message.contains("hush"), "{fault}");
        assert!(opened("mysql://probe:p@db/shop::SELECT count(*) FROM outbox", "class = \"queue\"").is_ok());
    }
}
