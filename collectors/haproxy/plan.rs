//! Which proxies have columns, and what a table has for them. Settled at the start.
//!
//! Every proxy up to [`MOST`], or those that the configuration names. What more proxies there are is summed in columns of
//! `other`, as far as sums mean something.

use super::gauges::{From, TEMPLATES, Template};
use super::table::{Kind, Row, Table};
use crate::api::{Capacity, Gauge, intern};
use std::collections::{BTreeSet, HashMap};

/// How many proxies have columns of their own where none is named.
pub(super) const MOST: usize = 20;

/// One column: what it means, and of which proxies what it is.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) gauge: Gauge,
    from: From,
    proxies: Vec<String>,
}

/// All columns of proxies.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    pub(super) columns: Vec<Column>,
    /// Proxies with columns of their own.
    pub(super) own: Vec<String>,
    /// Proxies that are summed.
    pub(super) others: Vec<String>,
}

/// What the rows of one proxy are.
#[derive(Default)]
struct Group<'a> {
    frontend: Option<&'a Row>,
    backend: Option<&'a Row>,
    servers: Vec<&'a Row>,
}

fn groups(table: &Table) -> HashMap<&str, Group<'_>> {
    let mut groups: HashMap<&str, Group<'_>> = HashMap::new();
    for row in &table.rows {
        let group = groups.entry(&row.proxy).or_default();
        match row.kind {
            Kind::Frontend => group.frontend = Some(row),
            Kind::Backend => group.backend = Some(row),
            Kind::Server => group.servers.push(row),
            Kind::Listener => {}
        }
    }
    groups
}

/// Every column that these proxies may have, while nobody knows which of them are frontends and which backends. What they
/// turn out not to have stays empty.
pub(super) fn of_named(proxies: &[String]) -> Vec<Gauge> {
    let mut slugs = BTreeSet::from(["other".to_owned()]);
    let all = proxies.iter().flat_map(|proxy| {
        let slug = slug(proxy, &mut slugs);
        TEMPLATES.iter().map(move |template| template.column(&slug, vec![proxy.clone()], 0.0).gauge)
    });
    all.collect()
}

/// The proxies of a table, in their order.
pub(super) fn proxies(table: &Table) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    table.rows.iter().map(|row| row.proxy.as_str()).filter(|proxy| seen.insert(*proxy)).collect()
}

impl Plan {
    /// Settles it. `wanted` are the configured proxies, all if there are none; `ours` is the proxy of the statistics page
    /// that we ask, and whether it has nothing else to do. The error names a proxy that is not there.
    pub(super) fn new(table: &Table, wanted: &[String], ours: Option<(&str, bool)>) -> Result<Self, String> {
        let all = proxies(table);
        if let Some(missing) = wanted.iter().find(|wanted| !all.contains(&wanted.as_str())) {
            let some: Vec<&str> = all.iter().take(MOST).copied().collect();
            return Err(format!("there is no proxy {missing:?}; there are {}", some.join(", ")));
        }
        let idle = |proxy: &str| ours == Some((proxy, true));
        let (own, others): (Vec<String>, Vec<String>) = if wanted.is_empty() {
            let mut own: Vec<String> = all.into_iter().filter(|proxy| !idle(proxy)).map(str::to_owned).collect();
            let others = own.split_off(own.len().min(MOST));
            (own, others)
        } else {
            (wanted.to_vec(), Vec::new())
        };
        let mut plan = Self { columns: Vec::new(), own, others };
        let groups = groups(table);
        let mut slugs = BTreeSet::from(["other".to_owned()]);
        for proxy in &plan.own {
            let Some(group) = groups.get(proxy.as_str()) else { continue };
            let slug = slug(proxy, &mut slugs);
            let watched = if ours.is_some_and(|(name, _)| name == proxy) { 1.0 } else { 0.0 };
            let templates = TEMPLATES.iter().filter(|template| template.of(group));
            plan.columns.extend(templates.map(|template| template.column(&slug, vec![proxy.clone()], watched)));
        }
        if !plan.others.is_empty() {
            let rest: Vec<&Group<'_>> = plan.others.iter().filter_map(|proxy| groups.get(proxy.as_str())).collect();
            let templates = TEMPLATES.iter().filter(|template| template.summed && rest.iter().any(|group| template.of(group)));
            plan.columns.extend(templates.map(|template| template.column("other", plan.others.clone(), 0.0)));
        }
        Ok(plan)
    }

