//! Load drivers while they run: what they say of themselves, and how they are told to stop.
//!
//! k6 (its REST API, from k6 2.0 on only with `--address`), Locust (its web interface), JMeter (UDP), Hyperfoil (its
//! controller). A driver without any of these is stopped by the signal of whoever started it.
//!
//! Everything here blocks, for about [`PATIENCE`] a call at most.

mod http;
mod hyperfoil;
mod jmeter;
mod k6;
mod locust;

use std::time::Duration;

/// How long a driver is waited for.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// What a driver says of itself, since its start. `None` is not told.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Whether it still sends load.
    pub running: Option<bool>,
    /// Visitors now.
    pub users: Option<f64>,
    /// Requests answered so far.
    pub requests: Option<f64>,
    /// Of these, failed.
    pub failed: Option<f64>,
}

/// A driver that could not be asked or told.
#[derive(Debug, thiserror::Error)]
#[error("{what}{}", hint.map(|text| format!("\nhint: {text}")).unwrap_or_default())]
pub struct LiveError {
    /// Which driver, where, and what was found.
    pub what: String,
    /// What mends it.
    pub hint: Option<&'static str>,
}

/// A load driver that runs.
pub trait Live: Send {
    /// Which one, and where.
    fn name(&self) -> String;
    /// Asks it.
    fn look(&mut self) -> Result<Seen, LiveError>;
    /// Tells it to stop, as gently as it knows. It may go on for as long as its requests take.
    fn stop(&mut self) -> Result<(), LiveError>;
    /// Whether its process goes on by itself after it was told to stop.
    fn lingers(&self) -> bool {
        false
    }
}

/// The driver at an address: `k6://127.0.0.1:6565`, `locust://127.0.0.1:8089`, `jmeter://127.0.0.1:4445`,
/// `hyperfoil://127.0.0.1:8090/RUN`. Nothing is asked yet.
pub fn live(address: &str) -> Result<Box<dyn Live>, String> {
    let hint = "k6://HOST:6565, locust://HOST:8089, jmeter://127.0.0.1:4445 or hyperfoil://HOST:8090/RUN";
    let (kind, rest) = address.split_once("://").ok_or_else(|| format!("not a live driver: {address:?}; {hint}"))?;
    let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
    if !place.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok()) {
        return Err(format!("not HOST:PORT: {place:?}; {hint}"));
    }
    Ok(match kind {
        "k6" => Box::new(k6::K6::new(place)),
        "locust" => Box::new(locust::Locust::new(place)),
        "jmeter" => Box::new(jmeter::JMeter::new(place)),
        "hyperfoil" => Box::new(hyperfoil::Hyperfoil::new(place, if path.is_empty() { "last" } else { path })),
        other => return Err(format!("no live driver is called {other:?}; {hint}")),
    })
}

#[cfg(test)]
mod tests;
