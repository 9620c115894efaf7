//! A node exporter's page: another machine's gauges under the names, classes and capacities that [`crate::host`] gives our
//! own, so that a report treats both alike.
//!
//! Source: `node_exporter` 1.x on Linux with its default collectors. Its counters are the kernel's: they begin again at the
//! machine's start, not at the exporter's. Times are seconds where the kernel counts microseconds. Beside what `host` reads
//! there is the space of each file system, which the exporter asks for and we never would (a dead network mount hangs).
//! Everything else of it is left unread on purpose, load averages above all (smoothed over a minute); what others put on the
//! same page (the textfile collector) is read as on any page.

use super::plan::{Column, How, Pick, column_name};
use super::settle::{Found, Labels};
use crate::api::{Class, Gauge, Layer, Unit, Worse, intern};
use crate::host::{self, disk, net};

/// The series by which such a page is known.
pub const MARK: &str = "node_cpu_seconds_total";

/// When its counters began.
pub const START: &str = "node_boot_time_seconds";

const BUSY: &str = "user|nice|system|irq|softirq";

/// Our gauge, the series it is made of, and the mode where it is one of processor time.
const SERIES: &[(&str, &str, &str)] = &[
    ("cpu_busy_seconds_total", MARK, BUSY),
    ("cpu_user_seconds_total", MARK, "user"),
    ("cpu_nice_seconds_total", MARK, "nice"),
    ("cpu_system_seconds_total", MARK, "system"),
    ("cpu_irq_seconds_total", MARK, "irq"),
    ("cpu_softirq_seconds_total", MARK, "softirq"),
    ("cpu_iowait_seconds_total", MARK, "iowait"),
    ("cpu_steal_seconds_total", MARK, "steal"),
    ("procs_running", "node_procs_running", ""),
    ("procs_blocked", "node_procs_blocked", ""),
    ("context_switches_total", "node_context_switches_total", ""),
    ("memory_total_bytes", "node_memory_MemTotal_bytes", ""),
    ("memory_available_bytes", "node_memory_MemAvailable_bytes", ""),
    ("memory_dirty_bytes", "node_memory_Dirty_bytes", ""),
    ("memory_writeback_bytes", "node_memory_Writeback_bytes", ""),
    ("swap_in_pages_total", "node_vmstat_pswpin", ""),
    ("swap_out_pages_total", "node_vmstat_pswpout", ""),
    ("major_faults_total", "node_vmstat_pgmajfault", ""),
    ("oom_kills_total", "node_vmstat_oom_kill", ""),
    ("tcp_listen_overflows_total", "node_netstat_TcpExt_ListenOverflows", ""),
    ("tcp_listen_drops_total", "node_netstat_TcpExt_ListenDrops", ""),
    ("tcp_syncookies_total", "node_netstat_TcpExt_SyncookiesSent", ""),
    ("tcp_retransmits_total", "node_netstat_Tcp_RetransSegs", ""),
    ("tcp_established", "node_netstat_Tcp_CurrEstab", ""),
    ("tcp_time_wait", "node_sockstat_TCP_tw", ""),
    ("softnet_drops_total", "node_softnet_dropped_total", ""),
    ("file_handles", "node_filefd_allocated", ""),
    ("file_handles_max", "node_filefd_maximum", ""),
    ("conntrack_entries", "node_nf_conntrack_entries", ""),
    ("conntrack_entries_max", "node_nf_conntrack_entries_limit", ""),
];

const fn stalled(name: &'static str, help: &'static str, layer: Layer, resource: &'static str) -> Gauge {
    Gauge::counter(name, Class::Pressure, Unit::Seconds, help).at(layer, resource)
}

/// What the exporter gives in another form than the kernel, or in one that `host` does not read.
const OTHERS: &[(Gauge, &str)] = &[
    (
        stalled("psi_cpu_some_seconds_total", "Time in which some thread waited for a processor", Layer::Host, "host CPU"),
        "node_pressure_cpu_waiting_seconds_total",
    ),
    (
        stalled("psi_memory_some_seconds_total", "Time in which some thread waited for memory", Layer::Host, "host memory"),
        "node_pressure_memory_waiting_seconds_total",
    ),
    (
        stalled("psi_memory_full_seconds_total", "Time in which all threads waited for memory", Layer::Host, "host memory"),
        "node_pressure_memory_stalled_seconds_total",
    ),
    (
        stalled("psi_io_some_seconds_total", "Time in which some thread waited for input or output", Layer::Disk, "disk"),
        "node_pressure_io_waiting_seconds_total",
    ),
    (
        stalled("psi_io_full_seconds_total", "Time in which all threads waited for input or output", Layer::Disk, "disk"),
        "node_pressure_io_stalled_seconds_total",
    ),
];

/// In the order of [`disk::GAUGES`].
const DISK: [&str; 10] = [
    "node_disk_io_now",
    "node_disk_io_time_seconds_total",
    "node_disk_reads_completed_total",
    "node_disk_read_bytes_total",
    "node_disk_read_time_seconds_total",
    "node_disk_writes_completed_total",
    "node_disk_written_bytes_total",
    "node_disk_write_time_seconds_total",
    "node_disk_flush_requests_total",
    "node_disk_flush_requests_time_seconds_total",
];

