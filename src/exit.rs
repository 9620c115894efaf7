//! Every exit code of both programs: the only place with the numbers.

/// `correlate`: answered, and every gate passed. `sampler`: done.
pub const DONE: u8 = 0;
/// `correlate`: a gate failed (`violated`, `saturated`), or `correlate require` found something missing.
pub const GATE_FAILED: u8 = 1;
/// Both: wrong usage or configuration.
pub const USAGE: u8 = 2;
/// `correlate`: an input file is unusable.
pub const UNUSABLE_INPUT: u8 = 3;
/// `correlate`: inconclusive, or too little data.
pub const INCONCLUSIVE: u8 = 4;
/// `sampler`: a required target was never readable.
pub const TARGET_UNREADABLE: u8 = 5;
/// `sampler`: stopped because a gate broke, whatever code the stopped driver ends with.
pub const GATE_STOPPED: u8 = 6;
/// `sampler` with a wrapped driver: the sampler itself failed; otherwise the driver's own code is passed on.
pub const SAMPLER_FAILED: u8 = 125;
/// `sampler` with a wrapped driver: the driver is there but cannot be started, as shells say it.
pub const DRIVER_NOT_EXECUTABLE: u8 = 126;
/// `sampler` with a wrapped driver: the driver is not there, as shells say it.
pub const DRIVER_NOT_FOUND: u8 = 127;
