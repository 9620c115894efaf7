//! The visitors: holds at a rising rate, each sent when it is due, whatever became of those before it.

use crate::open_loop::pace::pace;
use crate::open_loop::ramp::Ramp;
use crate::open_loop::requests::{Log, Outcome, Request};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fmt, io};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

/// 20 holds a second for 8 s, then up to 80 a second in 28 s: 50/s is reached halfway up. The climb is slow enough that the
/// rate rises little while the first wait grows to something that matters.
pub const RAMP: Ramp = Ramp { from: 20.0, rest: Duration::from_secs(8), to: 80.0, climb: Duration::from_secs(28) };

/// No visitor waits longer than this.
const PATIENCE: Duration = Duration::from_secs(30);

/// What was sent, and how punctually.
#[derive(Debug, Default)]
pub struct Summary {
    sent: usize,
    ok: usize,
    late_ms: Vec<f64>,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let late = |share: f64| self.late_ms.get((share * self.late_ms.len() as f64) as usize).or(self.late_ms.last());
        let (half, most) = (late(0.5).unwrap_or(&0.0), late(0.99).unwrap_or(&0.0));
        write!(f, "{} of {} holds answered; sent {half:.1} ms late in the median, {most:.1} ms at p99", self.ok, self.sent)
    }
}

/// Sends the whole ramp, waits for every answer, and writes the log.
pub async fn run(service: SocketAddr, ramp: Ramp, log: &Path) -> io::Result<Summary> {
    let mut log = Log::create(log)?;
    let (ended, mut done) = mpsc::unbounded_channel();
    // A moment for the pacer's thread to be there before the first one is due.
    let mut due = pace(Instant::now() + Duration::from_millis(20), ramp.course().even());
    tokio::spawn(async move {
        while let Some(scheduled) = due.recv().await {
            let ended = ended.clone();
            // Only a reader that is gone would not take it.
            tokio::spawn(async move { ended.send(visit(service, scheduled).await).ok() });
        }
    });
    let mut summary = Summary::default();
    while let Some(request) = done.recv().await {
        log.write(&request)?;
        summary.sent += 1;
        summary.ok += usize::from(request.outcome == Outcome::Ok);
        summary.late_ms.push((request.started - request.scheduled).as_secs_f64() * 1e3);
    }
    log.finish()?;
    summary.late_ms.sort_by(f64::total_cmp);
    Ok(summary)
}

async fn visit(service: SocketAddr, scheduled: Instant) -> Request {
    let started = Instant::now();
    let (outcome, code) = match tokio::time::timeout(PATIENCE, hold(service)).await {
        Ok(Ok(201)) => (Outcome::Ok, Some(201)),
        Ok(Ok(status)) => (Outcome::Fail, Some(status)),
        Ok(Err(_)) => (Outcome::Transport, None),
        Err(_) => (Outcome::Timeout, None),
    };
    Request { step: "hold", scheduled, started, ended: Instant::now(), outcome, code }
}

/// One hold on a connection of its own; the status of the answer.
async fn hold(service: SocketAddr) -> io::Result<u16> {
    let mut connection = TcpStream::connect(service).await?;
    connection.set_nodelay(true)?;
    connection.write_all(b"POST /hold HTTP/1.1\r\nHost: on-sale\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).await?;
    let status = answer.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    status.ok_or_else(|| io::ErrorKind::InvalidData.into())
}