    /// Proxies with columns of their own none of whose servers is checked.
    pub(super) fn unchecked<'a>(&'a self, table: &Table) -> Vec<&'a str> {
        let groups = groups(table);
        let unchecked = |proxy: &&String| {
            groups
                .get(proxy.as_str())
                .is_some_and(|group| !group.servers.is_empty() && group.value(From::Servers("chkdown")).is_none())
        };
        self.own.iter().filter(unchecked).map(String::as_str).collect()
    }

    /// What a table has for every column.
    pub(super) fn read(&self, table: &Table) -> Vec<Option<f64>> {
        let groups = groups(table);
        let value = |column: &Column| {
            sum(column.proxies.iter().filter_map(|proxy| groups.get(proxy.as_str())).map(|group| group.value(column.from)))
        };
        self.columns.iter().map(value).collect()
    }
}

impl Template {
    /// Whether a proxy has such a number at all: older releases have fewer, and a server that is not checked is never down.
    fn of(&self, group: &Group<'_>) -> bool {
        match self.from {
            From::ServersLimit => !group.servers.is_empty(),
            from => group.value(from).is_some(),
        }
    }

    fn column(&self, slug: &str, proxies: Vec<String>, watched: f64) -> Column {
        let named = |name: &str| intern(&name.replacen("PROXY", slug, 1));
        let mut gauge = self.gauge;
        gauge.name = named(gauge.name);
        if let Capacity::Column(of) = gauge.capacity {
            gauge.capacity = Capacity::Column(named(of));
        }
        // Our own connection and our own requests.
        if matches!(self.from, From::Frontend("scur") | From::FrontendRequests) {
            gauge.own = watched;
        }
        let kind = match self.from {
            From::Frontend(_) | From::FrontendRequests => "frontend",
            From::Backend(_) | From::BackendRequests => "backend",
            From::Servers(_) | From::ServersLimit | From::ServersUp => "servers of",
        };
        let whose = if let [proxy] = proxies.as_slice() { proxy.as_str() } else { "other" };
        gauge.resource = intern(&format!("haproxy {kind} {whose}"));
        Column { gauge, from: self.from, proxies }
    }
}

impl Group<'_> {
    fn value(&self, from: From) -> Option<f64> {
        match from {
            From::Frontend(column) => self.frontend?.value(column),
            From::FrontendRequests => requests(self.frontend?),
            From::Backend(column) => self.backend?.value(column),
            From::BackendRequests => requests(self.backend?),
            From::ServersUp => sum([self.backend?.value("act"), self.backend?.value("bck")].into_iter()),
            From::Servers(column) => sum(self.servers.iter().map(|row| row.value(column))),
            From::ServersLimit => self.limit(),
        }
    }

    /// How many requests the servers in use take at once. Backups are used when no other is up, but how many of them is not
    /// told; a server without a limit has none in its cell.
    fn limit(&self) -> Option<f64> {
        let up = |row: &Row| row.status.starts_with("UP") || row.status == "no check";
        let limits: Vec<f64> = self
            .servers
            .iter()
            .filter(|row| up(row) && row.value("bck").unwrap_or(0.0) == 0.0)
            .map(|row| row.value("slim"))
            .collect::<Option<_>>()?;
        (!limits.is_empty()).then(|| limits.iter().sum())
    }
}

/// In TCP mode there are no requests, and a 0 stands in their column.
fn requests(row: &Row) -> Option<f64> {
    if row.mode == "tcp" { row.value("stot") } else { row.value("req_tot").or_else(|| row.value("stot")) }
}

/// The sum of what is there; nothing where nothing is.
fn sum(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.flatten().fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
}

/// A column's part for a proxy's name: small letters, digits and _, and never twice the same.
fn slug(proxy: &str, taken: &mut BTreeSet<String>) -> String {
    let mut slug: String =
        proxy.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).take(60).collect();
    if !slug.starts_with(|c: char| c.is_ascii_alphabetic()) {
        slug.insert_str(0, "p_");
    }
    let plain = slug.clone();
    for number in 2.. {
        if taken.insert(slug.clone()) {
            break;
        }
        slug = format!("{plain}_{number}");
    }
    slug
}

#[cfg(test)]
mod tests;
