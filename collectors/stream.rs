//! A connection that carries bytes, over TCP or a Unix socket.

use crate::address::Address;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

/// How long a connection may take, however short the tick: the caller owns the deadline of a read, and a connection over a
/// long way may take longer.
pub(crate) const CONNECT: Duration = Duration::from_secs(3);

/// Either kind of connection.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Stream for T {}

/// Connects within this time; the error is one that a message can end with.
pub(crate) async fn connect(address: &Address, within: Duration) -> io::Result<Box<dyn Stream>> {
    let attempt = async {
        Ok::<Box<dyn Stream>, io::Error>(match address {
            Address::Tcp { host, port } => {
                let stream = tokio::net::TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
            Address::Unix(path) => {
                // As in `ss` and everywhere else, `@name` is the abstract socket of that name.
                let hidden = path.to_str().and_then(|path| path.strip_prefix('@')).map(|name| format!("\0{name}"));
                Box::new(tokio::net::UnixStream::connect(hidden.map_or_else(|| path.clone(), Into::into)).await?)
            }
        })
    };
    match tokio::time::timeout(within, attempt).await {
        // What Linux says of a Unix listener with a full queue is "resource temporarily unavailable".
        Ok(Err(why)) if why.kind() == io::ErrorKind::WouldBlock => Err(io::Error::new(why.kind(), "its accept queue is full")),
        Ok(result) => result,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, format!("no connection in {within:?}"))),
    }
}

/// Reads until the other side closes; more than `most` bytes are an error.
pub(crate) async fn read_to_end(stream: &mut (dyn Stream + 'static), most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(8 << 10);
    while stream.read_buf(&mut bytes).await? > 0 {
        if bytes.len() > most {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("more than {} KiB", most / 1024)));
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    #[tokio::test]
    async fn both_kinds_are_read_to_their_end_and_no_further_than_allowed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let unix = tokio::net::UnixListener::bind(&path).unwrap();
        let hidden = format!("@whatgives-stream-{}", std::process::id());
        let name = hidden.replace('@', "\0");
        let abstract_one = tokio::net::UnixListener::bind(&name);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = unix.accept().await {
                stream.write_all(&[b'x'; 3000]).await.unwrap();
            }
        });
        for (most, whole) in [(3000, true), (2999, false)] {
            let mut stream = connect(&Address::Unix(path.clone()), Duration::from_secs(1)).await.unwrap();
            assert_eq!(read_to_end(&mut *stream, most).await.map(|bytes| bytes.len()).ok(), whole.then_some(3000));
        }
        if cfg!(target_os = "linux") {
            let _listens = abstract_one.unwrap();
            assert!(connect(&Address::Unix(hidden.into()), Duration::from_secs(1)).await.is_ok());
        }
        let tcp = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Address::Tcp { host: "127.0.0.1".to_owned(), port: tcp.local_addr().unwrap().port() };
        let (mut stream, accepted) = (connect(&address, Duration::from_secs(1)).await.unwrap(), tcp.accept().await.unwrap());
        drop(accepted);
        assert_eq!(read_to_end(&mut *stream, 1).await.unwrap(), b"");
    }

    #[tokio::test]
    async fn nobody_there_and_a_full_queue_are_errors_in_words() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let address = Address::Tcp { host: "127.0.0.1".to_owned(), port: free.port() };
        let why = connect(&address, Duration::from_secs(1)).await.err().unwrap();
        assert!(why.to_string().contains("refused"), "{why}");
        if !cfg!(target_os = "linux") {
            return;
        }
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let tcp = socket.listen(1).unwrap();
        let address = Address::Tcp { host: "127.0.0.1".to_owned(), port: tcp.local_addr().unwrap().port() };
        let dir = tempfile::tempdir().unwrap();
        let socket = tokio::net::UnixSocket::new_stream().unwrap();
        socket.bind(dir.path().join("s")).unwrap();
        let _unix = socket.listen(1).unwrap();
        for (address, says) in [(address, "no connection in 50ms"), (Address::Unix(dir.path().join("s")), "queue is full")] {
            let mut waiting = Vec::new();
            let why = loop {
                match connect(&address, Duration::from_millis(50)).await {
                    Ok(stream) => waiting.push(stream),
                    Err(why) => break why,
                }
                assert!(waiting.len() < 5, "a queue of 1 takes everybody");
            };
            assert!(why.to_string().contains(says), "{why}");
        }
    }
}
