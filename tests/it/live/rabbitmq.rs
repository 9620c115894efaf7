//! A real `RabbitMQ`, by its management API and by its Prometheus page: a queue that nobody consumes, the memory alarm, and an
//! account that may not see.

use crate::support::collector::open;
use crate::support::server::Server;
use collectors::api::{Class, Collector, Fault, FaultKind, Reading, Spec, Support};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

async fn try_start(spec: &Spec, endpoint: &str) -> Result<(Box<dyn Collector>, Support), Fault> {
    let mut collector = open(spec, "broker", endpoint, "");
    let support = collector.start().await?;
    Ok((collector, support))
}

/// One request to the management API, as guest/guest.
fn request(port: &str, method: &str, path: &str, body: &str) {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).expect("it listens");
    let head = format!(
        "{method} /api/{path} HTTP/1.0\r\nAuthorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("asked");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    assert!(answer.split(' ').nth(1).is_some_and(|status| status.starts_with('2')), "{method} {path}: {answer}");
}

/// Reads until `seen`, for at most 20 s: the broker counts its queues every 5 s.
async fn until(collector: &mut Box<dyn Collector>, what: &str, seen: impl Fn(&Reading) -> bool) -> Reading {
    let mut last = Reading::default();
    for _ in 0..100 {
        last = collector.read().await.expect("it answers");
        if seen(&last) {
            return last;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("never seen: {what}; the last reading: {last:?}");
}

#[tokio::test]
async fn a_queue_that_nobody_consumes_grows_in_the_api_and_on_the_page_and_a_full_memory_raises_the_alarm() {
    let Some(server) = Server::start("rabbitmq", &[]) else { return };
    let (port, url) = (server.get("RABBITMQ_API_PORT"), server.get("RABBITMQ_API_URL"));
    let (mut api, support) = try_start(&collectors::rabbitmq::SPEC, url).await.unwrap_or_else(|fault| panic!("{fault}"));
    let (mut page, on_page) =
        try_start(&collectors::metrics::SPEC, server.get("RABBITMQ_METRICS_URL")).await.unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!((support.product.as_str(), on_page.product.as_str()), ("RabbitMQ", "rabbitmq"));
    assert!(!support.endpoint.contains("guest"), "{}", support.endpoint);
    let class = |support: &Support, name: &str| support.columns.iter().find(|gauge| gauge.name == name).map(|gauge| gauge.class);
    let names = ["messages_ready", "rabbitmq_queue_messages_ready"];
    assert_eq!([class(&support, names[0]), class(&on_page, names[1])], [Some(Class::Queue); 2]);
    let rest = page.read().await.expect("it answers");
    assert_eq!((rest.get("rabbitmq_alarms_memory_used_watermark"), rest.get("rabbitmq_connections")), (Some(0.0), Some(0.0)));
    // The first statistics come some seconds after the start, and until then there are none.
    until(&mut api, "the node's statistics", |reading| reading.get("memory_alarms") == Some(0.0)).await;

    request(port, "PUT", "queues/%2f/orders", "{\"durable\":true}");
    for _ in 0..30 {
        let message = "{\"properties\":{},\"routing_key\":\"orders\",\"payload\":\"x\",\"payload_encoding\":\"string\"}";
        request(port, "POST", "exchanges/%2f/amq.default/publish", message);
    }
    for (collector, name) in [(&mut api, names[0]), (&mut page, names[1])] {
        until(collector, "thirty messages wait", |reading| reading.get(name) == Some(30.0)).await;
    }
    let reading = api.read().await.expect("it answers");
    assert_eq!((reading.get("published_total"), reading.get("queues")), (Some(30.0), Some(1.0)), "{reading:?}");
    assert!(
        reading.get("memory_bytes") < reading.get("memory_limit_bytes") && reading.get("memory_bytes").is_some(),
        "{reading:?}"
    );
    assert!(reading.get("disk_free_bytes") > reading.get("disk_limit_bytes"), "{reading:?}");
    let fault = try_start(&collectors::rabbitmq::SPEC, &url.replace("guest:guest", "guest:hush")).await.err().expect("refused");
    assert_eq!(fault.kind, FaultKind::Refused, "{fault}");
    assert!(fault.hint.as_deref().is_some_and(|hint| hint.contains("set_user_tags")) && !fault.message.contains("hush"), "{fault}");

    let Some(full) = Server::start("rabbitmq", &[("RABBITMQ_CONF", "vm_memory_high_watermark.absolute = 1MB")]) else { return };
    let (mut api, _) =
        try_start(&collectors::rabbitmq::SPEC, full.get("RABBITMQ_API_URL")).await.unwrap_or_else(|fault| panic!("{fault}"));
    let (mut page, _) =
        try_start(&collectors::metrics::SPEC, full.get("RABBITMQ_METRICS_URL")).await.unwrap_or_else(|fault| panic!("{fault}"));
    let blocked = until(&mut api, "publishers are blocked", |reading| reading.get("memory_alarms") == Some(1.0)).await;
    assert!(blocked.get("memory_bytes") > blocked.get("memory_limit_bytes"), "{blocked:?}");
    until(&mut page, "the alarm on the page", |reading| reading.get("rabbitmq_alarms_memory_used_watermark") == Some(1.0)).await;
}
