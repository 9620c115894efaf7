//! Files of drivers that hold no timeline and no rung: refused, with what to export instead.

use super::Head;
use memchr::memmem;

/// Why a file cannot be used and what can, told by its first bytes.
pub(super) fn why(head: &Head<'_>) -> Option<(&'static str, &'static str)> {
    let begins = |prefix: &[u8]| head.bytes.starts_with(prefix);
    let early = |text: &[u8]| memmem::find(&head.bytes[..head.bytes.len().min(400)], text).is_some();
    Some(if begins(b"\x28\xb5\x2f\xfd") {
        ("is packed with zstd", "unpack it first: zstd -d FILE")
    } else if begins(b"SQLite format 3\0") {
        ("is an SQLite database, as oha --db-url writes it", "oha --output-format csv -o FILE has the same requests")
    } else if begins(b"PK\x03\x04") {
        ("is a zip archive", "unpack it first")
    } else if early(b"Result") && early(b"Attack") && early(b"Timestamp") && !begins(b"{") {
        ("holds vegeta's binary results, which only vegeta reads", "vegeta encode --to csv FILE > FILE.csv")
    } else if head.starts_with("Method,Name,Error,Occurrences") || head.starts_with("Count,Message,Traceback") {
        (
            "is Locust's list of errors, without times",
            "give PREFIX_stats_history.csv; locust --csv PREFIX --csv-full-history writes it",
        )
    } else if head.starts_with("Percentage served,Time in ms") {
        ("has ab's percentiles without counts or times", "ab -g FILE writes the requests; or give what ab prints")
    } else if head.starts_with("# timestamp userid sessionid requestid event") {
        ("is Tsung's list of matches", "give tsung.log, or tsung.dump (dumptraffic=\"protocol\")")
    } else if head.line.starts_with(b"=INFO REPORT====") {
        ("is the log of Tsung's controller", "give tsung.log, or tsung.dump (dumptraffic=\"protocol\")")
    } else if head.has("<!DOCTYPE tsung") || head.has("<tsung ") {
        ("is a Tsung scenario, not a log", "give tsung.log of its run")
    } else if head.has("<FinalStatus>") {
        ("is Taurus' final status as XML, without times", "give kpi.jtl of the run; or dump-csv of the final-stats reporter")
    } else if head.has("<jmeterTestPlan") {
        ("is a JMeter test plan, not a log", "give the file of jmeter -n -l FILE")
    } else if begins(b"HTTP/1.") || head.starts_with("## ") {
        ("is an HTTP answer, not a log", "give the log that the driver writes, for Locust PREFIX_stats_history.csv")
    } else if head.starts_with("duration (ms),status,error") {
        ("has ghz's calls without their times", "ghz --format json has them")
    } else {
        return None;
    })
}
