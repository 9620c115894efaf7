//! Statements without their values: what may be written into a file that people pass on, and what makes two executions of
//! the same statement the same text. MySQL's own digests (`DIGEST_TEXT`) pass through almost unchanged.

/// Whose rules say what is a literal, a name or a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    /// MySQL and MariaDB: `"text"`, `` `name` ``, `# comment`, backslashes escape.
    MySql,
    /// PostgreSQL: `"name"`, `$$text$$`, `$1`, backslashes escape only in `E'…'`, comments nest.
    Postgres,
}

use std::collections::HashMap;

/// The longest text that is kept; MySQL's own digests end at 1024 bytes.
const LONGEST: usize = 1000;

/// Replaces every literal by `?`, lists of them by `...`, drops comments and folds white space. A literal that the server
/// has cut off in the middle (its texts are bounded) is replaced too. MySQL's dialect.
pub fn normalise(sql: &str) -> String {
    normalise_as(sql, Dialect::MySql)
}

/// [`normalise`] in PostgreSQL's dialect.
pub fn normalise_postgres(sql: &str) -> String {
    normalise_as(sql, Dialect::Postgres)
}

fn normalise_as(sql: &str, dialect: Dialect) -> String {
    let postgres = dialect == Dialect::Postgres;
    let chars: Vec<char> = sql.chars().collect();
    let mut out = Out::default();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let next = chars.get(at + 1).copied();
        at = match c {
            '"' if postgres => {
                let end = quoted_end(&chars, at, false);
                out.word(&chars[at..end]);
                end
            }
            '\'' | '"' => {
                out.literal();
                quoted_end(&chars, at, !postgres)
            }
            '$' if postgres && dollar_tag(&chars, at).is_some() => {
                out.literal();
                dollar_end(&chars, at)
            }
            '$' if postgres && next.is_some_and(|n| n.is_ascii_digit()) => {
                out.literal();
                number_end(&chars, at + 1)
            }
            '`' if !postgres => {
                let end = quoted_end(&chars, at, false);
                out.word(&chars[at..end]);
                end
            }
            '/' if next == Some('*') && postgres => {
                out.space = true;
                nested_comment_end(&chars, at)
            }
            '/' if next == Some('*') => {
                out.space = true;
                find(&chars, at + 2, &['*', '/']).map_or(chars.len(), |end| end + 2)
            }
            '#' if !postgres => {
                out.space = true;
                line_end(&chars, at)
            }
            '-' if next == Some('-') && (postgres || chars.get(at + 2).is_none_or(|c| c.is_whitespace())) => {
                out.space = true;
                line_end(&chars, at)
            }
            c if c.is_whitespace() => {
                out.space = true;
                at + 1
            }
            c if c.is_ascii_digit() || (c == '.' && next.is_some_and(|n| n.is_ascii_digit()) && !out.ends_with_word()) => {
                out.literal();
                number_end(&chars, at)
            }
            c if is_word(c) => {
                let end = at + chars[at..].iter().take_while(|c| is_word(**c)).count();
                // x'4D', b'01', n'…' and _utf8mb4'…' are literals with a prefix; PostgreSQL has e'…' and u&'…'.
                if postgres
                    && end == at + 1
                    && "uU".contains(c)
                    && chars.get(end) == Some(&'&')
                    && chars.get(end + 1) == Some(&'\'')
                {
                    out.literal();
                    quoted_end(&chars, end + 1, false)
                } else if chars.get(end) == Some(&'\'') && (c == '_' || (end == at + 1 && "xXbBnNeE".contains(c))) {
                    out.literal();
                    quoted_end(&chars, end, !postgres || "eE".contains(c))
                } else {
                    out.word(&chars[at..end]);
                    end
                }
            }
            '?' => {
                out.literal();
                at + 1
            }
            _ => {
                out.sign(c);
                at + 1
            }
        };
        if out.text.len() > LONGEST {
            let cut = (0..=LONGEST).rev().find(|&cut| out.text.is_char_boundary(cut)).unwrap_or(0);
            out.text.truncate(cut);
            out.text.push('…');
            break;
        }
    }
    out.text
}

/// [`normalise`] for many statements of which most are the same, as those of a convoy are.
#[derive(Debug, Default)]
pub struct Normaliser(HashMap<String, String>);

impl Normaliser {
    /// The statement without its values.
    pub fn shown(&mut self, sql: &str) -> String {
        if let Some(known) = self.0.get(sql) {
            return known.clone();
        }
        let text = normalise(sql);
        self.0.insert(sql.to_owned(), text.clone());
        text
    }
}

#[derive(Default)]
struct Out {
    text: String,
    space: bool,
}

