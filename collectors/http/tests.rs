use super::fake::{answer, request, run, server};
use super::*;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

fn section(text: &str) -> Section {
    Section::of("web", "", text)
}

fn client(url: &Url, text: &str) -> Http {
    let section = section(text);
    let (settings, rest) = Settings::take(&section).unwrap();
    assert!(rest.settings.is_empty());
    Http::new(&section, &settings, url, "text/plain").unwrap()
}

#[test]
fn one_connection_serves_many_reads() {
    let (url, connections) = server(|_, stream| {
        while request(&stream).is_some() {
            answer(&stream, "200 OK", "", "fine\n");
        }
    });
    run(async {
        let mut http = client(&url, "");
        for _ in 0..5 {
            assert_eq!(http.get(&url, 1000).await.unwrap().ok().unwrap().body, b"fine\n");
        }
    });
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[test]
fn a_kept_connection_that_the_server_closed_while_idle_is_reopened_within_the_read() {
    let (url, connections) = server(|_, stream| {
        request(&stream);
        answer(&stream, "200 OK", "", "fine\n");
    });
    run(async {
        let mut http = client(&url, "");
        for _ in 0..3 {
            assert_eq!(http.get(&url, 1000).await.unwrap().status, 200);
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    });
    assert_eq!(connections.load(Ordering::SeqCst), 3);
}

#[test]
fn a_kept_connection_that_closes_under_the_request_is_reopened_within_the_read() {
    // The nasty order: the server takes the request and only then closes, as when its keep-alive ends at that moment.
    let (url, connections) = server(|_, stream| {
        request(&stream);
        answer(&stream, "200 OK", "", "fine\n");
        request(&stream);
    });
    run(async {
        let mut http = client(&url, "");
        for _ in 0..3 {
            assert_eq!(http.get(&url, 1000).await.unwrap().status, 200);
        }
    });
    assert_eq!(connections.load(Ordering::SeqCst), 3);
}

#[test]
fn a_server_that_hangs_up_on_a_new_connection_is_a_fault_and_not_asked_again() {
    let (url, connections) = server(|_, stream| drop(request(&stream)));
    let fault = run(async { client(&url, "").get(&url, 1000).await.unwrap_err() });
    assert_eq!(fault.kind, FaultKind::Unreachable);
    assert!(fault.message.contains("no answer"), "{fault}");
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[test]
fn nobody_listening_is_said_with_the_address_and_the_cause() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = address::parse("web", &format!("probe:hush@127.0.0.1:{port}/x")).unwrap();
    let fault = run(async { client(&url, "").get(&url, 1000).await.unwrap_err() });
    assert_eq!(fault.kind, FaultKind::Unreachable);
    assert!(fault.message.contains(&format!("127.0.0.1:{port}/x")) && fault.message.contains("refused"), "{fault}");
    assert!(!fault.message.contains("hush"));
}

#[test]
fn an_answer_that_breaks_off_is_a_fault_and_never_half_a_page() {
    let (url, _) = server(|_, stream| {
        request(&stream);
        let _ = (&stream).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nBusyWorkers: 1");
    });
    let fault = run(async { client(&url, "").get(&url, 1000).await.unwrap_err() });
    assert_eq!(fault.kind, FaultKind::Unreachable);
    assert!(fault.message.contains("broke off"), "{fault}");
}

#[test]
fn a_body_without_a_length_loses_a_last_line_without_an_end() {
    let (url, _) = server(|_, stream| {
        request(&stream);
        let _ = (&stream).write_all(b"HTTP/1.0 200 OK\r\n\r\na 1\nb 12");
    });
    let answer = run(async { client(&url, "").get(&url, 1000).await.unwrap().ok().unwrap() });
    assert!(!answer.framed);
    assert_eq!((answer.whole_lines(), &answer.body[..]), (&b"a 1\n"[..], &b"a 1\nb 12"[..]));
}

#[test]
fn a_page_past_the_cap_is_refused() {
    let (url, _) = server(|_, stream| {
        request(&stream);
        answer(&stream, "200 OK", "", &"x".repeat(5000));
    });
    let fault = run(async { client(&url, "").get(&url, 2048).await.unwrap_err() });
    assert_eq!((fault.kind, fault.message.contains("more than 2 KiB")), (FaultKind::Nonsense, true), "{fault}");
}

#[test]
fn anything_but_200_is_a_fault_with_the_first_bytes_of_the_page() {
    let cases = [
        ("401 Unauthorized", "", FaultKind::Refused, "who\\n are you"),
        ("403 Forbidden", "", FaultKind::Denied, "403 Forbidden"),
        ("404 Not Found", "", FaultKind::Nonsense, "404 Not Found"),
        ("204 No Content", "", FaultKind::Nonsense, "204 No Content"),
        ("503 Service Unavailable", "", FaultKind::Nonsense, "503 Service Unavailable"),
        ("302 Found", "Location: /login?token=hush\r\n", FaultKind::Nonsense, "/login?token=***"),
    ];
    for (status, headers, kind, part) in cases {
        let (url, connections) = server(move |_, stream| {
            request(&stream);
            answer(&stream, status, headers, if status.starts_with("204") { "" } else { "who\n are you" });
        });
        let fault = run(async { client(&url, "").get(&url, 1000).await.unwrap().ok().unwrap_err() });
        assert_eq!(fault.kind, kind, "{fault}");
        assert!(fault.message.contains(part) && fault.message.contains(&address::shown(&url)), "{fault}");
        assert!(!fault.message.contains("hush"));
        assert_eq!(connections.load(Ordering::SeqCst), 1, "a redirect is not followed");
    }
}

#[test]
fn a_compressed_answer_is_refused_and_compression_is_never_asked_for() {
    let heads = Arc::new(Mutex::new(String::new()));
    let seen = heads.clone();
    let (url, _) = server(move |_, stream| {
        *seen.lock().unwrap() = request(&stream).unwrap();
        answer(&stream, "200 OK", "Content-Encoding: gzip\r\n", "\x1f\u{8b}");
    });
    let fault = run(async { client(&url, "").get(&url, 1000).await.unwrap_err() });
    assert!(fault.message.contains("gzip"), "{fault}");
    let head = heads.lock().unwrap().to_ascii_lowercase();
    assert!(!head.contains("accept-encoding"), "{head}");
    assert!(head.contains("user-agent: whatgives-sampler/"), "{head}");
}

#[test]
fn credentials_come_from_the_address_the_settings_or_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    std::fs::write(&file, "abc\n").unwrap();
    // cHJv… is base64 of probe:hu@sh
    let cases = [
        ("probe:hu%40sh@", String::new(), "authorization: Basic cHJvYmU6aHVAc2g=\r\n"),
        ("", "user = \"probe\"\npassword = \"hu@sh\"".to_owned(), "authorization: Basic cHJvYmU6aHVAc2g=\r\n"),
        ("probe:old@", "password = \"hu@sh\"".to_owned(), "authorization: Basic cHJvYmU6aHVAc2g=\r\n"),
        ("", format!("token_file = {file:?}"), "authorization: Bearer abc\r\n"),
    ];
    for (user, text, expected) in cases {
        let heads = Arc::new(Mutex::new(String::new()));
        let seen = heads.clone();
        let (url, _) = server(move |_, stream| {
            *seen.lock().unwrap() = request(&stream).unwrap();
            answer(&stream, "500 Oops", "", "you said hu@sh and abc");
        });
        let url = address::parse("web", &format!("{user}127.0.0.1:{}/x", url.port().unwrap())).unwrap();
        let fault = run(async { client(&url, &text).get(&url, 1000).await.unwrap().ok().unwrap_err() });
        let head = heads.lock().unwrap().clone();
        assert!(head.contains(expected), "{head}");
        let secret = if expected.contains("Bearer") { "abc" } else { "hu@sh" };
        assert!(!fault.message.contains(secret), "{fault}");
    }
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    for text in [
        "password = \"a\"\npassword_env = \"B\"",
        "user = \"a\"\ntoken = \"b\"",
        "key_file = \"k.pem\"",
        "token_file = \"a\"\npassword_file = \"b\"",
        "ca_file = 3",
    ] {
        let fault = Settings::take(&section(text)).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Config);
        assert!(fault.message.contains("web"), "{fault}");
    }
    let (_, rest) = Settings::take(&section("user = \"a\"\ninsecure = true")).unwrap();
    assert!(rest.settings.contains_key("insecure"), "what is not ours is left for the collector to refuse");
}

