use super::*;
use crate::metrics::plan::{Plan, Read};
use crate::metrics::settle::settle;
use std::collections::BTreeSet;

/// What a page's columns are and read. Of a long page only what nobody described may be left out.
fn page(body: &str) -> (Plan, Read) {
    let settled = settle(body.as_bytes(), &BTreeSet::new());
    let has = |name: &str| settled.plan.columns.iter().any(|one| one.pick.as_ref().is_some_and(|pick| pick.series == name));
    for line in body.lines() {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        assert!(crate::metrics::presets::find(name).is_none() || has(name), "{name} has no column");
    }
    let read = settled.plan.read(body.as_bytes());
    (settled.plan, read)
}

fn column((plan, read): &(Plan, Read), name: &str) -> (Gauge, Option<f64>) {
    let at = plan.columns.iter().position(|column| column.gauge.name == name);
    let names: Vec<_> = plan.columns.iter().map(|column| column.gauge.name).collect();
    let at = at.unwrap_or_else(|| panic!("no {name} of {names:?}"));
    (plan.columns[at].gauge, read.values[at])
}

fn of(gauge: Gauge) -> &'static str {
    match gauge.capacity {
        crate::api::Capacity::Column(of) => of,
        _ => "",
    }
}

#[test]
fn rabbitmq_tells_what_waits_and_how_far_its_alarms_are() {
    let all = page(include_str!("../../../../fixtures/metrics/rabbitmq-3.10.8.prom"));
    let (ready, value) = column(&all, "rabbitmq_queue_messages_ready");
    assert_eq!((ready.class, ready.guessed, value), (Class::Queue, false, Some(30.0)));
    assert_eq!(column(&all, "rabbitmq_queue_messages_unacked").1, Some(0.0));
    assert_eq!(of(column(&all, "rabbitmq_process_resident_memory_bytes").0), "rabbitmq_resident_memory_limit_bytes");
    assert_eq!(of(column(&all, "rabbitmq_process_open_fds").0), "rabbitmq_process_max_fds");
    let (disk, free) = column(&all, "rabbitmq_disk_space_available_bytes");
    assert_eq!((disk.worse, of(disk), free), (Worse::Down, "", Some(49_751_154_688.0)));
    let (alarm, now) = column(&all, "rabbitmq_alarms_memory_used_watermark");
    assert_eq!((alarm.class, now), (Class::Event, Some(0.0)));
    assert_eq!(column(&all, "rabbitmq_global_messages_received_total").1, Some(30.0));
    let single = page(
        "rabbitmq_queue_messages_ready{vhost=\"/\",queue=\"mail\"} 7\nrabbitmq_queue_messages_ready{vhost=\"/\",queue=\"pay\"} 2\n",
    );
    assert_eq!(column(&single, "rabbitmq_queue_messages_ready_mail").1, Some(7.0));
}

#[test]
fn envoy_tells_what_waits_for_each_cluster_and_what_its_breakers_refuse() {
    let all = page(include_str!("../../../../fixtures/metrics/envoy-1.40.prom"));
    let (pending, value) = column(&all, "envoy_cluster_upstream_rq_pending_active_shop");
    assert_eq!((pending.class, pending.resource, value), (Class::Queue, "envoy pool shop", Some(12.0)));
    assert_eq!(column(&all, "envoy_cluster_upstream_rq_pending_active_mail").1, Some(0.0));
    let (open, value) = column(&all, "envoy_cluster_circuit_breakers_default_rq_pending_open_shop");
    assert_eq!((open.class, value), (Class::Event, Some(1.0)));
    let (left, value) = column(&all, "envoy_cluster_circuit_breakers_default_remaining_rq_shop");
    assert_eq!((left.worse, value), (Worse::Down, Some(996.0)));
    assert_eq!(column(&all, "envoy_cluster_circuit_breakers_default_remaining_pending_shop").1, Some(0.0));
    assert_eq!(column(&all, "envoy_cluster_upstream_rq_active_shop").1, Some(4.0));
    let (refused, value) = column(&all, "envoy_cluster_upstream_rq_pending_overflow_shop");
    assert_eq!((refused.kind, refused.class, value), (crate::api::Kind::Counter, Class::Event, Some(12.0)));
    let (failed, value) = column(&all, "envoy_http_downstream_rq_xx_5xx_total");
    assert_eq!((failed.class, value), (Class::Event, Some(12.0)));
    assert_eq!(of(column(&all, "envoy_cluster_membership_healthy_shop").0), "envoy_cluster_membership_total_shop");
}

