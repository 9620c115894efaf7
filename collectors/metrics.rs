//! x
mod text;
