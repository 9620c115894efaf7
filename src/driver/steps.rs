//! Steps: what a request is called. Unnamed URLs are grouped by their shape, and at most [`KEPT`] steps stay apart.

use std::collections::HashMap;
use std::str::FromStr;

/// How many steps are kept apart in the end; the rarest are together in `other`.
pub(super) const KEPT: usize = 50;
/// How many are told apart while reading.
const TOLD_APART: usize = 400;
/// How many spellings are remembered, so that grouping is not done again for each request.
const REMEMBERED: usize = 10_000;
/// The step of what is not kept apart.
pub(super) const OTHER: &str = "other";
/// The step of drivers that know none: no rows of its own beside those of all.
pub(super) const UNNAMED: &str = "requests";

/// What names a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StepBy {
    /// The driver's own name or label.
    #[default]
    Name,
    /// Another field of the log: a column or a tag.
    Field(String),
    /// A text with fields in braces: `{method} {name}`.
    Pattern(String),
}

impl FromStr for StepBy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "" => Err("an empty --step-by; for example url, or \"{method} {name}\"".into()),
            "name" => Ok(Self::Name),
            text if text.matches('{').count() != text.matches('}').count() => Err(format!("a brace is not closed in {text:?}")),
            text if text.contains('{') => Ok(Self::Pattern(text.to_owned())),
            text => Ok(Self::Field(text.to_owned())),
        }
    }
}

impl StepBy {
    /// The fields it needs, where it is not the driver's own name.
    pub(super) fn fields(&self) -> Vec<&str> {
        match self {
            Self::Name => Vec::new(),
            Self::Field(name) => vec![name],
            Self::Pattern(text) => text.split('{').skip(1).filter_map(|part| part.split_once('}')).map(|(name, _)| name).collect(),
        }
    }

    /// The step of a row; `field` gives a field's text, and `name` stands for the driver's own.
    pub(super) fn of<'a>(&self, out: &mut Vec<u8>, mut field: impl FnMut(&str) -> &'a [u8]) {
        out.clear();
        match self {
            Self::Name => out.extend_from_slice(field("name")),
            Self::Field(name) => out.extend_from_slice(field(name)),
            Self::Pattern(text) => {
                let mut rest = text.as_str();
                while let Some((before, after)) = rest.split_once('{') {
                    out.extend_from_slice(before.as_bytes());
                    let (name, tail) = after.split_once('}').unwrap_or((after, ""));
                    out.extend_from_slice(field(name));
                    rest = tail;
                }
                out.extend_from_slice(rest.as_bytes());
            }
        }
    }
}

/// The steps of a run by number.
#[derive(Default)]
pub(super) struct Steps {
    spelled: HashMap<Vec<u8>, u16>,
    grouped: HashMap<(String, String), u16>,
    /// Host, where the step is a URL, and text.
    names: Vec<(String, String)>,
    /// Whether there were more than are told apart.
    pub overflow: bool,
}

impl Steps {
    /// The number of a step as the log spells it. Not UTF-8 is read with replacement characters.
    pub fn id(&mut self, spelled: &[u8]) -> u16 {
        if let Some(id) = self.spelled.get(spelled) {
            return *id;
        }
        let text = String::from_utf8_lossy(&spelled[..spelled.len().min(2000)]);
        let key = group(text.trim());
        let id = match self.grouped.get(&key) {
            Some(id) => *id,
            None if self.grouped.len() >= TOLD_APART && key.1 != OTHER => {
                self.overflow = true;
                self.id(OTHER.as_bytes())
            }
            None => {
                let id = self.names.len() as u16;
                self.grouped.insert(key.clone(), id);
                self.names.push(key);
                id
            }
        };
        if self.spelled.len() < REMEMBERED {
            self.spelled.insert(spelled.to_vec(), id);
        }
        id
    }

