//! Every test that needs more than one piece of the program, in one binary: it links once.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking and says so")]

mod sampler {
    mod background;
    mod cli;
    mod driver;
    mod faults;
    mod schedule;
}
mod driver;

mod support {
    pub mod memcached;
    pub mod sampler;
    pub mod server;
}

mod files;
mod live {
    mod apache;
    #[cfg(target_os = "linux")]
    mod cgroup;
    #[cfg(target_os = "linux")]
    mod host;
    #[cfg(target_os = "linux")]
    mod listen;
    mod memcached;
    mod query;
    mod redis;
}
