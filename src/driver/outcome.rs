//! What became of a request: the driver's word, unless a rule of the user says more.

use memchr::memmem;
use std::str::FromStr;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Ended well.
    Ok,
    /// The site gave way.
    Failed,
    /// The site meant to refuse.
    Refused,
    /// Was never sent.
    Dropped,
    /// Cut off by the driver's own stop.
    Aborted,
}

/// One rule of `--outcome`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    what: What,
    to: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Code(String),
    /// The first digit of a status code.
    Class(u8),
    Text(String),
}

impl FromStr for Rule {
    type Err = String;

    /// `409=refused`, `5xx=failed`, `sold out=refused` (a text in the log's message, failure message or error).
    fn from_str(text: &str) -> Result<Self, String> {
        let hint = "expected CODE=ok|failed|refused|aborted, 4xx=… or TEXT=…, for example 409=refused";
        let (what, to) = text.rsplit_once('=').ok_or_else(|| format!("not a rule: {text:?}; {hint}"))?;
        let to = match to.trim() {
            "ok" => Outcome::Ok,
            "failed" => Outcome::Failed,
            "refused" => Outcome::Refused,
            "aborted" => Outcome::Aborted,
            other => return Err(format!("not an outcome: {other:?}; {hint}")),
        };
        let what = what.trim();
        let what = match what.as_bytes() {
            [] => return Err(format!("an empty rule: {text:?}; {hint}")),
            [class @ b'1'..=b'5', b'x' | b'X', b'x' | b'X'] => What::Class(*class),
            bytes if bytes.iter().all(u8::is_ascii_digit) => What::Code(what.to_owned()),
            _ => What::Text(what.to_owned()),
        };
        Ok(Self { what, to })
    }
}

impl Rule {
    fn fits(&self, code: &[u8], message: &[u8]) -> bool {
        match &self.what {
            What::Code(want) => code == want.as_bytes(),
            What::Class(class) => code.len() == 3 && code[0] == *class,
            What::Text(text) => memmem::find(message, text.as_bytes()).is_some() || memmem::find(code, text.as_bytes()).is_some(),
        }
    }
}

/// What became of a request: the first rule that fits; else what the driver says, where `429 Too Many Requests` is a
/// refusal by its own definition.
pub(super) fn judge(rules: &[Rule], ok: bool, code: &[u8], message: &[u8]) -> Outcome {
    if let Some(rule) = rules.iter().find(|rule| rule.fits(code, message)) {
        return rule.to;
    }
    match (ok, code) {
        (true, _) => Outcome::Ok,
        (false, b"429") => Outcome::Refused,
        (false, _) => Outcome::Failed,
    }
}

/// Whether a status code alone is good, for drivers that say nothing else.
pub(super) fn is_good_status(code: &[u8]) -> bool {
    code.len() == 3 && matches!(code[0], b'1'..=b'3')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_fits_decides_and_else_the_driver() {
        let rules: Vec<Rule> =
            ["409=refused", "4xx=failed", "sold out=refused", "a=b=ok"].iter().map(|text| text.parse().unwrap()).collect();
        assert_eq!(judge(&rules, false, b"409", b""), Outcome::Refused);
        assert_eq!(judge(&rules, true, b"404", b""), Outcome::Failed);
        assert_eq!(judge(&rules, true, b"200", b"{\"sold out\":true}"), Outcome::Refused);
        assert_eq!(judge(&rules, false, b"500", b"a=b"), Outcome::Ok);
        assert_eq!(judge(&rules, true, b"200", b""), Outcome::Ok);
        assert_eq!(judge(&[], false, b"503", b""), Outcome::Failed);
        assert_eq!(judge(&[], false, b"429", b""), Outcome::Refused);
    }

    #[test]
    fn a_rule_that_is_none_is_refused_with_an_example() {
        for text in ["409", "409=maybe", "=ok"] {
            assert!(text.parse::<Rule>().is_err_and(|why| why.contains("409=refused")), "{text}");
        }
    }
}
