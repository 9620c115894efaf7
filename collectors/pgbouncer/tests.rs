use super::*;
use crate::api::Class;

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
    open(&Section::of("pgbouncer", endpoint, settings))
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

/// One message of the server's.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&[kind][..], &length.to_be_bytes(), body].concat()
}

/// Rows of texts, and their end.
fn rows(table: &Table) -> Vec<u8> {
    let count = |cells: usize| u16::try_from(cells).unwrap().to_be_bytes();
    let column = |name: &String| [name.as_bytes(), &[0; 7], &25_u32.to_be_bytes(), &[0xff; 6], &[0; 2]].concat();
    let columns: Vec<u8> = table.columns.iter().flat_map(column).collect();
    let mut bytes = message(b'T', &[&count(table.columns.len())[..], &columns].concat());
    for row in &table.rows {
        let cell = |cell: &Option<String>| match cell {
            Some(text) => [&u32::try_from(text.len()).unwrap().to_be_bytes()[..], text.as_bytes()].concat(),
            None => vec![0xff; 4],
        };
        let cells: Vec<u8> = row.iter().flat_map(cell).collect();
        bytes.extend(message(b'D', &[&count(row.len())[..], &cells].concat()));
    }
    bytes.extend(message(b'C', b"SHOW\0"));
    bytes
}

/// A console that answers as an old one does, and to SHOW VERSION with this.
fn console(version: Vec<u8>) -> std::net::SocketAddr {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let ready = message(b'Z', b"I");
            // The first packet has no kind; an offer of TLS is declined.
            let mut head = [0; 8];
            while stream.read_exact(&mut head).is_ok() {
                let mut rest = vec![0; u32::from_be_bytes(head[..4].try_into().unwrap()) as usize - 8];
                stream.read_exact(&mut rest).unwrap();
                if rest.is_empty() {
                    stream.write_all(b"N").unwrap();
                } else {
                    break;
                }
            }
            stream.write_all(&[message(b'R', &[0; 4]), ready.clone()].concat()).unwrap();
            let mut head = [0; 5];
            while stream.read_exact(&mut head).is_ok() {
                let mut body = vec![0; u32::from_be_bytes(head[1..].try_into().unwrap()) as usize - 4];
                stream.read_exact(&mut body).unwrap();
                let Answers { pools, databases, stats, lists, .. } = old();
                let answer = match String::from_utf8_lossy(&body).trim_end_matches('\0') {
                    "SHOW VERSION" => version.clone(),
                    "SHOW POOLS" => rows(&pools),
                    "SHOW DATABASES" => rows(&databases),
                    "SHOW STATS" => rows(&stats),
                    "SHOW LISTS" => rows(&lists),
                    "SHOW CONFIG" => rows(&table("key\tvalue\tdefault\tchangeable\nmax_client_conn\t400\t100\tyes")),
                    _ => message(b'E', b"SERROR\0VERROR\0C42601\0Minvalid command\0\0"),
                };
                stream.write_all(&[answer, ready.clone()].concat()).unwrap();
            }
        }
    });
    address
}

#[tokio::test]
async fn a_console_that_tells_no_version_is_read_all_the_same() {
    let notice = message(b'N', b"SNOTICE\0C00000\0MPgBouncer version 1.8\0\0");
    for version in [[notice, message(b'C', b"SHOW\0")].concat(), message(b'E', b"SERROR\0VERROR\0C42601\0Mno such\0\0")] {
        let address = console(version);
        let mut collector = opened(&format!("postgres://probe@{address}/pgbouncer"), "").unwrap();
        let support = collector.start().await.unwrap();
        assert_eq!((support.product.as_str(), support.version.as_str()), ("PgBouncer", ""));
        let reading = collector.read().await.unwrap();
        assert_eq!(reading.get("clients_waiting"), Some(0.0), "{reading:?}");
        assert_eq!(reading.get("max_client_conn"), Some(400.0), "{reading:?}");
    }
}
