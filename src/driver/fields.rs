//! The cells of one record: quotes undone, taken by position or by the header's name.

use crate::text::parse_number;
use memchr::{memchr, memchr_iter};

/// The cells of one record. Reused from row to row.
#[derive(Default)]
pub(super) struct Fields {
    text: Vec<u8>,
    spans: Vec<(usize, usize)>,
}

impl Fields {
    /// Splits at a delimiter; a cell that begins with a quote runs to the closing one, `""` in it is a quote. False if
    /// a quote is not closed.
    pub fn split(&mut self, line: &[u8], delimiter: u8) -> bool {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if memchr(b'"', line).is_none() {
            self.split_plain(line, delimiter);
            return true;
        }
        self.text.clear();
        self.spans.clear();
        let mut at = 0;
        loop {
            let start = self.text.len();
            if line.get(at) == Some(&b'"') {
                at += 1;
                loop {
                    let Some(quote) = memchr(b'"', &line[at..]) else {
                        self.text.extend_from_slice(&line[at..]);
                        self.spans.push((start, self.text.len()));
                        return false;
                    };
                    self.text.extend_from_slice(&line[at..at + quote]);
                    at += quote + 1;
                    if line.get(at) != Some(&b'"') {
                        break;
                    }
                    self.text.push(b'"');
                    at += 1;
                }
            }
            let end = memchr(delimiter, &line[at..]).map_or(line.len(), |found| at + found);
            self.text.extend_from_slice(&line[at..end]);
            self.spans.push((start, self.text.len()));
            if end == line.len() {
                return true;
            }
            at = end + 1;
        }
    }

    /// Splits at a delimiter; quotes mean nothing.
    pub fn split_plain(&mut self, line: &[u8], delimiter: u8) {
        self.text.clear();
        self.spans.clear();
        self.text.extend_from_slice(line);
        let mut start = 0;
        for end in memchr_iter(delimiter, line) {
            self.spans.push((start, end));
            start = end + 1;
        }
        self.spans.push((start, line.len()));
    }

    /// How many cells there are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// A cell; empty where there is none.
    pub fn get(&self, n: usize) -> &[u8] {
        self.spans.get(n).map_or(&[], |(start, end)| &self.text[*start..*end])
    }

    /// A cell of a column that the file may not have; empty where there is none.
    pub fn of(&self, column: Option<usize>) -> &[u8] {
        column.map_or(&[], |n| self.get(n))
    }

    /// A cell as a number; `None` where it is empty, missing (`N/A`, `nan`, `-nan`, `null`, `-`) or none.
    pub fn number(&self, column: Option<usize>) -> Option<f64> {
        number(self.of(column))
    }

    /// All cells.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.spans.iter().map(|(start, end)| &self.text[*start..*end])
    }

    /// Where a column of one of these names stands. Names are compared without case, blanks around them and quotes.
    pub fn column(&self, names: &[&str]) -> Option<usize> {
        names.iter().find_map(|name| self.iter().position(|cell| plain(cell).eq_ignore_ascii_case(name.as_bytes())))
    }
}

fn plain(cell: &[u8]) -> &[u8] {
    cell.trim_ascii()
}

/// A number as drivers write it; `None` for the many ways to say that there is none.
pub(super) fn number(cell: &[u8]) -> Option<f64> {
    parse_number(plain(cell)).filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cells(line: &str, delimiter: u8) -> Option<Vec<String>> {
        let mut fields = Fields::default();
        let closed = fields.split(line.as_bytes(), delimiter);
        closed.then(|| fields.iter().map(|cell| String::from_utf8_lossy(cell).into_owned()).collect())
    }

    proptest! {
        #[test]
        fn cells_written_with_quotes_come_back(want in prop::collection::vec("[ -~\n]{0,12}", 1..8)) {
            let quoted: Vec<String> = want.iter().map(|cell| format!("\"{}\"", cell.replace('"', "\"\""))).collect();
            prop_assert_eq!(cells(&quoted.join(","), b','), Some(want));
        }

        #[test]
        fn any_bytes_are_split_without_panic(line in prop::collection::vec(any::<u8>(), 0..200), delimiter in any::<u8>()) {
            let mut fields = Fields::default();
            fields.split(&line, delimiter);
            prop_assert!(fields.len() >= 1);
        }
    }

    #[test]
    fn quotes_inside_a_cell_are_letters_and_empty_cells_stay() {
        assert_eq!(
            cells("a,\"tx, \"\"b\"\"\",,5\" disk,", b','),
            Some(vec!["a".into(), "tx, \"b\"".into(), String::new(), "5\" disk".into(), String::new()])
        );
        assert_eq!(cells("a\t\"b\tc\"", b'\t'), Some(vec!["a".into(), "b\tc".into()]));
        assert_eq!(cells("a,\"b", b','), None);
    }

    #[test]
    fn the_many_ways_to_write_no_number_are_missing() {
        for missing in ["", "N/A", "nan", "-nan", "NaN", "null", "inf", "-"] {
            assert_eq!(number(missing.as_bytes()), None, "{missing}");
        }
        assert_eq!(number(b" 12.5 "), Some(12.5));
    }
}
