use super::super::table;
use super::*;
use crate::api::{Class, Kind as GaugeKind};

const QUEUED: &[u8] = include_bytes!("../../../fixtures/haproxy/2.6.12/queued.csv");

fn queued() -> Table {
    table::parse(QUEUED).unwrap()
}

/// Rows of `proxy,service,type,status,mode,qcur,scur,slim,act,bck,stot,req_tot`.
fn rows(rows: &[String]) -> Table {
    let header = "# pxname,svname,type,status,mode,qcur,scur,slim,act,bck,stot,req_tot";
    table::parse(format!("{header}\n{}\n", rows.join("\n")).as_bytes()).unwrap()
}

fn value(plan: &Plan, table: &Table, name: &str) -> Option<f64> {
    let at = plan.columns.iter().position(|column| column.gauge.name == name).unwrap_or_else(|| panic!("no column {name}"));
    plan.read(table)[at]
}

#[test]
fn what_waits_for_any_server_and_for_one_stand_apart_and_the_limit_is_the_servers() {
    let plan = Plan::new(&queued(), &[], None).unwrap();
    let values = |name: &str| value(&plan, &queued(), name);
    assert_eq!((values("app_queue"), values("app_servers_queue")), (Some(8.0), Some(0.0)));
    // The backend's own limit is fullconn, 40 here.
    assert_eq!((values("app_servers_sessions"), values("app_servers_sessions_max")), (Some(16.0), Some(16.0)));
    assert_eq!((values("web_frontend_sessions"), values("web_frontend_sessions_max")), (Some(24.0), Some(400.0)));
    assert_eq!((values("app_servers_up"), values("both_servers_up")), (Some(1.0), Some(1.0)));
    assert_eq!(values("both_server_downs_total"), Some(1.0));
    // One server is down and the other a backup.
    assert_eq!((values("both_servers_sessions"), values("both_servers_sessions_max")), (Some(0.0), None));
}

#[test]
fn columns_have_names_classes_and_capacities_of_their_proxy() {
    let plan = Plan::new(&queued(), &[], None).unwrap();
    let names: BTreeSet<_> = plan.columns.iter().map(|column| column.gauge.name).collect();
    assert_eq!(names.len(), plan.columns.len());
    for column in &plan.columns {
        let gauge = column.gauge;
        assert!(!gauge.name.contains("PROXY") && gauge.resource.starts_with("haproxy "), "{gauge:?}");
        if let Capacity::Column(of) = gauge.capacity {
            assert!(names.contains(of), "{of} of {}", gauge.name);
        }
        assert_eq!(gauge.name.ends_with("_total"), gauge.kind == GaugeKind::Counter, "{}", gauge.name);
    }
    let gauge = |name: &str| plan.columns.iter().find(|column| column.gauge.name == name).unwrap().gauge;
    assert_eq!((gauge("app_queue").class, gauge("app_queue").resource), (Class::Queue, "haproxy backend app"));
    assert_eq!(gauge("app_queue_time_ms").class, Class::Level, "a mean of the last 1024 requests is evidence");
    assert_eq!(gauge("app_retries_total").class, Class::Event);
    assert!(!names.contains("app_frontend_sessions") && !names.contains("web_queue"), "a proxy has what it is");
    assert!(names.contains("both_frontend_sessions") && names.contains("both_queue"), "a listen section is both");
}

#[test]
fn the_proxy_of_the_page_is_left_out_where_it_does_nothing_else_and_declared_otherwise() {
    let own = |ours| {
        let plan = Plan::new(&queued(), &[], ours).unwrap();
        plan.columns.iter().find(|column| column.gauge.name == "stats_frontend_sessions").map(|column| column.gauge.own)
    };
    assert_eq!(own(None), Some(0.0));
    assert_eq!(own(Some(("stats", true))), None);
    assert_eq!(own(Some(("stats", false))), Some(1.0));
    let plan = Plan::new(&queued(), &[], Some(("stats", false))).unwrap();
    let ours: Vec<_> = plan.columns.iter().filter(|column| column.gauge.own > 0.0).map(|column| column.gauge.name).collect();
    assert_eq!(ours, ["stats_frontend_sessions", "stats_frontend_requests_total"]);
    // Named, it has columns.
    let named = Plan::new(&queued(), &["stats".to_owned()], Some(("stats", true))).unwrap();
    assert_eq!(named.own, ["stats"]);
}

