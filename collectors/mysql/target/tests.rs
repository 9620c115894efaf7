use super::*;

fn section(endpoint: &str, settings: &str) -> Section {
    Section::of("mysql", endpoint, settings)
}

fn target(endpoint: &str, settings: &str) -> Result<Target, Fault> {
    Target::new(&section(endpoint, settings), None, Some("login".to_owned()), None)
}

#[test]
fn a_plain_host_is_port_3306_and_the_login_name() {
    let found = target("DB", "").unwrap();
    assert_eq!(found.endpoint, "DB:3306");
    assert_eq!((found.options.get_host(), found.options.get_port(), found.options.get_username()), ("DB", 3306, "login"));
    assert!(!found.has_password && found.cores.is_none());
}

#[test]
fn a_socket_is_taken_as_a_path_or_as_an_option_of_the_url() {
    for endpoint in ["/run/m.sock", "mysql://login@localhost?socket=/run/m.sock"] {
        let found = target(endpoint, "").unwrap();
        assert_eq!(found.endpoint, "/run/m.sock");
        assert!(found.cores.is_some());
    }
}

#[test]
fn cores_are_those_given_and_unknown_on_a_server_elsewhere() {
    assert_eq!(target("db", "").unwrap().cores, None);
    assert_eq!(target("db", "cores = 16").unwrap().cores, Some(16.0));
}

#[test]
fn an_option_file_gives_what_nothing_else_gave() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join(".my.cnf"), "[client]\nuser=probe\npassword='hush'\nhost=db9\nport=33\n").unwrap();
    let at_home = |endpoint, settings| Target::new(&section(endpoint, settings), Some(home.path().to_owned()), None, None).unwrap();
    let found = at_home("", "");
    assert_eq!(
        (found.endpoint.as_str(), found.options.get_username(), found.password_from),
        ("db9:33", "probe", "the option file")
    );
    // A host on the command line keeps the file's user, and not its port, which belongs to its host.
    let found = at_home("other", "");
    assert_eq!((found.endpoint.as_str(), found.options.get_username(), found.has_password), ("other:3306", "probe", true));
    // A user in the URL: the file is left alone.
    let found = at_home("mysql://me@other", "");
    assert_eq!((found.options.get_username(), found.has_password), ("me", false));
}

#[test]
fn the_password_of_an_option_file_is_not_sent_for_another_user() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("x.cnf");
    std::fs::write(&file, "[client]\nuser=probe\npassword=hush\n").unwrap();
    let found = target("mysql://me@db", &format!("defaults_file = {file:?}")).unwrap();
    assert_eq!((found.options.get_username(), found.has_password), ("me", false));
    let found = target("db", &format!("defaults_file = {file:?}")).unwrap();
    assert_eq!((found.options.get_username(), found.has_password), ("probe", true));
}

#[test]
fn a_named_option_file_that_is_missing_is_an_error_and_the_usual_one_is_not() {
    let fault = target("db", "defaults_file = '/nonexistent/x.cnf'").unwrap_err();
    assert!(fault.message.contains("/nonexistent/x.cnf"), "{fault}");
    assert!(Target::new(&section("db", ""), Some(PathBuf::from("/nonexistent")), None, None).is_ok());
}

#[test]
fn a_password_comes_from_one_place_and_two_are_refused() {
    assert_eq!(target("mysql://u:hush@db", "").unwrap().password_from, "the URL");
    let fault = target("mysql://u:hush@db", "password = 'hush2'").unwrap_err();
    assert!(fault.message.contains("twice") && !fault.message.contains("hush"), "{fault}");
    let found = Target::new(&section("mysql://u@db", ""), None, None, Some("hush".to_owned())).unwrap();
    assert_eq!(found.password_from, "MYSQL_PWD");
}

#[test]
fn wrong_settings_are_refused_with_what_was_expected() {
    for (settings, expected) in [
        ("waits_every = '50ms'", "150ms"),
        ("waits_every = 'soon'", "\"soon\""),
        ("waits = 'maybe'", "force"),
        ("tls = 'some'", "verify-ca"),
        ("tls_cert = 'x'", "tls_key"),
        ("cores = 0", "cores"),
        ("pasword = 'x'", "pasword"),
    ] {
        let fault = target("db", settings).unwrap_err();
        assert!(fault.kind == FaultKind::Config && fault.message.contains(expected), "{settings}: {fault}");
    }
    let fault = target("mysql://u@db?pool=3", "").unwrap_err();
    assert!(fault.message.contains("pool"), "{fault}");
    let fault = target("mysql://u:hush:x/y@db:port", "").unwrap_err();
    assert!(!fault.message.contains("hush"), "{fault}");
}

#[test]
fn waits_are_read_every_150_ms_unless_told_otherwise() {
    let found = target("db", "").unwrap();
    assert_eq!((found.waits, found.waits_every), (WaitsWanted::Yes, Duration::from_millis(150)));
    let found = target("db", "waits = 'force'\nwaits_every = '1s'").unwrap();
    assert_eq!((found.waits, found.waits_every), (WaitsWanted::Force, Duration::from_secs(1)));
    assert_eq!(target("db", "waits = false\nwaits_every = 0.5").unwrap().waits_every, Duration::from_millis(500));
}

#[test]
fn nothing_printed_of_a_target_shows_its_password() {
    assert!(!format!("{:?}", target("mysql://u:hush@db", "").unwrap()).contains("hush"));
    let parsed: Settings = settings::parse(&section("db", "password = 'hush'")).unwrap();
    assert!(!format!("{parsed:?}").contains("hush"));
}