/// In the order of [`net::INTERFACE`], but for the errors, which the exporter counts apart for each way.
const NETWORK: [&str; 6] = [
    "node_network_receive_bytes_total",
    "node_network_receive_packets_total",
    "node_network_receive_drop_total",
    "node_network_transmit_bytes_total",
    "node_network_transmit_packets_total",
    "node_network_transmit_drop_total",
];

const ERRORS: [(&str, &str, &str); 2] = [
    ("rx_errors_total", "node_network_receive_errs_total", "Packets received with errors"),
    ("tx_errors_total", "node_network_transmit_errs_total", "Packets that could not be sent for errors"),
];

/// So many file systems at most, and none that is memory, read-only by nature or another one's view.
const FILE_SYSTEMS: usize = 8;
const NO_SPACE: [&str; 8] = ["tmpfs", "devtmpfs", "ramfs", "squashfs", "overlay", "iso9660", "nsfs", "autofs"];

/// Whether these are the series of such a page.
pub fn is_one(page: &[Found]) -> bool {
    page.iter().any(|found| found.name == MARK)
}

/// Whether a series says something of the machine, or of the exporter itself.
pub fn owns(series: &str) -> bool {
    ["node_", "go_", "process_"].iter().any(|start| series.starts_with(start))
}

/// The columns of the machine, of what the page has.
pub fn columns(page: &[Found]) -> Vec<Column> {
    let has = |series: &str| page.iter().any(|found| found.name == series);
    let ours = |name: &str| host::SPEC.gauges.iter().find(|gauge| gauge.name == name).copied();
    let mut columns = Vec::new();
    columns.extend(ours("cores").map(|gauge| column(gauge, MARK, &[("mode", "idle")], How::Count)));
    for (name, series, mode) in SERIES.iter().filter(|(_, series, _)| has(series)) {
        let labels: &[(&str, &str)] = if mode.is_empty() { &[] } else { &[("mode", *mode)] };
        columns.extend(ours(name).map(|gauge| column(gauge, series, labels, How::Sum)));
    }
    columns.extend(OTHERS.iter().filter(|(_, series)| has(series)).map(|(gauge, series)| column(*gauge, series, &[], How::Sum)));
    let single = |gauges: &[Gauge], series: &[&'static str], device: &str| {
        let there = gauges.iter().zip(series).filter(|(_, series)| has(series));
        there.map(|(gauge, series)| column(*gauge, series, &[("device", device)], How::Sum)).collect::<Vec<_>>()
    };
    for name in disk::whole(&devices(page, DISK[0])) {
        columns.extend(single(&disk::Disk::new(&name).columns, &DISK, &name));
    }
    for name in net::outer(devices(page, NETWORK[0])) {
        let interface = net::Interface::new(&name);
        columns.extend(single(&interface.columns, &NETWORK, &name));
        for (end, series, help) in ERRORS.iter().filter(|(_, series, _)| has(series)) {
            let errors = Gauge::counter(intern(&column_name(&["net", &name, end])), Class::Event, Unit::Count, help);
            let resource = interface.columns[0].resource;
            columns.push(column(errors.at(Layer::Host, resource), series, &[("device", &name)], How::Sum));
        }
    }
    columns.extend(file_systems(page));
    columns
}

fn column(gauge: Gauge, series: &str, labels: &[(&str, &str)], how: How) -> Column {
    let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Column { gauge, pick: Some(Pick { series: series.to_owned(), labels, exact: false, how }), bounds: false }
}

fn sets<'a>(page: &'a [Found], series: &str) -> impl Iterator<Item = &'a Labels> {
    page.iter().filter(move |found| found.name == series).flat_map(|found| &found.sets)
}

fn devices(page: &[Found], series: &str) -> Vec<String> {
    sets(page, series).filter_map(|set| set.get("device").cloned()).collect()
}