#[test]
fn traefik_and_caddy_tell_requests_in_flight_and_failures() {
    let traefik = page(include_str!("../../../../fixtures/metrics/traefik-3.7.prom"));
    assert_eq!(column(&traefik, "traefik_open_connections_web").1, Some(4.0));
    let (failed, value) = column(&traefik, "traefik_service_requests_5xx_total");
    assert_eq!((failed.class, value), (Class::Event, Some(5.0)));
    assert_eq!(column(&traefik, "traefik_service_server_up_shop_file").1, Some(1.0), "of two servers");
    let caddy = page(include_str!("../../../../fixtures/metrics/caddy-2.6.prom"));
    let (flight, value) = column(&caddy, "caddy_http_requests_in_flight_srv0");
    assert_eq!((flight.class, value), (Class::Utilisation, Some(4.0)));
    let (errors, value) = column(&caddy, "caddy_http_request_errors_total_srv0");
    assert_eq!((errors.class, value), (Class::Event, Some(8.0)));
    assert_eq!(column(&caddy, "caddy_reverse_proxy_upstreams_healthy").1, Some(1.0));
}

#[test]
fn a_request_counts_once_however_many_handlers_it_passes() {
    let nested = page(
        "caddy_http_requests_in_flight{handler=\"reverse_proxy\",server=\"srv0\"} 4\ncaddy_http_requests_in_flight{handler=\"subroute\",server=\"srv0\"} 5\n",
    );
    assert_eq!(column(&nested, "caddy_http_requests_in_flight_srv0").1, Some(5.0), "the outermost handler counts them all");
}

#[test]
fn what_a_program_tells_only_from_its_first_request_on_has_a_column_before_it() {
    let real = include_str!("../../../../fixtures/metrics/caddy-2.6.prom");
    let fresh: Vec<&str> = real.lines().filter(|line| !line.contains("caddy_http_")).collect();
    let (plan, read) = page(&(fresh.join("\n") + "\n"));
    let all = (plan, read);
    let later = (all.0.clone(), all.0.read(real.as_bytes()));
    for (name, value) in [
        ("caddy_http_requests_in_flight", 4.0),
        ("caddy_http_requests_total", 9.0),
        ("caddy_http_request_errors_total", 8.0),
        ("caddy_http_request_duration_seconds_count", 1.0),
    ] {
        assert_eq!(column(&all, name).1, None, "{name} is missing, not 0");
        assert_eq!(column(&later, name).1, Some(value), "{name}");
    }
    assert_eq!(column(&later, "caddy_http_request_duration_seconds_count_5xx_total").1, None);
    assert_eq!(later.1.stranger, None);
    let traefik = include_str!("../../../../fixtures/metrics/traefik-3.7.prom");
    let none = |line: &&str| ["entrypoint_request", "service_request"].iter().all(|part| !line.contains(part));
    let fresh: Vec<&str> = traefik.lines().filter(none).collect();
    let (plan, _) = page(&(fresh.join("\n") + "\n"));
    let later = (plan.clone(), plan.read(traefik.as_bytes()));
    assert_eq!(column(&later, "traefik_service_requests_total").1, Some(17.0));
    assert_eq!(column(&later, "traefik_service_requests_5xx_total").1, Some(5.0));
    assert_eq!(column(&later, "traefik_service_retries_total").1, None);
    // Another program's page has none of them.
    let (other, _) = page("pool_connections_max 3\n");
    assert!(!other.columns.iter().any(|column| column.gauge.name.contains("caddy")), "{:?}", other.columns);
}

#[test]
fn consumer_groups_have_a_lag_each_and_minus_one_is_no_lag() {
    let all = page(include_str!("../../../../fixtures/metrics/kafka_exporter.prom"));
    let (lag, value) = column(&all, "kafka_consumergroup_lag_orders");
    assert_eq!((lag.class, lag.guessed, value), (Class::Queue, false, Some(30.0)), "of its partitions");
    assert_eq!(column(&all, "kafka_consumergroup_lag_mail").1, Some(4.0), "what was never committed says -1");
    let seconds = page(
        "kafka_consumergroup_group_lag_seconds{group=\"a\",topic=\"t\",partition=\"0\"} 3\nkafka_consumergroup_group_lag_seconds{group=\"a\",topic=\"t\",partition=\"1\"} 9\n",
    );
    let (age, value) = column(&seconds, "kafka_consumergroup_group_lag_seconds_a");
    assert_eq!((age.class, value), (Class::Age, Some(9.0)), "the oldest");
}
