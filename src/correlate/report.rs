//! One file an output. A report sees the verdict and nothing else.

pub mod chart;
pub mod html;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod text;
