//! A page on which an application of a story tells its own numbers.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

/// Serves what `body` says to whoever asks for whatever path, until the program ends.
pub fn serve(kind: &'static str, body: impl Fn() -> String + Clone + Send + 'static) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let at = listener.local_addr()?;
    thread::spawn(move || {
        for reader in listener.incoming().flatten() {
            let body = body.clone();
            // Who goes away in the middle of an answer does not want it.
            thread::spawn(move || converse(&reader, kind, body).ok());
        }
    });
    Ok(at)
}

fn converse(reader: &TcpStream, kind: &str, body: impl Fn() -> String) -> io::Result<()> {
    reader.set_nodelay(true)?;
    let mut lines = BufReader::new(reader).lines();
    while let Some(line) = lines.next().transpose()? {
        if line.is_empty() {
            let body = body();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n", body.len());
            (&*reader).write_all((head + &body).as_bytes())?;
        }
    }
    Ok(())
}
