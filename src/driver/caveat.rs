//! What a driver's log lacks or did not check, as stable codes with a text for people.

macro_rules! caveats {
    ($($name:ident $code:literal $text:literal $do:literal;)*) => {
        $(#[doc = $text] pub const $name: &str = $code;)*
        /// Every code, what it says, and what to do about it.
        pub const CAVEATS: &[(&str, &str, &str)] = &[$(($code, $text, $do)),*];
    };
}

caveats! {
    CLOSED_LOOP "closed_loop"
        "The driver waits for an answer before it sends the next request: no rate was offered, and past the knee it sends only what the site completes."
        "Drive with an open model (arrival rate), or read the rates as achieved ones.";
    OPEN_UNKNOWN "open_unknown"
        "The log does not say whether arrivals were scheduled or waited for answers; the offered rate is what was sent."
        "Give the plan with --plan, for example --plan 100:3000/5m.";
    COORDINATED_OMISSION "coordinated_omission"
        "Latencies count from the real send: what a request waited in the driver for its turn is not in them."
        "Use an open model, or a driver that measures from the scheduled send.";
    CORRECTED_LATENCY "corrected_latency"
        "The driver added latencies of requests that it never sent, to make up for coordinated omission."
        "Compare only with runs corrected the same way.";
    FAILURES_MISSING "failures_missing"
        "The log holds no failed requests: errors and timeouts are not in it."
        "Read errors from the driver's summary, or use a log that has them (oha: the JSON summary; else k6, JMeter, vegeta).";
    OUTCOMES_UNKNOWN "outcomes_unknown"
        "The log does not say whether a request failed: all count as good."
        "Read errors from the driver's summary, or use a log with status codes.";
    SECOND_STAMPS "second_stamps"
        "Stamps are whole seconds: starts, requests in flight and the first and last second are uncertain by up to a second."
        "For k6 set K6_CSV_TIME_FORMAT=unix_milli.";
    PERCENTILES_COARSE "percentiles_coarse"
        "Percentiles are the driver's own, over its window and rounded; they cannot be joined over time or over files."
        "Use a log of single requests where exact percentiles matter.";
    MEAN_ONLY "mean_only"
        "The log has mean latencies, no percentiles."
        "Use the driver's log of single requests.";
    ASSERTION_FREE "assertion_free"
        "Nothing in the log shows that answers were checked beyond their status: a fast wrong answer counts as a good one."
        "Add a check of the body to the scenario (k6 check, JMeter assertion, Locust catch_response).";
    STEPS_CAPPED "steps_capped"
        "There were more steps than are kept apart; the rarest are together in the step `other`."
        "Name the requests in the scenario, or choose another field with --step-by.";
    RELATIVE_CLOCK "relative_clock"
        "The log has no clock time, only times since its own start; they are not laid beside the sampler's."
        "Let the sampler start the driver (sampler … -- DRIVER), or give the start with --driver-start.";
    BEGUN_TOGETHER "begun_together"
        "Several logs without a clock were taken as begun at the same moment."
        "Give each its own start with --driver-start FILE=TIME, if they are rungs and not workers of one run.";
    ZONE_ASSUMED "zone_assumed"
        "Stamps are local time without a zone; this machine's zone was taken."
        "Give the zone of the driver's machine with --driver-zone, for example +02:00.";
    DURATION_UNKNOWN "duration_unknown"
        "The log tells a rate or totals but not how long the run was."
        "Use a log with times.";
    NO_TIMELINE "no_timeline"
        "The log is one summary of the whole run: it can be a rung of a ladder, and shows nothing over time."
        "Use a driver that logs requests or intervals, or run one rung per rate.";
    CUT_LOG "cut_log"
        "The log ends in the middle: the driver was stopped before it wrote everything."
        "Let the driver end by itself, or stop it with its own command.";
    TAIL_MISSING "tail_missing"
        "The driver does not write its last second."
        "Leave a cool-down stretch after the load.";
    BAD_ROWS "bad_rows"
        "Some rows could not be read and were left out."
        "See the line numbers in the driver line of the timeline.";
    TRANSACTION_ROWS "transaction_rows"
        "Rows of transaction controllers sum up other rows and were left out, so that nothing is counted twice."
        "Nothing to do.";
    SYNTHETIC_ROWS "synthetic_rows"
        "Rows that the driver made up for coordinated omission were left out."
        "Nothing to do.";
    ROW_LIMIT "row_limit"
        "The driver stops writing rows after a fixed number; the log may end before the run."
        "Run shorter, or use another driver's log.";
    WORKERS_EXHAUSTED "workers_exhausted"
        "The driver ran out of workers: requests in flight stayed at their limit while starts fell to what the site completed. From there on rates are achieved, not offered."
        "Give the driver more workers (vegeta -max-workers, k6 maxVUs).";
    BEHIND_PLAN "behind_plan"
        "The driver sent less than the plan for at least five intervals."
        "Give the driver more machines or workers, or correct the plan.";
    DRIVER_QUEUE "driver_queue"
        "Requests waited inside the driver before they were sent; the site's time does not hold that wait."
        "Give the driver more connections or workers.";
    CLOCK_STEPPED "clock_stepped"
        "Some requests end before they start: the driver's clock was set during the run. Their latencies count as 0."
        "Let the clock be slewed (chrony, ntpd -x) during a run.";
    ABORTED_AT_END "aborted_at_end"
        "Requests cut off by the driver's own stop are counted neither as good nor as failed."
        "Nothing to do.";
    RESTARTED "restarted"
        "The log holds more than one run; the last one is read."
        "Cut the file, or write one file a run.";
    STATS_RESET "stats_reset"
        "The driver set its totals back during the run; the interval of the reset is unknown."
        "Nothing to do.";
    END_STAMPS "end_stamps"
        "Stamps were taken as the end of each request, because they rise as ends do."
        "Nothing to do; for JMeter see sampleresult.timestamp.start.";
    FILES_MERGED "files_merged"
        "Several files were added up; percentiles that the files give only as numbers were joined by taking the highest."
        "Use logs of single requests where exact percentiles matter.";
}

/// What a code says and what to do about it, for people; `None` for a code that nobody here gives.
pub fn caveat_text(code: &str) -> Option<(&'static str, &'static str)> {
    CAVEATS.iter().find(|(name, ..)| *name == code).map(|(_, text, what)| (*text, *what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_there_once_and_its_text_is_found() {
        for (n, (code, text, what)) in CAVEATS.iter().enumerate() {
            assert!(CAVEATS[n + 1..].iter().all(|(other, ..)| other != code), "{code} is there twice");
            assert_eq!(caveat_text(code), Some((*text, *what)));
            assert!(text.ends_with('.') && what.ends_with('.'), "{code}");
        }
        assert_eq!(caveat_text("no_such_code"), None);
    }
}
