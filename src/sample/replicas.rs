//! Several replicas behind one address: whose answer a read was, as far as that can be told, so that the jump from one
//! replica's counters to another's becomes neither a rate nor a reset.
//!
//! Where the answer tells its process (a start time, a process number), one that comes back after another one answered is
//! proof, and from then on the counters of one of them are kept and the others' cells stay empty. Elsewhere it takes two
//! alternations of most of the moving counters at once; from then on all counter cells stay empty, since nobody knows whose
//! they are. Gauges are kept: each is true of whoever answered. **How it fails.** Without a process in the answer, the very
//! first rise from one replica to another looks like work, and the very first fall like a reset.

use collectors::api::{Gauge, Kind};
use std::collections::VecDeque;

/// So many reads are remembered.
const REMEMBERED: usize = 6;
/// Counters below this are too small to tell a jump from a start.
const TELLING: f64 = 20.0;
/// Alternations that prove it, where no process is told.
const PROOF: u8 = 2;
/// After a process that nobody saw before and whose counters are higher, so many reads pass until its counters are taken:
/// more than the reader bridges when it makes rates.
const HELD_BACK: u8 = 4;

type Counters = Vec<Option<f64>>;

/// What a read was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The same process went on, or began again: its counters count.
    Same,
    /// Perhaps another one's: the counters of this read count for nothing.
    Doubtful,
    /// It is certain, from this read on, that several answer.
    Proven,
    /// One of several, of which that is known.
    OneOfSeveral {
        /// Its counters are the ones that are kept.
        kept: bool,
    },
}

impl Answer {
    /// Whether the counters of this read may be written.
    pub fn counts(self) -> bool {
        matches!(self, Self::Same | Self::OneOfSeveral { kept: true })
    }
}

/// What is known of who answers at one address.
#[derive(Debug, Default)]
pub struct Replicas {
    /// Processes that answered, in the order of their first answer.
    processes: Vec<String>,
    last: Option<String>,
    /// Whose counters are written.
    kept: Option<String>,
    held_back: u8,
    /// The last reads, the latest first.
    history: VecDeque<Counters>,
    /// What each counter was before and after its last fall.
    falls: Vec<Option<(f64, f64)>>,
    alternations: u8,
    proven: bool,
}

impl Replicas {
    /// It is proven that several answer.
    pub fn several(&self) -> bool {
        self.proven
    }

    /// Whether the counters of one of them are kept.
    pub fn keeps_one(&self) -> bool {
        self.kept.is_some()
    }

    /// A read gave nothing: what follows cannot be compared with what was.
    pub fn gap(&mut self) {
        self.history.clear();
        self.falls.clear();
    }

    /// A read's answer, by these cells of these columns.
    pub fn answer(&mut self, columns: &[Gauge], cells: &[Option<f64>], process: Option<&str>) -> Answer {
        let counters: Counters =
            columns.iter().zip(cells).map(|(gauge, cell)| cell.filter(|_| gauge.kind == Kind::Counter)).collect();
        let answer = match process {
            Some(process) => self.by_process(process, &counters),
            None if self.proven => Answer::OneOfSeveral { kept: false },
            None => self.by_counters(&counters),
        };
        self.history.push_front(counters);
        self.history.truncate(REMEMBERED);
        self.proven |= answer == Answer::Proven;
        answer
    }

    fn by_process(&mut self, process: &str, counters: &Counters) -> Answer {
        let changed = self.last.as_deref().is_some_and(|last| last != process);
        let known = self.processes.iter().any(|known| known == process);
        self.last = Some(process.to_owned());
        if !known {
            self.processes.push(process.to_owned());
        }
        if self.proven || (changed && known) {
            let kept = self.kept.as_deref() == Some(process);
            return if self.proven { Answer::OneOfSeveral { kept } } else { Answer::Proven };
        }
        if changed && !self.fell(counters) {
            self.held_back = HELD_BACK;
        }
        if self.held_back > 0 {
            self.held_back -= 1;
            return Answer::Doubtful;
        }
        self.kept = Some(process.to_owned());
        Answer::Same
    }

