use super::*;
use crate::api::{Class, Kind};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

const REDIS: &str = include_str!("../../fixtures/redis/7.0.15/info.txt");
const VALKEY: &str = include_str!("../../fixtures/redis/valkey-9/info.txt");

/// What a scripted server answers to one command; an empty answer closes the connection.
type Script = Box<dyn FnMut(&[String]) -> String + Send>;

/// A server for as many connections as there are scripts, one after another.
fn server(scripts: Vec<Script>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for script in scripts {
            let (stream, _) = listener.accept().unwrap();
            std::thread::spawn(move || talk(stream, script));
        }
    });
    address
}

fn talk(mut stream: TcpStream, mut script: Script) {
    let mut input = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    while input.read_line(&mut line).is_ok_and(|read| read > 0) {
        let count: usize = line.trim()[1..].parse().unwrap();
        let mut words = Vec::new();
        for _ in 0..count {
            line.clear();
            input.read_line(&mut line).unwrap();
            let mut word = vec![0; line.trim()[1..].parse::<usize>().unwrap() + 2];
            input.read_exact(&mut word).unwrap();
            words.push(String::from_utf8_lossy(&word[..word.len() - 2]).into_owned());
        }
        line.clear();
        let answer = script(&words);
        if answer.is_empty() || stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// A server that answers like a real one whose `INFO` is this.
fn with_info(info: &str) -> Script {
    let info = info.to_owned();
    Box::new(move |words| match words[0].as_str() {
        "INFO" => bulk(&info),
        "SLOWLOG" => ":3\r\n".to_owned(),
        "CLIENT" | "AUTH" => "+OK\r\n".to_owned(),
        "CONFIG" => format!("*2\r\n{}{}", bulk("maxclients"), bulk("4064")),
        _ => "-ERR unknown command\r\n".to_owned(),
    })
}

fn opened(endpoint: &str, settings: &str) -> Box<dyn Collector> {
    open(&Section::of("redis", endpoint, settings)).unwrap()
}

fn column<'a>(support: &'a Support, wanted: &str) -> Option<&'a Gauge> {
    support.columns.iter().find(|gauge| gauge.name == wanted)
}

#[tokio::test]
async fn a_real_answer_of_redis_7_gives_its_gauges_and_no_capacity_without_a_limit() {
    let mut redis = opened(&server(vec![with_info(REDIS)]), "");
    let support = redis.start().await.unwrap();
    assert_eq!((support.product.as_str(), support.version.as_str()), ("Redis", "7.0.15"));
    assert_eq!(support.lacks, []);
    assert_eq!(column(&support, "used_memory_bytes").unwrap().capacity, Capacity::None, "maxmemory:0 is no limit");
    assert_eq!(column(&support, "maxmemory_bytes"), None);
    assert_eq!(column(&support, "connected_clients").unwrap().capacity, Capacity::Column("maxclients"));
    assert_eq!(column(&support, "ops_total").unwrap().own, 2.0, "INFO and SLOWLOG LEN");
    assert_eq!(column(&support, "eventloop_busy_seconds_total"), None, "7.2 and later");
    assert_eq!(column(&support, "roundtrip_ms").unwrap().visits, Some(("ops_total", 1.0)));
    assert!(column(&support, "hit_ratio").is_some());
    let reading = redis.read().await.unwrap();
    assert_eq!(reading.get("connected_clients"), Some(1.0));
    assert_eq!(reading.get("maxclients"), Some(50.0));
    assert_eq!(reading.get("slowlog_entries"), Some(3.0));
    assert_eq!(reading.get("oom_errors_total"), Some(0.0));
    assert_eq!(reading.get("keys"), None, "an empty server lists no database");
    assert!((reading.get("main_thread_cpu_seconds_total").unwrap() - 2.604_376).abs() < 1e-9);
    assert!(reading.get("roundtrip_ms").unwrap() > 0.0);
    assert_eq!(reading.notes, Vec::<String>::new());
}

#[tokio::test]
async fn valkey_names_itself_and_tells_its_event_loop() {
    let mut redis = opened(&server(vec![with_info(VALKEY)]), "");
    let support = redis.start().await.unwrap();
    assert_eq!((support.product.as_str(), support.version.as_str()), ("Valkey", "9.1.2"));
    assert_eq!(column(&support, "used_memory_bytes").unwrap().capacity, Capacity::Column("maxmemory_bytes"));
    let reading = redis.read().await.unwrap();
    assert_eq!((reading.get("keys"), reading.get("keyspace_hits_total")), (Some(1.0), Some(1.0)));
    assert!(reading.get("eventloop_busy_seconds_total").unwrap() > 0.0);
}