#[test]
fn a_password_without_a_user_and_missing_files_are_refused() {
    let url = address::parse("web", "https://127.0.0.1/").unwrap();
    for (text, part) in [
        ("password = \"hush\"", "without a user"),
        ("ca_file = \"/nonexistent/ca.pem\"", "/nonexistent/ca.pem"),
        ("cert_file = \"/nonexistent/me.pem\"", "/nonexistent/me.pem"),
        ("token_env = \"WHATGIVES_NOT_SET\"", "WHATGIVES_NOT_SET"),
    ] {
        let section = section(text);
        let (settings, _) = Settings::take(&section).unwrap();
        let fault = Http::new(&section, &settings, &url, "").err().unwrap();
        assert!(fault.message.contains(part) && !fault.message.contains("hush"), "{fault}");
    }
}

/// A TLS server of one connection a thread, with the given certificate; asks for a client certificate where `ca` is given.
fn tls_server(cert: &std::path::Path, key: &std::path::Path, ca: Option<&std::path::Path>) -> Url {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().unwrap();
    let builder = match ca {
        None => builder.with_no_client_auth(),
        Some(ca) => {
            let mut roots = rustls::RootCertStore::empty();
            roots.add(CertificateDer::from_pem_file(ca).unwrap()).unwrap();
            builder.with_client_cert_verifier(
                rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap(),
            )
        }
    };
    let config = builder
        .with_single_cert(vec![CertificateDer::from_pem_file(cert).unwrap()], PrivateKeyDer::from_pem_file(key).unwrap())
        .unwrap();
    let config = Arc::new(config);
    let (url, _) = server(move |_, mut tcp| {
        let mut connection = rustls::ServerConnection::new(config.clone()).unwrap();
        let mut tls = rustls::Stream::new(&mut connection, &mut tcp);
        let mut head = [0; 4096];
        if tls.read(&mut head).is_ok_and(|count| count > 0) {
            let _ = tls.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfine\n");
            let _ = tls.read(&mut head);
        }
    });
    address::parse("web", &format!("https://localhost:{}/", url.port().unwrap())).unwrap()
}

