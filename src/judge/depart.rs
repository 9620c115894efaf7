//! The departure that stays.
//!
//! **Question.** Did this signal leave what the load explains, and stay away while the load was at least as high?
//! **Method.** A one-sided CUSUM (Page 1954) of the excess in scales, with allowance ½ and increments held to ±4, so that no
//! single reading decides; its height from Siegmund's approximation of the average run length (Siegmund 1985), over all
//! gauges and bins of the run. An alarm counts only if the smoothed excess is over half the floor in 80 % of a window of the
//! next bins whose load is at least that of the alarm, and in 60 % of all later ones: saturation does not heal while the load
//! rises, a cron job does. In a step up there is no climb to stay through: there it must last to the end of the step. What
//! alarmed and healed is kept as an excursion and the search goes on behind it.
//! **How it fails.** A departure in the very last bins of the load has nothing left to stay through and is not counted. A
//! cron job that begins near the top of the load and runs to its end looks like a departure.

use super::robust::smooth;

/// The allowance of the CUSUM, in scales.
const ALLOWANCE: f64 = 0.5;
/// No single increment moves the CUSUM by more than this.
const CLIP: f64 = 4.0;

/// The windows of a run, in bins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Windows {
    /// Over how many bins the excess is smoothed before it is compared with the floor.
    pub smooth: usize,
    /// For how many bins after the alarm it must last.
    pub last: usize,
    /// The alarm's height in scales.
    pub height: f64,
}

/// What one gauge's excess did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path {
    /// The departure that stayed, if one did.
    pub departure: Option<Alarm>,
    /// What left and came back.
    pub excursions: Vec<Excursion>,
    /// The CUSUM per bin, as far as it was followed.
    pub sums: Vec<f64>,
}

/// An alarm of the CUSUM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alarm {
    /// The last bin in which the CUSUM was 0: the departure began behind it.
    pub start: usize,
    /// The bin of the alarm.
    pub alarm: usize,
}

/// A departure that did not stay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Excursion {
    /// Where it began.
    pub start: usize,
    /// Where the smoothed excess was back.
    pub end: usize,
    /// The highest smoothed excess.
    pub peak: f64,
}

/// What is tested: one value per bin.
#[derive(Clone, Copy, Debug)]
pub struct Excess<'a> {
    /// What is over the expected value; NaN where nothing was read.
    pub values: &'a [f64],
    /// The scale of each bin.
    pub scale: &'a [f64],
    /// What is material in each bin.
    pub floor: &'a [f64],
    /// The load of each bin; NaN where there was none.
    pub load: &'a [f64],
    /// The first bin that is judged, and the one behind the last.
    pub range: (usize, usize),
    /// Steps up in the load, from their first bin to the one behind their last.
    pub steps: &'a [(usize, usize)],
}

/// The height that gives an average run length of `bins · gauges / chance` bins: Siegmund's
/// ARL = (e^{2kb} − 2kb − 1) / 2k², b = h + 1.166.
pub fn height(bins: usize, gauges: usize, chance: f64) -> f64 {
    let wanted = (bins.max(1) * gauges.max(1)) as f64 / chance;
    let run_length = |h: f64| {
        let kb = 2.0 * ALLOWANCE * (h + 1.166);
        (kb.exp() - kb - 1.0) / (2.0 * ALLOWANCE * ALLOWANCE)
    };
    let (mut low, mut high) = (0.0, 60.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if run_length(middle) < wanted { low = middle } else { high = middle }
    }
    high
}

