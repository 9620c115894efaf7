//! What a page is that is not the one that was asked for: named in the message, so that nobody has to guess.

/// A kind of page, as far as its first bytes tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// `mod_status` for machines.
    ApacheAuto,
    /// `mod_status` for people.
    ApacheHtml,
    /// lighttpd's status page for machines.
    Lighttpd,
    /// nginx' `stub_status`.
    NginxStub,
    /// php-fpm's status page, text or JSON.
    PhpFpm,
    /// HAProxy's statistics as CSV.
    HaproxyCsv,
    /// HAProxy's statistics for people.
    HaproxyHtml,
    /// The Prometheus text format.
    Prometheus,
    /// Some JSON.
    Json,
    /// Some HTML.
    Html,
    /// PHP's or another language's source or error text.
    Php,
    /// Nothing at all.
    Empty,
    /// None of these.
    Unknown,
}

/// Names a page by its first bytes. Never fails.
pub fn page(body: &[u8]) -> Page {
    let head = String::from_utf8_lossy(&body[..body.len().min(4096)]);
    let text = head.trim_start_matches('\u{feff}').trim_start();
    let starts = |words: &[&str]| words.iter().any(|word| text.get(..word.len()).is_some_and(|is| is.eq_ignore_ascii_case(word)));
    let line = |start: &str| text.lines().any(|line| line.starts_with(start));
    if text.is_empty() {
        Page::Empty
    } else if starts(&["<!doctype html", "<html", "<head", "<body"]) {
        if text.contains("Apache Server Status") {
            Page::ApacheHtml
        } else if text.contains("Statistics Report for HAProxy") {
            Page::HaproxyHtml
        } else {
            Page::Html
        }
    } else if starts(&["<?php", "<br />\n<b>"]) || text.starts_with("PHP ") {
        Page::Php
    } else if line("BusyServers:") {
        Page::Lighttpd
    } else if line("BusyWorkers:") || line("Scoreboard:") || line("ServerMPM:") {
        Page::ApacheAuto
    } else if starts(&["Active connections:"]) {
        Page::NginxStub
    } else if line("process manager:") || text.starts_with("{\"pool\":") {
        Page::PhpFpm
    } else if text.starts_with("# pxname,") {
        Page::HaproxyCsv
    } else if line("# HELP ") || line("# TYPE ") {
        Page::Prometheus
    } else if text.starts_with(['{', '[']) {
        Page::Json
    } else if text.contains("<html") {
        Page::Html
    } else {
        Page::Unknown
    }
}

/// The page in words, for "this is …".
pub fn name(body: &[u8]) -> String {
    match page(body) {
        Page::ApacheAuto => "Apache's mod_status page for machines".to_owned(),
        Page::ApacheHtml => "Apache's mod_status page for people (HTML)".to_owned(),
        Page::Lighttpd => "lighttpd's status page".to_owned(),
        Page::NginxStub => "nginx' stub_status page".to_owned(),
        Page::PhpFpm => "php-fpm's status page".to_owned(),
        Page::HaproxyCsv => "HAProxy's statistics (CSV)".to_owned(),
        Page::HaproxyHtml => "HAProxy's statistics for people (HTML)".to_owned(),
        Page::Prometheus => "a page in the Prometheus text format".to_owned(),
        Page::Json => "JSON".to_owned(),
        Page::Html => title(body).map_or_else(|| "an HTML page".to_owned(), |title| format!("an HTML page titled {title:?}")),
        Page::Php => "PHP's own text, an error or a source that was not run".to_owned(),
        Page::Empty => "an empty page".to_owned(),
        Page::Unknown => "a page of no kind known here".to_owned(),
    }
}

/// Which flag reads such a page, where there is one.
pub fn flag(body: &[u8]) -> Option<&'static str> {
    match page(body) {
        Page::ApacheAuto | Page::ApacheHtml => Some("apache"),
        Page::NginxStub => Some("nginx"),
        Page::PhpFpm => Some("phpfpm"),
        Page::HaproxyCsv | Page::HaproxyHtml => Some("haproxy"),
        Page::Prometheus => Some("metrics"),
        Page::Json => Some("json"),
        _ => None,
    }
}

/// The first 80 bytes of a body, escaped, for a message.
pub fn excerpt(body: &[u8]) -> String {
    let cut = &body[..body.len().min(80)];
    let dots = if body.len() > cut.len() { "…" } else { "" };
    format!("\"{}\"{dots}", cut.escape_ascii())
}

fn title(body: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(&body[..body.len().min(8192)]);
    let lower = head.to_ascii_lowercase();
    let open = lower.find("<title")?;
    let start = open + lower[open..].find('>')? + 1;
    let end = start + lower[start..].find('<')?;
    let words: Vec<&str> = head[start..end].split_whitespace().collect();
    let short: String = words.join(" ").chars().take(60).collect();
    (!short.is_empty()).then_some(short)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pages_of_real_servers_are_recognised() {
        let pages: [(&[u8], Page); 14] = [
            (include_bytes!("../../fixtures/apache/2.4.71/event-extended.txt"), Page::ApacheAuto),
            (include_bytes!("../../fixtures/apache/2.4.71/event-extended-off.txt"), Page::ApacheAuto),
            (include_bytes!("../../fixtures/apache/2.4.71/event-not-auto.html"), Page::ApacheHtml),
            (include_bytes!("../../fixtures/nginx/1.22.1/stub_status.txt"), Page::NginxStub),
            (include_bytes!("../../fixtures/phpfpm/8.2/status.txt"), Page::PhpFpm),
            (include_bytes!("../../fixtures/phpfpm/8.2/status-full.json"), Page::PhpFpm),
            (include_bytes!("../../fixtures/metrics/phpfpm-8.2-openmetrics.txt"), Page::Prometheus),
            (include_bytes!("../../fixtures/metrics/haproxy-2.6.prom"), Page::Prometheus),
            (b"Total Accesses: 1\nTotal kBytes: 1\nUptime: 5\nBusyServers: 1\nIdleServers: 127\nScoreboard: r__\n", Page::Lighttpd),
            (b"# pxname,svname,qcur\nmain,FRONTEND,\n", Page::HaproxyCsv),
            (b"{\"status\":\"UP\"}", Page::Json),
            (b"\n<!DOCTYPE html><html><head><title>\n Sign in\n</title>", Page::Html),
            (b"PHP Warning:  Invalid argument", Page::Php),
            (b" \r\n", Page::Empty),
        ];
        for (body, kind) in pages {
            assert_eq!(page(body), kind, "{}", excerpt(body));
        }
        assert_eq!(page(b"hello"), Page::Unknown);
        assert_eq!(name(b"<html><title>\n Sign   in</title>"), "an HTML page titled \"Sign in\"");
    }

    #[test]
    fn an_excerpt_is_80_bytes_and_never_breaks_a_message() {
        assert_eq!(excerpt(b"a\tb\n\x00\xff\"#"), "\"a\\tb\\n\\x00\\xff\\\"#\"");
        assert_eq!(excerpt(&[b'x'; 81]), format!("\"{}\"…", "x".repeat(80)));
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_name(body in proptest::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(!name(&body).is_empty());
            prop_assert!(excerpt(&body).is_ascii() || body.len() > 80);
        }

        #[test]
        fn html_with_any_title_has_a_name(title in "\\PC{0,80}") {
            let body = format!("<html><head><TITLE>{title}</TITLE>");
            prop_assert!(name(body.as_bytes()).starts_with("an HTML page"));
        }
    }
}
