//! Held load and spikes: growth of a known slope, none where there is none, recovery after a known time.

use crate::support::held::{Held, LEAKING};
use serde_json::Value;

fn grown(verdict: &Value) -> Vec<(&str, f64)> {
    let plateaus = verdict["growth"]["plateaus"].as_array().map(Vec::as_slice).unwrap_or_default();
    let all = plateaus.iter().flat_map(|held| held["gauges"].as_array().map(Vec::as_slice).unwrap_or_default());
    all.map(|grown| (grown["gauge"].as_str().unwrap(), grown["per_minute"]["value"].as_f64().unwrap())).collect()
}

fn parts(verdict: &Value) -> Vec<(&str, f64, f64)> {
    let all = verdict["phases"].as_array().unwrap();
    all.iter().map(|p| (p["name"].as_str().unwrap(), p["from_s"].as_f64().unwrap(), p["to_s"].as_f64().unwrap())).collect()
}

#[test]
fn a_leak_of_a_known_slope_is_found_within_a_fifth() {
    // Per second: heap under a saw-tooth, resident memory, open files, free memory.
    let leaks = [2.5e4, 2e4, 0.1, 2e6];
    for (at, (gauge, per_s)) in LEAKING.into_iter().zip(leaks).enumerate() {
        for seed in 0..5 {
            let mut held = Held { seed, ..Held::default() };
            held.leaks[at] = per_s;
            let (verdict, text) = held.write().verdict(&[]);
            let found = grown(&verdict);
            let wanted = if gauge == "host.free_bytes" { -60.0 * per_s } else { 60.0 * per_s };
            assert!(found.iter().all(|(name, _)| *name == gauge), "{found:?} at seed {seed}: {text}");
            let slope = found.first().unwrap_or_else(|| panic!("{gauge} at seed {seed}: {text}\n{:#}", verdict["growth"])).1;
            assert!((slope / wanted - 1.0).abs() <= 0.2, "{gauge}: {slope} for {wanted} at seed {seed}");
        }
    }
}

#[test]
fn a_hundred_runs_without_a_leak_have_none() {
    for seed in 0..100 {
        let plateau = [200, 300, 420][seed as usize % 3];
        let plan = vec![(20, 4.0, 4.0), (40, 4.0, 15.0), (plateau, 15.0, 15.0)];
        let (verdict, text) = Held { plan, seed, ..Held::default() }.write().verdict(&[]);
        assert_eq!(grown(&verdict), [], "seed {seed}: {text}");
        assert!(verdict["growth"]["plateaus"][0]["judged"].as_u64().unwrap() >= 4, "{:#}", verdict["growth"]);
    }
}

#[test]
fn a_leak_is_told_with_its_time_to_the_limit_and_per_thousand_requests() {
    let (verdict, text) = Held { leaks: [0.0, 0.0, 0.1, 0.0], ..Held::default() }.write().verdict(&[]);
    let leak = &verdict["growth"]["plateaus"][0]["gauges"][0];
    // 1024 files; 80 and a tenth a second since the begin: at 510 s there are 131.
    let (limit_s, wanted) = (leak["to_limit_s"].as_f64().unwrap(), (1024.0 - 131.0) / 0.1);
    assert!((limit_s / wanted - 1.0).abs() < 0.2, "{limit_s} for {wanted}");
    let per = leak["per_1000_requests"].as_f64().unwrap();
    assert!((per / (1000.0 * 0.1 / 60.0) - 1.0).abs() < 0.2, "{per}");
    assert!(text.contains("Growing") && text.contains("app.open_files") && text.contains("at 1,024 in"), "{text}");
}

