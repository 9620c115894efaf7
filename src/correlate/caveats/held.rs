//! Caveats of the parts of an answer that could not be told. Their codes end in `_not_told` where nobody need act: the report
//! for people leaves those out.

use super::caveat;
use crate::correlate::growth::Why;
use crate::correlate::verdict::Caveat;

/// Growth needs a load that is held.
pub fn growth_not_told(why: &Why, judged_s: f64, asked: bool) -> Caveat {
    let todo = "hold the load for some minutes, or name the stretch with --phase plateau=START..END";
    match why {
        Why::NoPlateau => caveat("growth_not_told", "the load was never held: growth was not looked for", todo, false),
        Why::Ceiling => caveat(
            "growth_not_told",
            "whether the load was held is not known once something gave way without a plan: growth was not looked for",
            "drive with a planned rate and give its log with --driver",
            false,
        ),
        Why::TooShort(phase, seconds) => {
            let code = if asked || seconds * 2.0 > judged_s { "plateau_too_short" } else { "growth_not_told" };
            caveat(code, format!("the {phase} of {seconds:.0} s is too short to tell growth: under 8 blocks"), todo, false)
        }
    }
}

/// Recovery needs a spike and load behind it.
pub fn recovery_not_told(spikes: bool) -> Caveat {
    let (text, todo) = if spikes {
        ("the load ended less than 5 s after the spike: recovery was not seen", "go on at a low rate for a minute after the spike")
    } else {
        ("there was no spike: recovery was not looked for", "name one with --phase spike=START..END")
    };
    caveat("recovery_not_told", text, todo, false)
}

/// Steps are the driver's.
pub fn steps_not_told() -> Caveat {
    caveat("steps_not_told", "without a driver's log no steps are known", "give the load driver's log with --driver", false)
}
