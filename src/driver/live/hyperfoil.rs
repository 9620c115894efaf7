//! Hyperfoil's controller: `/run/ID`, `/run/ID/stats/total`, `/run/ID/kill`. The run `last` is the latest one.

use super::http::ask;
use super::{Live, LiveError, Seen};
use serde_json::Value;

pub(super) struct Hyperfoil {
    place: String,
    run: String,
}

impl Hyperfoil {
    pub fn new(place: &str, run: &str) -> Self {
        Self { place: place.to_owned(), run: run.to_owned() }
    }

    fn ask(&self, tail: &str) -> Result<Vec<u8>, LiveError> {
        let path = format!("/run/{}{tail}", self.run);
        match ask("hyperfoil", &self.place, "GET", &path, "")? {
            (200 | 202, body) => Ok(body),
            (404, _) => Err(LiveError {
                what: format!("{} knows no run {:?}", self.name(), self.run),
                hint: Some("hyperfoil://HOST:8090/RUN, or no RUN for the last one"),
            }),
            (status, _) => Err(LiveError { what: format!("{}: {path} was answered with {status}", self.name()), hint: None }),
        }
    }

    fn json(&self, tail: &str) -> Result<Value, LiveError> {
        serde_json::from_slice(&self.ask(tail)?)
            .map_err(|why| LiveError { what: format!("{}: {tail} is no JSON: {why}", self.name()), hint: None })
    }
}

impl Live for Hyperfoil {
    fn name(&self) -> String {
        format!("hyperfoil at {}", self.place)
    }

    fn look(&mut self) -> Result<Seen, LiveError> {
        let run = self.json("")?;
        let stats = self.json("/stats/total")?;
        let sum = |keys: &[&str]| {
            let list = stats["statistics"].as_array()?;
            Some(list.iter().flat_map(|one| keys.iter().filter_map(|key| one["summary"][*key].as_f64())).sum())
        };
        Ok(Seen {
            running: Some(!run["started"].is_null() && run["terminated"].is_null()),
            users: None,
            requests: sum(&["responseCount"]),
            failed: sum(&["invalid", "connectionErrors", "requestTimeouts", "internalErrors"]),
        })
    }

    fn stop(&mut self) -> Result<(), LiveError> {
        self.ask("/kill").map(|_| ())
    }
}
