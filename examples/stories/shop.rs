//! The application of the stories that need one: a shop of one thread, before real servers.
//!
//! `GET /buy` holds one of a few connections of the database for as long as a statement takes. `GET /page?KEY` answers from
//! the cache, and on a miss reads the page from the database, in several statements, and keeps it; `GET /session?KEY` puts something of a visitor
//! into the cache. `GET /metrics` tells how it fares. It is a process of its own, so that it can be limited and watched.

mod cache;
mod pool;
mod running;

pub use cache::patient;
pub use running::Shop;

use anyhow::Context as _;
use cache::Cache;
use clap::Parser;
use pool::Pool;
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Serves until it is ended.
#[derive(Parser)]
struct Options {
    /// The database
    #[arg(long, value_name = "URL")]
    postgres: Option<String>,
    /// Connections to it
    #[arg(long, default_value_t = 8)]
    pool: u32,
    /// How long a statement takes there
    #[arg(long, value_name = "MS", default_value_t = 100)]
    statement: u64,
    /// Connections of their own for reading pages, which take 30 ms each time
    #[arg(long, value_name = "CONNECTIONS")]
    page_pool: Option<u32>,
    /// How many statements make a page
    #[arg(long, default_value_t = 1)]
    reads: u32,
    /// A cache that keeps what it is given until the time of day is next a multiple of `keep`
    #[arg(long, value_name = "URL")]
    redis: Option<String>,
    /// A cache that keeps what it is given for as long as `keep`
    #[arg(long, value_name = "HOST:PORT")]
    memcached: Option<String>,
    /// How long the cache keeps what it is given; 0: for ever
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    keep: u32,
    /// How large that is
    #[arg(long, value_name = "BYTES", default_value_t = 1000)]
    size: usize,
    /// The cache drops no page; each is read again after so long
    #[arg(long, value_name = "SECONDS")]
    refresh: Option<u64>,
    /// The processor time that each visit takes
    #[arg(long, value_name = "US", default_value_t = 0)]
    work: u64,
    /// How long each visit takes besides, holding nothing but its connection
    #[arg(long, value_name = "MS", default_value_t = 0)]
    think: u64,
    /// How many files and connections it may have open
    #[arg(long, value_name = "FILES")]
    files: Option<u64>,
}

struct Served {
    options: Options,
    pool: Option<Pool>,
    page_pool: Option<Pool>,
    cache: Option<Cache>,
    refreshed: Mutex<BTreeSet<String>>,
    requests: AtomicU64,
    in_flight: AtomicU64,
}

/// Serves on a free port of this machine, whose address is printed as the first line, until the process is ended.
pub fn run(args: impl Iterator<Item = std::ffi::OsString>) -> anyhow::Result<()> {
    let options = Options::parse_from(args);
    if let Some(files) = options.files {
        setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum: Some(files) })?;
    }
    crate::open_loop::load::runtime()?.block_on(async {
        let pool = match &options.postgres {
            Some(url) => Some(Pool::open(url, options.pool, options.statement).await.context("the database")?),
            None => None,
        };
        let page_pool = match (&options.postgres, options.page_pool) {
            (Some(url), Some(connections)) => Some(Pool::open(url, connections, 30).await.context("the database")?),
            _ => None,
        };
        let cache = Cache::open(options.redis.as_deref(), options.memcached.as_deref()).await.context("the cache")?;
        let (refreshed, zero) = (Mutex::default(), || AtomicU64::new(0));
        let shop = Arc::new(Served { options, pool, page_pool, cache, refreshed, requests: zero(), in_flight: zero() });
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        println!("{}", listener.local_addr()?);
        io::stdout().flush()?;
        loop {
            let Ok((client, _)) = listener.accept().await else {
                // No file is free for it: it waits at the door until one is.
                tokio::time::sleep(Duration::from_millis(5)).await;
                continue;
            };
            let shop = Arc::clone(&shop);
            // What is begun is ended, also when the visitor has gone.
            tokio::spawn(async move { shop.converse(client).await });
        }
    })
}

