//! Rungs of constant load, each a number of visitors who look at a page of php-fpm and then book on MySQL.

use super::mysql;
use crate::load::{self, Answer, App, Visit};
use crate::open_loop::requests::Outcome;
use crate::stage::Stage;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Visitors of each rung. A visit takes some 40 ms in one of the 8 children, 33 in MySQL and 35 of thought: from some 20
/// visitors on the children are all busy.
const RUNGS: [u32; 6] = [1, 2, 4, 8, 16, 32];

pub fn rungs(stage: &Stage) -> anyhow::Result<()> {
    let database = stage.server("mysql", &[])?;
    let php = stage.server("phpfpm", &[])?;
    let backend = php.get("PHPFPM_ADDRESS");
    let web = stage.server("nginx", &[("NGINX_PHPFPM", backend), ("NGINX_PHP_ROOT", php.get("PHPFPM_ROOT"))])?;
    let port: u16 = web.get("NGINX_PORT").parse()?;
    let status = format!("{}/fpm-status", php.get("PHPFPM_STATUS_ADDRESS"));
    let targets = ["--phpfpm", &status, "--listen-queue", php.get("PHPFPM_PORT"), "--mysql", database.get("MYSQL_PROBE_URL")];
    for visitors in RUNGS {
        let label = format!("visitors={visitors}");
        let options: Vec<&str> = targets.into_iter().chain(["--label", &label]).collect();
        stage.sampled(Some(&format!("rung-{visitors:02}")), &options, |log| {
            load::runtime()?.block_on(async {
                let pool = mysql::pool(database.get("MYSQL_URL"), visitors).await?;
                let app: App = Arc::new(move |visit: Visit| {
                    let pool = pool.clone();
                    Box::pin(async move {
                        match page(port, "/slow.php?40").await {
                            Ok(200) => mysql::answer(mysql::book(&pool, (visit.number % 1000) as u32 + 1).await),
                            Ok(status) => Answer { step: "book", outcome: Outcome::Fail, code: Some(status) },
                            Err(_) => Answer { step: "book", outcome: Outcome::Transport, code: None },
                        }
                    })
                });
                load::closed(visitors, Duration::from_millis(35), Duration::from_secs(10), app, log).await?;
                Ok(())
            })
        })?;
    }
    Ok(())
}

/// The status of the answer.
async fn page(port: u16, path: &str) -> io::Result<u16> {
    let mut server = TcpStream::connect(("127.0.0.1", port)).await?;
    server.write_all(format!("GET {path} HTTP/1.0\r\nHost: shop\r\n\r\n").as_bytes()).await?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).await?;
    let status = String::from_utf8_lossy(&answer).split(' ').nth(1).and_then(|status| status.parse().ok());
    status.ok_or_else(|| io::Error::other("no answer of HTTP"))
}
