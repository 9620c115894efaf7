//! The one connection: opened by us with our own limits of time, spoken over by the `redis` crate, and never mended behind
//! our back: one that fails is dropped, and the next read opens another.
//!
//! A server that refuses (too many clients, protected mode) says so at once and closes, which the crate, not having asked
//! anything yet, throws away. So what was heard first is kept here.

use super::target::{Place, Target};
use crate::api::{Fault, FaultKind};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ProtocolVersion, RedisConnectionInfo, RedisError, Value};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection gets at least this long, however short the tick: it is made once.
const CONNECT: Duration = Duration::from_secs(3);

/// The caller has a deadline of its own; this ends what nobody ended.
const LONGEST: Duration = Duration::from_secs(30);

/// How much of the beginning is kept.
const KEPT: usize = 200;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A stream that keeps what it heard first.
struct Heard {
    stream: Box<dyn Stream>,
    first: Arc<Mutex<Vec<u8>>>,
}

impl AsyncRead for Heard {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if let Ok(mut first) = self.first.lock() {
            let (room, new) = (KEPT - first.len(), &buffer.filled()[before..]);
            first.extend_from_slice(&new[..new.len().min(room)]);
        }
        polled
    }
}

impl AsyncWrite for Heard {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// What came back on a connection that goes on.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reply {
    /// A text, or a number as text.
    Text(Vec<u8>),
    /// Name and value in turn.
    Pairs(Vec<String>),
    /// The server's error, with its code: `NOPERM this user has no permissions …`.
    Error(String),
}

/// An open connection.
pub(super) struct Link {
    connection: MultiplexedConnection,
    /// How long the slowest command took since this was last looked at.
    pub slowest: Duration,
    first: Arc<Mutex<Vec<u8>>>,
}

impl Link {
    /// Connects, signs in and says who we are.
    pub async fn open(target: &Target, timeout: Duration) -> Result<Self, Fault> {
        let limit = timeout.max(CONNECT);
        let stream = match tokio::time::timeout(limit, dial(target)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(why)) => return Err(unreachable(target, &why)),
            Err(_) => return Err(unreachable(target, &io::Error::other(format!("no connection within {} ms", limit.as_millis())))),
        };
        let first = Arc::new(Mutex::new(Vec::new()));
        // No sign-in and no greeting of the crate: ours follow, so that their errors are ours to name.
        let info = RedisConnectionInfo::default().set_protocol(ProtocolVersion::RESP2).set_skip_set_lib_name();
        let config = AsyncConnectionConfig::new().set_connection_timeout(Some(limit)).set_response_timeout(Some(LONGEST));
        let heard = Heard { stream, first: first.clone() };
        let made = MultiplexedConnection::new_with_config(&info, heard, config).await;
        let (connection, driver) = made.map_err(|why| Self::failed(target, "connect", &first, &why))?;
        // It ends with the connection.
        tokio::spawn(driver);
        let mut link = Self { connection, slowest: Duration::ZERO, first };
        if let Some(password) = &target.password {
            let mut command = redis::cmd("AUTH");
            if let Some(user) = &target.user {
                command.arg(user);
            }
            if let Reply::Error(why) = link.ask(target, command.arg(password.reveal())).await? {
                return Err(refused(target, "sign in to", &why));
            }
        }
        // For whoever looks at CLIENT LIST; a user without the right to a name goes without.
        link.ask(target, redis::cmd("CLIENT").arg("SETNAME").arg("whatgives-sampler")).await?;
        Ok(link)
    }

    /// One command. After a fault the connection must not be used again.
    pub async fn ask(&mut self, target: &Target, command: &redis::Cmd) -> Result<Reply, Fault> {
        let what = command_name(command);
        let began = Instant::now();
        let answered = self.connection.send_packed_command(command).await;
        self.slowest = self.slowest.max(began.elapsed());
        let answered = match answered {
            Ok(value) => reply(target, &what, value)?,
            Err(why) => match server_error(&why) {
                Some(text) => Reply::Error(text),
                None => return Err(Self::failed(target, &what, &self.first, &why)),
            },
        };
        match answered {
            Reply::Error(text) if is_goodbye(&text) => Err(refused(target, &format!("{what} of"), &text)),
            answered => Ok(answered),
        }
    }

    /// A failure of the connection: a refusal heard at its beginning is the reason.
    fn failed(target: &Target, what: &str, first: &Mutex<Vec<u8>>, why: &RedisError) -> Fault {
        let heard = first.lock().map(|first| first.clone()).unwrap_or_default();
        let line = String::from_utf8_lossy(heard.split(|byte| *byte == b'\r' || *byte == b'\n').next().unwrap_or_default());
        if let Some(error) = line.strip_prefix('-').filter(|error| is_goodbye(error)) {
            return refused(target, &format!("{what} of"), error);
        }
        let foreign = heard.first().is_some_and(|byte| !b"+-:$*".contains(byte));
        if foreign {
            let begins = line.chars().take(60).collect::<String>().escape_debug().to_string();
            let kind = match &*line {
                text if text.starts_with("HTTP/") => "a web server",
                text if text.starts_with("ERROR") => "memcached",
                _ => "another kind of server, or one that wants TLS,",
            };
            return Fault::new(
                FaultKind::Nonsense,
                format!("{what} of {}: expected Redis' protocol, found \"{begins}\": {kind} listens there", target.name),
            );
        }
        let fault = Fault::new(FaultKind::Unreachable, format!("{what} of {}: {}", target.name, describe(why)));
        if heard.is_empty() && target.tls.is_none() && why.is_connection_dropped() {
            return fault.hint("a port with TLS closes a connection without: rediss://, or tls = true");
        }
        fault
    }
}

