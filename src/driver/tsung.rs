//! Tsung: tsung.log (a block every ten seconds, stamped at its END, as text or as JSON) and tsung.dump (a line a request,
//! `dumptraffic="protocol"`, stamped at its END).
//!
//! The last block of a run is often written twice with the same stamp and zeros. Means only: no percentiles; the maximum is
//! the whole run's. `users_count` counts the sessions that came: what was offered.

use super::input::Input;
use super::outcome::is_good_status;
use super::run::Run;
use super::table::Table;
use super::{Clock, Head, Outcome, Reader, caveat};
use crate::text::InputError;
use crate::timeline::{ALL, Interval, Offered};
use serde_json::Value;

/// Tsung's statistics.
pub(super) struct Log;
/// Tsung's traffic dump.
pub(super) struct Dump;

impl Reader for Log {
    fn name(&self) -> &'static str {
        "tsung"
    }

    fn about(&self) -> &'static str {
        "Tsung: tsung.log (text or JSON)"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.starts_with("# stats: dump at ") || (head.has("\"stats\":") && head.has("\"samples\":"))
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("tsung");
        run.offered(Offered::Scheduled);
        run.caveat(caveat::MEAN_ONLY);
        run.caveat(caveat::SECOND_STAMPS);
        run.caveat(caveat::ASSERTION_FREE);
        let mut blocks: Vec<Block> = Vec::new();
        loop {
            let text = {
                let Some(line) = input.line()? else { break };
                String::from_utf8_lossy(line.bytes).into_owned()
            };
            if let Some(at) = text.strip_prefix("# stats: dump at ") {
                run.rows += 1;
                match at.trim().parse() {
                    Ok(at) => blocks.push(Block { at, ..Block::default() }),
                    Err(_) => run.bad_row(run.rows, "a block without its time"),
                }
            } else if let Some(rest) = text.strip_prefix("stats: ") {
                if let Some(block) = blocks.last_mut() {
                    block.line(run, rest);
                }
            } else if let Some(at) = text.find("{\"timestamp\":") {
                run.rows += 1;
                match json_block(run, &text[at..]) {
                    Some(block) => blocks.push(block),
                    // A log being written ends in the middle of a block.
                    None => run.caveat(caveat::CUT_LOG),
                }
            }
        }
        finish(run, blocks);
        Ok(())
    }
}

/// One block of statistics.
#[derive(Default)]
struct Block {
    at: i64,
    users: Option<f64>,
    sessions: f64,
    requests: f64,
    counts: [f64; 3],
    broken: f64,
    steps: Vec<(String, f64)>,
}

impl Block {
    /// `name count …`: the second word is the count in the interval, for all that are read here.
    fn line(&mut self, run: &Run<'_>, line: &str) {
        let mut words = line.split_whitespace();
        let (Some(name), Some(count)) = (words.next(), words.next().and_then(|word| word.parse::<f64>().ok())) else { return };
        self.count(run, name, count);
    }

    fn count(&mut self, run: &Run<'_>, name: &str, count: f64) {
        let code = name.strip_prefix("http_").unwrap_or(name);
        match name {
            "users" => self.users = Some(count),
            "users_count" => self.sessions = count,
            "request" => self.requests = count,
            _ if code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_digit()) => {
                let place = match run.judge(is_good_status(code.as_bytes()), code.as_bytes(), b"") {
                    Outcome::Ok => 0,
                    Outcome::Refused => 2,
                    _ => 1,
                };
                self.counts[place] += count;
            }
            _ if name.starts_with("error_") => self.broken += count,
            _ if name.starts_with("tr_") => self.steps.push((name.to_owned(), count)),
            _ => {}
        }
    }
}

