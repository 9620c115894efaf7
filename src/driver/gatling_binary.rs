//! Gatling from 3.12 on, simulation.log in its own binary form: big-endian records without a length, times in milliseconds
//! since the run's begin, strings written once and then by number.
//!
//! The form is private to Gatling and may change: a version this was not tried with, or a record of an unknown kind, is
//! refused. A log cut by a kill ends at its last whole record.

use super::gatling::Requests;
use super::input::Input;
use super::run::Run;
use super::{Head, Reader, caveat};
use crate::text::InputError;
use std::io::{BufReader, ErrorKind, Read};

/// A name or message is never longer.
const LONGEST: usize = 1 << 20;
/// All strings that are told once and then by number.
const ALL_STRINGS: usize = 64 << 20;

/// Gatling's binary log.
pub(super) struct Binary;

impl Reader for Binary {
    fn name(&self) -> &'static str {
        "gatling-binary"
    }

    fn about(&self) -> &'static str {
        "Gatling 3.12 and later: simulation.log"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        matches!(head.bytes, [0, 0, 0, 0, 3..=20, b'3'..=b'9', b'.', ..])
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        let path = input.path.clone();
        let mut log = Log { from: BufReader::new(input), strings: Vec::new(), held: 0 };
        let mut requests = Requests::default();
        let mut begin_ms = None;
        loop {
            match record(&mut log, run, &mut requests, &mut begin_ms) {
                Ok(true) => {}
                Ok(false) => break,
                Err(Stop::Cut) => {
                    run.caveat(caveat::CUT_LOG);
                    break;
                }
                Err(Stop::Refused(why)) => {
                    return Err(
                        InputError::new(&path, why).hint("Gatling's binary log changes with its versions; please report this one")
                    );
                }
            }
        }
        requests.finish(run);
        Ok(())
    }
}

enum Stop {
    /// The log ends inside of a record.
    Cut,
    /// It is none of the known form.
    Refused(String),
}

/// Reads one record; false at the end.
fn record(log: &mut Log<'_>, run: &mut Run<'_>, requests: &mut Requests, begin_ms: &mut Option<i64>) -> Result<bool, Stop> {
    let Some(kind) = log.kind()? else { return Ok(false) };
    let us = |begin: i64, ms: i32| begin.saturating_add(i64::from(ms)).saturating_mul(1000);
    match (kind, *begin_ms) {
        (0, None) => {
            let version = log.text()?;
            if !version.starts_with("3.1") {
                return Err(Stop::Refused(format!("a binary log of Gatling {version:?}; versions 3.12 to 3.14 are known")));
            }
            run.driver(format!("gatling {version}"));
            log.text()?;
            let begin = log.i64()?;
            if !(1_000_000_000_000..4_000_000_000_000).contains(&begin) {
                return Err(Stop::Refused(format!("a binary log that begins at unix ms {begin}")));
            }
            *begin_ms = Some(begin);
            log.text()?;
            for _ in 0..log.count()? {
                log.text()?;
            }
            for _ in 0..log.count()? {
                log.bytes()?;
            }
        }
        (1, Some(begin)) => {
            let groups = log.groups()?;
            let name = log.cached()?;
            let (start, end) = (log.i32()?, log.i32()?);
            let ok = log.u8()? != 0;
            let message = log.cached()?;
            run.rows += 1;
            requests.request(run, [us(begin, start), us(begin, end)], [name.as_bytes(), groups.as_bytes(), message.as_bytes()], ok);
        }
        (2, Some(begin)) => {
            log.i32()?;
            let begins = log.u8()? != 0;
            let at = log.i32()?;
            run.rows += 1;
            requests.visitor(run, us(begin, at), begins);
        }
        (3, Some(_)) => {
            log.groups()?;
            log.array::<13>()?;
        }
        (4, Some(_)) => {
            log.cached()?;
            log.i32()?;
        }
        (kind, _) => return Err(Stop::Refused(format!("a record of kind {kind} after {} rows, where none is known", run.rows))),
    }
    Ok(true)
}

struct Log<'a> {
    from: BufReader<&'a mut Input>,
    strings: Vec<String>,
    held: usize,
}

impl Log<'_> {
    fn kind(&mut self) -> Result<Option<u8>, Stop> {
        let mut byte = [0];
        match self.from.read(&mut byte) {
            Ok(0) => Ok(None),
            Ok(_) => Ok(Some(byte[0])),
            Err(why) => Err(Stop::Refused(format!("cannot be read: {why}"))),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let mut bytes = [0; N];
        match self.from.read_exact(&mut bytes) {
            Ok(()) => Ok(bytes),
            Err(why) if why.kind() == ErrorKind::UnexpectedEof => Err(Stop::Cut),
            Err(why) => Err(Stop::Refused(format!("cannot be read: {why}"))),
        }
    }

    fn u8(&mut self) -> Result<u8, Stop> {
        Ok(self.array::<1>()?[0])
    }

    fn i32(&mut self) -> Result<i32, Stop> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    fn i64(&mut self) -> Result<i64, Stop> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    fn count(&mut self) -> Result<usize, Stop> {
        let count = self.i32()?;
        usize::try_from(count)
            .ok()
            .filter(|count| *count <= LONGEST)
            .ok_or_else(|| Stop::Refused(format!("a length of {count} where none can be")))
    }

    fn bytes(&mut self) -> Result<Vec<u8>, Stop> {
        let length = self.count()?;
        let mut bytes = vec![0; length];
        match self.from.read_exact(&mut bytes) {
            Ok(()) => Ok(bytes),
            Err(_) => Err(Stop::Cut),
        }
    }

    /// Length, bytes, and how they are coded; an empty one is only its length.
    fn text(&mut self) -> Result<String, Stop> {
        let bytes = self.bytes()?;
        if bytes.is_empty() {
            return Ok(String::new());
        }
        match self.u8()? {
            0 => Ok(bytes.iter().map(|byte| char::from(*byte)).collect()),
            1 => {
                let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
                Ok(String::from_utf16_lossy(&units))
            }
            coder => Err(Stop::Refused(format!("a string of coding {coder}, where 0 and 1 are known"))),
        }
    }

    /// A string that is written the first time (a number above 0 and the string) and named by that number, negative, later.
    fn cached(&mut self) -> Result<String, Stop> {
        let number = self.i32()?;
        if number > 0 {
            let text = self.text()?;
            self.held += text.len() + 32;
            if number as usize != self.strings.len() + 1 || self.held > ALL_STRINGS {
                return Err(Stop::Refused(format!("string {number} after {}", self.strings.len())));
            }
            self.strings.push(text.clone());
            return Ok(text);
        }
        let at = (number.unsigned_abs() as usize).checked_sub(1);
        at.and_then(|at| self.strings.get(at)).cloned().ok_or_else(|| Stop::Refused(format!("string {number} was never written")))
    }

    fn groups(&mut self) -> Result<String, Stop> {
        let count = self.count()?;
        let mut groups = Vec::new();
        for _ in 0..count.min(1000) {
            groups.push(self.cached()?);
        }
        Ok(groups.join(","))
    }
}
