//! The ways in: accounts with few rights, a Unix socket, TLS.

use super::{BOTH, collector_with, grown, of, started};
use crate::support::collector::{read, value};
use crate::support::server::Server;
use collectors::api::{Capacity, FaultKind};

#[tokio::test]
async fn a_user_without_rights_is_told_what_is_missing_and_gets_no_plausible_wrong_number() {
    for name in BOTH {
        let Some(server) = Server::start(name, &[]) else { return };
        let (mut probe, support) = started(of(&server, name, "PROBE_URL")).await;
        assert_eq!(support.lacks.len(), 1, "{:?}", support.lacks);
        assert!(support.lacks[0].what.contains("slowlog_entries"));
        assert_eq!(support.lacks[0].mend.as_deref(), Some("ACL SETUSER probe +slowlog|len"));
        let (first, second) = (read(probe.as_mut()).await, read(probe.as_mut()).await);
        assert_eq!(grown("ops_total", &first, &second), 1.0, "INFO alone");
        assert_eq!(grown("error_replies_total", &first, &second), 0.0, "what is not allowed is not asked again");

        let (mut blind, support) = started(of(&server, name, "BLIND_URL")).await;
        assert_eq!(support.columns.iter().map(|gauge| gauge.name).collect::<Vec<_>>(), ["roundtrip_ms"]);
        assert!(support.lacks[0].what.contains("NOPERM"), "{:?}", support.lacks);
        assert_eq!(support.lacks[0].mend.as_deref(), Some("ACL SETUSER blind +info"));
        let reading = read(blind.as_mut()).await;
        assert!(reading.values.len() == 1 && value(&reading, "roundtrip_ms") > 0.0, "{reading:?}");

        let wrong = of(&server, name, "PROBE_URL").replace("probe:probe", "probe:hush");
        let fault = collector_with(&wrong, "").start().await.expect_err("a wrong password");
        assert_eq!(fault.kind, FaultKind::Refused, "{fault}");
        assert!(fault.message.contains("WRONGPASS") && !fault.message.contains("hush"), "{fault}");
    }
}

#[tokio::test]
async fn a_unix_socket_is_read() {
    for name in BOTH {
        let Some(server) = Server::start(name, &[]) else { return };
        let (mut collector, support) = started(of(&server, name, "SOCKET")).await;
        assert_eq!(support.endpoint, of(&server, name, "SOCKET"));
        assert!(support.columns.iter().any(|gauge| gauge.capacity == Capacity::Column("maxclients")));
        assert_eq!(value(&read(collector.as_mut()).await, "connected_clients"), 1.0);
    }
}

#[tokio::test]
async fn tls_is_spoken_with_an_authority_of_ones_own_and_a_certificate_of_ones_own() {
    let tls = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/tls");
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    let args = format!(
        "--tls-port {port} --tls-cert-file {tls}/server.pem --tls-key-file {tls}/server.key --tls-ca-cert-file {tls}/ca.pem"
    );
    let Some(server) = Server::start("redis", &[("REDIS_ARGS", &args)]) else { return };
    let trusting = format!("ca_file = {:?}", format!("{tls}/ca.pem"));
    let known = format!("{trusting}\ncert_file = \"{tls}/client.pem\"\nkey_file = \"{tls}/client.key\"");

    let mut collector = collector_with(&format!("rediss://probe:probe@localhost:{port}"), &known);
    assert_eq!(collector.start().await.expect("it answers").product, "Redis");
    assert_eq!(value(&read(collector.as_mut()).await, "connected_clients"), 1.0);

    // The server wants a certificate; the name is not on the server's; the authority is not ours; one side speaks plainly.
    let none = collector_with(&format!("rediss://localhost:{port}"), &trusting).start().await.expect_err("no certificate");
    assert_eq!(none.kind, FaultKind::Unreachable, "{none}");
    let stranger = format!("ca_file = \"{tls}/client.pem\"");
    let fault = collector_with(&format!("rediss://localhost:{port}"), &stranger).start().await.expect_err("a stranger");
    assert!(fault.hint.as_deref().is_some_and(|hint| hint.contains("ca_file")), "{fault:?}");
    let plain = collector_with(&format!("localhost:{port}"), "").start().await.expect_err("the port wants TLS");
    assert!(plain.hint.as_deref().is_some_and(|hint| hint.contains("rediss://")), "{plain:?}");
    let port = server.get("REDIS_PORT");
    let secure = collector_with(&format!("rediss://localhost:{port}"), &known).start().await.expect_err("a plain port");
    assert!(secure.hint.as_deref().is_some_and(|hint| hint.contains("redis://")), "{secure:?}");
}