#[tokio::test]
async fn keydb_and_dragonfly_are_told_by_what_they_add_and_missing_sections_cost_their_own_gauges_only() {
    let keydb = "# Server\r\nredis_version:6.3.4\r\nuptime_in_seconds:9\r\n# Clients\r\nconnected_clients:2\r\nmaxclients:100\r\n\
        # CPU\r\nused_cpu_sys:1.0\r\nused_cpu_user:2.0\r\nserver_threads:2\r\nlong_lock_waits:4\r\n\
        # Keyspace\r\ndb0:keys=5,expires=0,avg_ttl=0,cached_keys=0\r\n";
    let mut redis = opened(&server(vec![with_info(keydb)]), "");
    let support = redis.start().await.unwrap();
    assert_eq!(support.product, "KeyDB");
    let reading = redis.read().await.unwrap();
    assert_eq!((reading.get("keys"), reading.get("long_lock_waits_total")), (Some(5.0), Some(4.0)));
    assert_eq!((reading.get("cpu_seconds_total"), reading.get("evicted_keys_total")), (Some(3.0), None));
    assert_eq!(column(&support, "hit_ratio"), None);
    assert_eq!(column(&support, "roundtrip_ms").unwrap().visits, None, "no commands are told");

    let dragonfly = "# Server\r\nredis_version:7.4.0\r\ndragonfly_version:df-v1.35.0\r\nthread_count:4\r\nuptime_in_seconds:9\r\n\
        # Clients\r\nconnected_clients:2\r\nmax_clients:64000\r\npipeline_queue_length:7\r\n\
        # Keyspace\r\ndb0:keys=8,expires=0,avg_ttl=-1,hits=9,misses=1,hit_ratio=90.00\r\n";
    let mut redis = opened(&server(vec![with_info(dragonfly)]), "");
    assert_eq!(redis.start().await.unwrap().product, "Dragonfly");
    let reading = redis.read().await.unwrap();
    assert_eq!((reading.get("maxclients"), reading.get("keys")), (Some(64_000.0), Some(8.0)));
    assert_eq!(reading.get("pipeline_queue"), Some(7.0));
}

#[tokio::test]
async fn an_old_version_is_asked_for_its_limit_and_a_setting_goes_before() {
    let old = "# Server\r\nredis_version:6.0.16\r\nuptime_in_seconds:9\r\n# Clients\r\nconnected_clients:2\r\n# CPU\r\n";
    let mut redis = opened(&server(vec![with_info(old)]), "");
    assert!(column(&redis.start().await.unwrap(), "maxclients").is_some());
    assert_eq!(redis.read().await.unwrap().get("maxclients"), Some(4064.0));
    let mut redis = opened(&server(vec![with_info(old)]), "maxclients = 77");
    redis.start().await.unwrap();
    assert_eq!(redis.read().await.unwrap().get("maxclients"), Some(77.0));
    let mut usual = with_info(old);
    let denies: Script = Box::new(move |words| match words[0].as_str() {
        "CONFIG" => "-NOPERM this user has no permissions to run the 'config|get' command\r\n".to_owned(),
        _ => usual(words),
    });
    let mut redis = opened(&server(vec![denies]), "");
    let support = redis.start().await.unwrap();
    assert!(support.lacks[0].what.contains("maxclients") && support.lacks[0].mend.as_deref().unwrap().contains("+config|get"));
    assert_eq!(column(&support, "connected_clients").unwrap().capacity, Capacity::None);
}

#[tokio::test]
async fn refusals_and_other_kinds_of_server_are_told_apart() {
    for (answer, kind, says) in [
        ("-ERR max number of clients reached\r\n", FaultKind::Refused, "max number of clients"),
        ("-DENIED Redis is running in protected mode because …\r\n", FaultKind::Refused, "protected mode"),
        ("-NOAUTH Authentication required.\r\n", FaultKind::Refused, "NOAUTH"),
        ("HTTP/1.1 400 Bad Request\r\n\r\n", FaultKind::Nonsense, "web server"),
        ("ERROR\r\n", FaultKind::Nonsense, "memcached"),
    ] {
        let mut redis = opened(&server(vec![Box::new(move |_| answer.to_owned())]), "");
        let fault = redis.start().await.unwrap_err();
        assert_eq!(fault.kind, kind, "{fault}");
        assert!(fault.message.contains(says) && fault.message.contains("redis@127.0.0.1:"), "{fault}");
    }
}

