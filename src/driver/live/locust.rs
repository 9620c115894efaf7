//! Locust's web interface. Headless Locust has none and is stopped by a signal.

use super::http::ask;
use super::{Live, LiveError, Seen};
use serde_json::Value;

pub(super) struct Locust {
    place: String,
}

impl Locust {
    pub fn new(place: &str) -> Self {
        Self { place: place.to_owned() }
    }

    fn error(&self, what: &str) -> LiveError {
        LiveError {
            what: format!("{}: {what}", self.name()),
            hint: Some("locust --headless has no web interface: stop it by a signal"),
        }
    }
}

impl Live for Locust {
    fn name(&self) -> String {
        format!("locust at {}", self.place)
    }

    fn look(&mut self) -> Result<Seen, LiveError> {
        let (status, body) = ask("locust", &self.place, "GET", "/stats/requests", "")?;
        if status != 200 {
            return Err(self.error(&format!("/stats/requests was answered with {status}")));
        }
        let stats: Value =
            serde_json::from_slice(&body).map_err(|why| self.error(&format!("/stats/requests is no JSON: {why}")))?;
        let all = stats["stats"]
            .as_array()
            .and_then(|rows| rows.iter().find(|row| matches!(row["name"].as_str(), Some("Aggregated" | "Total"))));
        let total = |key: &str| all.and_then(|row| row[key].as_f64());
        Ok(Seen {
            running: stats["state"].as_str().map(|state| matches!(state, "spawning" | "hatching" | "running")),
            users: stats["user_count"].as_f64(),
            requests: total("num_requests"),
            failed: total("num_failures"),
        })
    }

    fn stop(&mut self) -> Result<(), LiveError> {
        // Older versions take GET, later ones only POST.
        for method in ["POST", "GET"] {
            match ask("locust", &self.place, method, "/stop", "")?.0 {
                200 => return Ok(()),
                405 => {}
                status => return Err(self.error(&format!("{method} /stop was answered with {status}"))),
            }
        }
        Err(self.error("/stop takes neither POST nor GET"))
    }

    /// The load ends, the web interface does not.
    fn lingers(&self) -> bool {
        true
    }
}
