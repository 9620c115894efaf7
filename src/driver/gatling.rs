//! Gatling up to 3.11, simulation.log as text: tab-separated, one line a request (START and END in milliseconds) and two a
//! user. The columns moved from version to version; OK or KO is the anchor: end, start and name stand before it.

use super::input::Input;
use super::run::Run;
use super::{Clock, Head, Reader, caveat};
use crate::text::InputError;
use crate::timeline::Offered;

/// Gatling's text log.
pub(super) struct Text;

impl Reader for Text {
    fn name(&self) -> &'static str {
        "gatling"
    }

    fn about(&self) -> &'static str {
        "Gatling up to 3.11: simulation.log"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        let cells: Vec<&[u8]> = head.line.split(|byte| *byte == b'\t').take(4).collect();
        cells.len() > 1 && (matches!(cells[0], b"RUN" | b"ASSERTION" | b"USER" | b"REQUEST") || cells.get(2) == Some(&&b"RUN"[..]))
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        let mut driver = "gatling".to_owned();
        let mut clock = Clock::default();
        let mut requests = Requests::default();
        let mut line = Vec::new();
        loop {
            let (number, whole) = {
                let Some(next) = input.line()? else { break };
                line.clear();
                line.extend_from_slice(next.bytes);
                (next.number, next.whole)
            };
            if line.is_empty() {
                continue;
            }
            let cells: Vec<&[u8]> = line.split(|byte| *byte == b'\t').collect();
            run.rows += 1;
            // Gatling 2 puts the scenario before the kind of line.
            let Some(kind) = cells
                .iter()
                .take(3)
                .find(|cell| matches!(**cell, b"REQUEST" | b"USER" | b"RUN" | b"GROUP" | b"ASSERTION" | b"ERROR"))
            else {
                if !whole {
                    run.rows -= 1;
                    run.caveat(caveat::CUT_LOG);
                    break;
                }
                run.bad_row(
                    number,
                    format!("is no line of a simulation log: {:?}", String::from_utf8_lossy(&line[..line.len().min(40)])),
                );
                continue;
            };
            match *kind {
                b"RUN" => {
                    let version = cells
                        .iter()
                        .rev()
                        .map(|cell| String::from_utf8_lossy(cell).trim().to_owned())
                        .find(|cell| !cell.is_empty());
                    if let Some(version) =
                        version.filter(|text| text.starts_with(|c: char| c.is_ascii_digit()) && text.contains('.'))
                    {
                        driver = format!("gatling {version}");
                    }
                }
                b"USER" => requests.user(run, input, &mut clock, &cells, number)?,
                b"REQUEST" => {
                    let Some(at) = anchor(&cells) else {
                        if whole {
                            run.bad_row(number, "has neither OK nor KO behind two times");
                        } else {
                            run.rows -= 1;
                            run.caveat(caveat::CUT_LOG);
                        }
                        continue;
                    };
                    // Some old versions have the request's last byte sent and the answer's first byte between.
                    let four = at >= 5 && is_stamp(cells[at - 3]) && is_stamp(cells[at - 4]);
                    let first = if four { at - 4 } else { at - 2 };
                    let Some(start) = run.stamp(input, &mut clock, cells[first], number)? else { continue };
                    let Some(end) = run.stamp(input, &mut clock, cells[at - 1], number)? else { continue };
                    let groups = if first >= 3 { cells[first - 2] } else { &[][..] };
                    let message = cells.get(at + 1).copied().unwrap_or_default();
                    requests.request(run, [start, end], [cells[first - 1], groups, message], cells[at] == b"OK");
                }
                _ => {}
            }
        }
        run.driver(driver);
        requests.finish(run);
        Ok(())
    }
}

fn is_stamp(cell: &[u8]) -> bool {
    cell.len() == 13 && cell.iter().all(u8::is_ascii_digit)
}

/// Where OK or KO stands, behind two stamps.
fn anchor(cells: &[&[u8]]) -> Option<usize> {
    (3..cells.len()).find(|at| matches!(cells[*at], b"OK" | b"KO") && is_stamp(cells[at - 1]) && is_stamp(cells[at - 2]))
}

/// What text and binary logs share.
#[derive(Default)]
pub(super) struct Requests {
    users: f64,
    checked: bool,
    step: Vec<u8>,
}

impl Requests {
    /// A request: start and end; name, groups and message.
    pub fn request(&mut self, run: &mut Run<'_>, [start_us, end_us]: [i64; 2], [name, groups, message]: [&[u8]; 3], ok: bool) {
        let text = String::from_utf8_lossy(message);
        // `status.find.in(200), but actually found 503`
        let code = text.split("found ").last().unwrap_or_default().split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        let code = if code.len() == 3 { code } else { "" };
        self.checked |= !ok && text.contains(".find") && !text.starts_with("status.");
        run.options.step_by.of(&mut self.step, |field| match field {
            "name" => name,
            "group" | "groups" => groups,
            "message" => message,
            _ => b"",
        });
        let id = run.steps.id(&self.step);
        let outcome = run.judge(ok, code.as_bytes(), message);
        run.request(super::Request { start_us, end_us, ms: (end_us - start_us) as f64 / 1e3, step: id, outcome });
    }

    fn user(&mut self, run: &mut Run<'_>, input: &Input, clock: &mut Clock, cells: &[&[u8]], line: u64) -> Result<(), InputError> {
        let begins = cells.iter().any(|cell| cell.ends_with(b"START"));
        let Some(stamp) = cells.iter().rev().find(|cell| is_stamp(cell)) else { return Ok(()) };
        if let Some(us) = run.stamp(input, clock, stamp, line)? {
            self.visitor(run, us, begins);
        }
        Ok(())
    }

    /// A visitor comes or goes.
    pub fn visitor(&mut self, run: &mut Run<'_>, us: i64, begins: bool) {
        self.users = (self.users + if begins { 1.0 } else { -1.0 }).max(0.0);
        run.cells.vus(us, run.file, self.users);
    }

    pub fn finish(self, run: &mut Run<'_>) {
        run.offered(Offered::Achieved);
        run.caveat(caveat::OPEN_UNKNOWN);
        if !self.checked {
            run.caveat(caveat::ASSERTION_FREE);
        }
    }
}
