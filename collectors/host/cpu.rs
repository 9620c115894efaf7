//! `/proc/stat`: processor time by state, the run queue, the processes that wait for input or output.

use crate::api::{Class, Gauge, Kind, Layer, Reading, Unit};
use crate::proc::{Plausible, lines, number, value, words};
use std::collections::HashMap;
use std::time::Instant;

/// The clock tick of every value in `/proc/stat` and `/proc/<pid>/stat`: `USER_HZ`, part of the kernel's interface, is 100
/// on every architecture that Linux is still built for, whatever its own timer does.
pub(super) const TICKS_PER_SECOND: f64 = 100.0;

const CPU: &str = "host CPU";

/// Busy time of all processors has the number of processors as its capacity. Its parts are there to explain it: they have
/// none, and so name no ceiling of their own. Guest time is part of user time.
pub(super) const GAUGES: &[Gauge] = &[
    Gauge::new("cores", Class::Constant, Unit::Count, "Processors that are online").at(Layer::Host, CPU),
    spent("cpu_busy_seconds_total", Class::Utilisation, "Time in which processors worked, in the kernel or for processes")
        .of("cores"),
    spent("cpu_user_seconds_total", Class::Utilisation, "Time spent on processes"),
    spent("cpu_nice_seconds_total", Class::Utilisation, "Time spent on processes of low priority"),
    spent("cpu_system_seconds_total", Class::Utilisation, "Time spent in the kernel"),
    spent("cpu_irq_seconds_total", Class::Utilisation, "Time spent on hardware interrupts"),
    spent("cpu_softirq_seconds_total", Class::Utilisation, "Time spent on soft interrupts, the network above all"),
    spent("cpu_iowait_seconds_total", Class::Pressure, "Idle while input or output was outstanding; can fall by a little"),
    spent("cpu_steal_seconds_total", Class::Pressure, "Time that the hypervisor gave to others though there was work").of("cores"),
    Gauge::new("procs_running", Class::Occupancy, Unit::Count, "Threads that run or wait for a processor, the sampler's own too")
        .of("cores")
        .own(1.0)
        .at(Layer::Host, CPU),
    // What blocks may be a background writer that nobody waits for, so that it is evidence and no queue.
    Gauge::new("procs_blocked", Class::Utilisation, Unit::Count, "Threads that wait for input or output without interruption")
        .at(Layer::Disk, "disk"),
    Gauge::counter("context_switches_total", Class::Throughput, Unit::Count, "Context switches").at(Layer::Host, CPU),
];

const fn spent(name: &'static str, class: Class, help: &'static str) -> Gauge {
    let mut gauge = Gauge::new(name, class, Unit::Seconds, help).at(Layer::Host, CPU);
    gauge.kind = Kind::Counter;
    gauge
}

/// The states in the order of the `cpu` line; the fourth is idle time.
const STATES: [Option<&str>; 8] = [
    Some("cpu_user_seconds_total"),
    Some("cpu_nice_seconds_total"),
    Some("cpu_system_seconds_total"),
    None,
    Some("cpu_iowait_seconds_total"),
    Some("cpu_irq_seconds_total"),
    Some("cpu_softirq_seconds_total"),
    Some("cpu_steal_seconds_total"),
];

/// Those of them in which a processor works.
const BUSY: [usize; 5] = [0, 1, 2, 5, 6];

pub(super) fn parse(bytes: &[u8], reading: &mut Reading) {
    let mut cores = 0;
    for line in lines(bytes) {
        let mut rest = words(line);
        let Some(key) = rest.next() else { continue };
        match key {
            b"cpu" => states(rest, reading),
            b"ctxt" => reading.put_some("context_switches_total", rest.next().and_then(value)),
            b"procs_running" => reading.put_some("procs_running", rest.next().and_then(value)),
            b"procs_blocked" => reading.put_some("procs_blocked", rest.next().and_then(value)),
            _ if key.strip_prefix(b"cpu").is_some_and(|id| number(id).is_some()) => cores += 1,
            // Only the line after the last processor tells that it was the last.
            b"intr" if cores > 0 => reading.put("cores", f64::from(cores)),
            _ => {}
        }
    }
}

