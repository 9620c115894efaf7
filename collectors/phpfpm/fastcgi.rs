//! FastCGI as far as one question needs it: records as pure functions of bytes. One request, id 1, answered by one
//! responder; the connection is not kept, since php-fpm ties a child to a kept one.
//!
//! A record is version, type, request id (2 bytes), content length (2), padding length, reserved; then content and padding.

/// The only version there is.
const VERSION: u8 = 1;
const BEGIN: u8 = 1;
const END: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;
const RESPONDER: u8 = 1;
const HEADER: usize = 8;

/// What a responder answered, as far as it has come in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Response {
    /// Headers, an empty line, the body.
    pub(super) output: Vec<u8>,
    /// What it complained of.
    pub(super) errors: Vec<u8>,
    /// How the request ended, once it has: 0 is well.
    pub(super) end: Option<End>,
}

/// The protocol's own word on how a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Worked on.
    Complete,
    /// It serves one request a connection.
    NoMultiplexing,
    /// It has too much to do.
    Overloaded,
    /// It is no responder.
    UnknownRole,
    /// None of these.
    Other(u8),
}

/// The request for a page: all of its records in one piece.
pub(super) fn request(params: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(512);
    // Role, and no flag: close the connection after this request.
    record(&mut bytes, BEGIN, &[0, RESPONDER, 0, 0, 0, 0, 0, 0]);
    let mut pairs = Vec::with_capacity(384);
    for (name, value) in params {
        length(&mut pairs, name.len());
        length(&mut pairs, value.len());
        pairs.extend_from_slice(name.as_bytes());
        pairs.extend_from_slice(value.as_bytes());
    }
    for piece in pairs.chunks(usize::from(u16::MAX)) {
        record(&mut bytes, PARAMS, piece);
    }
    record(&mut bytes, PARAMS, &[]);
    record(&mut bytes, STDIN, &[]);
    bytes
}

fn record(bytes: &mut Vec<u8>, kind: u8, content: &[u8]) {
    let [high, low] = (content.len() as u16).to_be_bytes();
    bytes.extend_from_slice(&[VERSION, kind, 0, 1, high, low, 0, 0]);
    bytes.extend_from_slice(content);
}

/// One byte up to 127, else four with the first bit set.
fn length(bytes: &mut Vec<u8>, length: usize) {
    match u8::try_from(length) {
        Ok(short) if short < 128 => bytes.push(short),
        _ => bytes.extend_from_slice(&(length as u32 | 1 << 31).to_be_bytes()),
    }
}

/// Takes the records apart; the error names what is not FastCGI. Records that are not whole yet are left out, and `end` is
/// missing until the last has come.
pub(super) fn response(bytes: &[u8]) -> Result<Response, String> {
    let mut response = Response::default();
    let mut rest = bytes;
    while !rest.is_empty() && response.end.is_none() {
        if rest[0] != VERSION {
            return Err(format!("a record of version {} where FastCGI has version 1", rest[0]));
        }
        let Some(header) = rest.get(..HEADER) else { break };
        let (kind, id) = (header[1], u16::from_be_bytes([header[2], header[3]]));
        let content_length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let Some(content) = rest.get(HEADER..HEADER + content_length) else { break };
        if id != 1 {
            return Err(format!("a record for request {id}, and only request 1 was made"));
        }
        match kind {
            STDOUT => response.output.extend_from_slice(content),
            STDERR => response.errors.extend_from_slice(content),
            END => {
                let status = content.get(4).ok_or_else(|| format!("an end record of {content_length} bytes"))?;
                response.end = Some(match status {
                    0 => End::Complete,
                    1 => End::NoMultiplexing,
                    2 => End::Overloaded,
                    3 => End::UnknownRole,
                    other => End::Other(*other),
                });
            }
            other => return Err(format!("a record of type {other}, which a responder does not send")),
        }
        // Padding that is still under way is of no interest.
        let next = HEADER + content_length + usize::from(header[6]);
        rest = rest.get(next..).unwrap_or_default();
    }
    Ok(response)
}

/// What a CGI program put out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page<'a> {
    /// 200 where it gives none.
    pub(super) status: u16,
    /// `X-Powered-By`: PHP and its version.
    pub(super) powered_by: Option<String>,
    /// What follows the headers.
    pub(super) body: &'a [u8],
}

