//! The contract: how a kind of target is listed, opened, started and read.

use super::{Fault, Gauge, Lack, Reading, Support};
use std::time::Duration;

/// A kind of target, as the registry lists it. The command line, the configuration's sections and the README's table
/// are built from it.
pub struct Spec {
    /// The collector's name, and the instance's where none is given.
    pub name: &'static str,
    /// The long flag without dashes: `mysql`.
    pub flag: &'static str,
    /// Other spellings of the flag.
    pub aliases: &'static [&'static str],
    /// How the flag's value is called in the help: `URL`.
    pub value: &'static str,
    /// One line: what it reads.
    pub about: &'static str,
    /// The privilege or the configuration it needs: a GRANT or a line, ready to paste.
    pub needs: &'static str,
    /// A section of a configuration file that works as it stands.
    pub sample_config: &'static str,
    /// Every gauge it can have without further configuration.
    pub gauges: &'static [Gauge],
    /// Parses the settings. No I/O.
    pub open: fn(&Section) -> Result<Box<dyn Collector>, Fault>,
}

/// What the command line and the configuration say of one target.
#[derive(Clone, Debug)]
pub struct Section {
    /// The instance's name: the prefix of its columns.
    pub instance: String,
    /// Where it is, as given: a URL, `HOST:PORT`, a path. Empty for targets that need none.
    pub endpoint: String,
    /// Everything else of its section in the configuration. A collector refuses keys that it does not know.
    pub settings: toml::Table,
    /// How long one read may take.
    pub timeout: Duration,
    /// The run's tick.
    pub tick: Duration,
}

#[cfg(test)]
impl Section {
    /// As a test gives it, with lines of configuration.
    pub(crate) fn of(instance: &str, endpoint: &str, settings: &str) -> Self {
        Self {
            instance: instance.to_owned(),
            endpoint: endpoint.to_owned(),
            settings: settings.parse().unwrap(),
            timeout: Duration::from_millis(800),
            tick: Duration::from_secs(1),
        }
    }
}

/// One target, asked once a tick.
///
/// The caller owns the deadline and keeps one read in flight: a read that is late is left to end by itself and its
/// answer is dropped; after 30 s it is cancelled. A collector keeps one connection, opened by [`Collector::start`]; when
/// that breaks, the failing `read` reports it and the next one connects anew.
#[async_trait::async_trait]
pub trait Collector: Send {
    /// The columns as far as they are known without asking. [`Support::columns`] replaces them.
    fn columns(&self) -> Vec<Gauge>;

    /// Which columns it has only where it answers at the start, and what gives them all the same.
    fn unsettled(&self) -> Option<Lack> {
        None
    }

    /// Connects, checks the version and proves what it can see. Once, before the load; again only where the first
    /// attempt failed and the run was allowed to begin.
    async fn start(&mut self) -> Result<Support, Fault>;

    /// Everything of one tick.
    async fn read(&mut self) -> Result<Reading, Fault>;
}
