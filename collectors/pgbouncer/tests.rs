use super::*;
use crate::api::Class;
use std::time::Duration;

macro_rules! fixture {
    ($path:literal) => {
        table(include_str!(concat!("../../fixtures/pgbouncer/", $path)))
    };
}

fn table(text: &str) -> Table {
    let cell = |text: &str| (text != "\\N" && !text.is_empty()).then(|| text.to_owned());
    let mut lines = text.lines();
    let columns = lines.next().unwrap_or_default().split('\t').map(str::to_owned).collect();
    Table { columns, rows: lines.map(|line| line.split('\t').map(cell).collect()).collect() }
}

fn old() -> Answers {
    Answers {
        pools: fixture!("1.18/pools.tsv"),
        databases: fixture!("1.18/databases.tsv"),
        stats: fixture!("1.18/stats.tsv"),
        lists: fixture!("1.18/lists.tsv"),
        users: Table::default(),
    }
}

fn new() -> Answers {
    Answers {
        pools: fixture!("1.26.1/pools.tsv"),
        databases: fixture!("1.26.1/databases.tsv"),
        stats: fixture!("1.26.1/stats.tsv"),
        lists: fixture!("1.26.1/lists.tsv"),
        users: fixture!("1.26.1/users.tsv"),
    }
}

fn known() -> Known {
    let columns = PoolColumns::new("shop", "postgres", &mut Vec::new());
    Known {
        max_client_conn: Some(400.0),
        pools: BTreeMap::from([(("shop".to_owned(), "postgres".to_owned()), columns)]),
        ..Known::default()
    }
}

fn opened(endpoint: &str, settings: &str) -> Result<Box<dyn Collector>, Fault> {
    open(&Section {
        instance: "pgbouncer".to_owned(),
        endpoint: endpoint.to_owned(),
        settings: settings.parse().unwrap(),
        timeout: Duration::from_millis(800),
        tick: Duration::from_secs(1),
    })
}

#[test]
fn a_full_pgbouncer_of_1_26_gives_totals_and_each_pools_own_columns() {
    let reading = reading(&new(), &mut known()).unwrap();
    for (name, expected) in [
        ("clients_waiting", 5.0),
        ("maxwait_seconds", 1.349_665),
        ("servers_active", 7.0),
        ("servers_max", 8.0),
        ("servers_idle", 0.0),
        ("clients_used", 13.0),
        ("max_client_conn", 400.0),
        ("server_assignments_total", 7.0),
        ("pool_shop_postgres_clients_waiting", 3.0),
        ("pool_shop_postgres_servers_max", 4.0),
    ] {
        assert_eq!(reading.get(name), Some(expected), "{name}");
    }
}

#[test]
fn a_resting_pgbouncer_of_1_18_gives_what_it_has() {
    let reading = reading(&old(), &mut known()).unwrap();
    for (name, expected) in
        [("clients_waiting", 0.0), ("servers_max", 2.0), ("servers_idle", 2.0), ("clients_used", 1.0), ("queries_total", 18.0)]
    {
        assert_eq!(reading.get(name), Some(expected), "{name}");
    }
    assert_eq!(reading.get("pool_shop_postgres_clients_waiting"), None, "a pool that is not there is missing, not 0");
    assert_eq!(reading.get("server_assignments_total"), None);
}

#[test]
fn an_answer_that_failed_or_cannot_be_read_costs_its_own_values_and_gives_no_zeros() {
    let mut answers = new();
    (answers.stats, answers.lists, answers.databases) = (Table::default(), Table::default(), Table::default());
    let reading = super::reading(&answers, &mut known()).unwrap();
    assert_eq!(reading.get("clients_waiting"), Some(5.0));
    for name in ["wait_us_total", "queries_total", "clients_used", "servers_max"] {
        assert_eq!(reading.get(name), None, "{name}");
    }
    let mut answers = new();
    let at = answers.pools.column("cl_waiting").unwrap();
    answers.pools.rows[0][at] = Some("-".to_owned());
    let mut known = known();
    let reading = super::reading(&answers, &mut known).unwrap();
    assert_eq!((reading.get("clients_waiting"), reading.get("servers_active")), (None, Some(7.0)));
    assert_eq!(reading.notes, ["pool other/postgres cannot be read"]);
    assert_eq!(super::reading(&answers, &mut known).unwrap().notes, Vec::<String>::new(), "said once");
    assert!(super::reading(&Answers { pools: fixture!("1.18/lists.tsv"), ..Answers::default() }, &mut known).is_none());
}

#[test]
fn pools_whose_names_look_alike_have_columns_of_their_own() {
    let mut taken = Vec::new();
    let names: Vec<&str> = [("shop-a", "b"), ("shop_a", "b"), ("Shop.A", "B")]
        .into_iter()
        .map(|(database, user)| PoolColumns::new(database, user, &mut taken).waiting.name)
        .collect();
    assert_eq!(names, ["pool_shop_a_b_clients_waiting", "pool_shop_a_b_2_clients_waiting", "pool_shop_a_b_3_clients_waiting"]);
}

#[test]
fn columns_are_those_that_this_version_tells_and_capacities_are_among_them() {
    for answers in [old(), new()] {
        let mut known = known();
        let first = reading(&answers, &mut known).unwrap();
        let mut support = Support::default();
        settle(&mut known, &first, &mut support);
        let names: Vec<&str> = known.columns.iter().map(|gauge| gauge.name).collect();
        for gauge in &known.columns {
            if let Capacity::Column(column) = gauge.capacity {
                assert!(names.contains(&column), "{column}");
            }
        }
        assert_eq!(support.lacks, []);
        assert_eq!(names.contains(&"server_assignments_total"), first.get("server_assignments_total").is_some());
        let waiting = known.columns.iter().find(|gauge| gauge.name == "clients_waiting").unwrap();
        assert_eq!(waiting.class, Class::Queue);
    }
}

#[test]
fn the_sample_of_the_configuration_is_accepted_and_a_pool_without_a_user_is_not() {
    let mut table: toml::Table = SPEC.sample_config.parse().unwrap();
    let mut section = table.remove("pgbouncer").unwrap().as_table().unwrap().clone();
    let url = section.remove("url").unwrap();
    assert!(opened(url.as_str().unwrap(), &section.to_string()).is_ok());
    assert!(opened("pool", "pools = [\"shop/app\"]").is_ok());
    for (settings, named) in [("pools = [\"shop\"]", "DATABASE/USER"), ("pool = 1", "pool")] {
        let fault = opened("pool", settings).err().unwrap();
        assert!(fault.kind == FaultKind::Config && fault.message.contains(named), "{fault}");
    }
}
