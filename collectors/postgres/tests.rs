use super::*;
use crate::api::{Capacity, Class};

fn opened(endpoint: &str, settings: &str) -> Result<Box<dyn Collector>, Fault> {
    open(&Section::of("postgres", endpoint, settings))
}

#[test]
fn the_sample_of_the_configuration_is_accepted() {
    let mut table: toml::Table = SPEC.sample_config.parse().unwrap();
    let mut section = table.remove("postgres").unwrap().as_table().unwrap().clone();
    let url = section.remove("url").unwrap();
    assert!(opened(url.as_str().unwrap(), &section.to_string()).is_ok());
}

#[test]
fn an_unknown_key_or_a_wrong_value_is_refused_by_name() {
    for (settings, named) in
        [("wait = true", "wait"), ("cores = 0", "cores"), ("cores = -2.5", "cores"), ("waits = \"yes\"", "boolean")]
    {
        let fault = opened("db", settings).err().unwrap();
        assert!(fault.kind == FaultKind::Config && fault.message.contains(named), "{fault}");
    }
}

#[test]
fn before_the_start_every_gauge_is_listed_and_each_has_its_place() {
    let columns = opened("db", "").unwrap().columns();
    assert_eq!(columns.len(), GAUGES.len());
    for gauge in &columns {
        assert!(gauge.layer.is_some() || gauge.name == CORES, "{}", gauge.name);
        assert!(!gauge.help.is_empty());
        if let Capacity::Column(column) = gauge.capacity {
            let of = columns.iter().find(|other| other.name == column).unwrap();
            assert_eq!(of.class, Class::Constant, "{column}");
        }
        assert_eq!(gauge.name.ends_with("_total"), gauge.kind == crate::api::Kind::Counter, "{}", gauge.name);
    }
}

#[tokio::test]
async fn nobody_there_is_said_with_the_place_and_never_the_password() {
    let fault = opened("postgres://probe:hush@127.0.0.1:1/shop", "").unwrap().start().await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Unreachable);
    assert!(fault.message.contains("postgres@127.0.0.1:1") && !format!("{fault:?}").contains("hush"), "{fault}");
}

/// What a server that speaks something else answers, one connection.
fn answers(reply: &'static [u8]) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        let Ok((mut stream, _)) = listener.accept() else { return };
        let mut start = [0; 512];
        let _ = stream.read(&mut start);
        let _ = stream.write_all(reply);
    });
    address
}

#[tokio::test]
async fn another_kind_of_server_is_a_fault_and_not_a_hang_or_a_number() {
    for reply in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"-ERR unknown command\r\n", b"J\0\0\0\x0a5.5.5-10.11", b""] {
        let mut collector = opened(&format!("postgres://probe@{}/shop", answers(reply)), "").unwrap();
        let fault = tokio::time::timeout(Duration::from_secs(5), collector.start()).await.unwrap().unwrap_err();
        assert!(matches!(fault.kind, FaultKind::Unreachable | FaultKind::Nonsense | FaultKind::Refused), "{fault}");
    }
}