#[test]
fn only_configured_proxies_have_columns_and_an_unknown_one_is_named_with_those_there_are() {
    let plan = Plan::new(&queued(), &["app".to_owned()], None).unwrap();
    assert!(plan.columns.iter().all(|column| column.gauge.name.starts_with("app_")));
    let why = Plan::new(&queued(), &["ap".to_owned()], None).unwrap_err();
    assert!(why.contains("\"ap\"") && why.contains("web, app, stats, both"), "{why}");
}

#[test]
fn past_twenty_proxies_the_rest_is_summed_where_sums_mean_something() {
    let many: Vec<String> = (0..25)
        .flat_map(|n| [format!("p{n},BACKEND,1,UP,http,{n},9,40,1,0,5,5"), format!("p{n},s,2,UP,http,1,{n},8,1,0,5,5")])
        .collect();
    let table = rows(&many);
    let plan = Plan::new(&table, &[], None).unwrap();
    assert_eq!((plan.own.len(), plan.others.len()), (20, 5));
    assert_eq!(value(&plan, &table, "p19_queue"), Some(19.0));
    assert_eq!(value(&plan, &table, "other_queue"), Some(20.0 + 21.0 + 22.0 + 23.0 + 24.0));
    assert_eq!(value(&plan, &table, "other_servers_queue"), Some(5.0));
    let others: Vec<_> = plan.columns.iter().filter(|column| column.gauge.name.starts_with("other_")).collect();
    assert!(others.iter().all(|column| !column.gauge.name.contains("sessions") && !column.gauge.name.contains("time_ms")));
    assert!(plan.columns.len() < 20 * 16 + 16, "{}", plan.columns.len());
}

#[test]
fn the_limit_counts_the_servers_in_use_and_is_missing_where_one_has_none() {
    for (servers, limit) in [
        (&["UP,8,1,0", "UP 1/3,4,1,0", "no check,2,1,0"][..], Some(14.0)),
        (&["UP,8,1,0", "DOWN,4,1,0", "MAINT,4,1,0", "DRAIN,4,1,0", "UP,16,0,1"], Some(8.0)),
        (&["UP,8,1,0", "UP,,1,0"], None),
        (&["DOWN,8,1,0"], None),
        (&["DOWN,8,1,0", "UP,8,0,1"], None),
    ] {
        let servers: Vec<String> = servers
            .iter()
            .enumerate()
            .map(|(n, text)| {
                let parts: Vec<&str> = text.split(',').collect();
                format!("be,s{n},2,{},http,0,1,{},{},{},0,0", parts[0], parts[1], parts[2], parts[3])
            })
            .collect();
        let table = rows(&servers);
        let plan = Plan::new(&table, &[], None).unwrap();
        assert_eq!(value(&plan, &table, "be_servers_sessions_max"), limit, "{servers:?}");
        assert_eq!(value(&plan, &table, "be_servers_sessions"), Some(servers.len() as f64));
    }
}

#[test]
fn in_tcp_mode_connections_count_for_requests_and_a_proxy_that_is_gone_is_missing() {
    let table = rows(&["db,FRONTEND,0,OPEN,tcp,,1,9,,,7,0".to_owned(), "web,FRONTEND,0,OPEN,http,,1,9,,,7,5".to_owned()]);
    let plan = Plan::new(&table, &[], None).unwrap();
    let requests = ["db_frontend_requests_total", "web_frontend_requests_total"];
    assert_eq!(requests.map(|name| value(&plan, &table, name)), [Some(7.0), Some(5.0)]);
    let later = rows(&["web,FRONTEND,0,OPEN,http,,1,9,,,7,6".to_owned()]);
    assert_eq!(requests.map(|name| value(&plan, &later, name)), [None, Some(6.0)]);
}

#[test]
fn proxies_whose_names_differ_only_in_signs_have_columns_of_their_own() {
    let names = ["Web-1", "web.1", "other", "9"];
    let table = rows(&names.map(|name| format!("{name},FRONTEND,0,OPEN,http,,1,9,,,7,5")));
    let plan = Plan::new(&table, &[], None).unwrap();
    let sessions: Vec<_> =
        plan.columns.iter().map(|column| column.gauge.name).filter(|name| name.ends_with("frontend_sessions")).collect();
    assert_eq!(
        sessions,
        ["web_1_frontend_sessions", "web_1_2_frontend_sessions", "other_2_frontend_sessions", "p_9_frontend_sessions"]
    );
}
