//! The options of a benchmark: `--NAME VALUE`, and `--NAME` alone. What cargo itself passes is nobody's.

/// What stands behind an option.
pub fn given(name: &str) -> Option<String> {
    std::env::args().skip_while(|arg| arg != name).nth(1)
}

/// A number, or what it is where the option is not given.
pub fn number(name: &str, usual: f64) -> f64 {
    given(name).map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name} {text}: expected a number")))
}

/// Whether an option is given.
pub fn is_given(name: &str) -> bool {
    std::env::args().any(|arg| arg == name)
}
