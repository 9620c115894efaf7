//! Where an HTTP target is: what a user may write, and what a message may show of it.

use crate::api::{Fault, FaultKind};
use reqwest::Url;

/// Reads an address as given: `http://…`, `https://…`, or `HOST[:PORT][/PATH]`, which means `http://`.
pub fn parse(what: &str, text: &str) -> Result<Url, Fault> {
    let text = text.trim();
    let fault = |why: String| {
        Fault::new(FaultKind::Config, format!("address of {what}: {why} in \"{}\"", without_user(text)))
            .hint("write http://HOST:PORT/PATH, https://… or HOST:PORT")
    };
    if text.is_empty() {
        return Err(Fault::new(FaultKind::Config, format!("address of {what}: it is empty")).hint("write http://HOST:PORT/PATH"));
    }
    let full = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let mut url = Url::parse(&full).map_err(|why| fault(why.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(fault(format!("the scheme {} is neither http nor https", url.scheme())));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(fault("there is no host".to_owned()));
    }
    url.set_fragment(None);
    Ok(url)
}

/// Whether a URL names no page of its own: the usual ones are to be tried.
pub fn is_bare(url: &Url) -> bool {
    matches!(url.path(), "" | "/") && url.query().is_none()
}

/// A URL as a message or a file may show it: without user and password, and with `***` for what looks like a secret among
/// the parameters.
pub fn shown(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let mut text = format!("{}://{host}{port}{}", url.scheme(), url.path());
    if let Some(query) = url.query() {
        let parts: Vec<String> = query.split('&').map(hide_secret).collect();
        text.push('?');
        text.push_str(&parts.join("&"));
    }
    text
}

/// A `Location` as a message may show it: absolute, relative to where it was found.
pub fn shown_location(from: &Url, location: &str) -> String {
    from.join(location).map_or_else(|_| "something that is no URL".to_owned(), |to| shown(&to))
}

fn hide_secret(parameter: &str) -> String {
    const SECRET: [&str; 8] = ["token", "secret", "passw", "pwd", "key", "auth", "sig", "credential"];
    match parameter.split_once('=') {
        Some((name, _)) if SECRET.iter().any(|word| name.to_ascii_lowercase().contains(word)) => format!("{name}=***"),
        _ => parameter.to_owned(),
    }
}

/// What a text that is no URL may show: nothing that could be a password.
fn without_user(text: &str) -> String {
    let scheme = text.find("://").map_or(0, |at| at + 3);
    match text.rfind('@') {
        Some(at) if at >= scheme => format!("{}{}", &text[..scheme], &text[at + 1..]),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_and_port_without_a_scheme_mean_http() {
        let url = parse("web", "site:8080").unwrap();
        assert_eq!((url.scheme(), url.host_str(), url.port()), ("http", Some("site"), Some(8080)));
        assert!(is_bare(&url));
        assert_eq!(shown(&parse("web", "127.0.0.1/server-status?auto").unwrap()), "http://127.0.0.1/server-status?auto");
        assert_eq!(shown(&parse("web", "[::1]:81/x").unwrap()), "http://[::1]:81/x");
        assert!(!is_bare(&parse("web", "http://site/?auto").unwrap()));
    }

    #[test]
    fn no_password_is_shown_wherever_it_stands() {
        for text in
            ["http://probe:hush@site/m?x=1", "probe:hush@site/m?x=1", "http://site/m?x=1&token=hush", "http://a:h%40hush@site/m"]
        {
            let url = parse("web", text).unwrap();
            assert!(!shown(&url).contains("hush"), "{}", shown(&url));
        }
        assert_eq!(shown(&parse("web", "http://site/m?a=1&api_key=hush").unwrap()), "http://site/m?a=1&api_key=***");
        for text in ["http://probe:hush@site:notaport/", "ftp://probe:hush@site/", "http://probe:hush@", "probe:hush@site:99999"] {
            let fault = parse("web", text).unwrap_err();
            assert!(!fault.to_string().contains("hush"), "{fault}");
            assert_eq!(fault.kind, FaultKind::Config);
        }
    }

    #[test]
    fn what_is_no_http_address_is_refused_and_named() {
        assert!(parse("web", "mysql://site/").unwrap_err().message.contains("neither http nor https"));
        assert!(parse("web", "  ").unwrap_err().message.contains("empty"));
    }

    #[test]
    fn a_redirect_shows_where_it_leads_without_secrets() {
        let from = parse("web", "http://site/metrics").unwrap();
        assert_eq!(shown_location(&from, "/login?token=hush"), "http://site/login?token=***");
        assert_eq!(shown_location(&from, "https://a:hush@sso/x"), "https://sso/x");
    }
}
