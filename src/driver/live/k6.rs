//! k6's REST API. Trends are cumulative there, so there is no latency of now. `running` stays true while k6 lingers
//! (k6#6073): a driver that was stopped counts as not running.

use super::http::ask;
use super::{Live, LiveError, Seen};
use serde_json::Value;

pub(super) struct K6 {
    place: String,
}

impl K6 {
    pub fn new(place: &str) -> Self {
        Self { place: place.to_owned() }
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Result<Value, LiveError> {
        let hint = Some("k6 2.0 and later listen only with --address 127.0.0.1:6565");
        let (status, body) = ask("k6", &self.place, method, path, body).map_err(|why| LiveError { hint, ..why })?;
        if status != 200 {
            return Err(LiveError { what: format!("{}: {method} {path} was answered with {status}", self.name()), hint: None });
        }
        serde_json::from_slice(&body)
            .map_err(|why| LiveError { what: format!("{}: the answer to {path} is no JSON: {why}", self.name()), hint: None })
    }
}

impl Live for K6 {
    fn name(&self) -> String {
        format!("k6 at {}", self.place)
    }

    fn look(&mut self) -> Result<Seen, LiveError> {
        let status = self.ask("GET", "/v1/status", "")?;
        let status = &status["data"]["attributes"];
        let metrics = self.ask("GET", "/v1/metrics", "")?;
        let sample = |name: &str, key: &str| {
            let metric = metrics["data"].as_array()?.iter().find(|metric| metric["id"] == name)?;
            metric["attributes"]["sample"][key].as_f64()
        };
        let requests = sample("http_reqs", "count");
        let running = status["running"].as_bool().map(|running| running && status["stopped"] != true);
        Ok(Seen {
            running,
            users: status["vus"].as_f64(),
            requests,
            failed: requests.and_then(|count| Some(count * sample("http_req_failed", "rate")?)).map(f64::round),
        })
    }

    fn stop(&mut self) -> Result<(), LiveError> {
        let body = r#"{"data":{"type":"status","id":"default","attributes":{"stopped":true}}}"#;
        self.ask("PATCH", "/v1/status", body).map(|_| ())
    }
}
