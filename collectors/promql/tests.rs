use super::*;
use crate::api::{Class, Lag};
use crate::http::fake;
use std::sync::{Arc, Mutex};

fn section(endpoint: &str, settings: &str) -> Section {
    Section::of("consumer_lag", endpoint, settings)
}

type Shared<T> = Arc<Mutex<T>>;

/// A server whose answer can be changed, and the paths that it was asked.
fn server() -> (Url, Shared<String>, Shared<Vec<String>>) {
    let (body, paths) = (Arc::new(Mutex::new(String::new())), Arc::new(Mutex::new(Vec::new())));
    let (now, asked) = (body.clone(), paths.clone());
    let url = fake::pages(move |path| {
        asked.lock().unwrap().push(path.to_owned());
        ("200 OK", now.lock().unwrap().clone())
    });
    (url, body, paths)
}

fn vector(series: &[(&str, &str)]) -> String {
    let all: Vec<String> =
        series.iter().map(|(topic, value)| format!(r#"{{"metric":{{"topic":"{topic}"}},"value":[1.5,"{value}"]}}"#)).collect();
    format!(r#"{{"status":"success","data":{{"resultType":"vector","result":[{}]}}}}"#, all.join(","))
}

#[test]
fn several_series_are_summed_or_the_largest_taken_and_none_is_missing() {
    for (settings, expected) in [("", 12.0), ("aggregate = \"max\"", 9.0)] {
        let (url, body, paths) = server();
        *body.lock().unwrap() = vector(&[("a", "3"), ("b", "9")]);
        fake::run(async {
            let mut promql = open(&section(&format!("{url}::sum by (topic) (lag{{x=\"y z\"}})"), settings)).unwrap();
            let support = promql.start().await.unwrap();
            let column = support.columns[0];
            assert_eq!((column.name, column.class, column.guessed), ("value", Class::Queue, true));
            assert_eq!(column.lag, Lag::Refreshed(15.0));
            assert_eq!(promql.read().await.unwrap().values, [("value", expected)]);
            *body.lock().unwrap() = vector(&[]);
            assert_eq!(promql.read().await.unwrap().values, [], "stale is missing, never 0");
            *body.lock().unwrap() = vector(&[("a", "3"), ("b", "NaN")]);
            assert_eq!(promql.read().await.unwrap().values, [], "a sum without a part is another number");
        });
        let asked = paths.lock().unwrap()[0].clone();
        assert!(asked.starts_with("/api/v1/query?query=sum+by+%28topic%29+%28lag%7Bx%3D%22y+z%22%7D%29"), "{asked}");
    }
}

#[test]
fn a_label_gives_a_column_for_each_value_and_what_comes_later_is_noted_once() {
    let (url, body, _) = server();
    *body.lock().unwrap() = vector(&[("orders", "3"), ("mail-out", "9")]);
    fake::run(async {
        let settings = "label = \"topic\"\nquery = \"lag\"\nclass = \"queue\"\nlag = 30";
        let mut promql = open(&section(url.as_str(), settings)).unwrap();
        let support = promql.start().await.unwrap();
        assert_eq!(support.columns.iter().map(|gauge| gauge.name).collect::<Vec<_>>(), ["mail_out", "orders"]);
        assert!(support.columns.iter().all(|gauge| !gauge.guessed && gauge.lag == Lag::Refreshed(30.0)));
        *body.lock().unwrap() = vector(&[("orders", "4"), ("new", "1")]);
        let reading = promql.read().await.unwrap();
        assert_eq!(reading.values, [("orders", 4.0)]);
        assert!(reading.notes[0].contains("new"), "{:?}", reading.notes);
        assert_eq!(promql.read().await.unwrap().notes, Vec::<String>::new());
    });
}

#[test]
fn errors_other_answers_and_other_pages_are_told_apart() {
    for (answer, says) in [
        (r#"{"status":"error","errorType":"bad_data","error":"1:3: parse error"}"#, "parse error"),
        (r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#, "found a matrix"),
        ("<html><title>Grafana</title></html>", "Grafana"),
    ] {
        let (url, body, _) = server();
        answer.clone_into(&mut body.lock().unwrap());
        let fault = fake::run(async { open(&section(&format!("{url}::up"), "")).unwrap().start().await.unwrap_err() });
        assert!(fault.kind == FaultKind::Nonsense && fault.message.contains(says), "{fault}");
    }
}

#[test]
fn a_query_must_be_given_and_once() {
    assert!(open(&section("http://p:9090", "")).err().unwrap().message.contains("no query"));
    assert!(open(&section("http://p:9090::up", "query = \"up\"")).err().unwrap().message.contains("twice"));
    assert!(open(&section("http://p:9090::up", "labl = \"x\"")).err().unwrap().message.contains("labl"));
}

#[test]
fn a_series_that_a_preset_knows_keeps_its_meaning_and_the_lag_of_kafka_has_a_name() {
    let column = |endpoint: &str, settings: &str| open(&section(endpoint, settings)).unwrap().columns()[0];
    let lag = column("http://p:9090::sum(kafka_consumergroup_lag{topic=\"orders\"})", "");
    assert_eq!((lag.class, lag.guessed, lag.layer), (Class::Queue, false, Some(crate::api::Layer::App)));
    let said = column("http://p:9090::sum(kafka_consumergroup_lag)", "class = \"level\"");
    assert_eq!((said.class, said.guessed), (Class::Level, false));
    assert!(column("http://p:9090::rate(http_requests_total[1m])", "").guessed, "a rate is no counter");
    assert!(open(&section("http://p:9090::preset:kafka", "")).err().unwrap().message.contains("preset:kafka_lag"));
    let (url, body, paths) = server();
    *body.lock().unwrap() = vector(&[("a", "3"), ("b", "9")]);
    fake::run(async {
        let mut promql = open(&section(&format!("{url}::preset:kafka_lag"), "")).unwrap();
        assert_eq!(promql.start().await.unwrap().columns[0].class, Class::Queue);
        assert_eq!(promql.read().await.unwrap().values, [("value", 12.0)]);
    });
    assert!(paths.lock().unwrap()[0].contains("kafka_burrow_partition_lag"));
}
