//! One question straight to php-fpm, over a connection of its own.

use super::fastcgi::{self, End};
use super::place::{self, Place};
use super::status::{self, Status};
use super::{MOST, NEEDS, WANTED};
use crate::address::Address;
use crate::api::{Fault, FaultKind};
use crate::http::sniff;
use crate::stream;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

/// A page as it came.
pub(super) struct Found {
    pub(super) status: Status,
    /// What PHP it says it is.
    pub(super) powered_by: String,
    pub(super) body: Vec<u8>,
}

/// Asks for a page with this query.
pub(super) async fn ask(address: &Address, path: &str, query: &str, within: Duration) -> Result<Found, Fault> {
    let at = Place::FastCgi { address: address.clone(), path: Some(path.to_owned()) };
    let fault = |kind, found: &str| Fault::new(kind, format!("FastCGI {at}: {found}"));
    let unreachable = |why: std::io::Error| fault(FaultKind::Unreachable, &why.to_string());
    let mut stream = stream::connect(address, within).await.map_err(|why| {
        let fault = fault(FaultKind::Unreachable, &format!("cannot connect: {why}"));
        match why.kind() {
            std::io::ErrorKind::PermissionDenied => {
                fault.hint("listen.mode or listen.group of the pool must let the sampler's user in")
            }
            _ => fault,
        }
    })?;
    let uri = format!("{path}?{query}");
    let request = fastcgi::request(&[
        ("GATEWAY_INTERFACE", "CGI/1.1"),
        ("SERVER_PROTOCOL", "HTTP/1.1"),
        ("REQUEST_METHOD", "GET"),
        ("SCRIPT_NAME", path),
        ("SCRIPT_FILENAME", path),
        ("REQUEST_URI", &uri),
        ("QUERY_STRING", query),
        ("SERVER_SOFTWARE", "whatgives-sampler"),
    ]);
    stream.write_all(&request).await.map_err(unreachable)?;
    let bytes = stream::read_to_end(&mut *stream, MOST).await.map_err(unreachable)?;
    let response = fastcgi::response(&bytes)
        .map_err(|why| fault(FaultKind::Nonsense, &format!("{why}: {}", sniff::excerpt(&bytes))).hint(place::FORMS))?;
    match response.end {
        Some(End::Complete) => {}
        Some(End::Overloaded) => return Err(fault(FaultKind::Refused, "it says that it is overloaded")),
        Some(end) => return Err(fault(FaultKind::Nonsense, &format!("the request ended as {end:?}"))),
        None if bytes.is_empty() => {
            return Err(fault(FaultKind::Unreachable, "it closed the connection without an answer")
                .hint("listen.allowed_clients of the pool must have this machine's address"));
        }
        None => return Err(fault(FaultKind::Unreachable, "the answer was cut off")),
    }
    let Some(page) = fastcgi::page(&response.output) else {
        return Err(fault(FaultKind::Nonsense, &format!("an answer without headers: {}", sniff::excerpt(&response.output))));
    };
    if page.status != 200 {
        let errors = String::from_utf8_lossy(&response.errors[..response.errors.len().min(80)]).escape_debug().to_string();
        let said = format!("{} {errors}: {}", page.status, sniff::excerpt(page.body));
        return Err(fault(FaultKind::Nonsense, &said).hint(format!("the path must be the pool's pm.status_path:\n{NEEDS}")));
    }
    if let Some(status) = status::parse(page.body) {
        return Ok(Found { status, powered_by: page.powered_by.unwrap_or_default(), body: page.body.to_vec() });
    }
    let found = format!("expected {WANTED}, found {}: {}", sniff::name(page.body), sniff::excerpt(page.body));
    Err(fault(FaultKind::Nonsense, &found).hint(format!("the path must be the pool's pm.status_path:\n{NEEDS}")))
}