    /// Whether most of the counters that moved since the last read went down.
    fn fell(&self, now: &Counters) -> bool {
        let Some(last) = self.history.front() else { return false };
        let (mut moved, mut fell) = (0, 0);
        for (last, now) in pairs(last, now) {
            moved += usize::from(now != last);
            fell += usize::from(now < last);
        }
        2 * fell > moved
    }

    fn by_counters(&mut self, now: &Counters) -> Answer {
        let alternates = if self.fell(now) { self.falls_back(now) } else { self.returns(now) };
        if !alternates {
            return Answer::Same;
        }
        self.alternations += 1;
        if self.alternations >= PROOF { Answer::Proven } else { Answer::Doubtful }
    }

    /// Down again to where they were before they jumped up: within a quarter of the jump. What began anew begins near 0.
    fn falls_back(&mut self, now: &Counters) -> bool {
        let last = self.history.front().cloned().unwrap_or_default();
        self.falls.resize(now.len(), None);
        for (fall, (last, now)) in self.falls.iter_mut().zip(last.iter().zip(now)) {
            if let (Some(last), Some(now)) = (last, now)
                && now < last
            {
                *fall = Some((*last, *now));
            }
        }
        let telling: Vec<usize> = (0..now.len())
            .filter(|at| last.get(*at).copied().flatten().zip(now[*at]).is_some_and(|(last, now)| now < last && now >= TELLING))
            .collect();
        let back = |then: &Counters, after: &Counters| {
            let near = |at: &&usize| {
                let (Some(then), Some(after), Some(last), Some(now)) = (then[**at], after[**at], last[**at], now[**at]) else {
                    return false;
                };
                let jump = last - then;
                jump >= TELLING && after - then >= 0.75 * jump && now >= then && now - then <= 0.25 * jump
            };
            2 * telling.iter().filter(near).count() > telling.len()
        };
        let (older, newer) = (self.history.iter().skip(1), self.history.iter());
        !telling.is_empty() && older.zip(newer).any(|(then, after)| back(then, after))
    }

    /// Up again to where they were before they fell, most of the way in one step.
    fn returns(&mut self, now: &Counters) -> bool {
        let Some(last) = self.history.front() else { return false };
        let (mut fallen, mut back) = (0, 0);
        for (fall, (last, now)) in self.falls.iter().zip(last.iter().zip(now)) {
            let (Some((high, low)), Some(last), Some(now)) = (fall, last, now) else { continue };
            if last >= high || high - low < TELLING {
                continue;
            }
            fallen += 1;
            back += usize::from(now >= high && now - last >= 0.75 * (high - low));
        }
        let returned = back > 0 && 2 * back > fallen;
        if returned {
            self.falls.clear();
        }
        returned
    }
}

