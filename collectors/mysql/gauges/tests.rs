use super::*;
use crate::api::{Capacity, Kind};

#[test]
fn names_are_unique_and_every_capacity_is_a_column() {
    let mut names: Vec<_> = GAUGES.iter().map(|gauge| gauge.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), GAUGES.len());
    for gauge in GAUGES {
        if let Capacity::Column(column) = gauge.capacity {
            assert!(names.contains(&column), "{} is bounded by {column}, which is no gauge", gauge.name);
        }
    }
}

#[test]
fn counters_end_in_total_and_time_and_bytes_stand_in_the_name() {
    for gauge in GAUGES {
        assert_eq!(gauge.kind == Kind::Counter, gauge.name.ends_with("_total"), "{}", gauge.name);
        match gauge.unit {
            Unit::Bytes => assert!(gauge.name.contains("_bytes"), "{}", gauge.name),
            Unit::Milliseconds => assert!(gauge.name.contains("_ms"), "{}", gauge.name),
            _ => {}
        }
        assert!(!gauge.help.is_empty() && (gauge.layer.is_some() || gauge.class == Class::Constant), "{}", gauge.name);
    }
}

#[test]
fn the_metrics_that_are_asked_for_are_those_that_some_gauge_needs() {
    let needed =
        ITEMS.iter().flat_map(|item| item.from).filter_map(|from| if let Metric(name) = from { Some(*name) } else { None });
    let mut needed: Vec<_> = needed.collect();
    needed.sort_unstable();
    assert_eq!(needed, METRICS);
}