    /// The names for people, by number: without the host where all URLs have the same.
    pub fn names(&self) -> Vec<String> {
        let mut hosts: Vec<&str> = self.names.iter().map(|(host, _)| host.as_str()).filter(|host| !host.is_empty()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let many = hosts.len() > 1;
        self.names.iter().map(|(host, text)| if many { format!("{host}{text}") } else { text.clone() }).collect()
    }
}

/// Host and text of a step. A URL loses scheme, query and fragment, and segments that are ids become `{}`.
fn group(text: &str) -> (String, String) {
    if let Some((verb, url)) = text.split_once(' ')
        && !verb.is_empty()
        && verb.bytes().all(|byte| byte.is_ascii_uppercase())
        && is_url(url)
    {
        let (host, path) = group(url);
        return (host, format!("{verb} {path}"));
    }
    if !is_url(text) {
        return (String::new(), if text.is_empty() { "(no name)".into() } else { text.to_owned() });
    }
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let path = &path[..path.find(['?', '#', ';']).unwrap_or(path.len())];
    let mut out = String::with_capacity(path.len());
    for segment in path.split('/').skip(1) {
        out.push('/');
        out.push_str(if is_id(segment) { "{}" } else { segment });
    }
    let host = &host[..host.find(['?', '#']).unwrap_or(host.len())];
    // Credentials in a URL are nobody's step.
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    (host.to_owned(), if out.is_empty() { "/".into() } else { out })
}

fn is_url(text: &str) -> bool {
    (text.starts_with('/') || text.starts_with("http://") || text.starts_with("https://")) && !text.contains(char::is_whitespace)
}

/// Whether a segment of a path tells one thing from another of its kind: a number, a UUID, a hash, a long token.
fn is_id(segment: &str) -> bool {
    let digits = segment.bytes().filter(u8::is_ascii_digit).count();
    let hex = segment.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    match segment.len() {
        0 => false,
        n if digits == n => true,
        n if n >= 8 && hex && digits > 0 => true,
        n => n >= 16 && digits * 4 >= n && segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grouped(text: &str) -> String {
        group(text).1
    }

    #[test]
    fn urls_are_grouped_by_their_shape_and_names_stay_as_they_are() {
        assert_eq!(grouped("http://127.0.0.1:18080/events/8812/seats?x=1"), "/events/{}/seats");
        assert_eq!(grouped("/u/550e8400-e29b-41d4-a716-446655440000"), "/u/{}");
        assert_eq!(grouped("/c/9f86d081884c7d65"), "/c/{}");
        assert_eq!(grouped("GET /events/1/seats"), "GET /events/{}/seats");
        assert_eq!(grouped("/v2/login"), "/v2/login");
        assert_eq!(grouped("https://blazedemo.com"), "/");
        assert_eq!(grouped("hold, \"A-12\""), "hold, \"A-12\"");
        assert_eq!(grouped("event 12"), "event 12");
        assert_eq!(grouped(""), "(no name)");
    }

    #[test]
    fn the_host_is_shown_only_where_there_are_several_and_credentials_never() {
        let mut steps = Steps::default();
        steps.id(b"http://a/x");
        assert_eq!(steps.names(), ["/x"]);
        steps.id(b"http://user:secret@b/x");
        assert_eq!(steps.names(), ["a/x", "b/x"]);
    }

    #[test]
    fn a_million_different_names_stay_within_the_limit() {
        let mut steps = Steps::default();
        for n in 0..20_000 {
            steps.id(format!("name {n}").as_bytes());
        }
        assert!(steps.overflow);
        assert_eq!(steps.names().len(), TOLD_APART + 1);
        assert!(steps.spelled.len() <= REMEMBERED);
    }

    #[test]
    fn a_pattern_takes_fields_in_braces() {
        let by: StepBy = "{method} {url}!".parse().unwrap();
        assert_eq!(by.fields(), ["method", "url"]);
        let mut out = Vec::new();
        by.of(&mut out, |name| if name == "method" { b"GET" } else { b"/x" });
        assert_eq!(out, b"GET /x!");
        assert!("{method".parse::<StepBy>().is_err());
        assert_eq!("group".parse(), Ok(StepBy::Field("group".into())));
    }
}
