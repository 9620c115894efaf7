//! JMeter without its window listens for one word over UDP, on 127.0.0.1:4445 or the next free port up to 4455
//! (`jmeterengine.nongui.port`). It says nothing of itself.
//!
//! `Shutdown` lets running samples end; `StopTestNow` would cut them off and write them down as failures.

use super::{Live, LiveError, PATIENCE, Seen};
use std::io;
use std::net::UdpSocket;
use std::time::Duration;

pub(super) struct JMeter {
    place: String,
}

impl JMeter {
    pub fn new(place: &str) -> Self {
        Self { place: place.to_owned() }
    }

    fn send(&self, word: &str) -> io::Result<()> {
        let socket = UdpSocket::bind(if self.place.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" })?;
        socket.connect(&self.place)?;
        socket.set_write_timeout(Some(PATIENCE))?;
        socket.set_read_timeout(Some(Duration::from_millis(200)))?;
        socket.send(word.as_bytes())?;
        // Nothing is ever answered, but a port where nobody listens is said to be closed.
        match socket.recv(&mut [0; 16]) {
            Err(why) if why.kind() == io::ErrorKind::ConnectionRefused => Err(why),
            _ => Ok(()),
        }
    }
}

impl Live for JMeter {
    fn name(&self) -> String {
        format!("jmeter at {}", self.place)
    }

    fn look(&mut self) -> Result<Seen, LiveError> {
        Ok(Seen::default())
    }

    fn stop(&mut self) -> Result<(), LiveError> {
        self.send("Shutdown").map_err(|why| LiveError {
            what: format!("{}: {why}", self.name()),
            hint: Some("jmeter -n says at its start on which port it waits for Shutdown/StopTestNow (4445 to 4455)"),
        })
    }
}
