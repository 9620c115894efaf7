//! One HTTP/1.1 request over a connection of its own: drivers are asked seldom.

use super::{LiveError, PATIENCE};
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};

/// No driver says more.
const LARGEST: usize = 16 << 20;

/// Sends a request and gives the status and the body.
pub(super) fn ask(who: &str, place: &str, method: &str, path: &str, body: &str) -> Result<(u16, Vec<u8>), LiveError> {
    let failed = |what: String| LiveError { what: format!("{who}: {method} http://{place}{path}: {what}"), hint: None };
    let address = place.to_socket_addrs().map_err(|why| failed(why.to_string()))?.next();
    let address = address.ok_or_else(|| failed("no such host".into()))?;
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(|why| failed(why.to_string()))?;
    let mut begin = || -> std::io::Result<Vec<u8>> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {place}\r\nAccept: application/json\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )?;
        let mut answer = Vec::new();
        let mut part = [0; 16 << 10];
        // Some servers leave the connection open whatever they are asked: the answer itself tells where it ends.
        while !is_whole(&answer) && answer.len() < LARGEST {
            match stream.read(&mut part)? {
                0 => break,
                read => answer.extend_from_slice(&part[..read]),
            }
        }
        Ok(answer)
    };
    let answer = begin().map_err(|why| failed(why.to_string()))?;
    parse(&answer).ok_or_else(|| failed(format!("no HTTP answer: {:?}", String::from_utf8_lossy(&answer[..answer.len().min(60)]))))
}

/// Whether an answer has all that its head promises; false where only the end of the connection tells.
fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = memchr::memmem::find(answer, b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length:")).and_then(|text| text.trim().parse::<usize>().ok());
    match length {
        Some(length) => answer.len() - end - 4 >= length,
        None => head.contains("chunked") && answer.ends_with(b"\r\n0\r\n\r\n"),
    }
}

fn parse(answer: &[u8]) -> Option<(u16, Vec<u8>)> {
    let end = memchr::memmem::find(answer, b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let status = head.strip_prefix("http/1.")?.split(' ').nth(1)?.parse().ok()?;
    let body = &answer[end + 4..];
    if head.lines().any(|line| line.starts_with("transfer-encoding:") && line.contains("chunked")) {
        return Some((status, unchunked(body)?));
    }
    Some((status, body.to_vec()))
}

fn unchunked(mut body: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    loop {
        let end = memchr::memmem::find(body, b"\r\n")?;
        let size = std::str::from_utf8(&body[..end]).ok()?.split(';').next()?.trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        if size == 0 {
            return Some(out);
        }
        out.extend_from_slice(body.get(end + 2..end.checked_add(2)?.checked_add(size)?)?);
        body = body.get(end + 2 + size + 2..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_once_its_body_is_as_long_as_promised() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        assert!(is_whole(answer));
        assert!((0..answer.len()).all(|cut| !is_whole(&answer[..cut])));
        assert!(!is_whole(b"HTTP/1.1 200 OK\r\n\r\nuntil the end"));
        assert!(is_whole(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"));
    }

    #[test]
    fn bodies_are_read_whole_and_chunked() {
        let plain = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(parse(plain), Some((200, b"{}".to_vec())));
        let chunked = b"HTTP/1.1 405 Method Not Allowed\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n";
        assert_eq!(parse(chunked), Some((405, b"abcde".to_vec())));
        for broken in [
            &b""[..],
            b"HTTP/1.1",
            b"SSH-2.0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        ] {
            assert_eq!(parse(broken), None);
        }
    }
}
