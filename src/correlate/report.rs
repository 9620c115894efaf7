//! One file an output. A report sees the verdict and nothing else.

mod held;
pub mod json;
mod steps;
pub mod text;
