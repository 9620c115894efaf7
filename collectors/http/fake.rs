//! For the tests of every HTTP collector: a server of a few lines that answers exactly what a test wants.

use super::address;
use crate::api::{Collector, Fault, Reading, Section, Spec, Support};
use reqwest::Url;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A server of one thread that hands every connection to `serve` and counts them; it ends with the test process.
pub fn server(serve: impl Fn(usize, TcpStream) + Send + 'static) -> (Url, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = address::parse("test", &listener.local_addr().unwrap().to_string()).unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let seen = count.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            serve(seen.fetch_add(1, Ordering::SeqCst), stream.unwrap());
        }
    });
    (url, count)
}

/// Reads one request; the head, or nothing where the client closed.
pub fn request(stream: &TcpStream) -> Option<String> {
    let mut head = String::new();
    let mut lines = BufReader::new(stream);
    while lines.read_line(&mut head).ok()? > 2 {}
    (!head.is_empty()).then_some(head)
}

/// Sends an answer with its length.
pub fn answer(mut stream: &TcpStream, status: &str, headers: &str, body: &str) {
    let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len());
}

/// Runs a future on a runtime of its own.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// A collector of this kind with these settings, opened and no more.
pub fn collector(spec: &Spec, instance: &str, endpoint: &str, settings: &str) -> Result<Box<dyn Collector>, Fault> {
    (spec.open)(&Section::of(instance, endpoint, settings))
}

/// Starts an opened collector.
pub fn started(collector: Result<Box<dyn Collector>, Fault>) -> (Box<dyn Collector>, Result<Support, Fault>) {
    let mut collector = collector.unwrap();
    let support = run(collector.start());
    (collector, support)
}

/// What a reading says: why its counters begin again, then its notes.
pub fn said(reading: &Reading) -> String {
    reading.restarted.iter().chain(&reading.notes).map(String::as_str).collect::<Vec<_>>().join(";")
}

/// A server that answers every path by a function: status line and body.
pub fn pages(page: impl Fn(&str) -> (&'static str, String) + Send + 'static) -> Url {
    let (url, _) = server(move |_, stream| {
        while let Some(head) = request(&stream) {
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            let (status, body) = page(&path);
            answer(&stream, status, "", &body);
        }
    });
    url
}
