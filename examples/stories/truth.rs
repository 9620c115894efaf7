//! What was planted in a run, and whether a verdict says it.
//!
//! ```toml
//! about   = "one sentence: what was configured, and what must give way"
//! made    = "2026-11-30, MySQL 9.7.4"             # when the recorded files were made, and on what
//! first   = ["mysql.row_lock_*"]                  # any of these is named first; empty: nothing may be named
//! tied    = ["*queue", "pgbouncer.*"]            # optional: of each there is one among the first and those tied with it
//! never   = ["mysql.*"]                           # optional: gauges that may not be among the movers
//! rate    = [42.0, 58.0]                          # optional: between which rates per second, by arithmetic
//! waits   = { object = "shop.slot", index = "PRIMARY", row = "17", share = 0.9 }   # optional
//! verdict = "moved"                               # optional
//! caveats = ["driver_saturated"]                  # optional: codes that must be there
//! ladder  = true                                  # optional: rungs of constant load, for `correlate ladder`, judged as one arm
//! has     = { "/recovery/recovered" = false }     # optional: what must stand at these places of the JSON; a list of two
//!                                                 # numbers is a range
//! ```

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use whatgives::judge::gate::fits;

/// What was planted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Truth {
    /// What was configured.
    pub about: String,
    /// When the recorded files were made, and on what.
    pub made: String,
    first: Vec<String>,
    #[serde(default)]
    tied: Vec<String>,
    #[serde(default)]
    never: Vec<String>,
    rate: Option<(f64, f64)>,
    waits: Option<Waits>,
    verdict: Option<String>,
    #[serde(default)]
    caveats: Vec<String>,
    #[serde(default)]
    ladder: bool,
    #[serde(default)]
    has: BTreeMap<String, toml::Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Waits {
    object: String,
    index: Option<String>,
    row: Option<String>,
    /// The least share of all waiters that waited for it.
    share: f64,
}

impl Truth {
    /// Of the run in this folder.
    pub fn read(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join("truth.toml");
        let text = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        toml::from_str(&text).with_context(|| format!("{}", path.display()))
    }

    /// What of a verdict is not as it was planted; nothing where all is.
    pub fn compare(&self, verdict: &Value) -> Vec<String> {
        // One ladder is one arm.
        let verdict = if self.ladder { &verdict["arms"][0] } else { verdict };
        let mut wrong = Vec::new();
        let first = verdict["first"]["gauge"].as_str();
        match first {
            Some(first) if !any(&self.first, first) => wrong.push(format!("first is {first}, not one of {:?}", self.first)),
            None if !self.first.is_empty() => wrong.push(format!("nothing is named, where one of {:?} gave way", self.first)),
            _ => {}
        }
        let tied = verdict["first"]["tied_with"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let leading: Vec<&str> = first.into_iter().chain(tied).collect();
        let missing = self.tied.iter().filter(|pattern| !leading.iter().any(|gauge| fits(pattern, gauge)));
        wrong.extend(missing.map(|pattern| format!("no {pattern} among the first ones {leading:?}")));
        let movers: Vec<&str> =
            verdict["movers"].as_array().into_iter().flatten().filter_map(|mover| mover["gauge"].as_str()).collect();
        wrong.extend(movers.iter().filter(|mover| any(&self.never, mover)).map(|mover| format!("{mover} is among the movers")));
        if let Some((low, high)) = self.rate {
            let rate = verdict["first"]["rate_per_s"]["value"].as_f64();
            if !rate.is_some_and(|rate| (low..=high).contains(&rate)) {
                wrong.push(format!("the first left rest at {rate:?}/s, not between {low} and {high}"));
            }
        }
        if let Some(waits) = &self.waits {
            let share = waits.share_in(verdict);
            if share < waits.share {
                wrong.push(format!("{share:.2} of the waiters waited for {waits:?}: {}", verdict["waits"]));
            }
        }
        if let Some(wanted) = &self.verdict
            && verdict["verdict"] != **wanted
        {
            wrong.push(format!("the verdict is {}, not {wanted}", verdict["verdict"]));
        }
        let codes: Vec<&str> =
            verdict["caveats"].as_array().into_iter().flatten().filter_map(|caveat| caveat["code"].as_str()).collect();
        wrong.extend(
            self.caveats
                .iter()
                .filter(|code| !codes.contains(&code.as_str()))
                .map(|code| format!("no caveat {code} among {codes:?}")),
        );
        for (place, wanted) in &self.has {
            let found = verdict.pointer(place).unwrap_or(&Value::Null);
            if !holds(found, wanted) {
                wrong.push(format!("{place} is {found}, not {wanted}"));
            }
        }
        wrong
    }
}

impl Waits {
    fn share_in(&self, verdict: &Value) -> f64 {
        let is = |found: &Value, wanted: &Option<String>| wanted.as_deref().is_none_or(|wanted| found == wanted);
        let told = verdict["waits"].as_array().into_iter().flatten();
        let ours =
            told.filter(|wait| wait["object"] == *self.object && is(&wait["index"], &self.index) && is(&wait["row"], &self.row));
        ours.filter_map(|wait| wait["share"].as_f64()).sum()
    }
}

fn any(patterns: &[String], gauge: &str) -> bool {
    patterns.iter().any(|pattern| fits(pattern, gauge))
}

fn holds(found: &Value, wanted: &toml::Value) -> bool {
    match wanted {
        toml::Value::Array(range) => {
            let number = |value: &toml::Value| value.as_float().or_else(|| value.as_integer().map(|n| n as f64));
            let (Some(low), Some(high)) = (range.first().and_then(number), range.get(1).and_then(number)) else { return false };
            found.as_f64().is_some_and(|found| (low..=high).contains(&found))
        }
        toml::Value::String(text) => found == text,
        toml::Value::Boolean(yes) => found == yes,
        toml::Value::Integer(number) => found.as_f64() == Some(*number as f64),
        toml::Value::Float(number) => found.as_f64() == Some(*number),
        _ => false,
    }
}

/// What correlate is given for the run in this folder.
pub fn arguments(folder: &Path, truth: &Truth) -> anyhow::Result<Vec<OsString>> {
    let mut names: Vec<_> =
        std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<_, _>>()?;
    names.sort();
    let of_kind =
        |kind: &'static str| names.iter().filter(move |name| name.to_string_lossy().contains(kind)).map(|name| folder.join(name));
    let mut args: Vec<OsString> = Vec::new();
    if truth.ladder {
        args.push("ladder".into());
        let rungs: Vec<_> = of_kind("ticks.tsv").collect();
        ensure!(!rungs.is_empty(), "no rungs in {}", folder.display());
        args.extend(rungs.into_iter().map(OsString::from));
    } else {
        args.extend(of_kind("ticks.tsv").chain(of_kind("waits.tsv")).map(OsString::from));
        for log in of_kind("requests.tsv") {
            args.extend(["--driver".into(), log.into()]);
        }
    }
    Ok(args)
}