fn states<'a>(words: impl Iterator<Item = &'a [u8]>, reading: &mut Reading) {
    let times: Vec<Option<f64>> = words.take(STATES.len()).map(|word| value(word).map(|ticks| ticks / TICKS_PER_SECOND)).collect();
    for (name, time) in STATES.iter().zip(&times) {
        if let Some(name) = name {
            reading.put_some(name, *time);
        }
    }
    // One part that cannot be read makes the sum a lie.
    let busy: Option<f64> = BUSY.iter().map(|state| times.get(*state).copied().flatten()).sum();
    reading.put_some("cpu_busy_seconds_total", busy);
}

/// Follows the counters of processor time from read to read.
#[derive(Default)]
pub(super) struct Follow(HashMap<&'static str, Plausible>);

impl Follow {
    /// Leaves out what a counter cannot have grown to in the time that passed: some hypervisors count steal that is more
    /// than all processors could lose. A fall is left to the reader, who tells a dip (input and output waits have them)
    /// from a reset.
    pub fn leave_out_the_impossible(&mut self, reading: &mut Reading, now: Instant) {
        let Some((_, cores)) = reading.values.iter().find(|(name, _)| *name == "cores").copied() else { return };
        let mut out = Vec::new();
        reading.values.retain(|(name, value)| {
            let counts = GAUGES.iter().any(|gauge| gauge.name == *name && gauge.unit == Unit::Seconds);
            let fits = !counts || self.0.entry(name).or_default().accepts(*value, now, cores, 1.0);
            if !fits {
                out.push(format!("{name} of {value} s cannot be: left out"));
            }
            fits
        });
        reading.notes.append(&mut out);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{parsed, same_or_missing_at_every_cut};
    use super::*;

    const REAL: &[u8] = include_bytes!("../../fixtures/host/linux-6.18/proc/stat");

    #[test]
    fn a_real_file_gives_seconds_by_state_and_the_run_queue() {
        let values = parsed(parse, REAL);
        assert_eq!(values["cpu_user_seconds_total"], 2500.87);
        assert_eq!(values["cpu_system_seconds_total"], 527.58);
        assert_eq!(values["cpu_iowait_seconds_total"], 16.68);
        assert_eq!(values["cpu_softirq_seconds_total"], 13.09);
        assert_eq!(values["cpu_steal_seconds_total"], 73.39);
        assert!((values["cpu_busy_seconds_total"] - (2500.87 + 527.58 + 13.09)).abs() < 1e-6);
        assert_eq!(values["cores"], 2.0);
        assert_eq!(values["procs_running"], 9.0);
        assert_eq!(values["procs_blocked"], 0.0);
        assert_eq!(values["context_switches_total"], 9_228_710.0);
    }

    #[test]
    fn every_gauge_of_a_real_file_has_a_value() {
        let values = parsed(parse, REAL);
        for gauge in GAUGES {
            assert!(values.contains_key(gauge.name), "{}", gauge.name);
        }
        assert_eq!(values.len(), GAUGES.len());
    }

    #[test]
    fn a_cut_file_never_gives_another_value() {
        same_or_missing_at_every_cut(parse, REAL);
    }

    #[test]
    fn a_state_that_is_no_number_is_missing_and_so_is_the_sum() {
        let values = parsed(parse, b"cpu  100 0 x 7 8 0 9 10 0 0\nintr 1\n");
        assert_eq!(values["cpu_user_seconds_total"], 1.0);
        assert_eq!(values["cpu_softirq_seconds_total"], 0.09);
        assert!(!values.contains_key("cpu_system_seconds_total"));
        assert!(!values.contains_key("cpu_busy_seconds_total"));
        assert!(!values.contains_key("cores"));
    }
}
