//! The visitors: holds at a rising rate, each sent when it is due, whatever became of those before it.

use crate::open_loop::course::{Course, Leg};
use crate::open_loop::http;
use crate::open_loop::load::{self, App, Summary};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

/// 20 holds a second for 8 s.
pub const REST: Leg = Leg::flat(20.0, 8);

/// Then up to 80 a second in 28 s: 50/s is reached halfway up. The climb is slow enough that the rate rises little while the
/// first wait grows to something that matters.
pub const CLIMB: Leg = Leg::slope(20.0, 80.0, 28);

/// Sends the whole course, waits for every answer, and writes the log.
pub async fn run(service: SocketAddr, log: &Path) -> anyhow::Result<Summary> {
    let app: App = Arc::new(move |_| Box::pin(async move { http::ask(&service.to_string(), "hold", "POST /hold", 201).await }));
    load::even(Course(vec![REST, CLIMB]), app, log).await
}