#[test]
fn a_soak_whose_maintenance_pass_grows_has_a_still_median_and_a_rising_tail() {
    let plan = vec![(30, 10.0, 10.0), (30, 10.0, 40.0), (720, 40.0, 40.0)];
    let (verdict, text) = Held { plan, pass_grows_ms: 0.8, ..Held::default() }.write().verdict(&[]);
    let soak = &verdict["growth"]["plateaus"][0];
    assert_eq!(soak["phase"], "soak", "{text}");
    let look = &soak["quarters"][0];
    assert_eq!(look["step"], "look");
    let ratio = |at: usize| look["last_over_first"][at].as_f64().unwrap();
    assert!((ratio(0) - 1.0).abs() < 0.05, "{look:#}");
    assert!(ratio(2) > 1.5, "{look:#}");
    let grew: Vec<&str> = look["grew"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(grew.contains(&"p99_ms") && !grew.contains(&"p50_ms"), "{look:#}");
    assert!(text.contains("Slower by quarter"), "{text}");
}

#[test]
fn a_soak_whose_pass_stays_as_it_is_has_no_rising_tail() {
    let plan = vec![(30, 10.0, 10.0), (30, 10.0, 40.0), (720, 40.0, 40.0)];
    for seed in 0..10 {
        let (verdict, text) = Held { plan: plan.clone(), seed, ..Held::default() }.write().verdict(&[]);
        let quarters = verdict["growth"]["plateaus"][0]["quarters"].as_array().unwrap();
        assert!(quarters.iter().all(|step| step["grew"] == serde_json::json!([])), "{quarters:#?}");
        assert!(text.contains("nothing in the soak of"), "{text}");
    }
}

/// A plateau of 60 a second, 20 s of a spike of `top`, and 90 s behind it; the pool can do 100 a second.
fn spike(top: f64) -> Held {
    let plan = vec![(30, 10.0, 10.0), (50, 10.0, 60.0), (60, 60.0, 60.0), (20, top, top), (90, 60.0, 60.0)];
    Held { plan, pool: 100.0, ..Held::default() }
}

#[test]
fn recovery_after_a_spike_is_known_within_two_seconds() {
    for (seed, top) in [(0, 140.0), (1, 150.0), (2, 170.0), (3, 190.0), (4, 210.0)] {
        let run = Held { seed, ..spike(top) }.write();
        let (verdict, text) = run.verdict(&[]);
        assert!(
            parts(&verdict).contains(&("spike", 139.5, 159.5)) || parts(&verdict).contains(&("spike", 140.0, 160.0)),
            "{:?}",
            parts(&verdict)
        );
        let recovery = &verdict["recovery"][0];
        let wanted = run.waited_last.unwrap() as f64 + 1.0 - 160.0;
        let after = recovery["after_s"].as_f64().unwrap_or_else(|| panic!("seed {seed}: {text}"));
        assert!((after - wanted).abs() <= 2.0, "{after} for {wanted} at seed {seed}: {recovery:#}");
        assert!(text.contains("Recovered"), "{text}");
    }
}

#[test]
fn what_a_spike_cost_is_who_waited_over_who_came() {
    let run = spike(180.0).write();
    let (verdict, _) = run.verdict(&["--threshold", "500"]);
    let cost = &verdict["recovery"][0]["cost"];
    let extra = cost["extra"].as_f64().unwrap();
    assert!((extra / (20.0 * 120.0) - 1.0).abs() < 0.02, "{cost:#}");
    // The backlog grows by 80 a second to 1,600 and falls by 40 a second: over 460 ms of waiting, 46 of them, from the first
    // second to near the end of those 60, in which 100 a second are served.
    let over = cost["over"].as_f64().unwrap();
    assert!((over / 5900.0 - 1.0).abs() < 0.1, "{cost:#}");
    assert_eq!(cost["percentiles"], "merged");
}

#[test]
fn a_spike_that_does_not_recover_is_said_so() {
    // What it broke can do less than comes in from then on.
    let run = Held { broken: Some((150, 55.0)), ..spike(180.0) }.write();
    let (verdict, text) = run.verdict(&[]);
    let recovery = &verdict["recovery"][0];
    assert_eq!((recovery["recovered"].as_bool(), recovery["after_s"].is_null()), (Some(false), true), "{recovery:#}");
    assert!(text.contains("Not recovered") && text.contains("app.pool_waiting"), "{text}");
    assert!((recovery["observed_s"].as_f64().unwrap() - 90.0).abs() < 2.0);
}

#[test]
fn what_only_the_spike_brings_out_keeps_its_place_behind_what_the_climb_brought_out() {
    let run = spike(180.0).write();
    let (verdict, text) = run.verdict(&[]);
    assert_eq!(verdict["first"]["gauge"], "app.pool_waiting", "{text}");
    let onset = verdict["first"]["onset"]["elapsed_s"].as_f64().unwrap();
    assert!((138.0..145.0).contains(&onset), "{onset}");
}

#[test]
fn steps_stand_apart_and_together_are_no_row() {
    let (verdict, text) = Held::default().write().verdict(&[]);
    let steps = verdict["steps"].as_array().unwrap();
    assert_eq!(steps.iter().map(|step| step["step"].as_str().unwrap()).collect::<Vec<_>>(), ["look", "pay"]);
    let p50 = |at: usize| steps[at]["p50_ms"].as_f64().unwrap();
    assert!((p50(0) / 35.0 - 1.0).abs() < 0.03 && (p50(1) / 70.0 - 1.0).abs() < 0.03, "{steps:#?}");
    assert!(text.contains("Steps") && text.lines().any(|line| line.trim_start().starts_with("pay ")), "{text}");
}

#[test]
fn a_given_phase_stands_in_place_of_the_one_that_was_told() {
    let run = Held { leaks: [0.0, 2e4, 0.0, 0.0], ..Held::default() }.write();
    let (verdict, _) = run.verdict(&["--phase", "plateau=200..7m", "--phase", "doors open=0..30"]);
    let parts = parts(&verdict);
    assert_eq!(parts[0], ("doors open", 0.0, 29.5));
    assert!(parts.contains(&("plateau", 199.5, 419.5)), "{parts:?}");
    let held = verdict["growth"]["plateaus"].as_array().unwrap();
    assert!(held.iter().any(|held| (held["from_s"].as_f64().unwrap() - 219.5).abs() < 1.0), "{held:#?}");
}

#[test]
fn a_plateau_that_was_given_and_is_too_short_is_a_caveat() {
    let run = Held { plan: vec![(30, 10.0, 10.0), (60, 10.0, 60.0)], ..Held::default() }.write();
    let codes = |args: &[&str]| -> Vec<String> {
        let (verdict, _) = run.verdict(args);
        assert!(verdict["growth"].is_null());
        verdict["caveats"].as_array().unwrap().iter().map(|caveat| caveat["code"].as_str().unwrap().to_owned()).collect()
    };
    assert!(codes(&["--phase", "plateau=80..90"]).contains(&"plateau_too_short".to_owned()));
    assert!(codes(&[]).contains(&"growth_not_told".to_owned()));
}

/// Five minutes of climb with a key that expires every 30 s, or with a job of others, or with neither.
fn cache(stampede_s: Option<usize>, job_s: Option<usize>, seed: u64) -> (Value, String) {
    let plan = vec![(40, 5.0, 5.0), (240, 5.0, 60.0), (60, 60.0, 60.0)];
    Held { plan, seed, stampede_s, job_s, ..Held::default() }.write().verdict(&[])
}

#[test]
fn a_stampede_at_every_expiry_is_one_departure_from_its_first_and_told_with_its_period() {
    for seed in 0..5 {
        let (verdict, text) = cache(Some(30), None, seed);
        let first = &verdict["first"];
        assert!(first["gauge"].as_str().is_some_and(|gauge| gauge.starts_with("cache.")), "{text}");
        assert_eq!(first["evidence"], "again and again, every 30 s", "{text}");
        // Expiries are at every thirtieth second; from the one at 90 s on they are deep enough to be seen.
        let at = first["onset"]["elapsed_s"].as_f64().unwrap();
        assert!((at % 30.0).min(30.0 - at % 30.0) <= 1.0 && at <= 150.0, "{at}: {text}");
        assert!(text.contains("again and again, every 30 s"), "{text}");
    }
}

#[test]
fn a_job_of_the_same_size_at_any_load_is_no_mover() {
    for (job_s, seed) in [(60, 0), (60, 1), (45, 2), (150, 3), (90, 4)] {
        let (verdict, text) = cache(None, Some(job_s), seed);
        assert!(verdict["first"].is_null(), "every {job_s} s: {text}");
    }
    let (_, text) = cache(None, Some(150), 5);
    assert!(text.contains("Not with the load") && text.contains("cache.waiting"), "{text}");
}
