//! `sampler`: polls the targets on a fixed tick beside any load driver.

fn main() {}
