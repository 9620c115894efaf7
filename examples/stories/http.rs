//! A visitor's request: a GET on a connection of its own.

use crate::load::Answer;
use crate::open_loop::requests::Outcome;
use std::io;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Asks `http://HOST:PORT` for a path. What was not 200 has failed.
pub async fn get(at: &str, step: &'static str, path: &str) -> Answer {
    match status(at.trim_start_matches("http://"), path).await {
        Ok(200) => Answer { step, outcome: Outcome::Ok, code: Some(200) },
        Ok(code) => Answer { step, outcome: Outcome::Fail, code: Some(code) },
        Err(_) => Answer { step, outcome: Outcome::Transport, code: None },
    }
}

async fn status(at: &str, path: &str) -> io::Result<u16> {
    let mut connection = TcpStream::connect(at).await?;
    connection.set_nodelay(true)?;
    connection.write_all(format!("GET {path} HTTP/1.0\r\nHost: {at}\r\n\r\n").as_bytes()).await?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).await?;
    let status = answer.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    status.ok_or_else(|| io::ErrorKind::InvalidData.into())
}
