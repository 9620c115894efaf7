//! JMeter's results as XML (JTL): one `httpSample` or `sample` element a request; attributes `ts` START, `t` elapsed, `lb`
//! label, `rc` code, `rm` message, `s` success, `na` threads.
//!
//! Elements inside of a sample are its redirects and embedded files and are not counted; inside of a transaction they are
//! its requests, and the transaction is not. The closing tag is missing while JMeter runs, and after a kill.

use super::fields::number;
use super::input::Input;
use super::jmeter::is_own_stop;
use super::outcome::is_good_status;
use super::run::Run;
use super::{Clock, Head, Outcome, Reader, caveat};
use crate::text::InputError;
use memchr::memchr;
use std::borrow::Cow;

/// A tag is never longer.
const LONGEST_TAG: usize = 1 << 20;

/// JMeter's XML.
pub(super) struct Xml;

impl Reader for Xml {
    fn name(&self) -> &'static str {
        "jmeter-xml"
    }

    fn about(&self) -> &'static str {
        "jmeter -n -l FILE.jtl with output_format=xml"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.line.trim_ascii_start().starts_with(b"<") && head.has("<testResults")
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("jmeter");
        run.closed_loop();
        let mut samples = Samples::default();
        let (mut clock, mut tag, mut inside) = (Clock::new(run.options.zone.clone()), Vec::new(), false);
        loop {
            let (number, text) = {
                let Some(line) = input.line()? else { break };
                (line.number, line.bytes.to_vec())
            };
            let mut rest = text.as_slice();
            loop {
                if !inside {
                    let Some(at) = memchr(b'<', rest) else { break };
                    rest = &rest[at + 1..];
                    inside = true;
                    tag.clear();
                }
                // A tag may run over lines: XML allows it, and other tools rewrite these files.
                let Some(end) = end_of_tag(&tag, rest) else {
                    tag.extend_from_slice(rest);
                    tag.push(b' ');
                    if tag.len() > LONGEST_TAG {
                        run.bad_row(number, "a tag that does not end");
                        inside = false;
                    }
                    break;
                };
                tag.extend_from_slice(&rest[..end]);
                rest = &rest[end + 1..];
                inside = false;
                samples.tag(input, run, &mut clock, &tag, number)?;
            }
        }
        samples.finish(run);
        if clock.zone_assumed {
            run.caveat(caveat::ZONE_ASSUMED);
        }
        Ok(())
    }
}

/// Where a tag of which `before` was read ends in `rest`: the first `>` outside of quotes.
fn end_of_tag(before: &[u8], rest: &[u8]) -> Option<usize> {
    let mut quote = None;
    for byte in before {
        quote = after(quote, *byte);
    }
    rest.iter().position(|byte| {
        quote = after(quote, *byte);
        quote.is_none() && *byte == b'>'
    })
}

fn after(quote: Option<u8>, byte: u8) -> Option<u8> {
    match (quote, byte) {
        (None, b'"' | b'\'') => Some(byte),
        (Some(open), byte) if open == byte => None,
        (quote, _) => quote,
    }
}

#[derive(Default)]
struct Samples {
    /// Of each open sample: whether it is a transaction.
    open: Vec<bool>,
    transactions: u64,
    checked: bool,
    ended: bool,
    step: Vec<u8>,
}