/// Follows the excess to the departure that stays.
pub fn follow(excess: &Excess, windows: Windows) -> Path {
    let smoothed = smooth(excess.values, windows.smooth);
    let over = |n: usize| smoothed[n] > 0.5 * excess.floor[n];
    let (from, to) = excess.range;
    let (mut sum, mut start, mut n) = (0.0_f64, from, from);
    let mut path = Path { sums: vec![f64::NAN; excess.values.len()], ..Path::default() };
    while n < to {
        if !excess.values[n].is_finite() {
            n += 1;
            continue;
        }
        sum = (sum + (excess.values[n] / excess.scale[n] - ALLOWANCE).clamp(-CLIP, CLIP)).max(0.0);
        path.sums[n] = sum;
        if sum == 0.0 {
            start = n;
        }
        if sum <= windows.height {
            n += 1;
            continue;
        }
        if !over(n) {
            // Over the height but under half the floor: held there until it is material or falls back.
            sum = windows.height;
            n += 1;
            continue;
        }
        if let Some((_, end)) = excess.steps.iter().find(|(from, to)| (*from..*to).contains(&n)) {
            if lasts(excess, &over, n + 1, (*end).min(to)) {
                path.departure = Some(Alarm { start, alarm: n });
                break;
            }
            (sum, start, n) = heal(excess, &smoothed, &mut path, start, n);
            continue;
        }
        let as_high = |bin: &usize| excess.values[*bin].is_finite() && excess.load[*bin] >= 0.95 * excess.load[n];
        let share = |bins: &mut dyn Iterator<Item = usize>| {
            let (mut all, mut held) = (0, 0);
            for bin in bins {
                all += 1;
                held += usize::from(over(bin));
            }
            (all, f64::from(held as u32) / f64::from(all.max(1) as u32))
        };
        // Where visitors come at random the load dips after any high bin: the window is of bins of that load, not of time.
        let (soon, lasted) = share(&mut (n + 1..to).filter(as_high).take(windows.last));
        let (_, stayed) = share(&mut (n + 1..to).filter(as_high));
        if soon >= (windows.last / 3).max(3) && lasted >= 0.8 && stayed >= 0.6 {
            path.departure = Some(Alarm { start, alarm: n });
            break;
        }
        (sum, start, n) = heal(excess, &smoothed, &mut path, start, n);
    }
    path
}

/// Whether it lasts from a bin to the end of a step: there is no climb to stay through.
fn lasts(excess: &Excess, over: &impl Fn(usize) -> bool, from: usize, to: usize) -> bool {
    let held = |from: usize| {
        let known: Vec<bool> = (from..to).filter(|bin| excess.values[*bin].is_finite()).map(over).collect();
        (known.len(), known.iter().filter(|over| **over).count() as f64 / known.len().max(1) as f64)
    };
    let ((all, whole), (_, end)) = (held(from), held(to - (to.saturating_sub(from)).div_ceil(4)));
    all >= 3 && whole >= 0.8 && end >= 0.8
}

