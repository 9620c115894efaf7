//! What this process has used so far.

/// CPU time of this process so far: the ticks of a hundredth of a second that Linux counts.
pub fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let words: Vec<f64> =
        stat.rsplit(") ").next().unwrap_or_default().split_whitespace().filter_map(|word| word.parse().ok()).collect();
    // Behind the name: state (no number), then parent and so on; user and system time are the 11th and 12th numbers.
    words.get(10..12).map_or(0.0, |times| times.iter().sum::<f64>() / 100.0)
}

/// The most memory that it had.
pub fn peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}
