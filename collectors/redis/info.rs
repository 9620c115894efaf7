//! The text of `INFO`: lines `name:value` under headings `# Section`, found by name in whatever order and number.

use crate::fields::Fields;
use std::collections::BTreeSet;

/// One answer, taken apart. Only lines with their line end count: a number at a place where the text was cut is not a number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Info {
    fields: Fields,
    /// Sections that are whole, since another one begins after them.
    whole: BTreeSet<String>,
}

impl Info {
    /// Takes a text apart. What is no `name:value` is passed over.
    pub fn parse(text: &[u8]) -> Self {
        let (mut info, mut section) = (Self::default(), None);
        for line in String::from_utf8_lossy(text).split_inclusive('\n') {
            let Some(line) = line.strip_suffix('\n') else { break };
            let line = line.strip_suffix('\r').unwrap_or(line);
            if let Some(heading) = line.strip_prefix('#') {
                let heading = heading.trim().to_ascii_lowercase();
                info.whole.extend(section.replace(heading));
            } else if let Some((name, value)) = line.split_once(':') {
                info.fields.push(name, value);
            }
        }
        info
    }

    /// Takes the fields of another answer in, such as `CLUSTER INFO`'s.
    pub fn join(&mut self, other: &Self) {
        self.fields.extend(other.fields.iter());
    }

    /// Whether it holds anything.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// A field as the server writes it.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name)
    }

    /// A field as a number; a negative one is a sentinel (`-1`), not an amount.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.text(name).and_then(number)
    }

    /// The sum of fields, where all of them are there.
    pub fn sum(&self, names: &[&str]) -> Option<f64> {
        names.iter().map(|name| self.number(name)).sum()
    }

    /// How many errors of a kind were answered since the start. The server lists a kind from its first error on: in a whole
    /// list one that is not there has not occurred.
    pub fn errors(&self, kind: &str) -> Option<f64> {
        match self.text(&format!("errorstat_{kind}")) {
            Some(value) => part(value, "count"),
            // Past 128 kinds the server stops counting them one by one, and says so in their place.
            None if self.fields.iter().any(|(name, _)| name.starts_with("errorstat_ERRORSTATS_")) => None,
            None => self.whole.contains("errorstats").then_some(0.0),
        }
    }

    /// Keys of all databases; `None` while there is none. The lines differ in how much they tell (`expires=`, `avg_ttl=`,
    /// `subexpiry=`, `cached_keys=`, `keys_with_volatile_items=`, `hit_ratio=`): only `keys=` is needed, by its name.
    pub fn keys(&self) -> Option<f64> {
        let databases = self.fields.iter().filter(|(name, _)| numbered(name, "db"));
        databases.map(|(_, value)| part(value, "keys")).reduce(|a, b| Some(a? + b?)).flatten()
    }

    /// What the replicas lag behind, over all that are online: the longest time since one was heard of, in seconds, and the
    /// most bytes that one has not confirmed.
    pub fn replicas(&self) -> (Option<f64>, Option<f64>) {
        let online = |value: &&str| value.split(',').any(|part| part == "state=online");
        let lines = self.fields.iter().filter(|(name, _)| numbered(name, "slave")).map(|(_, value)| value);
        let (mut silent, mut behind) = (None, None);
        let written = self.number("master_repl_offset");
        for line in lines.filter(online) {
            silent = larger(silent, part(line, "lag"));
            behind = larger(behind, written.zip(part(line, "offset")).map(|(written, seen)| (written - seen).max(0.0)));
        }
        (silent, behind)
    }
}

/// `keys=1,expires=0` by name.
fn part(value: &str, name: &str) -> Option<f64> {
    value.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('=')).and_then(number)
}

fn numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

fn larger(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.into_iter().chain(b).reduce(f64::max)
}

