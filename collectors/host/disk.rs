//! `/proc/diskstats`: each whole disk.
//!
//! Who reads or flushes waits for it, so that the time of both can be what gave way first. The time of writes cannot: the
//! kernel writes dirty pages in great batches that nobody waits for. How busy the disk was says little of one that serves
//! many requests at once (flash, virtual disks), so that neither it nor the requests in flight have a capacity here.

use super::columns;
use crate::api::{Class, Gauge, Lag, Layer, Reading, Unit, Worse};
use crate::proc::{lines, value, words};

/// The gauges of one disk; their columns are called `disk_<name>_…`.
pub(crate) const GAUGES: &[Gauge] = &[
    Gauge::new("in_flight", Class::Utilisation, Unit::Count, "Requests that the disk works on or that wait for it"),
    Gauge::counter("busy_seconds_total", Class::Utilisation, Unit::Seconds, "Time with at least one request in flight"),
    Gauge::counter("reads_total", Class::Throughput, Unit::Count, "Reads completed"),
    Gauge::counter("read_bytes_total", Class::Throughput, Unit::Bytes, "Read"),
    Gauge::counter("read_seconds_total", Class::WaitSum, Unit::Seconds, "Time of all reads, from request to answer")
        .lag(Lag::Completion),
    Gauge::counter("writes_total", Class::Throughput, Unit::Count, "Writes completed"),
    Gauge::counter("written_bytes_total", Class::Throughput, Unit::Bytes, "Written"),
    Gauge::counter("write_seconds_total", Class::Utilisation, Unit::Seconds, "Time of all writes, also those nobody waits for")
        .lag(Lag::Completion)
        .worse(Worse::Up),
    Gauge::counter("flushes_total", Class::Throughput, Unit::Count, "Flushes completed: what fsync waits for"),
    Gauge::counter("flush_seconds_total", Class::WaitSum, Unit::Seconds, "Time of all flushes").lag(Lag::Completion),
];

/// Linux counts sectors of this size whatever the disk's own is.
const SECTOR: f64 = 512.0;

/// One disk and its columns, in the order of [`GAUGES`].
pub(crate) struct Disk {
    pub name: String,
    pub columns: Vec<Gauge>,
}

impl Disk {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), columns: columns("disk", name, GAUGES, Layer::Disk, &format!("disk {name}")) }
    }
}

/// The names of the whole disks that somebody's requests can reach. Partitions are part of their disk, and what is built
/// upon disks (device mapper, RAID) would count the same request again.
pub(crate) fn whole(all: &[String]) -> Vec<String> {
    all.iter().filter(|name| !is_virtual(name) && !is_partition(name, all)).cloned().collect()
}

/// Everything that the file lists.
pub(super) fn listed(bytes: &[u8]) -> Vec<String> {
    lines(bytes).filter_map(|line| words(line).nth(2)).map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

fn is_virtual(name: &str) -> bool {
    const NOT_DISKS: [&str; 7] = ["loop", "ram", "zram", "sr", "fd", "dm-", "md"];
    NOT_DISKS.iter().any(|kind| name.strip_prefix(kind).is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit())))
}

/// `sda1` of `sda`, `nvme0n1p2` of `nvme0n1`; `xvda1` where no `xvda` is listed is a disk.
fn is_partition(name: &str, all: &[String]) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    all.iter().filter(|disk| disk.as_str() != name).any(|disk| match name.strip_prefix(disk.as_str()) {
        Some(rest) if disk.ends_with(|last: char| last.is_ascii_digit()) => rest.strip_prefix('p').is_some_and(digits),
        Some(rest) => digits(rest),
        None => false,
    })
}

pub(super) fn parse(bytes: &[u8], disks: &[Disk], reading: &mut Reading) {
    for line in lines(bytes) {
        let mut rest = words(line).skip(2);
        let Some(name) = rest.next() else { continue };
        let Some(disk) = disks.iter().find(|disk| disk.name.as_bytes() == name) else { continue };
        let fields: Vec<Option<f64>> = rest.map(value).collect();
        let field = |index: usize| fields.get(index).copied().flatten();
        let seconds = |index: usize| field(index).map(|ms| ms / 1000.0);
        let values = [
            // Some kernels lose count and show 2^32 - 1 here.
            field(8).filter(|requests| *requests < f64::from(i32::MAX)),
            seconds(9),
            field(0),
            field(2).map(|sectors| sectors * SECTOR),
            seconds(3),
            field(4),
            field(6).map(|sectors| sectors * SECTOR),
            seconds(7),
            field(15),
            seconds(16),
        ];
        for (column, value) in disk.columns.iter().zip(values) {
            reading.put_some(column.name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{parsed, same_or_missing_at_every_cut};
    use super::*;

    const REAL: &[u8] = include_bytes!("../../fixtures/host/linux-6.18/proc/diskstats");

    fn vda(bytes: &[u8], reading: &mut Reading) {
        parse(bytes, &[Disk::new("vda")], reading);
    }

    #[test]
    fn of_a_real_file_only_the_disk_is_kept() {
        assert_eq!(whole(&listed(REAL)), ["vda"]);
        assert_eq!(listed(REAL).len(), 10);
    }

    #[test]
    fn partitions_and_what_is_built_upon_disks_are_left_out() {
        let whole = |names: &[&str]| whole(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        let found = whole(&["sda", "sda1", "sda12", "nvme0n1", "nvme0n1p1", "mmcblk0", "mmcblk0p2", "dm-0", "md127"]);
        assert_eq!(found, ["sda", "nvme0n1", "mmcblk0"]);
        assert_eq!(whole(&["xvda1", "sr0", "loop0", "nvme1n1", "nvme1n10"]), ["xvda1", "nvme1n1", "nvme1n10"]);
    }

    #[test]
    fn a_real_disk_gives_counts_seconds_and_bytes() {
        let values = parsed(vda, REAL);
        assert_eq!(values["disk_vda_in_flight"], 0.0);
        assert_eq!(values["disk_vda_busy_seconds_total"], 140.08);
        assert_eq!(values["disk_vda_reads_total"], 162_920.0);
        assert_eq!(values["disk_vda_read_bytes_total"], 11_686_290.0 * 512.0);
        assert_eq!(values["disk_vda_read_seconds_total"], 146.505);
        assert_eq!(values["disk_vda_writes_total"], 354_696.0);
        assert_eq!(values["disk_vda_written_bytes_total"], 34_888_784.0 * 512.0);
        assert_eq!(values["disk_vda_write_seconds_total"], 1_070.123);
        assert_eq!(values["disk_vda_flushes_total"], 83_665.0);
        assert_eq!(values["disk_vda_flush_seconds_total"], 62.344);
        assert_eq!(values.len(), GAUGES.len());
    }

    #[test]
    fn an_old_kernel_without_flushes_lacks_those_alone_and_a_lost_count_is_missing() {
        let values = parsed(vda, b"254 0 vda 1 2 3 4 5 6 7 8 4294967295 10 11\n");
        assert_eq!(values["disk_vda_busy_seconds_total"], 0.01);
        assert!(!values.contains_key("disk_vda_in_flight"));
        assert!(!values.contains_key("disk_vda_flushes_total"));
    }

    #[test]
    fn a_cut_file_never_gives_another_value() {
        same_or_missing_at_every_cut(vda, REAL);
    }
}
