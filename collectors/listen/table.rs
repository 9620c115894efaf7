//! `/proc/net/tcp` and `tcp6`: the depth of accept queues where the kernel refuses its socket diagnosis. The limit is not
//! in there, and the cost grows with every connection of the machine.

use super::diag::Tcp;
use crate::proc::{lines, words};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The listening sockets among all.
pub(super) fn parse(bytes: &[u8]) -> Vec<Tcp> {
    lines(bytes).filter_map(listener).collect()
}

/// `   0: 0100007F:B178 00000000:0000 0A 00000000:00000003 …`: local address and port, the other end, the state (`0A`
/// listens), the send queue, which is 0, and the receive queue, which is the accept queue.
fn listener(line: &[u8]) -> Option<Tcp> {
    let mut rest = words(line).skip(1);
    let (local, _, state, queues) = (text(rest.next()?)?, rest.next()?, rest.next()?, text(rest.next()?)?);
    if state != b"0A" {
        return None;
    }
    let (address, port) = local.split_once(':')?;
    let (_, depth) = queues.split_once(':')?;
    Some(Tcp {
        address: ip(address)?,
        port: u16::from_str_radix(port, 16).ok()?,
        v6_only: false,
        depth: u64::from_str_radix(depth, 16).ok()?,
        limit: None,
    })
}

fn text(word: &[u8]) -> Option<&str> {
    std::str::from_utf8(word).ok()
}

/// Four bytes, or four times four, each four printed as the number that they are in the machine's memory.
fn ip(hex: &str) -> Option<IpAddr> {
    let four = |at: usize| hex.get(at..at + 8).and_then(|part| u32::from_str_radix(part, 16).ok()).map(u32::to_ne_bytes);
    match hex.len() {
        8 => Some(Ipv4Addr::from(four(0)?).into()),
        32 => {
            let mut bytes = [0; 16];
            for (part, at) in bytes.chunks_exact_mut(4).zip([0, 8, 16, 24]) {
                part.copy_from_slice(&four(at)?);
            }
            Some(Ipv6Addr::from(bytes).into())
        }
        _ => None,
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::damaged::{every_change, every_cut};
    use proptest::prelude::*;

    const TCP: &[u8] = include_bytes!("../../fixtures/listen/linux-6.18/tcp");
    const TCP6: &[u8] = include_bytes!("../../fixtures/listen/linux-6.18/tcp6");

    fn at(found: &[Tcp], port: u16) -> &Tcp {
        found.iter().find(|socket| socket.port == port).unwrap()
    }

    #[test]
    fn a_real_table_gives_the_queue_of_every_listener_and_of_nothing_else() {
        let found = parse(TCP);
        assert_eq!(found.len(), TCP.split(|byte| *byte == b'\n').filter(|line| line.get(34..36) == Some(b"0A")).count());
        let socket = at(&found, 31001);
        assert_eq!((socket.address, socket.depth, socket.limit), (Ipv4Addr::LOCALHOST.into(), 3, None));
        let found = parse(TCP6);
        assert_eq!((at(&found, 31002).address, at(&found, 31002).depth), (Ipv6Addr::LOCALHOST.into(), 2));
        assert_eq!(at(&found, 31003).address, IpAddr::from(Ipv6Addr::UNSPECIFIED));
    }

    #[test]
    fn a_queue_that_is_no_number_is_no_listener_with_an_empty_queue() {
        assert_eq!(parse(b"  0: 0100007F:1F90 00000000:0000 0A 00000000:x 00:0\n"), []);
        assert_eq!(parse(b"  0: 0100007F:1F90 00000000:0000 0A 00000000:00000001 00:0\n").len(), 1);
        assert_eq!(parse(b"  0: 0100007F:1F90 00000000:0000 0A 00000000:00000001 00:0"), [], "without its line end");
    }

    #[test]
    fn a_table_cut_or_changed_at_any_byte_has_fewer_listeners_and_no_empty_queue_that_was_none() {
        for table in [TCP, TCP6] {
            let whole = parse(table);
            for cut in every_cut(table) {
                let found = parse(cut);
                assert_eq!(found, whole[..found.len()], "cut at byte {}", cut.len());
            }
            let empty = |found: &[Tcp]| found.iter().filter(|socket| socket.depth == 0).count();
            for changed in every_change(table) {
                let found = parse(&changed);
                // A change can write a 0 over the last digit of one queue, and make one other socket a listener.
                assert!(empty(&found) <= empty(&whole) + 1 && found.len() <= whole.len() + 1);
            }
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0..TCP6.len(), byte in any::<u8>()) {
            let _ = parse(&bytes);
            let mut changed = TCP6.to_vec();
            changed[at] = byte;
            let _ = parse(&changed);
        }
    }
}
