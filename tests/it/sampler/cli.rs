//! The command line and the configuration, as a user meets them.

use crate::support::memcached::Memcached;
use crate::support::sampler::{Folder, Ran};
use std::io::Read;
use std::process::Stdio;

#[test]
fn the_plain_forms_work_unchanged() {
    let folder = Folder::new();
    let server = Memcached::start();
    let cache = format!("--memcache-host={}", server.address);
    // Nothing answers at the other two, which is allowed here.
    let args = ["--status-url=http://127.0.0.1:1", &cache, "--seconds=3", "--tick=1s", "--out=rung-40", "--allow-down"];
    let ran = folder.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ticks = whatgives::ticks::read(&folder.path("rung-40.ticks.tsv")).unwrap();
    assert_eq!(ticks.column("memcached.up").unwrap(), [1.0; 3]);
    // What it is cannot be told while it is down.
    assert_eq!(ticks.column("status.up").unwrap(), [0.0; 3]);
    let host = ticks.header.targets.iter().find(|target| target.instance == "host").unwrap();
    assert_eq!(host.about["role"], "target");
}

#[test]
fn files_that_are_there_are_not_overwritten_without_force() {
    let folder = Folder::new();
    let args = ["--tick=50ms", "--seconds=0.1"];
    assert_eq!(folder.run(&args).code, 0);
    let before = folder.text("ticks.tsv");
    let ran = folder.run(&args);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("ticks.tsv and waits.tsv already there\nhint: --force overwrites"), "{}", ran.err);
    assert_eq!(folder.text("ticks.tsv"), before);
    assert_eq!(folder.run(&["--tick=50ms", "--seconds=0.1", "--force"]).code, 0);
    assert_ne!(folder.text("ticks.tsv"), before);
}

