//! Names and what a server says of each, as it wrote them.

use std::ops::Range;

/// Names with their texts, in one text for all of them: an answer of some hundred is taken apart once a tick, and memory of its
/// own for every name and value would be most of that work. Where a name comes twice, the last counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fields {
    text: String,
    /// Where each name and its value stand.
    places: Vec<(Range<usize>, Range<usize>)>,
    /// A byte of each name, by which a name is looked for.
    tags: Vec<u8>,
}

/// A byte that few other names have, the same in any case of the letters.
fn tag(name: &str) -> u8 {
    let last = name.bytes().last().unwrap_or_default().to_ascii_lowercase();
    (name.len() as u8).wrapping_mul(7).wrapping_add(last)
}

impl Fields {
    /// Adds a name and its text.
    pub fn push(&mut self, name: &str, value: &str) {
        let start = self.text.len();
        self.text.push_str(name);
        let middle = self.text.len();
        self.text.push_str(value);
        self.places.push((start..middle, middle..self.text.len()));
        self.tags.push(tag(name));
    }

    /// The text behind a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.last(name, |known| known == name)
    }

    /// The same where products differ in the case of their names.
    pub fn get_in_any_case(&self, name: &str) -> Option<&str> {
        self.last(name, |known| known.eq_ignore_ascii_case(name))
    }

    fn last(&self, name: &str, is_it: impl Fn(&str) -> bool) -> Option<&str> {
        let alike = memchr::memrchr_iter(tag(name), &self.tags).map(|n| &self.places[n]);
        alike.map(|place| self.at(place)).find(|(known, _)| is_it(known)).map(|(_, value)| value)
    }

    /// All of them, as they came.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.places.iter().map(|place| self.at(place))
    }

    fn at(&self, (name, value): &(Range<usize>, Range<usize>)) -> (&str, &str) {
        (&self.text[name.clone()], &self.text[value.clone()])
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

impl<N: AsRef<str>, V: AsRef<str>> Extend<(N, V)> for Fields {
    fn extend<I: IntoIterator<Item = (N, V)>>(&mut self, fields: I) {
        fields.into_iter().for_each(|(name, value)| self.push(name.as_ref(), value.as_ref()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[test]
    fn of_a_name_that_comes_twice_the_last_counts_in_the_case_that_was_asked_for() {
        let mut fields = Fields::default();
        fields.extend([("a", "1"), ("A", "2"), ("b", ""), ("a", "3")]);
        assert_eq!((fields.get("a"), fields.get("A"), fields.get("b"), fields.get("B")), (Some("3"), Some("2"), Some(""), None));
        assert_eq!((fields.get_in_any_case("A"), fields.get_in_any_case("B")), (Some("3"), Some("")));
    }

    proptest! {
        #[test]
        fn a_name_gives_the_text_that_was_put_last(pairs in proptest::collection::vec((".{0,3}", ".{0,5}"), 0..20)) {
            let mut fields = Fields::default();
            fields.extend(pairs.iter().map(|(name, value)| (name, value)));
            let last: HashMap<&String, &String> = pairs.iter().map(|(name, value)| (name, value)).collect();
            prop_assert!(last.iter().all(|(name, value)| fields.get(name) == Some(value.as_str())));
            prop_assert_eq!(fields.iter().count(), pairs.len());
        }
    }
}