#[test]
fn a_named_authority_and_a_client_certificate_work_and_a_stranger_is_refused() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/tls");
    let file = |name: &str| dir.join(name);
    let plain = tls_server(&file("server.pem"), &file("server.key"), None);
    let mutual = tls_server(&file("server.pem"), &file("server.key"), Some(&file("ca.pem")));
    run(async {
        let trusting = format!("ca_file = {:?}", file("ca.pem"));
        assert_eq!(client(&plain, &trusting).get(&plain, 1000).await.unwrap().body, b"fine\n");

        let fault = client(&plain, "").get(&plain, 1000).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Unreachable);
        assert!(fault.message.contains("certificate"), "{fault}");
        assert!(fault.hint.unwrap().contains("ca_file"));

        let fault = client(&mutual, &trusting).get(&mutual, 1000).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Unreachable, "{fault}");
        let known = format!("{trusting}\ncert_file = {:?}\nkey_file = {:?}", file("client.pem"), file("client.key"));
        assert_eq!(client(&mutual, &known).get(&mutual, 1000).await.unwrap().body, b"fine\n");
    });
}

#[test]
fn one_of_several_machines_is_asked_by_the_name_of_all() {
    let asked = Arc::new(Mutex::new(String::new()));
    let seen = asked.clone();
    let (url, _) = server(move |_, stream| {
        *seen.lock().unwrap() = request(&stream).unwrap().to_ascii_lowercase();
        answer(&stream, "200 OK", "", "fine\n");
    });
    let mut named = url.clone();
    named.set_host(Some("app.invalid")).unwrap();
    run(async {
        let mut http = client(&named, "connect_to = \"127.0.0.1\"");
        assert_eq!(http.get(&named, 1000).await.unwrap().body, b"fine\n");
        let fault = client(&named, "").get(&named, 1000).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Unreachable, "nobody has that name: {fault}");
    });
    assert!(asked.lock().unwrap().contains(&format!("host: app.invalid:{}", url.port().unwrap())));
}