fn json_block(run: &Run<'_>, text: &str) -> Option<Block> {
    let text = text.trim_end().trim_end_matches(',');
    // The last block of a whole file carries the brackets of the document.
    let value: Value =
        [text, text.strip_suffix("]}").unwrap_or(text)].into_iter().find_map(|text| serde_json::from_str(text).ok())?;
    let mut block = Block { at: value["timestamp"].as_i64()?, ..Block::default() };
    for sample in value["samples"].as_array()? {
        if let (Some(name), Some(count)) = (sample["name"].as_str(), sample["value"].as_f64()) {
            block.count(run, name, count);
        }
    }
    Some(block)
}

fn finish(run: &mut Run<'_>, mut blocks: Vec<Block>) {
    blocks.dedup_by(|later, earlier| later.at == earlier.at);
    let sessions: f64 = blocks.iter().map(|block| block.sessions).sum();
    let requests: f64 = blocks.iter().map(|block| block.requests).sum();
    let each = if sessions > 0.0 && requests > 0.0 { requests / sessions } else { 1.0 };
    run.more.insert("requests_per_iteration".into(), ((each * 1e3).round() / 1e3).into());
    let usual = blocks.windows(2).map(|pair| pair[1].at - pair[0].at).min().unwrap_or(10).max(1);
    let mut rows = Vec::new();
    let mut before = blocks.first().map_or(0, |block| block.at - usual);
    for block in blocks {
        let (begin, length) = (before, block.at - before);
        before = block.at;
        // JSON begins with an empty block that only tells the start.
        if length <= 0 || (block.requests == 0.0 && block.sessions == 0.0 && block.users.unwrap_or(0.0) == 0.0) {
            continue;
        }
        let [mut ok, failed, refused] = block.counts;
        if ok + failed + refused == 0.0 {
            // No codes: not HTTP.
            ok = block.requests;
        }
        let row = Interval { unix_ms: begin * 1000, dur_ms: length as f64 * 1e3, ..Interval::default() };
        rows.push(Interval {
            step: ALL.to_owned(),
            offered: Some(block.sessions * each),
            ok: Some(ok),
            failed: Some(failed + block.broken),
            refused: Some(refused),
            vus: block.users,
            ..row.clone()
        });
        for (name, count) in block.steps {
            let step = name.strip_prefix("tr_").unwrap_or(&name).to_owned();
            rows.push(Interval { step, ok: Some(count), ..row.clone() });
        }
    }
    run.files.push(rows);
}

impl Reader for Dump {
    fn name(&self) -> &'static str {
        "tsung-dump"
    }

    fn about(&self) -> &'static str {
        "Tsung with dumptraffic=\"protocol\": tsung.dump"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.starts_with("#date;pid;id;")
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("tsung");
        run.offered(Offered::Achieved);
        run.caveat(caveat::OPEN_UNKNOWN);
        run.caveat(caveat::ASSERTION_FREE);
        let mut table = Table::with_header(input, b';')?.without_quotes();
        let (date, time) = (0, table.needed(input, "duration")?);
        let column = |name: &str| table.fields.column(&[name]);
        let (status, url, transaction, error, method) =
            (column("HTTP status"), column("URL"), column("transaction"), column("error"), column("http method"));
        let mut clock = Clock::default();
        let mut step = Vec::new();
        while let Some(line) = table.next(input, run)? {
            let cells = &table.fields;
            let Some(us) = run.stamp(input, &mut clock, cells.get(date), line)? else { continue };
            let Some(ms) = table.number(run, line, time) else { continue };
            let (code, broken) = (cells.of(status), cells.of(error));
            run.options.step_by.of(&mut step, |name| match name {
                "name" if cells.of(transaction).is_empty() => cells.of(url),
                "name" => cells.of(transaction).strip_prefix(b"tr_").unwrap_or(cells.of(transaction)),
                "url" | "URL" => cells.of(url),
                "method" => cells.of(method),
                _ => b"",
            });
            let id = run.steps.id(&step);
            let outcome = run.judge(is_good_status(code) && broken.is_empty(), code, broken);
            run.ended(us, ms, id, outcome);
        }
        Ok(())
    }
}
