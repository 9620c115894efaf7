//! A log of single requests in the form that `correlate --driver` reads: one line a request, times in microseconds since 1970.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As it should.
    Ok,
    /// The site gave way: it answered something else.
    Fail,
    /// The site gave way: the connection was refused or broke.
    Transport,
    /// No answer in time.
    Timeout,
}

impl Outcome {
    fn text(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Fail => "fail_http",
            Self::Transport => "fail_transport",
            Self::Timeout => "timeout",
        }
    }
}

/// One request. Its times are of the steady clock; the log converts them with one common origin.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Its name in the journey.
    pub step: &'static str,
    /// When the plan wanted it sent.
    pub scheduled: Instant,
    /// When it was sent.
    pub started: Instant,
    /// When its answer was complete.
    pub ended: Instant,
    /// How it ended.
    pub outcome: Outcome,
    /// The status or the error's number.
    pub code: Option<u16>,
}

/// The open log.
pub struct Log {
    out: BufWriter<std::fs::File>,
    origin: (Instant, Duration),
}

impl Log {
    /// Creates the file. A file that is there already is not overwritten.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut out = BufWriter::new(std::fs::File::create_new(path)?);
        out.write_all(b"#whatgives requests 1\nstart_us\tstep\tms\twall_ms\toutcome\tcode\tsched_us\n")?;
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).map_err(io::Error::other)?;
        Ok(Self { out, origin: (Instant::now(), since_1970) })
    }

    /// Appends one request.
    pub fn write(&mut self, request: &Request) -> io::Result<()> {
        let Request { step, scheduled, started, ended, outcome, code } = request;
        let code = code.map(|code| code.to_string()).unwrap_or_default();
        let ms = |from: &Instant| (*ended - *from).as_secs_f64() * 1e3;
        writeln!(
            self.out,
            "{}\t{step}\t{:.3}\t{:.3}\t{}\t{code}\t{}",
            self.unix_us(*started),
            ms(started),
            ms(scheduled),
            outcome.text(),
            self.unix_us(*scheduled)
        )
    }

    /// Writes what is still in memory.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn unix_us(&self, at: Instant) -> u128 {
        let (instant, since_1970) = self.origin;
        (since_1970 + at.saturating_duration_since(instant)).as_micros()
    }
}
