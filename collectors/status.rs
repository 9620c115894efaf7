//! A status page of any kind: recognises what answers, and leaves it to the collector of that kind.
//!
//! Privilege: that of the kind. The page is asked for once at the start and named by its first bytes; a URL without a path
//! tries the usual ones. What is no status page is named for what it is. Settings of a kind (a capacity) belong into a section
//! of that kind; here only what reaches the page can be set.

use crate::api::{Collector, Fault, FaultKind, Gauge, Lack, Reading, Section, Spec, Support};
use crate::http::usual::Wanted;
use crate::http::{Answer, Http, Settings, address, sniff};
use crate::settings;
use reqwest::Url;
use serde::Deserialize;

/// The registry's entry.
pub const SPEC: Spec = Spec {
    name: "status",
    flag: "status",
    aliases: &["status-url"],
    value: "URL",
    about: "a status page of any kind: says whether it is Apache's, nginx', php-fpm's, HAProxy's, Prometheus text or JSON, \
            and reads it",
    needs: "nothing of its own: see the kind that it turns out to be",
    sample_config: "[[status]]\nurl = \"http://127.0.0.1/server-status?auto\"\n",
    gauges: &[],
    open,
};

/// Any kind's usual pages, each asked for once; the kind's own collector adds what makes it readable (`?auto`, `;csv`).
const USUAL: [&str; 18] = [
    "/server-status?auto",
    "/nginx_status",
    "/stub_status",
    "/status",
    "/stats;csv",
    "/fpm-status",
    "/haproxy?stats;csv",
    "/metrics",
    "/actuator/prometheus",
    "/apache-status?auto",
    "/nginx-status",
    "/basic_status",
    "/php-fpm-status",
    "/haproxy_stats;csv",
    "/haproxy-status;csv",
    "/q/metrics",
    "/prometheus",
    "/whm-server-status?auto",
];

/// The page that the address names.
const PAGE: Wanted<'static, &'static Spec> = Wanted {
    what: "status page",
    usual: &USUAL,
    most: 16 << 20,
    needs: "--apache, --nginx, --phpfpm, --haproxy and --metrics say what each kind needs: sampler --list",
    read: |answer| kind(answer, true),
};

/// A usual page: JSON is not among them, for an application may say anything in it.
const USUAL_PAGE: Wanted<'static, &'static Spec> = Wanted { read: |answer| kind(answer, false), ..PAGE };