/// A text as a number, as [`Info::number`] takes it.
pub(super) fn number(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damaged::{hold, is_written};
    use proptest::prelude::*;

    const REDIS: &[u8] = include_bytes!("../../fixtures/redis/7.0.15/info.txt");
    const VALKEY: &[u8] = include_bytes!("../../fixtures/redis/valkey-9/info.txt");

    #[test]
    fn a_real_answer_is_taken_by_name() {
        let info = Info::parse(REDIS);
        assert_eq!(info.text("redis_version"), Some("7.0.15"));
        assert_eq!(info.number("maxclients"), Some(50.0));
        assert_eq!(info.sum(&["used_cpu_sys_main_thread", "used_cpu_user_main_thread"]), Some(0.551_251 + 2.053_125));
        assert_eq!(info.number("rdb_last_bgsave_time_sec"), None, "-1 is not an amount");
        assert_eq!(info.number("maxmemory_policy"), None);
        assert_eq!(info.number("eventloop_duration_sum"), None, "7.2 and later");
        assert_eq!(info.errors("OOM"), Some(0.0), "a whole list without it");
        let valkey = Info::parse(VALKEY);
        assert_eq!(valkey.text("server_name"), Some("valkey"));
        assert!(valkey.number("eventloop_duration_sum").is_some());
    }

    #[test]
    fn keyspace_lines_of_every_variant_are_read_by_name() {
        for line in [
            "db0:keys=7,expires=1,avg_ttl=0",
            "db0:keys=7,expires=1,avg_ttl=0,cached_keys=3",
            "db0:keys=7,expires=1,avg_ttl=0,subexpiry=0",
            "db0:keys=7,expires=1,avg_ttl=0,keys_with_volatile_items=2",
            "db0:keys=7,expires=1,avg_ttl=-1,hits=9,misses=1,hit_ratio=90.00",
            "db0:expires=1,keys=7",
        ] {
            let text = format!("# Keyspace\r\n{line}\r\ndb12:keys=5,expires=0\r\ndb_x:keys=9\r\n");
            assert_eq!(Info::parse(text.as_bytes()).keys(), Some(12.0), "{line}");
        }
        assert_eq!(Info::parse(b"# Keyspace\r\n").keys(), None);
        assert_eq!(Info::parse(b"db0:keys=x\r\ndb1:keys=1\r\n").keys(), None, "a sum of some of them is no sum");
    }

    #[test]
    fn an_error_kind_that_is_not_listed_is_0_only_in_a_list_that_is_whole() {
        assert_eq!(Info::parse(b"# Errorstats\r\nerrorstat_OOM:count=3\r\n").errors("OOM"), Some(3.0));
        assert_eq!(Info::parse(b"# Errorstats\r\nerrorstat_ERR:count=3\r\n").errors("OOM"), None);
        assert_eq!(Info::parse(b"# Errorstats\r\nerrorstat_ERR:count=3\r\n\r\n# Cluster\r\n").errors("OOM"), Some(0.0));
        assert_eq!(Info::parse(b"# Server\r\nx:1\r\n# Cluster\r\n").errors("OOM"), None, "before 6.2");
        let many = b"# Errorstats\r\nerrorstat_ERRORSTATS_DISABLED:count=1\r\n# Cluster\r\n";
        assert_eq!(Info::parse(many).errors("OOM"), None);
    }

    #[test]
    fn replicas_lag_by_the_worst_of_those_online() {
        let text = b"master_repl_offset:1000\r\n\
            slave0:ip=10.0.0.2,port=6379,state=online,offset=990,lag=0\r\n\
            slave1:ip=10.0.0.3,port=6379,state=online,offset=400,lag=7,type=replica\r\n\
            slave2:ip=10.0.0.4,port=6379,state=wait_bgsave,offset=0,lag=0\r\nslave_repl_offset:5\r\n";
        assert_eq!(Info::parse(text).replicas(), (Some(7.0), Some(600.0)));
        assert_eq!(Info::parse(b"connected_slaves:0\r\nmaster_repl_offset:0\r\n").replicas(), (None, None));
    }

    #[test]
    fn a_cut_answer_gives_the_whole_answers_values_or_none() {
        for text in [REDIS, VALKEY] {
            let whole = Info::parse(text);
            for end in 0..text.len() {
                let cut = Info::parse(&text[..end]);
                for (name, value) in cut.fields.iter() {
                    assert_eq!(whole.text(name), Some(value), "{name} after a cut at byte {end}");
                }
                assert!(cut.errors("OOM").is_none_or(|count| Some(count) == whole.errors("OOM")));
            }
        }
    }

    #[test]
    fn an_answer_cut_or_changed_at_any_byte_gives_what_is_written_there_or_nothing() {
        let numbers = |text: &[u8]| {
            let info = Info::parse(text);
            let _ = (info.replicas(), info.errors("OOM"));
            let all = info.fields.iter().filter_map(|(name, _)| Some((name.to_owned(), info.number(name)?)));
            all.chain(info.keys().map(|keys| ("all keys".to_owned(), keys))).collect::<Vec<_>>()
        };
        for text in [REDIS, VALKEY] {
            // Section by section: as one text it would take minutes.
            let text = std::str::from_utf8(text).unwrap();
            for section in text.split_inclusive("\r\n\r\n").map(str::as_bytes).filter(|section| !numbers(section).is_empty()) {
                hold(section, numbers, is_written);
            }
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let info = Info::parse(&bytes);
            let _ = (info.keys(), info.replicas(), info.errors("OOM"));
        }

        #[test]
        fn what_is_no_number_is_missing_and_never_0(junk in "[a-zA-Z%:,=.-]{0,12}") {
            let info = Info::parse(format!("evicted_keys:{junk}\r\ndb0:keys={junk}\r\nslave0:state=online,lag={junk}\r\n").as_bytes());
            prop_assert_eq!((info.number("evicted_keys"), info.keys(), info.replicas()), (None, None, (None, None)));
        }
    }
}
