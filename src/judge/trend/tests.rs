use super::*;

/// Uniform numbers from 0 to 1, the same for one seed.
fn uniform(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1);
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn noise(seed: u64) -> impl FnMut() -> f64 {
    let mut uniform = uniform(seed);
    move || (0..12).map(|_| uniform()).sum::<f64>() - 6.0
}

/// Noise in which a reading keeps this share of the one before.
fn wandering(seed: u64, keeps: f64, bins: usize) -> Vec<f64> {
    let mut noise = noise(seed);
    let mut at = noise() / (1.0 - keeps * keeps).sqrt();
    (0..bins)
        .map(|_| {
            at = keeps * at + noise();
            at
        })
        .collect()
}

fn found(values: &[f64]) -> bool {
    of(values, 30).is_ok_and(|trend| trend.p < CHANCE && trend.slope > 0.0 && trend.goes_on)
}

#[test]
fn the_slope_of_a_leak_under_noise_is_known_and_its_interval_holds_it() {
    let mut noise = noise(3);
    let values: Vec<f64> = (0..600).map(|n| 500.0 + 0.05 * f64::from(n) + 4.0 * noise()).collect();
    let trend = of(&values, 30).unwrap();
    assert_eq!(trend.blocks, 20);
    assert!((trend.slope / 0.05 - 1.0).abs() < 0.1 && trend.p < 1e-6 && trend.goes_on, "{trend:?}");
    assert!(trend.between.0 < 0.05 && 0.05 < trend.between.1, "{trend:?}");
    assert!((trend.last - 530.0).abs() < 2.0);
}

#[test]
fn what_only_wanders_is_rarely_taken_for_growth() {
    // One of a hundred is what the test promises, one side of which is growth.
    for keeps in [0.0, 0.5, 0.9, 0.97, 0.99, 0.997] {
        let false_ones = (0..100).filter(|seed| found(&wandering(*seed, keeps, 600))).count();
        assert!(false_ones <= 3, "{false_ones} of 100 at {keeps}");
    }
}

/// What adds up without a rest, with so much more each time.
fn walk(seed: u64, drift: f64) -> Vec<f64> {
    let (mut noise, mut at) = (noise(seed), 0.0);
    let mut step = || {
        at += drift + noise();
        at
    };
    (0..600).map(|_| step()).collect()
}

#[test]
fn a_walk_without_a_rest_is_seldom_believed_to_grow() {
    let believed = (0..400).filter(|seed| found(&walk(*seed, 0.0))).count();
    assert!(believed <= 8, "{believed} of 400");
}

#[test]
fn what_is_kept_of_visitors_who_come_at_random_is_growth_and_its_rate_is_known() {
    for seed in 0..100 {
        let values = walk(seed, 0.5);
        let trend = of(&values, 30).unwrap();
        assert!(found(&values), "{seed}: {trend:?}");
        assert!((trend.slope / 0.5 - 1.0).abs() < 0.3, "{seed}: {trend:?}");
    }
    let held = (0..100).map(|seed| of(&walk(seed, 0.5), 30).unwrap().between).filter(|(low, high)| *low <= 0.5 && 0.5 <= *high);
    assert!(held.count() >= 95);
}

#[test]
fn a_saw_tooth_alone_does_not_grow_and_its_minima_tell_the_leak_beneath_it() {
    let saw = |leak: f64, seed| {
        let mut noise = noise(seed);
        (0..900).map(|n| 200.0 + leak * f64::from(n) + 9.0 * f64::from(n % 37) + 2.0 * noise()).collect::<Vec<f64>>()
    };
    for seed in 0..20 {
        let still = of(&saw(0.0, seed), 30).unwrap();
        assert!(still.minima && still.p > CHANCE, "{still:?}");
        let leaking = of(&saw(0.05, seed), 30).unwrap();
        assert!(leaking.minima && leaking.p < CHANCE && (leaking.slope / 0.05 - 1.0).abs() < 0.2, "{leaking:?}");
    }
}

#[test]
fn a_cache_that_fills_and_stops_does_not_go_on() {
    let mut noise = noise(1);
    let values: Vec<f64> = (0..600).map(|n| 1000.0 * (1.0 - (-f64::from(n) / 80.0).exp()) + noise()).collect();
    assert!(!found(&values), "{:?}", of(&values, 30));
}

#[test]
fn growth_that_quickens_is_growth() {
    let mut noise = noise(5);
    let values: Vec<f64> = (0..600).map(|n| 1000.0 + (f64::from(n) / 30.0).powi(2) + noise()).collect();
    assert!(found(&values), "{:?}", of(&values, 30));
}

#[test]
fn what_stands_still_has_no_trend_and_what_is_short_is_not_told() {
    let trend = of(&[7.0; 200], 30).unwrap();
    assert_eq!((trend.slope, trend.p), (0.0, 1.0));
    assert_eq!(of(&[7.0; 23], 30), Err(Untold::TooShort(7)));
    assert_eq!(of(&[f64::NAN; 200], 30), Err(Untold::TooShort(0)));
}

#[test]
fn a_gauge_read_every_fifth_bin_is_told_as_well() {
    let values: Vec<f64> = (0..600).map(|n| if n % 5 == 0 { 100.0 + 0.1 * f64::from(n) } else { f64::NAN }).collect();
    let trend = of(&values, 30).unwrap();
    assert!((trend.slope - 0.1).abs() < 0.005, "{trend:?}");
}

#[test]
fn holm_asks_more_of_each_the_more_there_are_and_chances_are_those_of_the_tables() {
    assert_eq!(holm(&[0.004, 0.2, 0.003], 0.01), [true, false, true]);
    assert_eq!(holm(&[0.006, 0.2, 0.005], 0.01), [false, false, false]);
    assert!((exact(4, 6.0) - 2.0 / 24.0).abs() < 1e-12 && (exact(4, 0.0) - 1.0).abs() < 1e-12);
    assert!((two_sided(1.96) - 0.05).abs() < 1e-4 && (two_sided(0.0) - 1.0).abs() < 1e-6);
}