impl Served {
    async fn converse(self: Arc<Self>, mut client: TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        let mut heard = Vec::new();
        while !heard.ends_with(b"\r\n\r\n") {
            if heard.len() > 8192 || client.read_buf(&mut heard).await? == 0 {
                return Ok(());
            }
        }
        let head = String::from_utf8_lossy(&heard).into_owned();
        let asked = head.split(' ').nth(1).unwrap_or_default();
        let (status, body) = if asked == "/metrics" {
            ("200 OK", self.metrics())
        } else {
            self.in_flight.fetch_add(1, Relaxed);
            let answered = self.answer(asked).await;
            self.in_flight.fetch_sub(1, Relaxed);
            self.requests.fetch_add(1, Relaxed);
            match answered {
                Ok(body) => ("200 OK", body),
                Err(why) => ("500 Internal Server Error", format!("{why:#}\n")),
            }
        };
        let reply = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        client.write_all(reply.as_bytes()).await
    }

    async fn answer(self: &Arc<Self>, asked: &str) -> anyhow::Result<String> {
        work(Duration::from_micros(self.options.work));
        if self.options.think > 0 {
            tokio::time::sleep(Duration::from_millis(self.options.think)).await;
        }
        match asked.split_once('?') {
            None if asked == "/buy" => self.statement().await?,
            Some(("/page", key)) => return self.page(key).await,
            Some(("/session", key)) => self.put(key).await?,
            _ => {}
        }
        Ok(format!("{asked}\n"))
    }

    async fn page(self: &Arc<Self>, key: &str) -> anyhow::Result<String> {
        if let Some(cache) = &self.cache
            && let Some(found) = cache.get(key).await?
        {
            return Ok(found);
        }
        self.read_page().await?;
        self.put(key).await?;
        let first = || self.refreshed.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned());
        if let Some(after) = self.options.refresh
            && first()
        {
            tokio::spawn(Arc::clone(self).refresh(key.to_owned(), Duration::from_secs(after)));
        }
        Ok("read anew\n".to_owned())
    }

    async fn refresh(self: Arc<Self>, key: String, after: Duration) -> anyhow::Result<()> {
        loop {
            tokio::time::sleep(after).await;
            self.read_page().await?;
            self.put(&key).await?;
        }
    }

    /// One statement after the other, each on whatever connection is free.
    async fn read_page(&self) -> anyhow::Result<()> {
        for _ in 0..self.options.reads {
            match &self.page_pool {
                Some(pool) => pool.statement().await?,
                None => self.statement().await?,
            }
        }
        Ok(())
    }

    async fn put(&self, key: &str) -> anyhow::Result<()> {
        match &self.cache {
            Some(cache) => cache.set(key, "x".repeat(self.options.size), self.options.keep).await,
            None => Ok(()),
        }
    }

    async fn statement(&self) -> anyhow::Result<()> {
        match &self.pool {
            Some(pool) => pool.statement().await,
            None => Ok(()),
        }
    }

    fn metrics(&self) -> String {
        let of = |counter: &AtomicU64| counter.load(Relaxed) as f64;
        let pool = self.pool.as_ref().map(Pool::metrics).unwrap_or_default();
        [
            single("http_requests_total", "counter", of(&self.requests)),
            single("http_requests_in_flight", "gauge", of(&self.in_flight)),
            pool,
        ]
        .concat()
    }
}

fn single(name: &str, kind: &str, value: f64) -> String {
    format!("# TYPE {name} {kind}\n{name} {value}\n")
}

/// Takes processor time: measured by the thread's own clock, so that a slower processor or a limit changes nothing of it.
fn work(lasts: Duration) {
    let now = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
    let until = now() + lasts;
    while now() < until {
        std::hint::spin_loop();
    }
}
