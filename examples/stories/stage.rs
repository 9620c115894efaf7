//! Where a story is played: its folder, the servers it needs, the sampler beside the load.

use crate::open_loop::watched::{this_as, wait_for_first_tick};
use crate::server::Server;
use anyhow::{Context as _, ensure};
use chrono::DateTime;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::{fs, io};
use whatgives::ticks;

/// The folder of one story.
pub struct Stage {
    folder: PathBuf,
    host: bool,
}

impl Stage {
    /// Makes the folder anew. `host`: whether the sampler watches the host as well.
    pub fn new(folder: &Path, host: bool) -> anyhow::Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| format!("empty {}", folder.display()))?;
        }
        fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
        Ok(Self { folder: folder.to_owned(), host })
    }

    /// Where the files are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A real server of `tests/servers/`, ended with the value.
    #[expect(clippy::unused_self, reason = "servers belong to a stage")]
    pub fn server(&self, name: &str, options: &[(&str, &str)]) -> anyhow::Result<Server> {
        Server::start(name, options).with_context(|| format!("{name} did not start"))
    }

    /// Runs the load with the sampler beside it, every 200 ms, from the load's begin until it has ended; `rung` names one of
    /// several runs. The load is given the path of its log.
    pub fn sampled(
        &self,
        rung: Option<&str>,
        targets: &[&str],
        load: impl FnOnce(&Path) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let name = |kind: &str| rung.map_or(kind.to_owned(), |rung| format!("{rung}.{kind}"));
        let [ticks, log] = ["ticks.tsv", "requests.tsv"].map(|kind| self.folder.join(name(kind)));
        let mut sampler = this_as("sampler")?;
        sampler.args(targets).args(["--tick=200ms", "--show-rows"]);
        if !self.host {
            sampler.arg("--no-host");
        }
        match rung {
            Some(rung) => sampler.args([OsStr::new("--out"), self.folder.join(rung).as_os_str()]),
            None => sampler.current_dir(&self.folder),
        };
        let mut sampler = Sampler(sampler.spawn()?);
        wait_for_first_tick(&ticks, &mut sampler.0)?;
        load(&log)?;
        sampler.end()?;
        [ticks, self.folder.join(name("waits.tsv")), log].iter().try_for_each(|made| compress(made))
    }

    /// Puts the files into the folder of the recorded run, and into its truth when they were made, and on what.
    pub fn keep(&self, recorded: &Path) -> anyhow::Result<()> {
        let truth = recorded.join("truth.toml");
        for old in fs::read_dir(recorded)? {
            let old = old?.path();
            if old != truth {
                fs::remove_file(old)?;
            }
        }
        let mut made_on = None;
        for made in fs::read_dir(&self.folder)? {
            let made = made?;
            fs::copy(made.path(), recorded.join(made.file_name()))?;
            if made.file_name().to_string_lossy().contains("ticks.tsv") {
                made_on = Some(ticks::Reader::open(&made.path())?.header().clone());
            }
        }
        let header = made_on.context("no ticks were made")?;
        let made = format!("made = {:?}", when_and_on_what(&header)?);
        let told = fs::read_to_string(&truth)?;
        let lines: Vec<&str> = told.lines().map(|line| if line.starts_with("made = ") { &made } else { line }).collect();
        Ok(fs::write(truth, lines.join("\n") + "\n")?)
    }
}

fn when_and_on_what(header: &ticks::Header) -> anyhow::Result<String> {
    let began = DateTime::from_timestamp_millis(header.run.start_unix_ms).context("a date")?;
    let products = header.targets.iter().filter_map(|target| {
        let about = |key: &str| target.about.get(key)?.as_str();
        let version = about("version")?.split(' ').next().filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
        Some(format!(", {} {version}", about("product")?))
    });
    Ok(began.format("%Y-%m-%d").to_string() + &products.collect::<String>())
}

/// A running sampler; ended with the value, whatever becomes of the load.
struct Sampler(Child);

impl Sampler {
    fn end(mut self) -> anyhow::Result<()> {
        self.interrupt()?;
        let status = self.0.wait()?;
        ensure!(status.success(), "the sampler ended with {status}");
        Ok(())
    }

    fn interrupt(&self) -> io::Result<()> {
        Command::new("kill").args(["-s", "INT", "--", &self.0.id().to_string()]).status().map(|_| ())
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            // What it has written is of no use any more.
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

/// A gzip in the file's place: a recorded run is to be small.
fn compress(file: &Path) -> anyhow::Result<()> {
    let mut packed = file.as_os_str().to_owned();
    packed.push(".gz");
    let mut out = flate2::write::GzEncoder::new(fs::File::create_new(packed)?, flate2::Compression::best());
    io::copy(&mut fs::File::open(file)?, &mut out)?;
    out.finish()?;
    fs::remove_file(file)?;
    Ok(())
}
