//! `/proc/net`: each interface, and TCP as a whole.

use super::columns;
use crate::api::{Class, Gauge, Layer, Reading, Unit};
use crate::proc::{lines, number, protocol, value, words};

const NETWORK: &str = "network";
const ACCEPT: &str = "accept queues of the host";
/// How long Linux waits at least before it sends a segment again.
const RETRANSMIT_S: f64 = 0.2;

/// The gauges of one interface; their columns are called `net_<name>_…`.
pub(crate) const INTERFACE: &[Gauge] = &[
    Gauge::counter("rx_bytes_total", Class::Throughput, Unit::Bytes, "Received"),
    Gauge::counter("rx_packets_total", Class::Throughput, Unit::Count, "Packets received"),
    Gauge::counter("rx_drops_total", Class::Event, Unit::Count, "Packets received and dropped"),
    Gauge::counter("tx_bytes_total", Class::Throughput, Unit::Bytes, "Sent"),
    Gauge::counter("tx_packets_total", Class::Throughput, Unit::Count, "Packets sent"),
    Gauge::counter("tx_drops_total", Class::Event, Unit::Count, "Packets dropped instead of sent"),
    Gauge::counter("errors_total", Class::Event, Unit::Count, "Packets with errors, both ways"),
];

/// `net/netstat`. The accept queue counters move only after a queue was full: the queue itself is what `listen` reads.
pub(super) const NETSTAT: &[Gauge] = &[
    failed("tcp_listen_overflows_total", "Connections refused because an accept queue was full", Layer::Accept, ACCEPT),
    failed(
        "tcp_listen_drops_total",
        "Connection requests dropped at a listening socket, overflows included",
        Layer::Accept,
        ACCEPT,
    ),
    failed(
        "tcp_syn_drops_total",
        "Connection requests dropped because the queue of half-open ones was full",
        Layer::Accept,
        ACCEPT,
    ),
    failed(
        "tcp_syncookies_total",
        "Connection requests answered by a cookie: the queue of half-open ones was full",
        Layer::Accept,
        ACCEPT,
    ),
    failed("tcp_backlog_drops_total", "Packets dropped because a busy socket's backlog was full", Layer::Host, NETWORK),
];

/// `net/snmp`
pub(super) const SNMP: &[Gauge] = &[
    failed("tcp_retransmits_total", "Segments sent again", Layer::Host, NETWORK).costs(RETRANSMIT_S),
    Gauge::new("tcp_established", Class::Level, Unit::Count, "Open TCP connections of the whole machine").at(Layer::Host, NETWORK),
];

/// `net/sockstat`
pub(super) const SOCKSTAT: &[Gauge] =
    &[Gauge::new("tcp_time_wait", Class::Level, Unit::Count, "Closed TCP connections whose port pair is still kept")
        .at(Layer::Host, NETWORK)];

/// `net/softnet_stat`
pub(super) const SOFTNET: &[Gauge] =
    &[failed("softnet_drops_total", "Packets dropped because a processor's receive queue was full", Layer::Host, NETWORK)];

const fn failed(name: &'static str, help: &'static str, layer: Layer, resource: &'static str) -> Gauge {
    Gauge::counter(name, Class::Event, Unit::Count, help).at(layer, resource)
}

/// One interface and its columns, in the order of [`INTERFACE`].
pub(crate) struct Interface {
    pub name: String,
    pub columns: Vec<Gauge>,
}

impl Interface {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), columns: columns("net", name, INTERFACE, Layer::Host, &format!("network {name}")) }
    }
}

/// The interfaces by which others are reached. The inner ends of containers come and go, and their packets pass an outer
/// interface too.
pub(crate) fn outer(mut all: Vec<String>) -> Vec<String> {
    const INNER: [&str; 7] = ["veth", "ifb", "dummy", "docker", "br-", "virbr", "cali"];
    all.retain(|name| name != "lo" && !INNER.iter().any(|kind| name.starts_with(kind)));
    all
}

/// Everything that the file lists.
pub(super) fn listed(bytes: &[u8]) -> Vec<String> {
    interfaces(bytes).map(|(name, _)| String::from_utf8_lossy(name).into_owned()).collect()
}

/// `  eth0: 161495718 5523 0 …`; a large count may stand right after the colon.
fn interfaces(bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    lines(bytes).filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((words(&line[..colon]).next()?, &line[colon + 1..]))
    })
}

pub(super) fn parse_interfaces(bytes: &[u8], interfaces_: &[Interface], reading: &mut Reading) {
    for (name, counts) in interfaces(bytes) {
        let Some(interface) = interfaces_.iter().find(|interface| interface.name.as_bytes() == name) else { continue };
        let fields: Vec<Option<f64>> = words(counts).map(value).collect();
        let field = |index: usize| fields.get(index).copied().flatten();
        let errors = field(2).zip(field(10)).map(|(received, sent)| received + sent);
        let values = [field(0), field(1), field(3), field(8), field(9), field(11), errors];
        for (column, value) in interface.columns.iter().zip(values) {
            reading.put_some(column.name, value);
        }
    }
}

pub(super) fn parse_netstat(bytes: &[u8], reading: &mut Reading) {
    for (name, count) in protocol(bytes, "TcpExt:") {
        match name {
            b"ListenOverflows" => reading.put_some("tcp_listen_overflows_total", value(count)),
            b"ListenDrops" => reading.put_some("tcp_listen_drops_total", value(count)),
            b"TCPReqQFullDrop" => reading.put_some("tcp_syn_drops_total", value(count)),
            b"SyncookiesSent" => reading.put_some("tcp_syncookies_total", value(count)),
            b"TCPBacklogDrop" => reading.put_some("tcp_backlog_drops_total", value(count)),
            _ => {}
        }
    }
}