/// Soon healed: notes it and goes on behind it. The sum, its last zero and the bin from there.
fn heal(excess: &Excess, smoothed: &[f64], path: &mut Path, start: usize, from: usize) -> (f64, usize, usize) {
    let mut end = from;
    while end < excess.range.1 && (smoothed[end] > 0.5 * excess.floor[end] || smoothed[end].is_nan()) {
        end += 1;
    }
    let peak = (start..end).map(|bin| smoothed[bin]).fold(0.0, f64::max);
    path.excursions.push(Excursion { start, end, peak });
    (0.0, end, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOWS: Windows = Windows { smooth: 5, last: 15, height: 10.2 };

    fn noise(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed;
        move || {
            let mut sum = -6.0;
            for _ in 0..12 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                sum += (state >> 11) as f64 / (1_u64 << 53) as f64;
            }
            sum
        }
    }

    fn judge(values: &[f64], load: &[f64]) -> Path {
        let n = values.len();
        let excess = Excess { values, scale: &vec![1.0; n], floor: &vec![4.0; n], load, range: (0, n), steps: &[] };
        follow(&excess, WINDOWS)
    }

    fn climb(n: usize) -> Vec<f64> {
        (0..n).map(|n| n as f64).collect()
    }

    #[test]
    fn the_height_is_the_one_of_the_literature() {
        assert!((height(300, 28, 0.05) - 10.2).abs() < 0.1);
        assert!(height(300, 280, 0.05) > height(300, 28, 0.05));
    }

    #[test]
    fn what_climbs_and_stays_is_a_departure_from_where_it_began() {
        let mut noise = noise(7);
        let values: Vec<f64> = (0..300).map(|n| noise() + if n > 150 { f64::from(n - 150) * 0.5 } else { 0.0 }).collect();
        let alarm = judge(&values, &climb(300)).departure.unwrap();
        assert!((148..=162).contains(&alarm.start), "{alarm:?}");
        assert!(alarm.alarm > alarm.start && alarm.alarm < 175);
    }

    #[test]
    fn a_cron_job_of_twenty_bins_is_an_excursion() {
        let values: Vec<f64> = (0..300).map(|n| if (100..120).contains(&n) { 50.0 } else { 0.0 }).collect();
        let path = judge(&values, &climb(300));
        assert_eq!(path.departure, None);
        assert_eq!(path.excursions.len(), 1);
        assert!((96..=100).contains(&path.excursions[0].start) && (119..=124).contains(&path.excursions[0].end), "{path:?}");
    }

    #[test]
    fn a_real_departure_behind_a_cron_job_is_still_found() {
        let values: Vec<f64> = (0..300).map(|n| if (60..75).contains(&n) { 40.0 } else { f64::from((n - 200).max(0)) }).collect();
        let path = judge(&values, &climb(300));
        assert!(path.departure.is_some_and(|alarm| (195..215).contains(&alarm.start)), "{path:?}");
    }

    #[test]
    fn noise_alone_rarely_alarms_and_never_departs() {
        for seed in 0..50 {
            let mut noise = noise(seed);
            let values: Vec<f64> = (0..300).map(|_| noise()).collect();
            assert_eq!(judge(&values, &climb(300)).departure, None, "seed {seed}");
        }
    }

    #[test]
    fn what_only_a_spike_brings_out_has_to_last_to_its_end_only() {
        let load: Vec<f64> = (0..300).map(|n| if (200..230).contains(&n) { 900.0 } else { 300.0 }).collect();
        let values: Vec<f64> = (0..300).map(|n| if (202..230).contains(&n) { 60.0 } else { 0.0 }).collect();
        assert!(judge(&values, &load).departure.is_some_and(|alarm| alarm.alarm < 210));
    }

    fn with_step(values: &[f64], load: &[f64], step: (usize, usize)) -> Path {
        let steps = &[step];
        follow(&Excess { values, scale: &[1.0; 300], floor: &[4.0; 300], load, range: (0, 300), steps }, WINDOWS)
    }

    #[test]
    fn in_a_step_up_it_has_to_last_to_the_end_of_the_step_whatever_comes_behind() {
        let load: Vec<f64> = (0..300).map(|n| if (100..130).contains(&n) { 900.0 } else { 850.0 }).collect();
        let judge = |until: usize| {
            let values: Vec<f64> = (0..300).map(|n| if (102..until).contains(&n) { 60.0 } else { 0.0 }).collect();
            with_step(&values, &load, (100, 130))
        };
        assert!(judge(130).departure.is_some_and(|alarm| (100..110).contains(&alarm.alarm)), "{:?}", judge(130));
        let healed = judge(122);
        assert_eq!((healed.departure, healed.excursions.len()), (None, 1), "{healed:?}");
    }

    #[test]
    fn what_moves_in_the_climb_before_a_step_up_is_dated_there_and_what_healed_before_it_is_not() {
        // A climb to 500, then 900 for 30 bins.
        let load: Vec<f64> = (0..300).map(|n| if n < 270 { f64::from(n.min(250)) * 2.0 } else { 900.0 }).collect();
        let judge = |values: &dyn Fn(i32) -> f64| {
            let values: Vec<f64> = (0..300).map(values).collect();
            with_step(&values, &load, (270, 300))
        };
        let stays = judge(&|n| if n > 150 { f64::from(n - 150) * 0.5 } else { 0.0 });
        assert!(stays.departure.is_some_and(|alarm| (148..=162).contains(&alarm.start) && alarm.alarm < 200), "{stays:?}");
        // What moved in the climb, healed there, and is back only in the step, has left its rest with the step.
        let only_in_step = judge(&|n| if (150..200).contains(&n) || n >= 272 { 60.0 } else { 0.0 });
        assert!(only_in_step.departure.is_some_and(|alarm| (268..280).contains(&alarm.start)), "{only_in_step:?}");
        assert_eq!(only_in_step.excursions.len(), 1, "{only_in_step:?}");
        assert!((146..=150).contains(&only_in_step.excursions[0].start), "{only_in_step:?}");
        // And what healed before the step and did not come back has not left.
        let healed = judge(&|n| if (200..230).contains(&n) { 60.0 } else { 0.0 });
        assert_eq!((healed.departure, healed.excursions.len()), (None, 1), "{healed:?}");
    }

    #[test]
    fn one_giant_reading_does_not_decide_and_a_gap_is_stepped_over() {
        let mut values = vec![0.0; 300];
        values[40] = 1e9;
        values[100..120].fill(f64::NAN);
        assert_eq!(judge(&values, &climb(300)).departure, None);
    }
}
