//! What the whole machine shares beside processors, memory, disks and network, and what the sampler itself takes of it.

use super::cpu::TICKS_PER_SECOND;
use crate::api::{Class, Gauge, Layer, Reading, Unit};
use crate::proc::{lines, value, words};

/// `sys/fs/file-nr`
pub(super) const FILES: &[Gauge] = &[
    Gauge::new("file_handles", Class::Level, Unit::Count, "Open files of the whole machine")
        .of("file_handles_max")
        .at(Layer::Host, "file handles"),
    Gauge::new("file_handles_max", Class::Constant, Unit::Count, "How many files can be open").at(Layer::Host, "file handles"),
];

/// `sys/net/netfilter/nf_conntrack_count`; only where the firewall tracks connections.
pub(super) const TRACKED: &[Gauge] =
    &[Gauge::new("conntrack_entries", Class::Utilisation, Unit::Count, "Connections that the firewall tracks")
        .of("conntrack_entries_max")
        .at(Layer::Host, "connection tracking")];

/// `sys/net/netfilter/nf_conntrack_max`
pub(super) const TRACKED_MAX: &[Gauge] =
    &[Gauge::new("conntrack_entries_max", Class::Constant, Unit::Count, "How many it can track")
        .at(Layer::Host, "connection tracking")];

/// `self/stat` and `self/status`: evidence against the sampler itself, of classes that can never be what gave way first.
pub(super) const OWN_CPU: &[Gauge] =
    &[Gauge::counter("self_cpu_seconds_total", Class::Utilisation, Unit::Seconds, "Processor time of the sampler itself")
        .at(Layer::Host, "the sampler")];

pub(super) const OWN_MEMORY: &[Gauge] =
    &[Gauge::new("self_memory_bytes", Class::Level, Unit::Bytes, "Memory of the sampler itself").at(Layer::Host, "the sampler")];

/// `514\t0\t2466165`: allocated, free (always 0), the limit.
pub(super) fn parse_files(bytes: &[u8], reading: &mut Reading) {
    let mut numbers = lines(bytes).next().into_iter().flat_map(words).map(value);
    let (Some(Some(used)), Some(_), Some(Some(most))) = (numbers.next(), numbers.next(), numbers.next()) else { return };
    reading.put("file_handles", used);
    reading.put("file_handles_max", most);
}

pub(super) fn parse_tracked(bytes: &[u8], reading: &mut Reading) {
    reading.put_some("conntrack_entries", only(bytes));
}

pub(super) fn parse_tracked_max(bytes: &[u8], reading: &mut Reading) {
    reading.put_some("conntrack_entries_max", only(bytes));
}

fn only(bytes: &[u8]) -> Option<f64> {
    lines(bytes).next().and_then(|line| words(line).next()).and_then(value)
}

/// `14546 (a name (with) blanks) R …`: user and system time are the 14th and 15th word, counted from after the name.
pub(super) fn parse_own_cpu(bytes: &[u8], reading: &mut Reading) {
    let Some(line) = lines(bytes).last() else { return };
    let Some(close) = line.iter().rposition(|byte| *byte == b')') else { return };
    let mut times = words(&line[close + 1..]).skip(11).map(value);
    let (Some(Some(user)), Some(Some(system))) = (times.next(), times.next()) else { return };
    reading.put("self_cpu_seconds_total", (user + system) / TICKS_PER_SECOND);
}

/// `VmRSS:     3912 kB`
pub(super) fn parse_own_memory(bytes: &[u8], reading: &mut Reading) {
    let Some(line) = lines(bytes).find_map(|line| line.strip_prefix(b"VmRSS:")) else { return };
    let mut rest = words(line);
    if let (Some(kib), Some(b"kB")) = (rest.next(), rest.next()) {
        reading.put_some("self_memory_bytes", value(kib).map(|kib| kib * 1024.0));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{parsed, same_or_missing_at_every_cut};
    use super::*;

    const FILE_NR: &[u8] = include_bytes!("../../fixtures/host/linux-6.18/proc/sys/fs/file-nr");
    const SELF_STAT: &[u8] = include_bytes!("../../fixtures/host/linux-6.18/proc/self/stat");
    const SELF_STATUS: &[u8] = include_bytes!("../../fixtures/host/linux-6.18/proc/self/status");

    #[test]
    fn a_real_file_gives_the_open_files_and_their_limit() {
        let values = parsed(parse_files, FILE_NR);
        assert_eq!(values["file_handles_max"], 2_466_165.0);
        assert!(values["file_handles"] > 0.0);
        assert!(parsed(parse_files, b"514\t0\n").is_empty());
    }

    #[test]
    fn the_samplers_own_time_is_found_behind_a_name_with_blanks_and_brackets() {
        let line = b"14 (a) b (c)) R 1 2 3 4 5 6 7 8 9 10 150 50 9 9\n";
        assert_eq!(parsed(parse_own_cpu, line)["self_cpu_seconds_total"], 2.0);
        assert_eq!(parsed(parse_own_cpu, SELF_STAT).len(), 1);
    }

    #[test]
    fn the_samplers_own_memory_is_its_resident_set() {
        assert!(parsed(parse_own_memory, SELF_STATUS)["self_memory_bytes"] > 1e5);
        assert_eq!(parsed(parse_own_memory, b"VmRSS:\t 3912 kB\n")["self_memory_bytes"], 3912.0 * 1024.0);
        assert!(parsed(parse_own_memory, b"VmRSS:\t 3912 MB\n").is_empty());
    }

    #[test]
    fn a_file_of_one_number_is_that_number() {
        assert_eq!(parsed(parse_tracked, b"17\n")["conntrack_entries"], 17.0);
        assert_eq!(parsed(parse_tracked_max, b"262144\n")["conntrack_entries_max"], 262_144.0);
        assert!(parsed(parse_tracked, b"17").is_empty());
    }

    #[test]
    fn a_cut_file_never_gives_another_value() {
        same_or_missing_at_every_cut(parse_files, FILE_NR);
        same_or_missing_at_every_cut(parse_own_cpu, SELF_STAT);
        same_or_missing_at_every_cut(parse_own_memory, SELF_STATUS);
    }
}
