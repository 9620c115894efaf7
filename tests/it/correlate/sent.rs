//! What the driver sent against what it should have: in the report, beside the answer.

use crate::support::made::Made;

#[test]
fn the_plans_share_the_mix_beside_the_plans_and_the_end_of_the_workers_are_told() {
    let files = Made::default().write();
    let told = r#""reached_of_plan":0.857,"mix":{"seat map":0.6,"hold":0.4},"mix_planned":{"seat map":0.7,"hold":0.25,"pay":0.05},"workers_exhausted":{"unix_ms":1795000100000,"in_flight":64}"#;
    files.edit("timeline", |lines| lines[1] = lines[1].replacen('{', &format!("{{{told},"), 1));
    let said = files.correlate();
    let sent = &said.verdict["run"]["sent"];
    assert_eq!((&sent["reached_of_plan"], &sent["exhausted_at_s"]), (&0.857.into(), &100.0.into()), "{sent:#}");
    assert_eq!(sent["mix"].as_array().unwrap().len(), 3, "a planned step that never came is there: {sent:#}");
    for line in
        ["86 % of the plan", "all 64 of the driver's in use from t+100 s on", "hold 40 % (planned 25 %)", "pay 0 % (planned 5 %)"]
    {
        assert!(said.text.contains(line), "{line} in {}", said.text);
    }
}

#[test]
fn a_log_that_tells_nothing_of_a_plan_has_no_such_part() {
    let said = Made::default().write().correlate();
    assert!(said.verdict["run"]["sent"].is_null() && !said.text.contains("Mix  "), "{}", said.text);
}
