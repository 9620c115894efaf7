//! Limits at which a server refuses or stands still: connections of PostgreSQL, nginx and memcached, memory of Redis, open
//! files of a process.

use super::{climb, open, postgres, web};
use crate::open_loop::course::{Course, Leg};
use crate::open_loop::load::{self, Answer, App, Visit};
use crate::open_loop::requests::Outcome;
use crate::shop::{self, Shop};
use crate::stage::Stage;
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{ConnectOptions as _, Connection as _};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// How long a visitor keeps the connection that he came with.
const VISIT: Duration = Duration::from_millis(400);

fn wide(from: f64, to: f64) -> Course {
    Course(vec![Leg::flat(from, 10), Leg::slope(from, to, 40)])
}

/// 20 connections of PostgreSQL, one of them the sampler's.
pub fn postgres_connections(stage: &Stage) -> anyhow::Result<()> {
    let limits = "-c max_connections=20 -c superuser_reserved_connections=0";
    let server = stage.server("postgres15", &[("POSTGRES15_ARGS", limits)])?;
    stage.sampled(None, &["--postgres", server.get("POSTGRES15_PROBE_URL")], |log| {
        open(climb(4.0, 70.0), None, log, async {
            let visitor: PgConnectOptions = server.get("POSTGRES15_URL").parse()?;
            let visitor = visitor.ssl_mode(PgSslMode::Disable);
            let app: App = Arc::new(move |_| {
                let visitor = visitor.clone();
                Box::pin(async move { postgres::answer(&visit(&visitor).await) })
            });
            Ok(app)
        })
    })
}

async fn visit(visitor: &PgConnectOptions) -> sqlx::Result<()> {
    let connection = visitor.connect().await?;
    tokio::time::sleep(VISIT).await;
    connection.close().await
}

/// 64 connections of nginx, three of which its own and the sampler's; each visit has one for 400 ms.
pub fn nginx_connections(stage: &Stage) -> anyhow::Result<()> {
    let nginx = stage.server("nginx", &[("NGINX_CONNECTIONS", "64")])?;
    let targets = ["--nginx", nginx.get("NGINX_STATUS_URL")];
    stage.sampled(None, &targets, |log| web::pages(wide(15.0, 240.0), nginx.get("NGINX_URL"), "/slow?400", log))
}

/// memcached counts 20 of its 60 connections as its own.
pub fn memcached_connections(stage: &Stage) -> anyhow::Result<()> {
    let cache = stage.server("memcached", &[("MEMCACHED_ARGS", "-m 8 -c 60 -t 4")])?;
    let at = cache.get("MEMCACHED_ADDRESS");
    stage.sampled(None, &["--memcached", at], |log| {
        let at = at.to_owned();
        let app: App = Arc::new(move |_: Visit| {
            let at = at.clone();
            Box::pin(async move {
                let outcome = match look(&at).await {
                    Ok(true) => Outcome::Ok,
                    Ok(false) => Outcome::Fail,
                    Err(_) => Outcome::Transport,
                };
                Answer { step: "look", outcome, code: None }
            })
        });
        load::runtime()?.block_on(load::open(wide(8.0, 160.0), 1, None, app, log))?;
        Ok(())
    })
}

/// Whether he was let in; who was not has left at once.
async fn look(at: &str) -> io::Result<bool> {
    let mut connection = TcpStream::connect(at).await?;
    connection.set_nodelay(true)?;
    connection.write_all(b"get seat\r\n").await?;
    let mut said = [0; 64];
    let length = connection.read(&mut said).await?;
    if !said[..length].starts_with(b"END") {
        return Ok(false);
    }
    tokio::time::sleep(VISIT).await;
    Ok(true)
}

/// What Redis is to keep of each visitor, and for how long.
const KEPT: usize = 20_000;
const KEPT_S: u32 = 4;

/// Redis has 10 MiB, one of which it takes for itself, and throws nothing out: it has room for the visitors of 4 s as long as
/// there are no more than some 115 a second.
pub fn redis_memory(stage: &Stage) -> anyhow::Result<()> {
    let server = stage.server("redis", &[("REDIS_ARGS", "--maxclients 200 --maxmemory 10mb")])?;
    stage.sampled(None, &["--redis", server.get("REDIS_PROBE_URL")], |log| {
        load::runtime()?.block_on(async {
            let connection = shop::patient(server.get("REDIS_URL")).await?;
            let kept: Arc<str> = "x".repeat(KEPT).into();
            let app: App = Arc::new(move |visit: Visit| {
                let (mut connection, kept) = (connection.clone(), Arc::clone(&kept));
                Box::pin(async move {
                    let mut command = redis::cmd("SET");
                    command.arg(format!("visitor-{}", visit.number)).arg(&*kept).arg("EX").arg(KEPT_S);
                    let kept = command.query_async::<()>(&mut connection).await;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    let outcome = if kept.is_ok() { Outcome::Ok } else { Outcome::Fail };
                    Answer { step: "come", outcome, code: None }
                })
            });
            load::open(wide(10.0, 200.0), 1, None, app, log).await?;
            Ok(())
        })
    })
}

/// The shop may have 64 files open, about ten of which it has for itself; each visit has one for 400 ms.
pub fn open_files(stage: &Stage) -> anyhow::Result<()> {
    let shop = Shop::open(&["--files=64", "--think=400"])?;
    stage.sampled(None, &["--process", &shop.pid().to_string()], |log| web::pages(wide(15.0, 180.0), &shop.address, "/look", log))
}
