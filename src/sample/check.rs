//! What each target is, what can be seen of it, and what is missing with its mend: long for `sampler --check`, short at
//! every start.

use super::collect::{Collect, Outcome};
use super::config::{Config, TargetConfig};
use super::health::silent;
use super::redact;
use super::say::Say;
use super::schedule::Schedule;
use crate::exit;
use collectors::api::{Fault, FaultKind, Lack, Support};
use std::fmt::Write as _;
use std::time::Duration;
use tokio::time::Instant;

/// How long a target may take to say what it is, once, before the load.
pub const START_LIMIT: Duration = Duration::from_secs(10);

/// `sampler --check`. Exit code 0, 2 (the configuration is wrong) or 5 (a required target is not readable).
pub async fn check(config: &Config, say: &Say) -> u8 {
    let mut collect = match open(config, say) {
        Ok(collect) => collect,
        Err(code) => return code,
    };
    let found = collect.start(START_LIMIT).await;
    let config = &config.recognised(collectors::REGISTRY, &found);
    // One read proves more than a connection does.
    let mut schedule = Schedule::new(Instant::now(), crate::time::unix_ms(), config.tick);
    tokio::time::sleep_until(schedule.t0()).await;
    let outcomes = match schedule.take(Instant::now()) {
        Some(tick) => collect.tick(&tick, &schedule).await,
        None => Vec::new(),
    };
    for (n, target) in config.targets.iter().enumerate() {
        let text = match &found[n] {
            Ok(support) => long(target, support, outcomes.get(n)),
            Err(fault) => format!("{}\n  not readable: {}", target.section.instance, indented(&said(fault), 2)),
        };
        say.answer(&text);
    }
    verdict(config, &found)
}

/// Opens every target without I/O; says what is wrong with the configuration.
pub fn open(config: &Config, say: &Say) -> Result<Collect, u8> {
    Collect::open(&config.targets, config.tick).map_err(|(n, fault)| {
        let target = &config.targets[n];
        let place = target.place.as_ref().map(|place| format!("{}: ", place.of_key_in(&fault.message))).unwrap_or_default();
        let name = named(&target.section.instance, &fault.message);
        say.trouble(&format!("{place}{name}{}", said(&fault)));
        exit::USAGE
    })
}

/// The exit code of what was found at the start.
pub fn verdict(config: &Config, found: &[Result<Support, Fault>]) -> u8 {
    let mut code = exit::DONE;
    for (target, found) in config.targets.iter().zip(found) {
        match found {
            Err(fault) if fault.kind == FaultKind::Config => return exit::USAGE,
            Err(_) if !target.allow_down => code = exit::TARGET_UNREADABLE,
            _ => {}
        }
    }
    code
}

/// The same at every start, on stderr: a line a target, and what is missing.
pub fn brief(config: &Config, collect: &Collect, found: &[Result<Support, Fault>], say: &Say) {
    for (n, (target, found)) in config.targets.iter().zip(found).enumerate() {
        let instance = &target.section.instance;
        let not_seen = |lack: &Lack| {
            let mend = lack.mend.as_ref().map(|mend| format!("\nhint: {mend}")).unwrap_or_default();
            say.tell(&format!("{instance}: not seen: {}{mend}", lack.what));
        };
        match found {
            Ok(support) => {
                let columns = support.columns.iter().filter(|gauge| gauge.is_read()).count();
                say.tell(&format!("{instance}: {}, {columns} columns", what(support)));
                support.lacks.iter().for_each(not_seen);
            }
            Err(fault) => {
                let goes_on = if target.allow_down { "down at the start: " } else { "" };
                say.trouble(&format!("{goes_on}{}{}", named(instance, &fault.message), said(fault)));
                if target.allow_down {
                    collect.unsettled(n).into_iter().for_each(not_seen);
                }
            }
        }
    }
}

fn long(target: &TargetConfig, support: &Support, outcome: Option<&Outcome>) -> String {
    let mut text = format!("{}  {}", target.section.instance, what(support));
    let read: Vec<&str> = support.columns.iter().filter(|gauge| gauge.is_read()).map(|gauge| gauge.name).collect();
    // Writing to a String cannot fail.
    if let Some(name) = &target.one_of {
        let address = target.address().map(|address| format!(", at {address}")).unwrap_or_default();
        let _ = write!(text, "\n  one of   {name}{address}");
    }
    for sees in &support.sees {
        let _ = write!(text, "\n  sees     {}", indented(sees, 11));
    }
    for lack in &support.lacks {
        let _ = write!(text, "\n  missing  {}", indented(&lack.what, 11));
        if let Some(mend) = &lack.mend {
            let _ = write!(text, "\n           {}", indented(mend, 11));
        }
    }
    let told = match outcome {
        Some(Outcome::Answered { took, reading, .. }) => {
            let unseen: Vec<&str> =
                read.iter().copied().filter(|name| !reading.values.iter().any(|(known, _)| known == name)).collect();
            let mut told = format!("{} of {} columns in {:.1} ms", read.len() - unseen.len(), read.len(), took.as_secs_f64() * 1e3);
            if !unseen.is_empty() {
                let _ = write!(told, "; no value now: {}", unseen.join(", "));
            }
            for note in &reading.notes {
                let _ = write!(told, "; {note}");
            }
            told
        }
        Some(Outcome::Failed { fault, .. }) => said(fault),
        Some(Outcome::Silent { waited }) => silent(*waited),
        Some(Outcome::NotDue) | None => "not tried".to_owned(),
    };
    let _ = write!(text, "\n  one read {}", indented(&told, 11));
    text
}

/// `MySQL 9.7.4 at db:3306`.
fn what(support: &Support) -> String {
    let mut text = support.product.clone();
    if !support.version.is_empty() {
        text = [&text, " ", &support.version].concat();
    }
    if !support.endpoint.is_empty() {
        text = [&text, " at ", &redact::endpoint(&support.endpoint)].concat();
    }
    text.trim().to_owned()
}

/// A fault and its mend.
pub fn said(fault: &Fault) -> String {
    match &fault.hint {
        Some(hint) => format!("{}\nhint: {hint}", fault.message),
        None => fault.message.clone(),
    }
}

/// The instance in front, unless the message names it.
fn named(instance: &str, message: &str) -> String {
    let there = message.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')).any(|word| word == instance);
    if there { String::new() } else { format!("{instance}: ") }
}

fn indented(text: &str, by: usize) -> String {
    text.trim_end().replace('\n', &format!("\n{}", " ".repeat(by)))
}
