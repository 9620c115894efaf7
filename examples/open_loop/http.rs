//! A visitor's request, on a connection of its own.

use super::load::Answer;
use super::requests::Outcome;
use std::io;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Asks `http://HOST:PORT` for a path. What was not 200 has failed.
pub async fn get(at: &str, step: &'static str, path: &str) -> Answer {
    ask(at, step, &format!("GET {path}"), 200).await
}

/// Asks `http://HOST:PORT`, by method and path. What was not answered with this status has failed.
pub async fn ask(at: &str, step: &'static str, request: &str, wanted: u16) -> Answer {
    match status(at.trim_start_matches("http://"), request).await {
        Ok(code) => Answer { step, outcome: if code == wanted { Outcome::Ok } else { Outcome::Fail }, code: Some(code) },
        Err(_) => Answer { step, outcome: Outcome::Transport, code: None },
    }
}

async fn status(at: &str, request: &str) -> io::Result<u16> {
    let mut connection = TcpStream::connect(at).await?;
    connection.set_nodelay(true)?;
    connection.write_all(format!("{request} HTTP/1.0\r\nHost: {at}\r\nConnection: close\r\n\r\n").as_bytes()).await?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).await?;
    let status = answer.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    status.ok_or_else(|| io::ErrorKind::InvalidData.into())
}
