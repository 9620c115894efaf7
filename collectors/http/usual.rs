//! Finding a status page: the one that the address names or, where it names none, the first of the usual ones.

use super::{Answer, Http, address};
use crate::api::{Fault, FaultKind};
use reqwest::Url;

/// What a kind of page is called, where it usually is, and how it is read.
pub struct Wanted<'a, T> {
    /// In messages: "no … at SITE".
    pub what: &'a str,
    /// Paths with their queries, the commonest first.
    pub usual: &'a [&'a str],
    /// No real page is larger, bytes.
    pub most: usize,
    /// What mends it, where none of the usual ones is such a page.
    pub needs: &'a str,
    /// Makes something of an answer, or says what it is instead.
    pub read: fn(&Answer) -> Result<T, Fault>,
}

impl<T> Wanted<'_, T> {
    /// Reads one page.
    pub async fn page(&self, http: &mut Http, url: &Url) -> Result<T, Fault> {
        (self.read)(&http.get(url, self.most).await?.ok()?)
    }

    /// Finds the page, and gives where it was.
    pub async fn find(&self, http: &mut Http, given: &Url) -> Result<(Url, T), Fault> {
        if !address::is_bare(given) {
            return self.page(http, given).await.map(|found| (given.clone(), found));
        }
        let mut tried = Vec::new();
        let mut kind = FaultKind::Nonsense;
        for path in self.usual {
            let Ok(url) = given.join(path) else { continue };
            match self.page(http, &url).await {
                Ok(found) => return Ok((url, found)),
                // Nobody there: other paths would not help, and a saturated server needs no more questions.
                Err(fault) if fault.kind == FaultKind::Unreachable => return Err(fault),
                Err(fault) => {
                    if matches!(fault.kind, FaultKind::Refused | FaultKind::Denied) && kind == FaultKind::Nonsense {
                        kind = fault.kind;
                    }
                    tried.push(fault.message);
                }
            }
        }
        let message = format!("no {} at {}: tried\n  {}", self.what, address::shown(given), tried.join("\n  "));
        Err(Fault::new(kind, message).hint(format!("allow the page, or give its full URL:\n{}", self.needs)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Settings;
    use super::super::fake::{pages, run};
    use super::*;
    use crate::api::Section;

    const WANTED: Wanted<'static, usize> = Wanted {
        what: "page of numbers",
        usual: &["/one?n", "/two"],
        most: 10,
        needs: "some configuration",
        read: |answer| {
            let text = String::from_utf8_lossy(&answer.body);
            text.parse().map_err(|_| answer.nonsense("a number", "number"))
        },
    };

    fn find(given: &Url) -> Result<(Url, usize), Fault> {
        let section = Section::of("site", "", "");
        run(async {
            let mut http = Http::new(&section, &Settings::default(), given, "*/*")?;
            WANTED.find(&mut http, given).await
        })
    }

    #[test]
    fn the_first_usual_page_that_fits_is_taken_and_a_given_one_is_not_replaced() {
        let url = pages(|path| match path {
            "/one?n" => ("200 OK", "x".to_owned()),
            "/two" => ("200 OK", "2".to_owned()),
            _ => ("404 Not Found", String::new()),
        });
        let (found, number) = find(&url).unwrap();
        assert_eq!((found.path(), number), ("/two", 2));
        let fault = find(&url.join("/three").unwrap()).unwrap_err();
        assert!(fault.message.contains("/three: 404 Not Found"), "{fault}");
    }

    #[test]
    fn where_none_fits_each_is_named_and_a_refusal_is_a_refusal() {
        let url = pages(|path| if path == "/two" { ("403 Forbidden", "no".to_owned()) } else { ("200 OK", String::new()) });
        let fault = find(&url).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Denied);
        for part in ["no page of numbers at http", "/one?n: expected a number, found an empty page", "/two: 403"] {
            assert!(fault.message.contains(part), "{part} in {fault}");
        }
        assert!(fault.hint.unwrap().contains("some configuration"));
    }
}
