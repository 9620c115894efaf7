use super::*;

const HAPROXY: &[u8] = include_bytes!("../../../fixtures/metrics/haproxy-2.6.prom");
const FPM: &[u8] = include_bytes!("../../../fixtures/metrics/phpfpm-8.2-openmetrics.txt");
const NODE: &[u8] = include_bytes!("../../../fixtures/metrics/node_exporter-1.5.0.prom");

struct Page {
    plan: Plan,
    values: Vec<Option<f64>>,
    left_out: Vec<String>,
}

impl Page {
    fn of(body: &[u8]) -> Self {
        let settled = settle(body, &BTreeSet::new());
        let values = settled.plan.read(body).values;
        Self { plan: settled.plan, values, left_out: settled.left_out }
    }

    fn names(&self) -> Vec<&'static str> {
        self.plan.columns.iter().map(|column| column.gauge.name).collect()
    }

    fn gauge(&self, name: &str) -> Gauge {
        self.plan
            .columns
            .iter()
            .map(|column| column.gauge)
            .find(|gauge| gauge.name == name)
            .unwrap_or_else(|| panic!("{name} of {:?}", self.names()))
    }

    fn value(&self, name: &str) -> Option<f64> {
        self.plan.columns.iter().position(|column| column.gauge.name == name).and_then(|at| self.values[at])
    }
}