#[test]
fn a_secret_reaches_neither_file_nor_message() {
    let folder = Folder::new();
    folder.write("c.toml", "[[apache]]\nname = \"second\"\nurl = \"http://u:filed-secret@127.0.0.1:1/s?token=query-secret\"\n");
    let secrets = ["typed-secret", "filed-secret", "query-secret", "driver-secret"];
    let driver = ["sh", "-c", "exit 0", "--password=driver-secret", "http://u:driver-secret@x/"];
    let common = ["--apache=http://u:typed-secret@127.0.0.1:1/", "--config=c.toml", "--allow-down", "--tick=50ms"];
    let said = |ran: &Ran| format!("{}{}", ran.out, ran.err);
    let ran = folder.run(&[&common[..], &["--rest=100ms", "--cool=0", "--"], &driver].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.err.matches("warning: the password in --apache can be read by others").count(), 1, "{}", ran.err);
    let all = [said(&ran), folder.text("ticks.tsv"), folder.text("waits.tsv")].concat();
    assert!(all.contains("http://u:***@127.0.0.1:1/"), "{all}");
    let checked = said(&folder.run(&[&common[..], &["--check"]].concat()));
    let printed = said(&folder.run(&[&common[..], &["--print-config", "--"], &driver].concat()));
    for secret in secrets {
        for text in [&all, &checked, &printed] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}

#[test]
fn the_printed_configuration_says_the_same_again() {
    let folder = Folder::new();
    folder.write(
        "a.toml",
        "tick = \"250ms\"\nseconds = 95\nlabels = { mix = \"70:25:5\" }\n[[memcached]]\nname = \"cache\"\naddress = \"cache:11211\"\nevery = \"5s\"\n[host]\ndisks = [\"vda\"]\n",
    );
    let first = folder.run(&["--config=a.toml", "--label=n=1", "--print-config"]);
    assert_eq!(first.code, 0, "{}", first.err);
    for line in [
        "tick = \"250ms\"",
        "timeout = \"200ms\"",
        "seconds = \"1m 35s\"",
        "mix = \"70:25:5\"",
        "every = \"5s\"",
        "disks = [\"vda\"]",
    ] {
        assert!(first.out.contains(line), "{line} in\n{}", first.out);
    }
    folder.write("b.toml", &first.out);
    assert_eq!(folder.run(&["--config=b.toml", "--print-config"]).out, first.out);
}

#[test]
fn a_wrong_configuration_is_named_by_file_line_column_and_key() {
    let folder = Folder::new();
    for (text, expected) in [
        ("tick = 1\ntik = 2\n", "c.toml line 2, column 1: tik: is not known\nhint: did you mean tick?"),
        ("tick = [1]\n", "c.toml line 1, column 1: tick: expected a time such as \"500ms\", or seconds, found an array"),
        ("tick = \n", "c.toml line 1, column "),
        ("[[memcached]]\naddress = \"a\"\nurl = \"b\"\n", "c.toml line 3, column 1: url: says the same as address"),
        (
            "[[memcached]]\naddress = \"127.0.0.1\"\nadress = 1\n",
            "c.toml line 3, column 1: configuration of memcached: unknown field `adress`",
        ),
        ("[[memcached]]\nname = \"a.b\"\naddress = \"x\"\n", "c.toml line 1, column 1: \"a.b\" cannot be the name"),
        ("timeout = \"5s\"\n", "the timeout, 5s, is longer than the tick, 1s\nhint: "),
    ] {
        folder.write("c.toml", text);
        let ran = folder.run(&["--config=c.toml", "--seconds=1"]);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains(expected), "expected {expected}\nfound {}", ran.err);
    }
    let ran = folder.run(&["--config=none.toml"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("none.toml: cannot be read"), "{}", ran.err);
}

#[test]
fn two_targets_of_a_kind_are_told_apart() {
    let folder = Folder::new();
    let ran = folder.run(&["--memcached=a", "--memcached=b", "--print-config"]);
    assert!(ran.out.contains("name = \"memcached\"") && ran.out.contains("name = \"memcached2\""), "{}", ran.out);
    let ran = folder.run(&["--memcached=x=a", "--apache=x=http://b", "--seconds=1"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("two targets are called x"), "{}", ran.err);
}

#[test]
fn every_kind_of_target_is_listed_with_what_it_needs() {
    let folder = Folder::new();
    let (text, markdown) = (folder.run(&["--list"]), folder.run(&["--list=markdown"]));
    assert_eq!((text.code, markdown.code), (0, 0));
    for spec in collectors::REGISTRY {
        assert!(text.out.contains(&format!("{}  {}", spec.name, spec.about)), "{}", spec.name);
        assert!(markdown.out.contains(&format!("### {}\n", spec.name)), "{}", spec.name);
        assert!(spec.gauges.iter().all(|gauge| markdown.out.contains(&format!("| `{}` |", gauge.name))), "{}", spec.name);
    }
}

#[test]
fn every_kinds_sample_configuration_is_accepted() {
    let folder = Folder::new();
    for spec in collectors::REGISTRY {
        folder.write("c.toml", spec.sample_config);
        let ran = folder.run(&["--config=c.toml", "--print-config"]);
        assert_eq!(ran.code, 0, "{}: {}", spec.name, ran.err);
    }
}

#[test]
fn a_reader_who_went_away_is_no_error() {
    let folder = Folder::new();
    let mut child = folder.command(&["--list"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(0), ""));
}

#[test]
fn wrong_usage_ends_with_2_and_help_with_0() {
    let folder = Folder::new();
    for args in [&["--no-host"][..], &["--bogus"], &["--seconds=fast"], &["--seconds=1", "--", "true"], &["--label=x"]] {
        let ran = folder.run(args);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}: {}", ran.err);
        assert!(!ran.err.is_empty());
    }
    let ran = folder.run(&["--help"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(collectors::REGISTRY.iter().all(|spec| ran.out.contains(&format!("--{}", spec.flag))), "{}", ran.out);
}