fn pairs<'a>(a: &'a Counters, b: &'a Counters) -> impl Iterator<Item = (f64, f64)> + 'a {
    a.iter().zip(b).filter_map(|(a, b)| a.zip(*b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use collectors::api::{Class, Unit};

    const COLUMNS: [Gauge; 3] = [
        Gauge::counter("asked_total", Class::Throughput, Unit::Count, ""),
        Gauge::counter("sent_bytes_total", Class::Throughput, Unit::Bytes, ""),
        Gauge::new("busy", Class::Occupancy, Unit::Count, ""),
    ];

    /// What each read was; a read is its two counters and, perhaps, its process.
    fn answers(reads: &[(f64, f64, Option<&str>)]) -> (Vec<Answer>, Replicas) {
        let mut replicas = Replicas::default();
        let found = reads
            .iter()
            .map(|(asked, sent, process)| replicas.answer(&COLUMNS, &[Some(*asked), Some(*sent), Some(1.0)], *process))
            .collect();
        (found, replicas)
    }

    fn several(reads: &[(f64, f64)]) -> Vec<Answer> {
        answers(&reads.iter().map(|(asked, sent)| (*asked, *sent, None)).collect::<Vec<_>>()).0
    }

    #[test]
    fn a_process_that_comes_back_is_proof_and_one_of_them_is_kept() {
        use Answer::{OneOfSeveral, Proven, Same};
        let (found, replicas) = answers(&[
            (1000.0, 9000.0, Some("a")),
            (1010.0, 9100.0, Some("a")),
            (200.0, 100.0, Some("b")),
            (1030.0, 9200.0, Some("a")),
            (230.0, 130.0, Some("b")),
            (1050.0, 9300.0, Some("a")),
        ]);
        // The fall to the second looks like a restart until the first is back.
        assert_eq!(found, [Same, Same, Same, Proven, OneOfSeveral { kept: true }, OneOfSeveral { kept: false }]);
        assert!(replicas.several() && replicas.keeps_one());
    }

    #[test]
    fn the_higher_counters_of_a_process_not_seen_before_are_held_back() {
        use Answer::{Doubtful, Same};
        let mut reads = vec![(200.0, 100.0, Some("b"))];
        reads.extend([(1000.0, 9000.0, Some("a")); 6]);
        assert_eq!(answers(&reads).0, [Same, Doubtful, Doubtful, Doubtful, Doubtful, Same, Same]);
    }

    #[test]
    fn a_process_that_restarts_goes_on_with_its_counters() {
        let (found, replicas) = answers(&[(900.0, 90.0, Some("a")), (3.0, 1.0, Some("b")), (9.0, 2.0, Some("b"))]);
        assert_eq!(found, [Answer::Same; 3]);
        assert!(!replicas.several());
    }

    #[test]
    fn counters_that_alternate_between_two_series_are_proof_at_the_second_time() {
        use Answer::{Doubtful, OneOfSeveral, Proven, Same};
        let low_first = [(200.0, 100.0), (1000.0, 9000.0), (203.0, 110.0), (1010.0, 9100.0), (206.0, 120.0)];
        assert_eq!(several(&low_first), [Same, Same, Doubtful, Proven, OneOfSeveral { kept: false }]);
        let high_first = [(1000.0, 9000.0), (200.0, 100.0), (1010.0, 9100.0), (203.0, 110.0), (1020.0, 9200.0)];
        assert_eq!(several(&high_first), [Same, Same, Doubtful, Proven, OneOfSeveral { kept: false }]);
        // Two that are close to each other fall by less than half.
        let close = [(1000.0, 9000.0), (900.0, 8000.0), (1010.0, 9100.0), (905.0, 8050.0)];
        assert_eq!(several(&close), [Same, Same, Doubtful, Proven]);
    }

    #[test]
    fn work_a_reset_and_a_counter_that_dips_are_the_same_process() {
        let steady: Vec<_> = (0..20).map(|at| (f64::from(at) * 100.0, f64::from(at) * 900.0)).collect();
        assert!(several(&steady).iter().all(|answer| *answer == Answer::Same));
        let mut reset = steady.clone();
        reset.extend((0..20).map(|at| (f64::from(at) * 150.0 + 7.0, f64::from(at) * 1200.0 + 40.0)));
        assert!(several(&reset).iter().all(|answer| *answer == Answer::Same), "it grows back over several reads");
        // One counter of many that goes back by a little (idle time of a kernel), or a part that ended and took its share.
        let dips = [(1000.0, 500.0), (1100.0, 600.0), (1090.0, 700.0), (1200.0, 800.0), (1190.0, 900.0), (1300.0, 1000.0)];
        assert!(several(&dips).iter().all(|answer| *answer != Answer::Proven));
    }

    #[test]
    fn a_gap_forgets_what_was() {
        let mut replicas = Replicas::default();
        let mut read = |asked: f64, sent: f64, gap: bool| {
            if gap {
                replicas.gap();
            }
            replicas.answer(&COLUMNS, &[Some(asked), Some(sent), None], None)
        };
        assert_eq!(read(1000.0, 900.0, false), Answer::Same);
        assert_eq!(read(200.0, 100.0, false), Answer::Same);
        assert_eq!(read(1100.0, 950.0, true), Answer::Same);
    }
}