impl Out {
    fn gap(&mut self) {
        if self.space && !self.text.is_empty() {
            self.text.push(' ');
        }
        self.space = false;
    }

    fn word(&mut self, word: &[char]) {
        self.gap();
        self.text.extend(word);
    }

    fn sign(&mut self, sign: char) {
        if matches!(sign, ',' | ')' | ';') {
            self.space = false;
        }
        if sign == ')' && self.folds_a_row() {
            return;
        }
        self.gap();
        self.text.push(sign);
    }

    fn literal(&mut self) {
        let before = self.text.trim_end_matches([' ', '-', '+']);
        if let Some(list) = before.strip_suffix("?,").or_else(|| before.strip_suffix("...,")) {
            // A second value of a list makes it `...`, whatever its length.
            let list = list.to_owned();
            self.text = list + "...";
            self.space = false;
            return;
        }
        self.gap();
        self.text.push('?');
    }

    /// Drops `, (...` at the end where `(...)` stands before it: the further rows of an INSERT.
    fn folds_a_row(&mut self) -> bool {
        for (row, before) in [("(...", "(...)"), ("(?", "(?)")] {
            let Some(rest) = self.text.strip_suffix(row).map(str::trim_end).and_then(|rest| rest.strip_suffix(',')) else {
                continue;
            };
            if rest.trim_end().ends_with(before) {
                let length = rest.trim_end().len();
                self.text.truncate(length);
                return true;
            }
        }
        false
    }

