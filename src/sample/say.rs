//! Everything that the sampler says to people passes here: secrets are scrubbed, and a reader who went away is no error.
//! Answers (a check, a list, the pid of a run in the background) go to stdout, everything else to stderr.

use super::redact::Scrub;
use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};

/// The two streams.
pub struct Say {
    out: RefCell<Box<dyn Write>>,
    err: RefCell<Box<dyn Write>>,
    /// Whether a line of progress may stand on stderr.
    terminal: bool,
    quiet: bool,
    scrub: Scrub,
}

impl Say {
    /// The process's own streams.
    pub fn standard() -> Self {
        let terminal = io::stderr().is_terminal();
        Self::to(Box::new(io::stdout()), Box::new(io::stderr()), terminal)
    }

    /// Other streams; `terminal` allows progress.
    pub fn to(out: Box<dyn Write>, err: Box<dyn Write>, terminal: bool) -> Self {
        Self { out: RefCell::new(out), err: RefCell::new(err), terminal, quiet: false, scrub: Scrub::default() }
    }

    /// What must not be said, and whether only trouble is.
    pub fn restrain(&mut self, scrub: Scrub, quiet: bool) {
        self.scrub = scrub;
        self.quiet = quiet;
    }

    /// The same text without secrets.
    pub fn scrub(&self, text: &str) -> String {
        self.scrub.clean(text)
    }

    /// An answer, on stdout.
    pub fn answer(&self, text: &str) {
        Self::write(&self.out, &format!("{}\n", self.scrub(text)));
    }

    /// What goes on, on stderr; silent when quiet.
    pub fn tell(&self, text: &str) {
        if !self.quiet {
            self.trouble(text);
        }
    }

    /// Trouble, on stderr, always.
    pub fn trouble(&self, text: &str) {
        // A line of progress may stand there.
        let clear = if self.terminal { "\r\x1b[K" } else { "" };
        Self::write(&self.err, &format!("{clear}{}\n", self.scrub(text)));
    }

    /// Shows the line of progress in place of the last one; nothing where stderr is no terminal.
    pub fn progress(&self, line: &str) {
        if self.terminal && !self.quiet {
            Self::write(&self.err, &format!("\r\x1b[K{line}"));
        }
    }

    /// Whether progress is shown at all.
    pub fn shows_progress(&self) -> bool {
        self.terminal && !self.quiet
    }

    fn write(to: &RefCell<Box<dyn Write>>, text: &str) {
        // A reader who went away (a broken pipe) is no reason to stop a run.
        let mut to = to.borrow_mut();
        let _ = to.write_all(text.as_bytes()).and_then(|()| to.flush());
    }
}
