//! What a ladder climbs, and in which order its rungs stand.
//!
//! A label of the sampler whose value is a number that differs from rung to rung (`--label bookers=8`) says it with its
//! unit; else the driver's own visitors or connections; else the number in the rungs' names; else the order as given.

use super::rungs::Rung;
use super::told::Axis;

/// Puts every rung on the axis and sorts each arm.
pub fn lay<'a>(arms: impl Iterator<Item = &'a mut Vec<Rung>>, label: Option<&str>) -> Result<Axis, String> {
    let mut arms: Vec<&mut Vec<Rung>> = arms.collect();
    let labels = match label {
        Some(label) => vec![label.to_owned()],
        None => labels(&arms),
    };
    let by_label = labels.into_iter().find_map(|label| {
        put(&mut arms, &|rung, _| labelled(rung, &label)).then(|| Axis { unit: label.clone(), from: "a label of the sampler" })
    });
    if let (Some(label), None) = (label, &by_label) {
        return Err(format!(
            "not every rung has a label {label} that is a number of its own\n  hint: sampler --label {label}=8 … for each rung"
        ));
    }
    let axis = by_label.unwrap_or_else(|| {
        if put(&mut arms, &|rung, _| rung.visitors) {
            return Axis { unit: visitors(&arms).to_owned(), from: "the driver's log" };
        }
        if let Some(unit) = by_name(&mut arms) {
            return Axis { unit, from: "the rungs' names" };
        }
        put(&mut arms, &|_, n| Some((n + 1) as f64));
        Axis { unit: "rung".to_owned(), from: "the order as given" }
    });
    for arm in arms {
        arm.sort_by(|a, b| a.at.total_cmp(&b.at));
    }
    Ok(axis)
}

/// Gives every rung a value, if every one has one and no two of an arm have the same. A rung that cannot be used needs none.
fn put(arms: &mut [&mut Vec<Rung>], value: &dyn Fn(&Rung, usize) -> Option<f64>) -> bool {
    let values: Vec<Vec<Option<f64>>> = arms
        .iter()
        .map(|arm| arm.iter().enumerate().map(|(n, rung)| value(rung, n).filter(|value| value.is_finite())).collect())
        .collect();
    for (arm, values) in arms.iter().zip(&values) {
        if arm.iter().zip(values).any(|(rung, value)| value.is_none() && rung.unusable.is_none()) {
            return false;
        }
        let mut known: Vec<f64> = values.iter().flatten().copied().collect();
        known.sort_by(f64::total_cmp);
        if known.is_empty() || known.windows(2).any(|pair| pair[0] == pair[1]) {
            return false;
        }
    }
    for (arm, values) in arms.iter_mut().zip(values) {
        for (rung, value) in arm.iter_mut().zip(values) {
            rung.at = value.unwrap_or(f64::NAN);
        }
    }
    true
}

fn labelled(rung: &Rung, label: &str) -> Option<f64> {
    rung.frame.as_ref()?.run.labels.get(label)?.trim().parse().ok()
}

/// Every label, the ones of the first rung first.
fn labels(arms: &[&mut Vec<Rung>]) -> Vec<String> {
    let first = arms.iter().flat_map(|arm| arm.iter()).find_map(|rung| rung.frame.as_ref());
    first.map(|frame| frame.run.labels.keys().cloned().collect()).unwrap_or_default()
}

/// What a driver calls those that send.
fn visitors(arms: &[&mut Vec<Rung>]) -> &'static str {
    let connections = ["wrk", "autocannon", "ab", "hey", "oha", "h2load", "fortio"];
    let driver = arms.iter().flat_map(|arm| arm.iter()).map(|rung| rung.driver.to_lowercase()).find(|name| !name.is_empty());
    match driver {
        Some(name) if connections.iter().any(|one| name.starts_with(one)) => "connections",
        Some(name) if name.starts_with("pgbench") => "clients",
        Some(name) if name.starts_with("sysbench") => "threads",
        _ => "visitors",
    }
}

/// The last number in the names that differs from rung to rung; gives the word before it.
fn by_name(arms: &mut [&mut Vec<Rung>]) -> Option<String> {
    let most = arms.iter().flat_map(|arm| arm.iter()).map(|rung| numbers(&rung.name).len()).max()?;
    let at = (0..most).find(|back| put(arms, &|rung, _| numbers(&rung.name).iter().rev().nth(*back).map(|(_, value)| *value)))?;
    let words =
        arms.iter().flat_map(|arm| arm.iter()).map(|rung| numbers(&rung.name).iter().rev().nth(at).map(|(word, _)| word.clone()));
    let words: Vec<String> = words.flatten().collect();
    let one = words.first().filter(|first| first.len() > 2 && words.iter().all(|word| word == *first));
    Some(one.filter(|word| !matches!(word.as_str(), "rung" | "run" | "step")).cloned().unwrap_or_else(|| "load".to_owned()))
}

/// The numbers in a name, each with the word that stands before it.
fn numbers(name: &str) -> Vec<(String, f64)> {
    let (mut found, mut word, mut chars) = (Vec::new(), String::new(), name.chars().peekable());
    while let Some(char) = chars.next() {
        if char.is_ascii_digit() {
            let mut digits = String::from(char);
            while let Some(next) = chars.next_if(|next| next.is_ascii_digit() || *next == '.') {
                digits.push(next);
            }
            if let Ok(value) = digits.trim_end_matches('.').parse() {
                found.push((std::mem::take(&mut word), value));
            }
        } else if char.is_alphabetic() {
            word.push(char);
        } else if chars.peek().is_some_and(|next| next.is_alphabetic()) {
            word.clear();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(names: &[&str]) -> Vec<Rung> {
        names.iter().map(|name| Rung { name: (*name).to_owned(), ..Rung::default() }).collect()
    }

    fn laid(names: &[&str]) -> (String, Vec<f64>) {
        let mut rungs = arm(names);
        let axis = lay(std::iter::once(&mut rungs), None).unwrap();
        (axis.unit, rungs.iter().map(|rung| rung.at).collect())
    }

    #[test]
    fn the_number_in_the_names_is_the_axis_with_the_word_before_it() {
        assert_eq!(laid(&["rung-16", "rung-2", "rung-8"]), ("load".into(), vec![2.0, 8.0, 16.0]));
        assert_eq!(laid(&["bookers-8", "bookers-64"]), ("bookers".into(), vec![8.0, 64.0]));
        assert_eq!(laid(&["hey_c8_run1", "hey_c32_run1"]).1, [8.0, 32.0]);
        assert_eq!(laid(&["low", "high"]), ("rung".into(), vec![1.0, 2.0]));
    }

    #[test]
    fn the_drivers_own_visitors_come_before_the_names_and_two_alike_are_none() {
        let mut rungs = arm(&["a-1", "a-2"]);
        (rungs[0].visitors, rungs[1].visitors) = (Some(64.0), Some(32.0));
        rungs[0].driver = "wrk".into();
        let axis = lay(std::iter::once(&mut rungs), None).unwrap();
        assert_eq!((axis.unit.as_str(), rungs[0].at, &*rungs[0].name), ("connections", 32.0, "a-2"));
        rungs[0].visitors = Some(64.0);
        assert_eq!(lay(std::iter::once(&mut rungs), None).unwrap().from, "the rungs' names");
        assert!(lay(std::iter::once(&mut rungs), Some("bookers")).is_err());
    }
}
