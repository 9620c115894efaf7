//! One file an output. A report sees the verdict and nothing else.

pub mod json;
pub mod junit;
pub mod text;
