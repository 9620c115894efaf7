//! `correlate`: what gave way first, from the sampler's files and the driver's log.

fn main() {}