#[tokio::test]
async fn a_server_that_speaks_first_and_closes_is_heard() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            stream.unwrap().write_all(b"-ERR max number of clients reached\r\n").unwrap();
        }
    });
    for settings in ["", "password = \"hush\"", "user = \"a\"\npassword = \"hush\""] {
        let fault = opened(&address, settings).start().await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Refused, "{fault}");
        assert!(fault.hint.as_deref().unwrap().contains("before the load"), "{fault}");
        assert!(!fault.message.contains("hush"), "{fault}");
    }
}

#[tokio::test]
async fn a_wrong_password_is_a_refusal_that_does_not_show_it() {
    let script: Script = Box::new(|_| "-WRONGPASS invalid username-password pair or user is disabled.\r\n".to_owned());
    let fault = opened(&server(vec![script]), "user = \"probe\"\npassword = \"hush\"").start().await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Refused);
    assert!(fault.message.starts_with("sign in to redis@") && fault.message.contains("WRONGPASS"), "{fault}");
    assert!(!format!("{fault:?}").contains("hush"));
}

#[tokio::test]
async fn a_server_busy_with_a_script_is_an_error_on_a_connection_that_goes_on() {
    let (mut usual, mut asked) = (with_info(REDIS), 0);
    let busy: Script = Box::new(move |words| {
        asked += usize::from(words[0] == "INFO");
        if words[0] == "INFO" && asked == 3 { "-BUSY Redis is busy running a script.\r\n".to_owned() } else { usual(words) }
    });
    let mut redis = opened(&server(vec![busy]), "");
    redis.start().await.unwrap();
    let fault = redis.read().await.unwrap_err();
    assert!(fault.message.contains("BUSY") && fault.hint.unwrap().contains("SCRIPT KILL"));
    assert_eq!(redis.read().await.unwrap().get("maxclients"), Some(50.0), "there is one connection only");
}

#[tokio::test]
async fn an_answer_cut_off_is_no_answer_and_the_next_read_connects_anew() {
    let (mut usual, mut asked) = (with_info(REDIS), 0);
    let breaks: Script = Box::new(move |words| {
        asked += usize::from(words[0] == "INFO");
        if words[0] == "INFO" && asked == 3 { String::new() } else { usual(words) }
    });
    let mut redis = opened(&server(vec![breaks, with_info(REDIS)]), "");
    redis.start().await.unwrap();
    let fault = redis.read().await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Unreachable, "{fault}");
    assert_eq!(redis.read().await.unwrap().get("maxclients"), Some(50.0));
}

#[tokio::test]
async fn a_restart_a_reset_of_counters_and_a_load_are_noted_once() {
    let texts = [
        REDIS.to_owned(),
        REDIS.to_owned(),
        REDIS.replace("total_commands_processed:2", "total_commands_processed:1"),
        REDIS.replace("run_id:ef", "run_id:00").replace("\nloading:0", "\nloading:1"),
        REDIS.replace("run_id:ef", "run_id:00").replace("\nloading:0", "\nloading:1"),
        REDIS.replace("evicted_keys:0", "evicted_keys:ON"),
    ];
    let (mut usual, mut asked) = (with_info(REDIS), 0);
    let changes: Script = Box::new(move |words| {
        if words[0] != "INFO" {
            return usual(words);
        }
        asked += 1;
        bulk(&texts[(asked - 1_usize).min(texts.len() - 1)])
    });
    let mut redis = opened(&server(vec![changes]), "");
    redis.start().await.unwrap();
    assert_eq!(redis.read().await.unwrap().restarted.as_deref(), Some("counters reset (CONFIG RESETSTAT)"));
    let reading = redis.read().await.unwrap();
    assert_eq!(reading.restarted.as_deref(), Some("the server was started anew"));
    assert_eq!(reading.notes, ["the server loads its data"]);
    assert_eq!(redis.read().await.unwrap().notes, Vec::<String>::new());
    let odd = redis.read().await.unwrap();
    assert_eq!(odd.notes[0], "evicted_keys: expected a number, found \"ON\"");
    assert_eq!(odd.get("evicted_keys_total"), None);
}

#[test]
fn every_capacity_is_a_gauge_and_names_say_what_they_are() {
    for gauge in gauges::ALL {
        if let Capacity::Column(column) = gauge.capacity {
            assert!(gauges::ALL.iter().any(|gauge| gauge.name == column), "{column}");
        }
        assert_eq!(gauge.name.ends_with("_total"), gauge.kind == Kind::Counter, "{}", gauge.name);
    }
    let class = |wanted: &str| gauges::ALL.iter().find(|gauge| gauge.name == wanted).map(|gauge| gauge.class);
    assert_eq!(class("roundtrip_ms"), Some(Class::Wait));
    assert_eq!(class("blocked_clients"), Some(Class::Level), "BLPOP is no contention");
    assert_eq!(class("rejected_connections_total"), Some(Class::Event));
}