const SERVICE: &str = "\
# TYPE pool_connections_max gauge
pool_connections_max 20
pool_connections_in_use 20
pool_acquire_waiting 7
# TYPE pool_acquire_wait_seconds_total counter
pool_acquire_wait_seconds_total 12.5
http_requests_total{path=\"/hold\",code=\"200\"} 40
http_requests_total{path=\"/hold\",code=\"503\"} 2
http_requests_total{path=\"/pay\",code=\"200\"} 10
# TYPE http_request_duration_seconds histogram
http_request_duration_seconds_bucket{le=\"0.1\"} 10
http_request_duration_seconds_bucket{le=\"+Inf\"} 52
http_request_duration_seconds_sum 26
http_request_duration_seconds_count 52
nodejs_eventloop_lag_seconds 0.002
process_open_fds 31
process_max_fds 1024
process_start_time_seconds 1795979508
app_build_info{version=\"1.2\"} 1
";

#[test]
fn a_service_with_a_pool_is_recognised_and_nothing_of_it_is_guessed() {
    let page = Page::of(SERVICE.as_bytes());
    assert!(page.plan.columns.iter().all(|column| !column.gauge.guessed), "{:?}", page.names());
    assert_eq!(page.gauge("pool_acquire_waiting").class, Class::Queue);
    let wait = page.gauge("pool_acquire_wait_seconds_total");
    assert_eq!((wait.class, wait.kind, wait.unit, wait.lag), (Class::WaitSum, Kind::Counter, Unit::Seconds, Lag::Completion));
    let used = page.gauge("pool_connections_in_use");
    assert_eq!(
        (used.class, used.capacity, used.layer),
        (Class::Utilisation, Capacity::Column("pool_connections_max"), Some(Layer::Pool))
    );
    assert_eq!((page.value("pool_connections_in_use"), page.value("pool_connections_max")), (Some(20.0), Some(20.0)));
    assert_eq!(page.gauge("process_open_fds").capacity, Capacity::Column("process_max_fds"));
    assert!(!page.names().iter().any(|name| name.contains("bucket") || name.contains("info")));
}

#[test]
fn requests_are_summed_their_failures_are_an_event_and_their_times_are_no_wait() {
    let page = Page::of(SERVICE.as_bytes());
    assert_eq!((page.gauge("http_requests_total").class, page.value("http_requests_total")), (Class::Throughput, Some(52.0)));
    assert_eq!((page.gauge("http_requests_5xx_total").class, page.value("http_requests_5xx_total")), (Class::Event, Some(2.0)));
    assert_eq!(page.gauge("http_request_duration_seconds_sum").class, Class::Throughput);
    let mean = page.gauge("http_request_duration_mean_seconds");
    assert_eq!(mean.source, Source::Of(&["http_request_duration_seconds_sum"], &["http_request_duration_seconds_count"]));
    assert_eq!((mean.class, page.value("http_request_duration_mean_seconds")), (Class::Level, None));
    assert_eq!(page.gauge("nodejs_eventloop_lag_seconds").visits, Some(("http_requests_total", 1.0)));
}

#[test]
fn each_pool_has_its_own_columns_with_its_own_capacity() {
    let page = Page::of(
        b"hikaricp_connections_pending{pool=\"Main-1\",app=\"x\"} 3\nhikaricp_connections_pending{pool=\"audit\",app=\"x\"} 0\n\
          hikaricp_connections_active{pool=\"Main-1\",app=\"x\"} 10\nhikaricp_connections_max{pool=\"Main-1\",app=\"x\"} 10\n\
          hikaricp_connections_max{pool=\"audit\",app=\"x\"} 5\nhikaricp_connections_active{pool=\"audit\",app=\"x\"} 1\n",
    );
    assert_eq!(page.value("hikaricp_connections_pending_x_main_1"), Some(3.0));
    assert_eq!(page.value("hikaricp_connections_pending_x_audit"), Some(0.0));
    assert_eq!(page.gauge("hikaricp_connections_active_x_audit").capacity, Capacity::Column("hikaricp_connections_max_x_audit"));
    assert_eq!(page.gauge("hikaricp_connections_active_x_main_1").resource, "connection pool x Main-1");
}

#[test]
fn states_in_a_label_keep_apart_and_the_idle_ones_have_no_ceiling() {
    let page = Page::of(
        b"db_client_connections_usage{pool_name=\"p\",state=\"used\"} 8\ndb_client_connections_usage{pool_name=\"p\",state=\"idle\"} 2\n\
          db_client_connections_max{pool_name=\"p\"} 10\n",
    );
    assert_eq!(page.gauge("db_client_connections_usage_p_used").capacity, Capacity::Column("db_client_connections_max_p"));
    let idle = page.gauge("db_client_connections_usage_p_idle");
    assert_eq!((idle.capacity, idle.worse, page.value(idle.name)), (Capacity::None, Worse::Down, Some(2.0)));
}

#[test]
fn a_limit_of_0_is_no_limit_and_a_capacity_that_is_not_there_is_none() {
    let page = Page::of(b"go_sql_max_open_connections{db_name=\"a\"} 0\ngo_sql_in_use_connections{db_name=\"a\"} 3\n");
    assert_eq!((page.value("go_sql_max_open_connections_a"), page.value("go_sql_in_use_connections_a")), (None, Some(3.0)));
    assert_eq!(Page::of(b"go_sql_in_use_connections 3\n").gauge("go_sql_in_use_connections").capacity, Capacity::None);
}

#[test]
fn what_haproxy_leaves_unset_is_missing_and_its_high_water_marks_bound_nothing() {
    let page = Page::of(HAPROXY);
    assert!(page.plan.columns.len() <= MOST);
    assert!(
        page.plan.columns.iter().all(|column| matches!(
            column.gauge.capacity,
            Capacity::None | Capacity::Column("process_max_fds") | Capacity::Fixed(_)
        ))
    );
    for unset in ["haproxy_process_current_zlib_memory", "haproxy_server_current_throttle_be_s1"] {
        assert!(page.names().contains(&unset) && page.value(unset).is_none(), "{unset}");
    }
    assert!(page.left_out.contains(&"haproxy_server_max_queue_be_s1".to_owned()), "the marks go first: {:?}", page.left_out);
    let queues: Vec<_> =
        page.plan.columns.iter().filter(|column| column.gauge.class == Class::Queue).map(|column| column.gauge.name).collect();
    assert!(queues.iter().any(|name| name.starts_with("haproxy_backend_current_queue")), "{queues:?}");
    assert!(!queues.iter().any(|name| name.contains("max_queue")), "{queues:?}");
}

#[test]
fn php_fpm_and_the_node_exporter_give_sensible_classes() {
    let fpm = Page::of(FPM);
    assert_eq!((fpm.gauge("phpfpm_listen_queue").class, fpm.value("phpfpm_listen_queue")), (Class::Queue, Some(0.0)));
    assert_eq!(fpm.gauge("phpfpm_active_processes").class, Class::Utilisation);
    assert_eq!(fpm.gauge("phpfpm_accepted_connections").class, Class::Throughput);
    assert_eq!(fpm.gauge("phpfpm_max_active_processes").class, Class::Constant);
    let node = Page::of(NODE);
    assert_eq!(node.gauge("psi_cpu_some_seconds_total").class, Class::Pressure);
    assert_eq!(node.value("cores"), Some(2.0));
    assert!(!node.names().iter().any(|name| name.contains("promhttp") || name.contains("scrape")), "{:?}", node.names());
    assert!(node.left_out.is_empty());
}

#[test]
fn of_too_many_columns_the_recognised_and_the_waits_stay_and_the_rest_is_named() {
    let mut page: Vec<String> = (0..400).map(|at| format!("thing_{at} 1\n")).collect();
    page.push("work_queue_length 3\npool_acquire_waiting 4\n".to_owned());
    let page = page.concat();
    let page = Page::of(page.as_bytes());
    assert_eq!((page.plan.columns.len(), page.left_out.len()), (MOST, 202));
    assert_eq!((page.value("work_queue_length"), page.value("pool_acquire_waiting")), (Some(3.0), Some(4.0)));
}

#[test]
fn many_label_sets_become_one_column_that_later_ones_join() {
    let sets: Vec<String> = (0..30).map(|at| format!("jobs_waiting{{tenant=\"t{at}\"}} 1\n")).collect();
    let mut text = sets.concat();
    let settled = settle(text.as_bytes(), &BTreeSet::new());
    assert_eq!(settled.plan.columns.len(), 1);
    text.push_str("jobs_waiting{tenant=\"new\"} 5\n");
    let read = settled.plan.read(text.as_bytes());
    assert_eq!((read.values, read.stranger), (vec![Some(35.0)], None));
}

#[test]
fn names_that_become_the_same_are_kept_apart() {
    let page = Page::of(b"a:b 1\na_b 2\nA_b 3\n");
    assert_eq!(page.names(), ["a_b", "a_b_2", "a_b_3"]);
    assert_eq!((page.value("a_b"), page.value("a_b_2"), page.value("a_b_3")), (Some(1.0), Some(2.0), Some(3.0)));
}

#[test]
fn every_capacity_visit_and_derivation_names_a_column() {
    for body in [SERVICE.as_bytes(), HAPROXY, FPM, NODE] {
        let page = Page::of(body);
        let names = page.names();
        for column in &page.plan.columns {
            let mut named: Vec<&str> = column.gauge.visits.iter().map(|(name, _)| *name).collect();
            if let Capacity::Column(of) = column.gauge.capacity {
                named.push(of);
            }
            if let Source::Of(a, b) | Source::Share(a, b) = column.gauge.source {
                named.extend(a.iter().chain(b));
            }
            assert!(named.iter().all(|name| names.contains(name)), "{:?}", column.gauge);
        }
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }
}
