//! The files of one process below `/proc`, taken apart. Whole lines only: what was cut is missing, never another value.

use crate::proc::{lines, number, words};

/// What `/proc/PID/stat` tells.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stat {
    /// The name, at most 15 bytes of it.
    pub name: String,
    /// `R`, `S`, `D`, `Z`, …
    pub state: u8,
    /// User and system time, clock ticks.
    pub ticks: u64,
    /// How many threads it has.
    pub threads: u64,
    /// When it began, clock ticks since the machine's start.
    pub began: u64,
}

/// `14546 (a name (with) blanks) S 1 …`: the name ends at the last bracket.
pub(super) fn stat(bytes: &[u8]) -> Option<Stat> {
    let line = lines(bytes).last()?;
    let (open, close) = (line.iter().position(|byte| *byte == b'(')?, line.iter().rposition(|byte| *byte == b')')?);
    let name = String::from_utf8_lossy(line.get(open + 1..close)?).into_owned();
    let rest: Vec<&[u8]> = words(&line[close + 1..]).collect();
    let at = |index: usize| rest.get(index).copied().and_then(number);
    // Counted from the state, which is the third of proc(5).
    Some(Stat { name, state: *rest.first()?.first()?, ticks: at(11)? + at(12)?, threads: at(17)?, began: at(19)? })
}

/// The resident set in `/proc/PID/status`, bytes.
pub(super) fn resident(bytes: &[u8]) -> Option<u64> {
    let mut rest = words(lines(bytes).find_map(|line| line.strip_prefix(b"VmRSS:"))?);
    let (kib, unit) = (rest.next()?, rest.next()?);
    (unit == b"kB").then(|| number(kib)).flatten().map(|kib| kib * 1024)
}

/// Context switches of one thread in its `status`: those that it asked for by waiting, and those forced on it.
pub(super) fn switches(bytes: &[u8]) -> Option<(u64, u64)> {
    let find = |name: &[u8]| words(lines(bytes).find_map(|line| line.strip_prefix(name))?).next().and_then(number);
    Some((find(b"voluntary_ctxt_switches:")?, find(b"nonvoluntary_ctxt_switches:")?))
}

/// The soft limit of open files in `/proc/PID/limits`; `None` where there is none.
pub(super) fn most_files(bytes: &[u8]) -> Option<u64> {
    words(lines(bytes).find_map(|line| line.strip_prefix(b"Max open files"))?).next().and_then(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damaged::{hold, no_new_zero};
    use proptest::prelude::*;

    const STAT: &[u8] = include_bytes!("../../fixtures/process/linux-6.18/4242/stat");
    const STATUS: &[u8] = include_bytes!("../../fixtures/process/linux-6.18/4242/status");
    const LIMITS: &[u8] = include_bytes!("../../fixtures/process/linux-6.18/4242/limits");

    #[test]
    fn real_files_are_read() {
        let found = stat(STAT).unwrap();
        assert_eq!((found.name.as_str(), found.state, found.threads), ("redis-server", b'S', 5));
        assert!(found.ticks > 0 && found.began > 0);
        assert!(resident(STATUS).unwrap() > 1 << 20);
        assert!(switches(STATUS).unwrap().0 > 0);
        assert_eq!(most_files(LIMITS), Some(20_000));
    }

    #[test]
    fn a_name_with_blanks_and_brackets_moves_nothing() {
        let line = b"7 (a) b (c)) R 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 3 0 99 1 2\n";
        let expected = Stat { name: "a) b (c)".to_owned(), state: b'R', ticks: 200, threads: 3, began: 99 };
        assert_eq!(stat(line), Some(expected));
    }

    #[test]
    fn no_limit_is_no_number() {
        assert_eq!(most_files(b"Max open files            unlimited            unlimited            files\n"), None);
        assert_eq!(resident(b"VmRSS:\t 12 MB\n"), None);
    }

    #[test]
    fn a_cut_file_never_gives_another_value() {
        for end in 0..STAT.len() {
            assert_eq!(stat(&STAT[..end]), None, "{end}");
        }
        for end in 0..STATUS.len() {
            let cut = &STATUS[..end];
            assert!(resident(cut).is_none() || resident(cut) == resident(STATUS), "{end}");
            assert!(switches(cut).is_none() || switches(cut) == switches(STATUS), "{end}");
        }
        for end in 0..LIMITS.len() {
            assert!(most_files(&LIMITS[..end]).is_none_or(|most| most == 20_000), "{end}");
        }
    }

    #[test]
    fn a_file_changed_at_any_byte_gives_no_0_that_is_not_written_there() {
        let all = |file: &[u8]| {
            let found = stat(file).map(|stat| (stat.ticks, stat.threads, stat.began));
            let numbers = found.map_or([None; 3], |(ticks, threads, began)| [Some(ticks), Some(threads), Some(began)]);
            let (asked, forced) = switches(file).unzip();
            let numbers = numbers.into_iter().chain([resident(file), asked, forced, most_files(file)]);
            numbers.enumerate().filter_map(|(at, number)| Some((at, number? as f64))).collect::<Vec<_>>()
        };
        for file in [STAT, STATUS, LIMITS] {
            hold(file, all, no_new_zero(file));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parsers_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), text in "[0-9()a-zA-Z: \n]{0,200}") {
            for bytes in [&bytes[..], text.as_bytes()] {
                let _ = (stat(bytes), resident(bytes), switches(bytes), most_files(bytes));
            }
        }
    }
}
