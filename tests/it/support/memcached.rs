//! A memcached that does as it is told, on a free port: it speaks the text protocol's `stats` from a real one's answer.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// How it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// As it should.
    Answers,
    /// It takes the question and says nothing.
    Hangs,
    /// A web page.
    Nonsense,
    /// It closes the connection.
    Closes,
}

struct Shared {
    manner: Mutex<Manner>,
    open: Mutex<Vec<TcpStream>>,
    /// Connections since the start.
    accepted: AtomicU64,
    asked: AtomicU64,
    /// At most this many questions were being answered at once.
    under_way: AtomicU64,
    most_at_once: AtomicU64,
}

/// The server.
pub struct Memcached {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

impl Memcached {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            manner: Mutex::new(Manner::Answers),
            open: Mutex::default(),
            accepted: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            under_way: AtomicU64::new(0),
            most_at_once: AtomicU64::new(0),
        });
        let server = Self { address, shared };
        server.accept(listener);
        server
    }

    fn accept(&self, listener: TcpListener) {
        let shared = Arc::clone(&self.shared);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                shared.accepted.fetch_add(1, Ordering::SeqCst);
                shared.open.lock().unwrap().push(stream.try_clone().unwrap());
                let shared = Arc::clone(&shared);
                thread::spawn(move || serve(stream, &shared));
            }
        });
    }

    pub fn behave(&self, manner: Manner) {
        *self.shared.manner.lock().unwrap() = manner;
    }

    /// As after a restart: every connection closed, every counter at 0.
    pub fn restart(&self) {
        self.shared.asked.store(0, Ordering::SeqCst);
        for stream in self.shared.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }

    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    pub fn most_at_once(&self) -> u64 {
        self.shared.most_at_once.load(Ordering::SeqCst)
    }
}

fn serve(mut stream: TcpStream, shared: &Shared) {
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    while lines.read_line(&mut line).is_ok_and(|n| n > 0) {
        let at_once = shared.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        shared.most_at_once.fetch_max(at_once, Ordering::SeqCst);
        let manner = *shared.manner.lock().unwrap();
        let done = answer(&mut stream, line.trim(), manner, shared);
        shared.under_way.fetch_sub(1, Ordering::SeqCst);
        if !done {
            let _ = stream.shutdown(std::net::Shutdown::Both);
            return;
        }
        line.clear();
    }
}

fn answer(stream: &mut TcpStream, question: &str, manner: Manner, shared: &Shared) -> bool {
    let settings = include_str!("../../../fixtures/memcached/1.6.18/settings.txt");
    let stats = include_str!("../../../fixtures/memcached/1.6.18/stats.txt");
    match manner {
        Manner::Closes => false,
        Manner::Nonsense => stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n<html>no</html>\r\n").is_ok(),
        Manner::Hangs => {
            while *shared.manner.lock().unwrap() == Manner::Hangs {
                thread::sleep(Duration::from_millis(2));
            }
            answer(stream, question, *shared.manner.lock().unwrap(), shared)
        }
        Manner::Answers if question == "stats settings" => stream.write_all(settings.as_bytes()).is_ok(),
        Manner::Answers => {
            let asked = shared.asked.fetch_add(1, Ordering::SeqCst) + 1;
            let with_counter: Vec<String> = stats
                .lines()
                .map(|line| {
                    if line.starts_with("STAT cmd_get ") {
                        format!("STAT cmd_get {}\r\n", asked * 100)
                    } else {
                        format!("{line}\r\n")
                    }
                })
                .collect();
            stream.write_all(with_counter.concat().as_bytes()).is_ok()
        }
    }
}
