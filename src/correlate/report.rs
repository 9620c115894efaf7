//! One file an output. A report sees the verdict and nothing else.

mod answer;
pub mod chart;
mod held;
pub mod html;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod numbers;
mod steps;
pub mod text;
