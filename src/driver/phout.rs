//! Yandex.Tank, `phout.log`: twelve cells a request with tabs and no quoting (a tag may hold a stray quote): start in seconds
//! with milliseconds, tag `name#id`, then microseconds: real interval, connect, send, latency, receive, event; then sizes,
//! network code (0 is good), protocol code.

use super::input::Input;
use super::outcome::is_good_status;
use super::run::Run;
use super::steps::UNNAMED;
use super::table::Table;
use super::{Clock, Head, Reader, caveat};
use crate::text::InputError;
use crate::timeline::Offered;

/// Yandex.Tank's phout.
pub(super) struct Phout;

impl Reader for Phout {
    fn name(&self) -> &'static str {
        "phout"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["yandex-tank"]
    }

    fn about(&self) -> &'static str {
        "Yandex.Tank: phout.log"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        let cells: Vec<&[u8]> = head.line.split(|byte| *byte == b'\t').collect();
        let digits = |cell: &[u8]| !cell.is_empty() && cell.iter().all(u8::is_ascii_digit);
        cells.len() == 12
            && cells[2..].iter().all(|cell| digits(cell))
            && cells[0].get(10) == Some(&b'.')
            && digits(&cells[0][..10])
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("yandex-tank");
        run.offered(Offered::Achieved);
        run.caveat(caveat::OPEN_UNKNOWN);
        run.caveat(caveat::ASSERTION_FREE);
        let mut table = Table::new(b'\t', 12).without_quotes().dropping_tail();
        let mut clock = Clock::default();
        while let Some(line) = table.next(input, run)? {
            let cells = &table.fields;
            let Some(us) = run.stamp(input, &mut clock, cells.get(0), line)? else { continue };
            let Some(time) = table.number(run, line, 2) else { continue };
            let (net, code) = (cells.get(10), cells.get(11));
            let tag = cells.get(1);
            let name = &tag[..tag.iter().position(|byte| *byte == b'#').unwrap_or(tag.len())];
            let id = run.steps.id(if name.is_empty() { UNNAMED.as_bytes() } else { name });
            let outcome = if net == b"0" { run.judge(is_good_status(code), code, b"") } else { run.judge(false, b"", net) };
            run.started(us, time / 1e3, id, outcome);
        }
        Ok(())
    }
}
