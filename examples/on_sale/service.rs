//! The booking service: `POST /hold` takes a seat, `GET /metrics` tells how it fares. Bookings live in memory; what is real
//! is the pool of database connections and the wait for one.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, SemaphorePermit};

/// How long the payment provider takes.
pub const PAYMENT: Duration = Duration::from_millis(400);

/// A pool of connections: who comes first is served first.
struct Pool {
    max: u32,
    connections: Semaphore,
    waiting: AtomicU64,
    acquires: AtomicU64,
    waited_us: AtomicU64,
}

impl Pool {
    fn new(max: u32) -> Self {
        let zero = || AtomicU64::new(0);
        Self { max, connections: Semaphore::new(max as usize), waiting: zero(), acquires: zero(), waited_us: zero() }
    }

    async fn acquire(&self) -> io::Result<SemaphorePermit<'_>> {
        let begin = Instant::now();
        self.waiting.fetch_add(1, Relaxed);
        let connection = self.connections.acquire().await;
        self.waiting.fetch_sub(1, Relaxed);
        self.acquires.fetch_add(1, Relaxed);
        self.waited_us.fetch_add(begin.elapsed().as_micros() as u64, Relaxed);
        connection.map_err(io::Error::other)
    }

    fn in_use(&self) -> usize {
        self.max as usize - self.connections.available_permits()
    }
}

struct Service {
    pool: Pool,
    pay_after_commit: bool,
    bookings: AtomicU64,
    in_flight: AtomicU64,
    served: AtomicU64,
    served_us: AtomicU64,
}

impl Service {
    async fn hold(&self) -> io::Result<String> {
        let begin = Instant::now();
        self.in_flight.fetch_add(1, Relaxed);
        let booked = self.book().await;
        self.in_flight.fetch_sub(1, Relaxed);
        self.served.fetch_add(1, Relaxed);
        self.served_us.fetch_add(begin.elapsed().as_micros() as u64, Relaxed);
        booked.map(|number| format!("{{\"booking\":{number}}}\n"))
    }

    async fn book(&self) -> io::Result<u64> {
        let connection = self.pool.acquire().await?;
        let number = self.bookings.fetch_add(1, Relaxed);
        // The fix: the booking is committed and its connection given back before the slow call, not after it.
        let kept = (!self.pay_after_commit).then_some(connection);
        tokio::time::sleep(PAYMENT).await;
        drop(kept);
        Ok(number)
    }

    fn metrics(&self) -> String {
        let pool = &self.pool;
        let of = |counter: &AtomicU64| counter.load(Relaxed) as f64;
        let single = |name: &str, kind: &str, value: f64| format!("# TYPE {name} {kind}\n{name} {value}\n");
        [
            single("pool_connections_max", "gauge", f64::from(pool.max)),
            single("pool_connections_in_use", "gauge", pool.in_use() as f64),
            single("pool_acquire_waiting", "gauge", of(&pool.waiting)),
            single("pool_acquires_total", "counter", of(&pool.acquires)),
            single("pool_acquire_wait_seconds_total", "counter", of(&pool.waited_us) / 1e6),
            single("http_requests_total", "counter", of(&self.served)),
            single("http_requests_in_flight", "gauge", of(&self.in_flight)),
            "# TYPE http_request_duration_seconds summary\n".to_owned(),
            format!("http_request_duration_seconds_sum {}\n", of(&self.served_us) / 1e6),
            format!("http_request_duration_seconds_count {}\n", of(&self.served)),
        ]
        .concat()
    }

    async fn answer(&self, request: &str) -> (&'static str, String) {
        match request {
            "POST /hold" => match self.hold().await {
                Ok(body) => ("201 Created", body),
                Err(why) => ("500 Internal Server Error", format!("{why}\n")),
            },
            "GET /metrics" => ("200 OK", self.metrics()),
            other => ("404 Not Found", format!("no {other} here\n")),
        }
    }

    /// One request after another, until the client goes or asks for no more.
    async fn converse(&self, mut client: TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        let mut heard = Vec::new();
        loop {
            let end = loop {
                if let Some(at) = heard.windows(4).position(|four| four == b"\r\n\r\n") {
                    break at + 4;
                }
                if heard.len() > 8192 || client.read_buf(&mut heard).await? == 0 {
                    return Ok(());
                }
            };
            let head = String::from_utf8_lossy(&heard[..end]).into_owned();
            heard.drain(..end);
            let request = head.split(' ').take(2).collect::<Vec<_>>().join(" ");
            let (status, body) = self.answer(&request).await;
            let reply = format!(
                "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            client.write_all(reply.as_bytes()).await?;
            if head.contains("\r\nConnection: close\r\n") {
                return Ok(());
            }
        }
    }
}

/// Serves on a free port of this machine until the process ends; `listening` is told the address.
pub async fn serve(pool: u32, pay_after_commit: bool, listening: impl FnOnce(SocketAddr)) -> io::Result<()> {
    let zero = || AtomicU64::new(0);
    let service = Arc::new(Service {
        pool: Pool::new(pool),
        pay_after_commit,
        bookings: zero(),
        in_flight: zero(),
        served: zero(),
        served_us: zero(),
    });
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    listening(listener.local_addr()?);
    loop {
        let (client, _) = listener.accept().await?;
        let service = Arc::clone(&service);
        tokio::spawn(async move { service.converse(client).await });
    }
}
