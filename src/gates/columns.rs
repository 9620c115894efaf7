//! What a gate's names stand for among the columns of the ticks.

use crate::judge::gate::gauges::{Bound, Column, Columns, Source};
use crate::text;
use crate::ticks::{Capacity, Header, Meaning};

impl Columns for Header {
    fn source(&self, name: &str) -> Option<Source> {
        let column = |name: &String| {
            let at = self.columns.iter().position(|column| column == name)?;
            let (kind, own) = match self.gauges.iter().find(|(gauge, _)| gauge == name) {
                Some((_, meaning)) => (meaning.kind, meaning.own),
                None => (Meaning::undeclared(name).kind, 0.0),
            };
            Some(Column { at, kind, own })
        };
        let columns = |names: &[String]| names.iter().map(column).collect::<Option<Vec<Column>>>();
        if let Some(found) = column(&name.to_owned()) {
            return Some(Source::Plain(found));
        }
        let (_, meaning) = self.derived.iter().find(|(derived, _)| derived == name)?;
        match (&meaning.share, &meaning.of) {
            (Some([a, b]), _) => Some(Source::Share(columns(a)?, columns(b)?)),
            (None, Some([a, b])) => Some(Source::Ratio(columns(a)?, columns(b)?)),
            (None, None) => None,
        }
    }

    fn bound(&self, name: &str) -> Option<Bound> {
        let (_, meaning) = self.gauges.iter().find(|(gauge, _)| gauge == name)?;
        Some(match meaning.capacity.as_ref()? {
            Capacity::Fixed(bound) => Bound::Fixed(*bound),
            Capacity::Column(name) => Bound::Column(name.clone()),
        })
    }

    fn near(&self, name: &str) -> Option<String> {
        let names = self.columns.iter().chain(self.derived.iter().map(|(name, _)| name));
        text::closest(name, names.map(String::as_str)).map(str::to_owned)
    }
}