/// `INFO`, `CONFIG GET`: never an argument, which may be a secret.
fn command_name(command: &redis::Cmd) -> String {
    let words = command.args_iter().filter_map(|arg| match arg {
        redis::Arg::Simple(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    });
    let all: Vec<String> = words.take(2).collect();
    let two = all.first().is_some_and(|first| ["CONFIG", "CLIENT", "SLOWLOG", "CLUSTER"].contains(&first.as_str()));
    all[..if two { all.len() } else { all.len().min(1) }].join(" ")
}

fn reply(target: &Target, what: &str, value: Value) -> Result<Reply, Fault> {
    Ok(match value {
        Value::BulkString(text) => Reply::Text(text),
        Value::Okay => Reply::Text(b"OK".to_vec()),
        Value::Int(number) => Reply::Text(number.to_string().into_bytes()),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Reply::Text(text.into_bytes()),
        Value::ServerError(error) => Reply::Error(server_error(&error.into()).unwrap_or_default()),
        Value::Array(values) => {
            let text = |value| match value {
                Value::BulkString(text) => String::from_utf8_lossy(&text).into_owned(),
                Value::SimpleString(text) => text,
                Value::Int(number) => number.to_string(),
                _ => String::new(),
            };
            Reply::Pairs(values.into_iter().map(text).collect())
        }
        other => {
            let found = format!("{other:?}").chars().take(60).collect::<String>();
            return Err(Fault::new(FaultKind::Nonsense, format!("{what} of {}: expected a text, found {found}", target.name)));
        }
    })
}

/// The server's own words, where it answered: `CODE text`.
fn server_error(why: &RedisError) -> Option<String> {
    matches!(why.kind(), redis::ErrorKind::Server(_) | redis::ErrorKind::Extension)
        .then(|| [why.code().unwrap_or("ERR"), why.detail().unwrap_or_default()].join(" ").trim().to_owned())
}

fn describe(why: &RedisError) -> String {
    if why.is_timeout() {
        return format!("no answer within {} s", LONGEST.as_secs());
    }
    if why.is_connection_dropped() {
        return "the server closed the connection".to_owned();
    }
    why.to_string()
}

/// Errors after which the server closes.
fn is_goodbye(error: &str) -> bool {
    error.contains("max number of clients") || error.starts_with("DENIED")
}

/// A refusal, with its mend.
fn refused(target: &Target, doing: &str, error: &str) -> Fault {
    let fault = Fault::new(FaultKind::Refused, format!("{doing} {}: {error}", target.name));
    if error.contains("max number of clients") {
        fault.hint("all connections of maxclients are taken: start the sampler before the load, its connection is kept")
    } else if error.starts_with("DENIED") {
        fault.hint("Redis is in protected mode: give its default user a password, or ask from its own machine")
    } else if error.starts_with("WRONGPASS") || error.contains("invalid password") {
        fault.hint("check user and password (user, password_file, password_env, or the URL)")
    } else {
        fault
    }
}

async fn dial(target: &Target) -> io::Result<Box<dyn Stream>> {
    let stream = match &target.place {
        Place::Unix(path) => return Ok(Box::new(tokio::net::UnixStream::connect(path).await?)),
        Place::Tcp(host, port) => tokio::net::TcpStream::connect((host.as_str(), *port)).await?,
    };
    stream.set_nodelay(true)?;
    match &target.tls {
        None => Ok(Box::new(stream)),
        Some((config, name)) => Ok(Box::new(tokio_rustls::TlsConnector::from(config.clone()).connect(name.clone(), stream).await?)),
    }
}

fn unreachable(target: &Target, why: &io::Error) -> Fault {
    let fault = Fault::new(FaultKind::Unreachable, format!("connect to {}: {why}", target.name));
    let text = why.to_string().to_ascii_lowercase();
    if target.tls.is_none() {
        fault.hint("is it running there, and does it listen on that address (bind, port, unixsocket)?")
    } else if text.contains("certificate") {
        fault.hint("name the authority that signed the server's certificate with ca_file = \"…\"")
    } else if text.contains("corrupt message")
        || text.contains("invalidcontenttype")
        || text.contains("eof")
        || text.contains("no connection")
    {
        // A plain port waits for the end of what it takes for a long command.
        fault.hint("the port may be without TLS: redis:// instead of rediss://")
    } else {
        fault
    }
}

/// Whether an error says that a command may not be used at all: a missing right, a command renamed or not known.
pub(super) fn is_forbidden(error: &str) -> bool {
    error.starts_with("NOPERM") || error.to_ascii_lowercase().contains("unknown command")
}
