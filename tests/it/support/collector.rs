//! A collector as the sampler opens it, and what it reads.

use collectors::api::{Class, Collector, Reading, Section, Spec, Support};
use std::time::Duration;

/// How long a read that gets no answer is waited for in these tests.
pub const DEADLINE: Duration = Duration::from_millis(800);

/// How long a read may take that is answered, on a machine that does much else; a collector's own limits follow it.
pub const SOON: Duration = Duration::from_secs(5);

/// One of this kind, with lines of configuration.
pub fn open(spec: &Spec, instance: &str, endpoint: &str, settings: &str) -> Box<dyn Collector> {
    let section = Section {
        instance: instance.to_owned(),
        endpoint: endpoint.to_owned(),
        settings: settings.parse().expect("TOML"),
        timeout: SOON,
        tick: Duration::from_secs(1),
    };
    (spec.open)(&section).expect("the settings are right")
}

/// The one of this name, which is its instance's as well.
pub fn collector(name: &str, endpoint: &str, settings: &str) -> Box<dyn Collector> {
    let spec = collectors::REGISTRY.iter().find(|spec| spec.name == name).expect("it is registered");
    open(spec, name, endpoint, settings)
}

/// The same, started.
pub async fn started(name: &str, endpoint: &str) -> (Box<dyn Collector>, Support) {
    begun(collector(name, endpoint, "")).await
}

/// One that has started.
pub async fn begun(mut collector: Box<dyn Collector>) -> (Box<dyn Collector>, Support) {
    let support = collector.start().await.unwrap_or_else(|fault| panic!("{fault} {:?}", fault.hint));
    (collector, support)
}

/// The class that the run declares for a gauge.
pub fn class(support: &Support, name: &str) -> Class {
    support.columns.iter().find(|gauge| gauge.name == name).unwrap_or_else(|| panic!("no column {name}")).class
}

/// One reading.
pub async fn read(collector: &mut dyn Collector) -> Reading {
    collector.read().await.unwrap_or_else(|fault| panic!("{fault}"))
}

/// What was read of a gauge.
pub fn value(reading: &Reading, name: &str) -> f64 {
    reading.get(name).unwrap_or_else(|| panic!("no {name} in {:?}", reading.values))
}

/// Reads until `seen`, for at most 10 s.
pub async fn until(collector: &mut dyn Collector, what: &str, seen: impl Fn(&Reading) -> bool) -> Reading {
    let mut last = Reading::default();
    for _ in 0..200 {
        last = read(collector).await;
        if seen(&last) {
            return last;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never seen: {what}; at last {last:?}");
}