impl Samples {
    fn tag(&mut self, input: &Input, run: &mut Run<'_>, clock: &mut Clock, tag: &[u8], line: u64) -> Result<(), InputError> {
        let name_end =
            tag.iter().position(|byte| byte.is_ascii_whitespace() || *byte == b'/').filter(|end| *end > 0).unwrap_or(tag.len());
        match &tag[..name_end] {
            b"httpSample" | b"sample" => {}
            b"assertionResult" => {
                self.checked = true;
                return Ok(());
            }
            _ if tag == b"/httpSample" || tag == b"/sample" => {
                self.open.pop();
                return Ok(());
            }
            _ if tag == b"/testResults" => {
                self.ended = true;
                return Ok(());
            }
            _ => return Ok(()),
        }
        run.rows += 1;
        let of = |name: &str| attribute(tag, name);
        let message = of("rm").unwrap_or_default();
        let transaction = message.starts_with(b"Number of samples in transaction");
        let counted = !transaction && self.open.iter().all(|parent| *parent);
        if !tag.ends_with(b"/") {
            self.open.push(transaction);
        }
        self.transactions += u64::from(transaction);
        if !counted {
            return Ok(());
        }
        let (Some(stamp), Some(ms)) = (of("ts"), of("t").and_then(|cell| number(&cell))) else {
            run.bad_row(line, "a sample without ts or t");
            return Ok(());
        };
        let Some(us) = run.stamp(input, clock, &stamp, line)? else { return Ok(()) };
        let ok = of("s").is_some_and(|cell| cell.as_ref() == b"true");
        let code = of("rc").unwrap_or_default();
        self.checked |= !ok && is_good_status(&code);
        let outcome = if !ok && is_own_stop(&message) { Outcome::Aborted } else { run.judge(ok, &code, &message) };
        let label = of("lb").unwrap_or_default();
        let fields: Vec<(String, Cow<'_, [u8]>)> =
            run.options.step_by.fields().into_iter().map(|name| (name.to_owned(), of(name).unwrap_or_default())).collect();
        run.options.step_by.of(&mut self.step, |name| {
            fields.iter().find(|(field, _)| field == name).map_or(label.as_ref(), |(_, value)| value.as_ref())
        });
        let id = run.steps.id(&self.step);
        run.started(us, ms, id, outcome);
        if let Some(threads) = of("na").and_then(|cell| number(&cell)) {
            run.cells.vus(us, run.file, threads);
        }
        Ok(())
    }

    fn finish(self, run: &mut Run<'_>) {
        if !self.ended {
            run.caveat(caveat::CUT_LOG);
        }
        if self.transactions > 0 {
            run.caveat(caveat::TRANSACTION_ROWS);
            run.more.insert("transaction_rows".into(), self.transactions.into());
        }
        if !self.checked {
            run.caveat(caveat::ASSERTION_FREE);
        }
    }
}

/// The value of an attribute, its entities undone.
fn attribute<'a>(tag: &'a [u8], wanted: &str) -> Option<Cow<'a, [u8]>> {
    let mut rest = tag;
    loop {
        let equals = memchr(b'=', rest)?;
        let name = rest[..equals].trim_ascii_end();
        let name = &name[name.iter().rposition(u8::is_ascii_whitespace).map_or(0, |at| at + 1)..];
        let value = rest[equals + 1..].trim_ascii_start();
        let quote = *value.first()?;
        let end = 1 + memchr(quote, &value[1..])?;
        if name == wanted.as_bytes() && matches!(quote, b'"' | b'\'') {
            return Some(unescaped(&value[1..end]));
        }
        rest = &value[end + 1..];
    }
}

fn unescaped(value: &[u8]) -> Cow<'_, [u8]> {
    if memchr(b'&', value).is_none() {
        return Cow::Borrowed(value);
    }
    let mut out = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = memchr(b'&', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let end = memchr(b';', &rest[..rest.len().min(12)]);
        let character = end.and_then(|end| entity(std::str::from_utf8(&rest[1..end]).ok()?));
        if let (Some(end), Some(c)) = (end, character) {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            rest = &rest[end + 1..];
        } else {
            out.push(b'&');
            rest = &rest[1..];
        }
    }
    out.extend_from_slice(rest);
    Cow::Owned(out)
}

fn entity(name: &str) -> Option<char> {
    match name {
        "quot" => Some('"'),
        "apos" => Some('\''),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        name => {
            let digits = name.strip_prefix('#')?;
            let code = match digits.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => digits.parse().ok()?,
            };
            char::from_u32(code)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_by_name_with_their_entities_undone() {
        let tag = br#"httpSample t="349" ts = '17' lb="tx, &quot;a&quot; &#x3e; &amp;co &nope;" rm="a > b"/"#;
        assert_eq!(attribute(tag, "t").as_deref(), Some(&b"349"[..]));
        assert_eq!(attribute(tag, "ts").as_deref(), Some(&b"17"[..]));
        assert_eq!(attribute(tag, "lb").as_deref(), Some(&b"tx, \"a\" > &co &nope;"[..]));
        assert_eq!(attribute(tag, "s"), None);
        assert_eq!(end_of_tag(b"", tag), None);
    }
}
