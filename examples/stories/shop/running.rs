//! The shop as the stories start it: a process of its own, ended with the value.

use crate::open_loop::watched::this_as;
use anyhow::{Context as _, ensure};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

/// A running shop.
pub struct Shop {
    process: Child,
    /// Its `HOST:PORT`.
    pub address: String,
}

impl Shop {
    /// Starts it with these options; it is open when this returns.
    pub fn open(options: &[&str]) -> anyhow::Result<Self> {
        let process = this_as("shop")?.args(options).stdout(Stdio::piped()).spawn()?;
        let mut shop = Self { process, address: String::new() };
        let said = shop.process.stdout.take().context("the shop has no stdout")?;
        BufReader::new(said).read_line(&mut shop.address)?;
        shop.address.truncate(shop.address.trim_end().len());
        ensure!(!shop.address.is_empty(), "the shop did not open");
        Ok(shop)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Its page for `sampler --metrics`.
    pub fn metrics(&self) -> String {
        format!("shop=http://{}/metrics", self.address)
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        // It holds nothing that would have to be kept.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
