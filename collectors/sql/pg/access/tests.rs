use super::*;
use proptest::prelude::*;

const POSTGRES: Usual = Usual { port: Some(5432), database: None };
const BOUNCER: Usual = Usual { port: Some(6432), database: Some("pgbouncer") };

fn section(endpoint: &str, settings: &str) -> Section {
    Section::of("postgres", endpoint, settings)
}

fn access(endpoint: &str, settings: &str) -> Result<Access, Fault> {
    Access::take(&section(endpoint, settings), POSTGRES).map(|(access, _)| access)
}

#[test]
fn a_url_names_everything() {
    let found = access("postgres://pr%40be:p%2Fw@db.example:5433/sh%20op?sslmode=require", "").unwrap();
    assert_eq!((found.endpoint.as_str(), found.user(), found.local), ("db.example:5433", "pr@be", false));
    assert_eq!(found.options.get_database(), Some("sh op"));
    assert!(matches!(found.options.get_ssl_mode(), PgSslMode::Require));
    assert_eq!(found.password_from, "the URL");
    assert!(!format!("{found:?} {found}").contains("p/w"));
}

#[test]
fn the_plain_forms_are_a_host_a_host_with_port_an_ipv6_address_and_a_socket() {
    assert_eq!(access("db", "").unwrap().endpoint, "db:5432");
    assert_eq!(access("db:5433", "").unwrap().endpoint, "db:5433");
    assert_eq!(access("postgres://probe@[::1]:5433/", "").unwrap().endpoint, "[::1]:5433");
    assert!(access("postgres://probe@[::1]/", "").unwrap().local);
    for endpoint in
        ["/run/pg", "/run/pg/.s.PGSQL.5432", "postgres://probe@/shop?host=/run/pg", "postgres:///shop?socket=%2Frun%2Fpg"]
    {
        let found = access(endpoint, "").unwrap();
        assert_eq!(found.endpoint, "/run/pg/.s.PGSQL.5432", "{endpoint}");
        assert!(found.local);
    }
    assert_eq!(access("/run/pg/.s.PGSQL.6001", "").unwrap().endpoint, "/run/pg/.s.PGSQL.6001");
}

#[test]
fn pgbouncer_has_a_port_and_a_database_of_its_own() {
    let (found, _) = Access::take(&section("postgres://probe@pool/shop", ""), BOUNCER).unwrap();
    assert_eq!((found.endpoint.as_str(), found.options.get_database()), ("pool:6432", Some("pgbouncer")));
    assert_eq!(found.named_database.as_deref(), Some("shop"));
}

#[test]
fn settings_add_to_the_address_and_leave_the_collectors_own_keys() {
    let (found, rest) =
        Access::take(&section("db", "user = \"probe\"\ndatabase = \"shop\"\npassword = \"hush\"\nwaits = false"), POSTGRES)
            .unwrap();
    assert_eq!((found.user(), found.options.get_database(), found.password_from), ("probe", Some("shop"), "the settings"));
    assert_eq!(rest.settings.keys().collect::<Vec<_>>(), ["waits"]);
}

#[test]
fn what_is_wrong_is_named_and_no_password_is_shown() {
    for (endpoint, settings, named) in [
        ("mysql://db", "", "mysql"),
        ("postgres://u:hush@db", "password = \"hush\"", "twice"),
        ("postgres://u:hush?hush@db/", "", "%3F"),
        ("db", "tls = \"maybe\"", "maybe"),
        ("db", "tls_cert = \"c.pem\"", "tls_key"),
        ("postgres://db/shop?pool=5", "", "pool"),
    ] {
        let fault = access(endpoint, settings).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Config);
        assert!(fault.message.contains(named) && !fault.message.contains("hush"), "{fault}");
    }
}

proptest! {
    #[test]
    fn any_text_is_an_address_or_a_fault(text in "\\PC{0,60}") {
        let _ = access(&text, "");
    }

    #[test]
    fn names_survive_the_way_through_the_url(user in "\\PC{1,12}", database in "\\PC{1,12}") {
        let mut section = section("db", "");
        section.settings.insert("user".to_owned(), user.clone().into());
        section.settings.insert("database".to_owned(), database.clone().into());
        let (found, _) = Access::take(&section, POSTGRES).unwrap();
        prop_assert_eq!(found.user(), user.as_str());
        prop_assert_eq!(found.options.get_database(), Some(database.as_str()));
    }
}
