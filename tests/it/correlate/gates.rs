//! Gates on a made run whose every value is known: a pool that holds 100 requests a second, under a climb from 10 to 200.

use crate::support::made::Made;
use serde_json::Value;

/// What correlate says of a run with one gate.
fn gated(gate: &str) -> (i32, Value, String) {
    let said = Made::default().write().correlate_with(&["--gate", gate]);
    (said.code, said.verdict["gates"][0].clone(), said.verdict["verdict"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn a_gate_of_every_kind_holds_where_it_should_and_breaks_where_it_should() {
    for (holds, breaks, code, word) in [
        ("web.listen_queue <= 1e9", "app.pool_waiting <= 0 for 5s", "gate_gauge", "saturated"),
        ("app.errors_total < 1", "app.pool_waiting / web.up <= 5", "gate_capacity", "saturated"),
        ("p50 < 100s over 5s", "p50 < 60ms over 5s for 5s", "gate_latency", "violated"),
        ("failed <= 0", "goodput >= 150/s", "gate_goodput", "violated"),
        ("completed >= 5/s over 10s", "completed >= 110/s over 10s during plateau", "gate_completed", "violated"),
        ("reached >= 95%", "offered >= 250/s", "gate_offered", "violated"),
        ("failed <= 0", "share(pay) >= 0.3", "gate_share", "violated"),
        ("completed <= 1000/s", "count(pay) >= 1", "gate_count", "violated"),
        ("knee >= 90/s", "knee >= 120/s", "gate_knee", "violated"),
        ("first in app.*", "first not in app.*", "gate_first", "saturated"),
    ] {
        let (exit, gate, verdict) = gated(holds);
        assert_eq!((exit, verdict.as_str(), &gate["passed"]), (0, "qualified", &Value::Bool(true)), "{holds}: {gate}");
        let (exit, gate, verdict) = gated(breaks);
        assert_eq!((exit, verdict.as_str(), &gate["passed"]), (1, word, &Value::Bool(false)), "{breaks}: {gate}");
        assert_eq!(gate["code"], *code, "{gate}");
    }
}

#[test]
fn a_gate_that_broke_tells_its_worst_value_and_when_at_which_rate_and_for_how_long() {
    let (_, gate, _) = gated("app.pool_waiting <= 0.5 for 5s");
    // The climb passes the pool's 100/s in its 48th second, after 20 s of low load.
    let at = gate["onset"]["elapsed_s"].as_f64().unwrap();
    assert!((66.0..73.0).contains(&at), "{gate:#}");
    let rate = gate["rate_per_s"].as_f64().unwrap();
    assert!((96.0..106.0).contains(&rate), "{gate:#}");
    let lasted = gate["lasted_s"].as_f64().unwrap();
    assert!((65.0..75.0).contains(&lasted), "{gate:#}");
    assert!(gate["value"] == 40.0, "at most 40 wait for the pool: {gate:#}");
}

#[test]
fn a_gate_that_cannot_be_judged_is_an_error_and_never_a_pass() {
    for (gate, told) in [
        ("app.pool_waitng <= 5", "no column app.pool_waitng\nhint: is it app.pool_waiting?"),
        ("app.pool_waiting / capacity <= 0.5", "no capacity is known of app.pool_waiting"),
        ("p95(pay) < 800ms", "the log has no step \"pay\""),
        ("p95 < 800ms during spike", "the run has no phase \"spike\"; it has "),
        ("p95 < 800", "expected a time such as 800ms"),
        ("refused <= 1%", "the log does not tell what was refused\nhint: give the driver's log of single requests"),
        ("dropped <= 1%", "the log does not tell what was never sent"),
    ] {
        let said = Made::default().write().correlate_with(&["--gate", gate]);
        assert_eq!(said.code, 2, "{gate}: {}", said.text);
        assert!(said.err.contains(told), "{gate}: {}", said.err);
        assert!(said.verdict.is_null(), "{gate}");
    }
    let said =
        Made { silent: vec![("app", 0, 140)], ..Made::default() }.write().correlate_with(&["--gate", "app.pool_waiting <= 5"]);
    assert_eq!(said.code, 2, "{}", said.text);
    assert!(said.err.contains("was never read"), "{}", said.err);
}

#[test]
fn a_target_that_was_silent_makes_its_gate_inconclusive_and_not_a_pass() {
    let made = Made { pool: 400.0, silent: vec![("app", 60, 80)], ..Made::default() };
    let said = made.write().correlate_with(&["--gate", "app.pool_waiting <= 5 for 10s"]);
    assert!(said.warns("gate_gap"), "{}", said.text);
    assert_eq!((said.code, said.verdict["verdict"].as_str()), (4, Some("inconclusive")), "{}", said.text);
}

#[test]
fn a_file_of_gates_and_a_junit_report_have_a_case_for_each() {
    let files = Made::default().write();
    let gates = files.beside("gates.toml");
    let junit = files.beside("junit.xml");
    std::fs::write(&gates, "[gates]\npool = 'app.pool_waiting <= 0.5 for 5s'\nerrors = 'failed <= 1%'\n").unwrap();
    let said = files.correlate_with(&["--gates", gates.to_str().unwrap(), "--junit", junit.to_str().unwrap()]);
    assert_eq!(said.code, 1, "{}", said.text);
    assert!(said.text.contains("Broken") && said.text.contains("pool: app.pool_waiting"), "{}", said.text);
    let xml = std::fs::read_to_string(junit).unwrap();
    assert!(xml.contains("tests=\"2\" failures=\"1\""), "{xml}");
    assert!(xml.contains("name=\"pool: app.pool_waiting &lt;= 0.5 for 5s\">"), "{xml}");
    assert!(xml.contains("name=\"errors: failed &lt;= 1%\"/>"), "{xml}");
}
