//! What a run declares of the gauges that a test saturates.

use collectors::api::{Capacity, Class, Support};

/// Each gauge has this class, and the column that bounds it, if any.
pub fn declared(support: &Support, gauges: &[(&str, Class, Option<&'static str>)]) {
    for (name, class, capacity) in gauges {
        let gauge = support.columns.iter().find(|gauge| gauge.name == *name).unwrap_or_else(|| panic!("no column {name}"));
        let wanted = capacity.map_or(Capacity::None, Capacity::Column);
        assert_eq!((gauge.class, gauge.capacity), (*class, wanted), "{name}");
    }
}