fn file_systems(page: &[Found]) -> Vec<Column> {
    let has_space = |set: &&Labels| set.get("fstype").is_none_or(|kind| !NO_SPACE.contains(&kind.as_str()));
    let mounts = sets(page, "node_filesystem_size_bytes").filter(has_space).filter_map(|set| set.get("mountpoint"));
    mounts
        .take(FILE_SYSTEMS)
        .flat_map(|mount| {
            let name = |end: &str| intern(&column_name(&["fs", if mount == "/" { "root" } else { mount }, end]));
            let resource = intern(&format!("file system {mount}"));
            let (size, free) = (name("size_bytes"), name("avail_bytes"));
            let gauge = |name, class, help| Gauge::new(name, class, Unit::Bytes, help).at(Layer::Disk, resource);
            let labels = [("mountpoint", mount.as_str())];
            [
                column(gauge(size, Class::Constant, "Size of the file system"), "node_filesystem_size_bytes", &labels, How::Max),
                column(
                    gauge(free, Class::Level, "Space that is left").of(size).worse(Worse::Down),
                    "node_filesystem_avail_bytes",
                    &labels,
                    How::Max,
                ),
            ]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Capacity, Kind};
    use crate::metrics::plan::Plan;
    use crate::metrics::settle::settle;
    use std::collections::BTreeSet;

    const PAGE: &[u8] = include_bytes!("../../fixtures/metrics/node_exporter-1.5.0-full.prom");

    fn value(plan: &Plan, body: &[u8], name: &str) -> Option<f64> {
        let at = plan.columns.iter().position(|column| column.gauge.name == name);
        at.and_then(|at| plan.read(body).values[at])
    }

    #[test]
    fn a_real_page_gives_the_columns_that_our_own_machine_has() {
        let settled = settle(PAGE, &BTreeSet::new());
        let plan = settled.plan;
        let get = |name: &str| value(&plan, PAGE, name).unwrap_or_else(|| panic!("no {name}"));
        assert_eq!(get("cores"), 2.0);
        let busy = [2342.2, 36.8, 1625.59, 4978.53, 2216.35, 64.3, 1945.6, 5082.91].iter().sum::<f64>();
        assert!((get("cpu_busy_seconds_total") - busy).abs() < 1e-6);
        assert!((get("cpu_iowait_seconds_total") - (32.55 + 83.68)).abs() < 1e-6);
        assert_eq!((get("memory_total_bytes"), get("file_handles"), get("tcp_time_wait")), (25_276_059_648.0, 889.0, 1.0));
        assert_eq!((get("disk_vda_written_bytes_total"), get("disk_vda_flush_seconds_total")), (215_381_745_664.0, 35.131));
        assert_eq!((get("net_eth0_rx_bytes_total"), get("net_eth0_tx_errors_total")), (1_016_250_939.0, 0.0));
        assert_eq!((get("psi_cpu_some_seconds_total"), get("fs_root_avail_bytes")), (7_050.442_972, 68_818_018_304.0));
        let names: Vec<_> = plan.columns.iter().map(|column| column.gauge.name).collect();
        assert!(!names.iter().any(|name| name.contains("zram") || name.contains("ifb") || name.starts_with("node_")), "{names:?}");
        assert!(settled.left_out.is_empty() && plan.columns.iter().all(|column| !column.gauge.guessed), "{names:?}");
        // What both read is declared alike, capacity and all.
        let here: Vec<_> = host::SPEC.gauges.iter().filter(|gauge| names.contains(&gauge.name)).collect();
        assert!(here.len() >= 30, "{}", here.len());
        for gauge in here {
            assert_eq!(plan.columns.iter().find(|column| column.gauge.name == gauge.name).map(|column| column.gauge), Some(*gauge));
        }
        let free = plan.columns.iter().find(|column| column.gauge.name == "fs_root_avail_bytes").unwrap().gauge;
        assert_eq!((free.capacity, free.worse), (Capacity::Column("fs_root_size_bytes"), Worse::Down));
    }

    #[test]
    fn every_gauge_of_the_table_is_one_of_the_host_and_of_its_kind() {
        for (name, ..) in SERIES {
            let gauge = host::SPEC.gauges.iter().find(|gauge| gauge.name == *name).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(gauge.kind == Kind::Counter, name.ends_with("_total"), "{name}");
        }
        assert_eq!((DISK.len(), NETWORK.len() + 1), (disk::GAUGES.len(), net::INTERFACE.len()));
    }

    #[test]
    fn a_page_cut_anywhere_gives_the_same_value_or_none() {
        let plan = settle(PAGE, &BTreeSet::new()).plan;
        let whole = plan.read(PAGE).values;
        // Sums over processors and counts of them need all their lines: a page is only read whole or to a line's end.
        for end in (0..PAGE.len()).step_by(397) {
            let cut = crate::http::whole_lines(&PAGE[..end]);
            for ((column, value), whole) in plan.columns.iter().zip(plan.read(cut).values).zip(&whole) {
                let single = column
                    .pick
                    .as_ref()
                    .is_some_and(|pick| !pick.series.starts_with("node_cpu_") && !pick.series.contains("softnet"));
                assert!(!single || value.is_none() || value == *whole, "{} at {end}", column.gauge.name);
            }
        }
    }

    #[test]
    fn what_the_textfile_collector_adds_is_read_as_on_any_page() {
        let page = [PAGE, b"backup_queue_length 4\nnode_textfile_mtime_seconds{file=\"a\"} 1\n"].concat();
        let plan = settle(&page, &BTreeSet::new()).plan;
        assert_eq!(value(&plan, &page, "backup_queue_length"), Some(4.0));
    }

    #[test]
    fn an_exporter_that_restarts_keeps_the_counters_and_a_machine_does_not() {
        let plan = settle(PAGE, &BTreeSet::new()).plan;
        assert_eq!(plan.read(PAGE).started, Some(1.795_988_2e9));
    }
}