/// Parts headers and body; `None` without the empty line between them.
pub(super) fn page(output: &[u8]) -> Option<Page<'_>> {
    let mut page = Page { status: 200, powered_by: None, body: &[] };
    let mut rest = output;
    loop {
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        rest = &rest[end + 1..];
        if line.is_empty() {
            page.body = rest;
            return Some(page);
        }
        let line = String::from_utf8_lossy(line);
        let Some((name, value)) = line.split_once(':') else { continue };
        if name.eq_ignore_ascii_case("status") {
            page.status = value.split_whitespace().next().and_then(|code| code.parse().ok())?;
        } else if name.eq_ignore_ascii_case("x-powered-by") {
            page.powered_by = Some(value.trim().to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OK: &[u8] = include_bytes!("../../fixtures/phpfpm/8.2/fastcgi-status.bin");
    const NOT_FOUND: &[u8] = include_bytes!("../../fixtures/phpfpm/8.2/fastcgi-not-found.bin");

    #[test]
    fn a_request_has_the_records_of_the_specification() {
        let bytes = request(&[("SCRIPT_NAME", "/status"), ("LONG", &"x".repeat(200))]);
        let mut wanted = vec![1, 1, 0, 1, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        wanted.extend([1, 4, 0, 1, 0, 229, 0, 0, 11, 7]);
        wanted.extend(b"SCRIPT_NAME/status");
        wanted.extend([4, 0x80, 0, 0, 200]);
        wanted.extend(b"LONG");
        wanted.extend([b'x'; 200]);
        wanted.extend([1, 4, 0, 1, 0, 0, 0, 0, 1, 5, 0, 1, 0, 0, 0, 0]);
        assert_eq!(bytes, wanted);
    }

    #[test]
    fn answers_of_a_real_php_fpm_are_taken_apart() {
        let ok = response(OK).unwrap();
        assert_eq!((ok.end, ok.errors.len()), (Some(End::Complete), 0));
        let page = page(&ok.output).unwrap();
        assert_eq!((page.status, page.powered_by.as_deref()), (200, Some("PHP/8.2.36")));
        let body = page.body;
        assert!(body.starts_with(b"{\"pool\":\"www\"") && body.ends_with(b"}"), "{}", body.escape_ascii());
        let not_found = response(NOT_FOUND).unwrap();
        assert_eq!(not_found.errors, b"Primary script unknown");
        let page = super::page(&not_found.output).unwrap();
        assert_eq!((page.status, page.body), (404, &b"File not found.\n"[..]));
    }

    #[test]
    fn an_answer_cut_anywhere_has_no_end_and_no_other_output() {
        for bytes in [OK, NOT_FOUND] {
            let whole = response(bytes).unwrap();
            for cut in 0..bytes.len() {
                let part = response(&bytes[..cut]).unwrap();
                assert_eq!(part.end, None, "cut at {cut}");
                assert!(whole.output.starts_with(&part.output) && whole.errors.starts_with(&part.errors));
            }
        }
    }

    #[test]
    fn output_in_many_records_is_put_together_with_padding_left_out() {
        let mut bytes = vec![1, 6, 0, 1, 0, 3, 5, 0];
        bytes.extend(b"a: \0\0\0\0\0");
        bytes.extend([1, 7, 0, 1, 0, 1, 0, 0, b'!', 1, 6, 0, 1, 0, 2, 0, 0, b'b', b'\n', 1, 6, 0, 1, 0, 0, 0, 0]);
        bytes.extend([1, 3, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0]);
        let found = response(&bytes).unwrap();
        assert_eq!(
            (found.output.as_slice(), found.errors.as_slice(), found.end),
            (&b"a: b\n"[..], &b"!"[..], Some(End::Overloaded))
        );
    }

    #[test]
    fn what_is_not_fastcgi_is_said() {
        for (bytes, says) in [
            (&b"HTTP/1.1 400 Bad Request\r\n"[..], "version 72"),
            (&[1, 6, 0, 2, 0, 0, 0, 0], "request 2"),
            (&[1, 9, 0, 1, 0, 0, 0, 0], "type 9"),
            (&[1, 3, 0, 1, 0, 1, 0, 0, 0], "1 bytes"),
        ] {
            let why = response(bytes).unwrap_err();
            assert!(why.contains(says), "{why}");
        }
        assert_eq!(page(b"Content-Type: x\n"), None);
        assert_eq!(page(b"Status: soon\n\nx"), None);
        assert_eq!(page(b"status:403\n\n").map(|page| page.status), Some(403));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = response(&bytes);
            let _ = response(&[&[1, 6, 0, 1], bytes.as_slice()].concat());
            let _ = page(&bytes);
        }

        #[test]
        fn every_name_and_value_can_be_read_back(pairs in proptest::collection::vec(("[A-Z]{1,150}", ".{0,300}"), 0..5)) {
            let pairs: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let bytes = request(&pairs);
            let mut rest = &bytes[16 + HEADER..];
            let number = |rest: &mut &[u8]| {
                let size = if rest[0] < 128 { 1 } else { 4 };
                let (head, tail) = rest.split_at(size);
                *rest = tail;
                head.iter().fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte)) & !(1 << 31)
            };
            for (name, value) in pairs {
                let (name_length, value_length) = (number(&mut rest), number(&mut rest));
                prop_assert_eq!(&rest[..name_length], name.as_bytes());
                prop_assert_eq!(&rest[name_length..name_length + value_length], value.as_bytes());
                rest = &rest[name_length + value_length..];
            }
        }
    }
}
