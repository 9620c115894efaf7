//! `/proc/pressure`: the share of time in which some, or all, threads waited for a resource.
//!
//! Read is `total`, which the kernel brings up to date at each read, not the averages, which look back ten seconds and
//! more. `full` of the processor is no quantity of a whole machine and is left out.

use crate::api::{Class, Gauge, Layer, Reading, Unit};
use crate::proc::stalled as total;

/// What makes the kernel keep the pressure files.
pub(super) const MEND: &str = "boot with psi=1 on the kernel's command line (a kernel built with CONFIG_PSI)";

pub(super) const CPU: &[Gauge] =
    &[waited("psi_cpu_some_us_total", "Time in which some thread waited for a processor", Layer::Host, "host CPU")];

pub(super) const MEMORY: &[Gauge] = &[
    waited("psi_memory_some_us_total", "Time in which some thread waited for memory", Layer::Host, "host memory"),
    waited("psi_memory_full_us_total", "Time in which all threads waited for memory", Layer::Host, "host memory"),
];

pub(super) const IO: &[Gauge] = &[
    waited("psi_io_some_us_total", "Time in which some thread waited for input or output", Layer::Disk, "disk"),
    waited("psi_io_full_us_total", "Time in which all threads waited for input or output", Layer::Disk, "disk"),
];

const fn waited(name: &'static str, help: &'static str, layer: Layer, resource: &'static str) -> Gauge {
    Gauge::counter(name, Class::Pressure, Unit::Microseconds, help).at(layer, resource)
}

pub(super) fn parse_cpu(bytes: &[u8], reading: &mut Reading) {
    reading.put_some("psi_cpu_some_us_total", total(bytes, b"some"));
}

pub(super) fn parse_memory(bytes: &[u8], reading: &mut Reading) {
    reading.put_some("psi_memory_some_us_total", total(bytes, b"some"));
    reading.put_some("psi_memory_full_us_total", total(bytes, b"full"));
}

pub(super) fn parse_io(bytes: &[u8], reading: &mut Reading) {
    reading.put_some("psi_io_some_us_total", total(bytes, b"some"));
    reading.put_some("psi_io_full_us_total", total(bytes, b"full"));
}

#[cfg(test)]
mod tests {
    use super::super::tests::{parsed, same_or_missing_at_every_cut};
    use super::*;

    const REAL_CPU: &[u8] = include_bytes!("../../fixtures/host/linux-6.18/proc/pressure/cpu");
    const REAL_IO: &[u8] = include_bytes!("../../fixtures/host/linux-6.18/proc/pressure/io");
    const REAL_MEMORY: &[u8] = include_bytes!("../../fixtures/host/linux-6.18/proc/pressure/memory");

    #[test]
    fn real_files_give_the_totals_in_microseconds() {
        assert_eq!(parsed(parse_cpu, REAL_CPU)["psi_cpu_some_us_total"], 1_315_565_240.0);
        let io = parsed(parse_io, REAL_IO);
        assert_eq!((io["psi_io_some_us_total"], io["psi_io_full_us_total"]), (75_915_906.0, 9_442_672.0));
        let memory = parsed(parse_memory, REAL_MEMORY);
        assert_eq!((memory["psi_memory_some_us_total"], memory["psi_memory_full_us_total"]), (0.0, 0.0));
    }

    #[test]
    fn an_old_kernel_without_full_of_a_resource_lacks_that_value_alone() {
        let values = parsed(parse_io, b"some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n");
        assert_eq!(values["psi_io_some_us_total"], 7.0);
        assert_eq!(values.len(), 1);
    }

    #[test]
    fn a_cut_file_never_gives_another_value() {
        same_or_missing_at_every_cut(parse_cpu, REAL_CPU);
        same_or_missing_at_every_cut(parse_io, REAL_IO);
        same_or_missing_at_every_cut(parse_memory, REAL_MEMORY);
    }
}