fn kind(answer: &Answer, json: bool) -> Result<&'static Spec, Fault> {
    let flag = sniff::flag(&answer.body).filter(|flag| json || *flag != "json");
    let spec = flag.and_then(|flag| crate::REGISTRY.iter().find(|spec| spec.flag == flag));
    spec.copied().ok_or_else(|| {
        answer
            .nonsense("a status page", "status")
            .hint("known are Apache's mod_status, nginx' stub_status, php-fpm's, HAProxy's, the Prometheus text format and JSON")
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {}

struct Status {
    section: Section,
    settings: Settings,
    given: Url,
    /// The collector of the kind that was recognised.
    inner: Option<Box<dyn Collector>>,
}

fn open(section: &Section) -> Result<Box<dyn Collector>, Fault> {
    let (settings, rest) = Settings::take(section)?;
    let Own {} = settings::parse(&rest)?;
    let given = address::parse(&section.instance, &section.endpoint)?;
    Ok(Box::new(Status { section: section.clone(), settings, given, inner: None }))
}

#[async_trait::async_trait]
impl Collector for Status {
    fn columns(&self) -> Vec<Gauge> {
        Vec::new()
    }

    fn unsettled(&self) -> Option<Lack> {
        Some(Lack {
            what: "everything: what kind of page it is it tells at the start".to_owned(),
            mend: Some("--apache, --nginx, --phpfpm, --haproxy, --metrics or --json says it".to_owned()),
        })
    }

    async fn start(&mut self) -> Result<Support, Fault> {
        self.inner = None;
        let mut http = Http::new(&self.section, &self.settings, &self.given, "text/plain,application/json;q=0.9,*/*;q=0.1")?;
        let wanted = if address::is_bare(&self.given) { &USUAL_PAGE } else { &PAGE };
        let (url, spec) = wanted.find(&mut http, &self.given).await?;
        // Its own connection takes the place of this one.
        drop(http);
        let mut inner = (spec.open)(&Section { endpoint: url.to_string(), ..self.section.clone() })?;
        let mut support = inner.start().await?;
        support.recognised = Some(spec.name);
        support.sees.insert(0, format!("recognised as {}; --{} says the same", spec.name, spec.flag));
        self.inner = Some(inner);
        Ok(support)
    }

    async fn read(&mut self) -> Result<Reading, Fault> {
        match &mut self.inner {
            Some(inner) => inner.read().await,
            None => Err(Fault::new(FaultKind::Unreachable, format!("{} was not reached yet", address::shown(&self.given)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::fake::{pages, run};

    const APACHE: &str = include_str!("../fixtures/apache/2.4.71/event-extended.txt");
    const NGINX: &str = include_str!("../fixtures/nginx/1.22.1/stub_status.txt");
    const FPM: &str = include_str!("../fixtures/phpfpm/8.2/status-full.json");
    const FPM_TEXT: &str = include_str!("../fixtures/phpfpm/8.2/status.txt");
    const HAPROXY: &str = include_str!("../fixtures/haproxy/2.6.12/queued.csv");
    const METRICS: &str = include_str!("../fixtures/metrics/haproxy-2.6.prom");

    fn started(endpoint: &str, settings: &str) -> Result<(Support, Reading), Fault> {
        let mut collector = open(&Section::of("web", endpoint, settings))?;
        run(async { Ok((collector.start().await?, collector.read().await?)) })
    }

    /// A server with this page at this path; what else is asked for is not there.
    fn server(path: &'static str, body: &'static str) -> Url {
        pages(move |asked| if asked == path { ("200 OK", body.to_owned()) } else { ("404 Not Found", String::new()) })
    }

    #[test]
    fn every_kind_of_page_is_recognised_and_read_by_its_own_collector() {
        for (path, body, kind, gauge) in [
            ("/x?auto", APACHE, "apache", "busy_workers"),
            ("/x", NGINX, "nginx", "dropped_total"),
            ("/x?json", FPM, "phpfpm", "active_processes"),
            ("/x;csv", HAPROXY, "haproxy", "app_queue"),
            ("/x", METRICS, "metrics", "haproxy_process_current_connections"),
            ("/x", "{\"requests\": 5, \"waiting\": 1}", "json", "waiting"),
        ] {
            let url = server(path, body);
            let (support, reading) = started(&format!("{}{}", url.as_str().trim_end_matches('/'), path), "").unwrap();
            assert_eq!(support.recognised, Some(kind));
            assert!(support.sees[0].contains(kind), "{:?}", support.sees);
            assert!(reading.values.iter().any(|(name, _)| *name == gauge), "{kind}: {:?}", reading.values);
            assert!(support.columns.iter().any(|column| column.name == gauge));
        }
    }

    #[test]
    fn a_page_for_people_is_recognised_and_asked_for_as_one_for_machines() {
        let html = include_str!("../fixtures/apache/2.4.71/event-not-auto.html");
        let url = pages(move |path| ("200 OK", if path.contains("auto") { APACHE } else { html }.to_owned()));
        let (support, _) = started(&format!("{url}server-status"), "").unwrap();
        assert_eq!((support.recognised, support.endpoint), (Some("apache"), format!("{url}server-status?auto")));
        let url = pages(|path| {
            ("200 OK", if path == "/stats;csv" { HAPROXY } else { "<html><title>Statistics Report for HAProxy</title>" }.to_owned())
        });
        assert_eq!(started(&format!("{url}stats"), "").unwrap().0.recognised, Some("haproxy"));
        let url = pages(|path| ("200 OK", if path.contains("json") { FPM } else { FPM_TEXT }.to_owned()));
        assert_eq!(started(&format!("{url}status"), "").unwrap().0.recognised, Some("phpfpm"));
    }

    #[test]
    fn a_url_without_a_path_tries_the_usual_ones_and_says_which_answered() {
        for (path, body, kind) in
            [("/stub_status", NGINX, "nginx"), ("/metrics", METRICS, "metrics"), ("/stats;csv", HAPROXY, "haproxy")]
        {
            let url = server(path, body);
            let (support, _) = started(url.as_str(), "").unwrap();
            assert_eq!(
                (support.recognised, support.endpoint),
                (Some(kind), format!("{}{}", url.as_str().trim_end_matches('/'), path))
            );
        }
        let url = server("/status", "{\"requests\": 5}");
        let fault = started(url.as_str(), "").unwrap_err();
        assert!(fault.message.contains("/status: expected a status page, found JSON"), "{fault}");
        let url = server("/status", "<html><title>Shop</title>");
        let fault = started(url.as_str(), "").unwrap_err();
        for part in
            ["no status page at", "/server-status?auto: 404", "/status: expected a status page, found an HTML page titled \"Shop\""]
        {
            assert!(fault.message.contains(part), "{part} in {fault}");
        }
    }

    #[test]
    fn what_is_no_status_page_is_named_for_what_it_is() {
        for (body, name) in [
            ("<!DOCTYPE html><title>Log in</title>", "an HTML page titled \"Log in\""),
            ("Total Accesses: 1\nBusyServers: 1\nIdleServers: 7\nScoreboard: r\n", "lighttpd"),
            ("PHP Fatal error:  x in y", "PHP's own text"),
            ("", "an empty page"),
        ] {
            let fault = started(&format!("{}x", server("/x", body)), "").unwrap_err();
            assert_eq!(fault.kind, FaultKind::Nonsense);
            assert!(fault.message.contains(name) && fault.hint.is_some(), "{fault}");
        }
    }

    #[test]
    fn credentials_are_taken_along_and_settings_of_a_kind_are_refused() {
        let url = server("/x", NGINX);
        let (support, _) = started(&format!("{url}x"), "user = \"probe\"\npassword = \"hush\"").unwrap();
        assert_eq!(support.recognised, Some("nginx"));
        assert!(started(&format!("{url}x"), "connections_max = 5").unwrap_err().message.contains("connections_max"));
    }
}
