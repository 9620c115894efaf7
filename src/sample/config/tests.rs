use super::super::cli;
use super::super::tests::FAKE;
use super::*;
use collectors::api::{Fault, FaultKind};

/// Stands in for the machine itself.
static HOST: Spec = Spec {
    name: "host",
    flag: "host",
    aliases: &[],
    value: "",
    about: "",
    needs: "",
    sample_config: "",
    gauges: &[],
    open: |_| Err(Fault::new(FaultKind::Config, "never opened")),
};

fn of(file: &str, args: &[&str]) -> Result<Config, Wrong> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.toml");
    std::fs::write(&path, file).unwrap();
    let registry = [&FAKE, &HOST];
    let args = ["sampler", "--config", path.to_str().unwrap()].iter().chain(args).map(OsString::from).collect::<Vec<_>>();
    effective(&registry, &cli::parse(&registry, args.into_iter()).map_err(|(text, _)| Wrong::new(text))?)
}

fn names_of(config: &Config) -> Vec<&str> {
    config.targets.iter().map(|target| target.section.instance.as_str()).collect()
}

#[test]
fn the_command_line_goes_before_the_file_and_the_file_before_the_defaults() {
    let config = of("tick = \"2s\"\nrest = 3\nlabels = { a = 1, b = 2 }", &["--tick=500ms", "--label=b=3", "--fake=x"]).unwrap();
    assert_eq!(
        (config.tick, config.rest, config.cool),
        (Duration::from_millis(500), Duration::from_secs(3), Duration::from_secs(10))
    );
    assert_eq!(config.labels, BTreeMap::from([("a".into(), "1".into()), ("b".into(), "3".into())]));
}

#[test]
fn a_read_may_take_most_of_the_tick_within_bounds() {
    for (args, expected_ms) in [
        (&["--tick=1s"][..], 800),
        (&["--tick=20ms"], 16),
        (&["--tick=1m"], 2000),
        (&["--tick=1s", "--timeout=50%"], 500),
        (&["--tick=1s", "--timeout=900ms"], 900),
    ] {
        let config = of("", args).unwrap();
        assert_eq!(config.targets[0].section.timeout, Duration::from_millis(expected_ms), "{args:?}");
    }
    assert!(of("", &["--timeout=1001ms"]).is_err_and(|wrong| wrong.message.contains("longer than the tick")));
    let config = of("[[fake]]\ntimeout = \"10%\"\n[[fake]]\nname = \"b\"", &[]).unwrap();
    let timeouts: Vec<_> = config.targets.iter().map(|target| target.section.timeout.as_millis()).collect();
    assert_eq!(timeouts, [100, 800, 800]);
}

#[test]
fn the_machine_itself_is_on_once_unless_it_is_off() {
    assert_eq!(names_of(&of("", &["--fake=x"]).unwrap()), ["fake", "host"]);
    assert_eq!(names_of(&of("[host]\nname = \"box\"\ndisks = []", &["--fake=x", "--host"]).unwrap()), ["box", "fake"]);
    for (file, args) in [("host = false", &["--fake=x"][..]), ("[host]", &["--fake=x", "--no-host"])] {
        assert_eq!(names_of(&of(file, args).unwrap()), ["fake"]);
    }
    let wrong = of("", &["--no-host"]).err().unwrap();
    assert_eq!(wrong.to_string(), "nothing to sample: no target was given\nhint: name one with --fake");
}

#[test]
fn instances_without_a_name_are_numbered_around_the_given_ones() {
    let config =
        of("[[fake]]\n[[fake]]\nname = \"fake2\"", &["--fake=x", "--fake=named=http://x?a=b", "--fake=http://x?a=b"]).unwrap();
    assert_eq!(names_of(&config), ["fake", "fake2", "fake3", "named", "fake4", "host"]);
    let endpoints: Vec<&str> = config.targets.iter().map(|target| target.section.endpoint.as_str()).collect();
    assert_eq!(endpoints, ["", "", "x", "http://x?a=b", "http://x?a=b", ""]);
    assert_eq!(config.notes.len(), 2, "{:?}", config.notes);
}

#[test]
fn a_name_is_told_from_everything_else_that_has_an_equals_sign() {
    for (value, expected) in [
        ("db1=mysql://u@h/?x=1", (Some("db1"), "mysql://u@h/?x=1")),
        ("http://h/?auto=1", (None, "http://h/?auto=1")),
        ("/run/a=b.sock", (None, "/run/a=b.sock")),
        ("h:11211", (None, "h:11211")),
        ("web?x=1", (None, "web?x=1")),
        ("a-b_c=", (Some("a-b_c"), "")),
    ] {
        assert_eq!(cli::split_name(value), expected);
    }
}

#[test]
fn the_length_of_the_run_and_a_driver_exclude_each_other_unless_one_is_typed_over_the_other() {
    assert!(of("seconds = 5\ncommand = [\"x\"]", &[]).is_err());
    assert!(of("command = [\"x\"]", &["--seconds=5"]).is_err());
    let config = of("seconds = 5", &["--", "x", "y"]).unwrap();
    assert_eq!((config.seconds, config.command), (None, vec!["x".into(), "y".into()]));
}

#[test]
fn a_sections_own_keys_are_taken_out_of_what_its_collector_gets() {
    let file = "[[fake]]\nname = \"a\"\nurl = \"x\"\nevery = 5\nallow_down = true\npools = [\"p\"]";
    let config = of(file, &[]).unwrap();
    let target = &config.targets[0];
    assert_eq!((target.every, target.allow_down), (Some(Duration::from_secs(5)), true));
    assert_eq!(target.section.settings.keys().collect::<Vec<_>>(), ["pools"]);
    let place = target.place.as_ref().unwrap();
    assert!(place.to_string().ends_with("c.toml line 1, column 1"), "{place}");
    assert!(place.of_key_in("unknown field `pools`").to_string().ends_with("line 6, column 1"));
}

#[test]
fn only_secrets_are_redacted_in_print() {
    let file = "[[fake]]\nurl = \"http://u:hush@h/\"\npassword_file = \"~/p\"\ntoken = \"t0ken\"\nheaders = { Authorization = \"Bearer b\", Accept = \"text\" }";
    let printed = print(&of(file, &["--", "k6", "--password=pw1"]).unwrap());
    for shown in [
        "http://u:***@h/",
        "password_file = \"~/p\"",
        "token = \"***\"",
        "Authorization = \"***\"",
        "Accept = \"text\"",
        "--password=***",
    ] {
        assert!(printed.contains(shown), "{shown} in\n{printed}");
    }
}

#[test]
fn a_target_given_without_its_kind_becomes_what_it_turned_out_to_be() {
    let config = of("[[fake]]\n[[fake]]\n[[fake]]\nname = \"mine\"\n[[fake]]", &[]).unwrap();
    assert_eq!(names_of(&config), ["fake", "fake2", "mine", "fake3", "host"]);
    let is = |kind| Ok(Support { recognised: kind, ..Support::default() });
    let down = Err(Fault::new(FaultKind::Unreachable, "nobody there"));
    let found = [is(Some("host")), is(None), is(Some("host")), down, is(None)];
    let config = config.recognised(&[&FAKE, &HOST], &found);
    // The machine itself is called host already.
    assert_eq!(names_of(&config), ["host2", "fake2", "mine", "fake3", "host"]);
    let kinds: Vec<_> = config.targets.iter().map(|target| target.spec.name).collect();
    assert_eq!(kinds, ["host", "fake", "host", "fake", "host"]);
}