    fn ends_with_word(&self) -> bool {
        !self.space && self.text.ends_with(|c: char| is_word(c) || c == '`')
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$' || c == '@'
}

fn line_end(chars: &[char], at: usize) -> usize {
    at + chars[at..].iter().take_while(|c| **c != '\n').count()
}

fn find(chars: &[char], from: usize, what: &[char]) -> Option<usize> {
    chars.get(from..)?.windows(what.len()).position(|window| window == what).map(|at| at + from)
}

/// The length of `$tag$` at `at`, where there is one.
fn dollar_tag(chars: &[char], at: usize) -> Option<usize> {
    let tag = chars.get(at + 1..)?.iter().take_while(|c| c.is_alphanumeric() || **c == '_').count();
    let starts = chars.get(at + 1).is_none_or(|c| !c.is_ascii_digit());
    (starts && chars.get(at + 1 + tag) == Some(&'$')).then_some(tag + 2)
}

/// The place behind `$tag$ … $tag$`; the end of all if it is not closed.
fn dollar_end(chars: &[char], at: usize) -> usize {
    let Some(length) = dollar_tag(chars, at) else { return at + 1 };
    find(chars, at + length, &chars[at..at + length]).map_or(chars.len(), |end| end + length)
}

/// The place behind a comment that may hold others.
fn nested_comment_end(chars: &[char], at: usize) -> usize {
    let (mut depth, mut at) = (0, at);
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

/// The place behind the quoted text that begins at `at`; the end of all if it is not closed. A doubled quote is part of it.
fn quoted_end(chars: &[char], at: usize, backslash: bool) -> usize {
    let quote = chars[at];
    let mut at = at + 1;
    while let Some(&c) = chars.get(at) {
        if backslash && c == '\\' {
            at += 2;
        } else if c == quote {
            if chars.get(at + 1) != Some(&quote) {
                return at + 1;
            }
            at += 2;
        } else {
            at += 1;
        }
    }
    chars.len()
}

/// The place behind the number that begins at `at`: 17, 0x1F, 1.5e-3, and identifiers that begin with a digit, which are
/// rare enough to be taken for one.
fn number_end(chars: &[char], at: usize) -> usize {
    let mut end = at;
    while let Some(&c) = chars.get(end) {
        let sign =
            matches!(c, '-' | '+') && matches!(chars.get(end.wrapping_sub(1)), Some('e' | 'E')) && !chars[at..end].contains(&'x');
        if c.is_alphanumeric() || c == '_' || c == '.' || (sign && end > at) {
            end += 1;
        } else {
            break;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn literals_of_every_kind_become_question_marks() {
        let sql = "SELECT * FROM t WHERE a = 17 AND b = 'it''s \\' x' AND c = \"q\" AND d = 0x1F AND e=1.5e-3 AND f = x'4D' AND g = _utf8mb4'z'";
        assert_eq!(normalise(sql), "SELECT * FROM t WHERE a = ? AND b = ? AND c = ? AND d = ? AND e=? AND f = ? AND g = ?");
    }

    #[test]
    fn names_with_digits_and_back_quotes_stay() {
        assert_eq!(
            normalise("SELECT t1.c2, `a 1` FROM s3.`t``4` WHERE t1.c2 = ?"),
            "SELECT t1.c2, `a 1` FROM s3.`t``4` WHERE t1.c2 = ?"
        );
    }

    #[test]
    fn lists_of_values_fold_whatever_their_length() {
        assert_eq!(normalise("SELECT 1 FROM t WHERE id IN (1, 2,3 , 4)"), "SELECT ? FROM t WHERE id IN (...)");
        assert_eq!(normalise("INSERT INTO t VALUES (1,'a'), (2,'b'), (3, 'c')"), "INSERT INTO t VALUES (...)");
        assert_eq!(normalise("INSERT INTO t VALUES (1), (-2), (3)"), "INSERT INTO t VALUES (?), (-?), (?)");
    }

    #[test]
    fn comments_go_for_they_hold_request_ids() {
        assert_eq!(normalise("/* trace=abc */ SELECT a -- user 7\n FROM t # x\n"), "SELECT a FROM t");
        assert_eq!(normalise("SELECT a--1"), "SELECT a--?");
    }

    #[test]
    fn a_literal_cut_off_by_the_server_does_not_leak() {
        assert_eq!(normalise("UPDATE t SET mail = 'ann@exam"), "UPDATE t SET mail = ?");
        assert_eq!(normalise("UPDATE t SET mail = 'ann\\"), "UPDATE t SET mail = ?");
        assert_eq!(normalise("SELECT 1 /* ann"), "SELECT ?");
    }

    #[test]
    fn a_digest_of_the_server_passes_through() {
        let digest = "UPDATE `shop` . `slot` SET `taken` = `taken` + ? WHERE `id` = ?";
        assert_eq!(normalise(digest), digest);
        assert_eq!(normalise("SELECT * FROM `t` WHERE `id` IN (...)"), "SELECT * FROM `t` WHERE `id` IN (...)");
    }

    #[test]
    fn the_same_statement_again_gives_the_same_text() {
        let mut normaliser = Normaliser::default();
        assert_eq!(normaliser.shown("SELECT 1"), normaliser.shown("SELECT 1"));
        assert_eq!(normaliser.shown("SELECT 'a' , 2"), "SELECT ...");
    }

    #[test]
    fn a_statement_of_a_megabyte_is_cut() {
        let text = normalise(&format!("SELECT {} FROM t", "a + ".repeat(250_000)));
        assert!(text.len() < LONGEST + 8 && text.ends_with('…'));
    }

    #[test]
    fn postgresql_quotes_in_its_own_way() {
        let sql = "SELECT \"T 1\".a::text, $1 FROM \"S\".\"T 1\" WHERE b = 'C:\\' AND c = E'it\\'s' AND d = $x$ it's $$ $x$ AND e = U&'z' AND f = 7";
        assert_eq!(
            normalise_postgres(sql),
            "SELECT \"T 1\".a::text, ? FROM \"S\".\"T 1\" WHERE b = ? AND c = ? AND d = ? AND e = ? AND f = ?"
        );
        assert_eq!(
            normalise_postgres("SELECT a--1\n FROM t /* a /* b */ 'c' */ WHERE j #> '{x}' @> k"),
            "SELECT a FROM t WHERE j #> ? @> k"
        );
        assert_eq!(normalise_postgres("UPDATE t SET x = $body$ secret"), "UPDATE t SET x = ?");
        assert_eq!(normalise_postgres("EXECUTE take(17, 'x')"), "EXECUTE take(...)");
    }

    proptest! {
        #[test]
        fn a_dollar_quoted_secret_never_survives(tag in "[a-z]{0,3}", secret in "[A-Z]{5,9}", after in "[^$]{0,20}") {
            let sql = format!("select ${tag}$ {secret} ${tag}$ {after}");
            prop_assert!(!normalise_postgres(&sql).contains(&secret));
            let cut: String = sql.chars().take(10 + tag.len() + secret.len()).collect();
            prop_assert!(!normalise_postgres(&cut).contains(&secret));
        }

        #[test]
        fn any_text_is_normalised_in_postgresqls_dialect_too(text in ".{0,80}") {
            let _ = normalise_postgres(&normalise_postgres(&text));
        }

        #[test]
        fn a_quoted_secret_never_survives(before in "[a-z =(,]{0,20}", secret in "[A-Z]{5,9}", after in "[^'\\\\]{0,20}") {
            let sql = format!("select {before} '{secret}' {after}");
            prop_assert!(!normalise(&sql).contains(&secret));
        }

        #[test]
        fn any_text_is_normalised_and_doing_it_twice_changes_nothing_more(text in ".{0,80}") {
            let once = normalise(&text);
            let _ = normalise(&once);
        }
    }
}
