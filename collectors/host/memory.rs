//! `/proc/meminfo` and `/proc/vmstat`: what memory is left, and what its lack costs.

use crate::api::{Class, Gauge, Layer, Reading, Unit, Worse};
use crate::proc::{lines, number, value, words};

const MEMORY: &str = "host memory";

pub(super) const LEVELS: &[Gauge] = &[
    amount("memory_total_bytes", Class::Constant, "Memory of the machine"),
    amount("memory_available_bytes", Class::Level, "What new work could get without swapping")
        .of("memory_total_bytes")
        .worse(Worse::Down),
    amount("memory_dirty_bytes", Class::Level, "Waits to be written to a disk"),
    amount("memory_writeback_bytes", Class::Level, "Being written to a disk now"),
    amount("swap_total_bytes", Class::Constant, "Swap space of the machine"),
    amount("swap_used_bytes", Class::Level, "Swap space in use").of("swap_total_bytes"),
];

/// Where the machine has no swap these have no value, and nothing is lacking.
pub(super) const SWAP: &[&str] = &["swap_total_bytes", "swap_used_bytes"];

/// What is read back from swap, somebody waits for; what is written there, nobody does.
pub(super) const COUNTS: &[Gauge] = &[
    count("swap_in_pages_total", Class::Event, "Pages read back from swap"),
    count("swap_out_pages_total", Class::Throughput, "Pages written to swap").worse(Worse::Up),
    count("major_faults_total", Class::Throughput, "Page faults that had to read from a disk").worse(Worse::Up),
    count("direct_reclaims_total", Class::Event, "Times that a thread had to free memory itself before it got some"),
    count("oom_kills_total", Class::Event, "Processes that the kernel killed for lack of memory"),
];

const fn amount(name: &'static str, class: Class, help: &'static str) -> Gauge {
    Gauge::new(name, class, Unit::Bytes, help).at(Layer::Host, MEMORY)
}

const fn count(name: &'static str, class: Class, help: &'static str) -> Gauge {
    Gauge::counter(name, class, Unit::Count, help).at(Layer::Host, MEMORY)
}

/// `MemAvailable:   21431600 kB`
pub(super) fn parse_levels(bytes: &[u8], reading: &mut Reading) {
    let (mut swap_total, mut swap_free) = (None, None);
    for line in lines(bytes) {
        let mut rest = words(line);
        let (Some(key), Some(kib), Some(b"kB")) = (rest.next(), rest.next(), rest.next()) else { continue };
        let bytes = value(kib).map(|kib| kib * 1024.0);
        match key {
            b"MemTotal:" => reading.put_some("memory_total_bytes", bytes),
            b"MemAvailable:" => reading.put_some("memory_available_bytes", bytes),
            b"Dirty:" => reading.put_some("memory_dirty_bytes", bytes),
            b"Writeback:" => reading.put_some("memory_writeback_bytes", bytes),
            b"SwapTotal:" => swap_total = bytes,
            b"SwapFree:" => swap_free = bytes,
            _ => {}
        }
    }
    if let (Some(total), Some(free)) = (swap_total, swap_free)
        && total > 0.0
    {
        reading.put("swap_total_bytes", total);
        reading.put("swap_used_bytes", total - free);
    }
}

/// `pswpin 0`. Reclaims are counted by memory zone, in lines that stand together.
pub(super) fn parse_counts(bytes: &[u8], reading: &mut Reading) {
    let mut reclaims = Some(0_u64);
    let (mut zones, mut after_zones) = (0, false);
    for line in lines(bytes) {
        let mut rest = words(line);
        let (Some(key), Some(count)) = (rest.next(), rest.next()) else { continue };
        after_zones = true;
        match key {
            b"pswpin" => reading.put_some("swap_in_pages_total", value(count)),
            b"pswpout" => reading.put_some("swap_out_pages_total", value(count)),
            b"pgmajfault" => reading.put_some("major_faults_total", value(count)),
            b"oom_kill" => reading.put_some("oom_kills_total", value(count)),
            _ if key.starts_with(b"allocstall") => {
                // One zone that cannot be read makes the sum a lie.
                reclaims = reclaims.zip(number(count)).and_then(|(sum, count)| sum.checked_add(count));
                zones += 1;
                after_zones = false;
            }
            _ => {}
        }
    }
    // Only a line after the last zone tells that it was the last.
    if zones > 0 && after_zones {
        reading.put_some("direct_reclaims_total", reclaims.map(|count| count as f64));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{parsed, same_or_missing_at_every_cut};
    use super::*;

    const MEMINFO: &[u8] = include_bytes!("../../fixtures/host/linux-6.18/proc/meminfo");
    const VMSTAT: &[u8] = include_bytes!("../../fixtures/host/linux-6.18/proc/vmstat");

    #[test]
    fn a_real_meminfo_gives_bytes_and_no_swap_where_there_is_none() {
        let values = parsed(parse_levels, MEMINFO);
        assert_eq!(values["memory_total_bytes"], 24_683_656.0 * 1024.0);
        assert_eq!(values["memory_available_bytes"], 21_431_600.0 * 1024.0);
        assert_eq!(values["memory_dirty_bytes"], 113_968.0 * 1024.0);
        assert_eq!(values["memory_writeback_bytes"], 0.0);
        assert_eq!(values.len(), 4, "{values:?}");
    }

    #[test]
    fn swap_in_use_is_what_is_not_free() {
        let values = parsed(parse_levels, b"SwapTotal:  1000 kB\nSwapFree:   400 kB\n");
        assert_eq!(values["swap_used_bytes"], 600.0 * 1024.0);
        assert_eq!(values["swap_total_bytes"], 1000.0 * 1024.0);
    }

    #[test]
    fn a_real_vmstat_gives_every_count() {
        let values = parsed(parse_counts, VMSTAT);
        for gauge in COUNTS {
            assert!(values.contains_key(gauge.name), "{}", gauge.name);
        }
        assert_eq!(values["oom_kills_total"], 0.0);
    }

    #[test]
    fn reclaims_are_summed_over_the_zones_and_missing_where_one_is_unreadable() {
        let values = parsed(parse_counts, b"allocstall_dma 1\nallocstall_normal 20\nallocstall_movable 300\npgskip 0\n");
        assert_eq!(values["direct_reclaims_total"], 321.0);
        let values = parsed(parse_counts, b"allocstall_dma 1\nallocstall_normal ?\npgskip 0\n");
        assert!(values.is_empty(), "{values:?}");
    }

    #[test]
    fn a_cut_file_never_gives_another_value() {
        same_or_missing_at_every_cut(parse_levels, MEMINFO);
        same_or_missing_at_every_cut(parse_counts, VMSTAT);
        same_or_missing_at_every_cut(parse_counts, b"allocstall_dma 1\nallocstall_normal 20\npgskip 0\n");
    }
}