pub(super) fn parse_snmp(bytes: &[u8], reading: &mut Reading) {
    for (name, count) in protocol(bytes, "Tcp:") {
        match name {
            b"RetransSegs" => reading.put_some("tcp_retransmits_total", value(count)),
            b"CurrEstab" => reading.put_some("tcp_established", value(count)),
            _ => {}
        }
    }
}

/// `TCP: inuse 373 orphan 0 tw 31 alloc 373 mem 336`
pub(super) fn parse_sockstat(bytes: &[u8], reading: &mut Reading) {
    let Some(tcp) = lines(bytes).find_map(|line| line.strip_prefix(b"TCP:")) else { return };
    let mut rest = words(tcp);
    while let (Some(name), Some(count)) = (rest.next(), rest.next()) {
        if name == b"tw" {
            reading.put_some("tcp_time_wait", value(count));
        }
    }
}

/// One line a processor, hexadecimal; the second word counts what was dropped.
pub(super) fn parse_softnet(bytes: &[u8], reading: &mut Reading) {
    let drops = lines(bytes).map(|line| {
        let word = words(line).nth(1)?;
        u64::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()
    });
    // An unreadable processor makes the sum a lie; no processor at all is no sum.
    let mut sum: Option<u64> = None;
    for drop in drops {
        let Some(drop) = drop else { return };
        sum = Some(sum.unwrap_or(0).saturating_add(drop));
    }
    reading.put_some("softnet_drops_total", sum.map(|sum| sum as f64));
}

/// `32768\t60999`: the ports that outgoing connections can have.
pub(super) fn parse_ephemeral(bytes: &[u8]) -> Option<u64> {
    let mut rest = words(lines(bytes).next()?).map(number);
    let (first, last) = (rest.next()??, rest.next()??);
    (last.checked_sub(first)?).checked_add(1)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{parsed, same_or_missing_at_every_cut};
    use super::*;

    const DEV: &[u8] = include_bytes!("../../fixtures/host/linux-6.18/proc/net/dev");
    const REAL_NETSTAT: &[u8] = include_bytes!("../../fixtures/host/linux-6.18/proc/net/netstat");
    const REAL_SNMP: &[u8] = include_bytes!("../../fixtures/host/linux-6.18/proc/net/snmp");
    const REAL_SOCKSTAT: &[u8] = include_bytes!("../../fixtures/host/linux-6.18/proc/net/sockstat");
    const REAL_SOFTNET: &[u8] = include_bytes!("../../fixtures/host/linux-6.18/proc/net/softnet_stat");

    fn eth0(bytes: &[u8], reading: &mut Reading) {
        parse_interfaces(bytes, &[Interface::new("eth0")], reading);
    }

    #[test]
    fn of_a_real_file_only_the_outer_interface_is_kept() {
        assert_eq!(outer(listed(DEV)), ["eth0"]);
        assert_eq!(listed(DEV), ["lo", "ifb0", "ifb1", "eth0"]);
    }

    #[test]
    fn an_interface_gives_bytes_drops_and_the_errors_of_both_ways() {
        let text = b"head | er\n face |bytes\n  eth0:1615 55 1 2 0 0 0 0 4152 37 30 4 0 0 0 0\n";
        let values = parsed(eth0, text);
        assert_eq!(values["net_eth0_rx_bytes_total"], 1615.0);
        assert_eq!(values["net_eth0_rx_packets_total"], 55.0);
        assert_eq!(values["net_eth0_rx_drops_total"], 2.0);
        assert_eq!(values["net_eth0_tx_bytes_total"], 4152.0);
        assert_eq!(values["net_eth0_tx_packets_total"], 37.0);
        assert_eq!(values["net_eth0_tx_drops_total"], 4.0);
        assert_eq!(values["net_eth0_errors_total"], 31.0);
        assert_eq!(parsed(eth0, DEV).len(), INTERFACE.len());
    }

    #[test]
    fn real_tcp_counters_are_found_by_name() {
        let values = parsed(parse_netstat, REAL_NETSTAT);
        assert_eq!(values.len(), NETSTAT.len(), "{values:?}");
        assert_eq!(values["tcp_listen_overflows_total"], 0.0);
        let values = parsed(parse_snmp, REAL_SNMP);
        assert_eq!((values["tcp_retransmits_total"], values["tcp_established"]), (199.0, 353.0));
        assert_eq!(parsed(parse_sockstat, REAL_SOCKSTAT)["tcp_time_wait"], 31.0);
        assert_eq!(parsed(parse_softnet, REAL_SOFTNET)["softnet_drops_total"], 0.0);
    }

    #[test]
    fn dropped_packets_are_hexadecimal_and_summed_over_processors() {
        let values = parsed(parse_softnet, b"0001ca60 0000000a 0\n000256e9 00000010 3\n");
        assert_eq!(values["softnet_drops_total"], 26.0);
        assert!(parsed(parse_softnet, b"0001ca60 0000000a 0\n000256e9 zz 3\n").is_empty());
        assert!(parsed(parse_softnet, b"").is_empty());
    }

    #[test]
    fn ephemeral_ports_are_counted_with_both_ends() {
        assert_eq!(parse_ephemeral(b"32768\t60999\n"), Some(28_232));
        assert_eq!(parse_ephemeral(b"60999\t32768\n"), None);
        assert_eq!(parse_ephemeral(b"32768"), None);
    }

    #[test]
    fn a_cut_file_never_gives_another_value() {
        same_or_missing_at_every_cut(eth0, DEV);
        same_or_missing_at_every_cut(parse_netstat, REAL_NETSTAT);
        same_or_missing_at_every_cut(parse_snmp, REAL_SNMP);
        same_or_missing_at_every_cut(parse_sockstat, REAL_SOCKSTAT);
    }
}
