//! The answer of a Prometheus-compatible server to an instant query. A pure function of bytes.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// One series: its labels and its value now. A value that is not finite is none.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Series {
    pub labels: BTreeMap<String, String>,
    pub value: Option<f64>,
}

/// What came back.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    /// Series; none where nothing matches or all are stale.
    Series(Vec<Series>),
    /// The server's error: what is wrong with the query, or why it could not be asked.
    Error(String),
    /// JSON, and not this: what it is.
    Other(String),
}

#[derive(Deserialize)]
struct Envelope {
    status: String,
    #[serde(default)]
    data: Option<Data>,
    #[serde(default)]
    error: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    result_type: String,
    result: Value,
}

#[derive(Deserialize)]
struct Sample {
    #[serde(default)]
    metric: BTreeMap<String, String>,
    value: (Value, String),
}

/// `None`: no JSON of this API.
pub(super) fn parse(body: &[u8]) -> Option<Answer> {
    let envelope: Envelope = serde_json::from_slice(body).ok()?;
    if envelope.status == "error" {
        return Some(Answer::Error(envelope.error));
    }
    let data = envelope.data.filter(|_| envelope.status == "success")?;
    let number = |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite());
    match data.result_type.as_str() {
        "vector" => {
            let samples: Vec<Sample> = serde_json::from_value(data.result).ok()?;
            let series = samples.into_iter().map(|sample| Series { value: number(&sample.value.1), labels: sample.metric });
            Some(Answer::Series(series.collect()))
        }
        "scalar" => {
            let (_, text): (Value, String) = serde_json::from_value(data.result).ok()?;
            Some(Answer::Series(vec![Series { labels: BTreeMap::new(), value: number(&text) }]))
        }
        other => Some(Answer::Other(other.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damaged::{hold, is_written};
    use proptest::prelude::*;

    const VECTOR: &str = r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"up","pod":"a"},"value":[1795979508.781,"1"]},{"metric":{"pod":"b"},"value":[1795979508.781,"NaN"]}]}}"#;

    #[test]
    fn vectors_scalars_and_errors_are_read() {
        let Some(Answer::Series(series)) = parse(VECTOR.as_bytes()) else { panic!() };
        assert_eq!((series[0].value, series[0].labels["pod"].as_str(), series[1].value), (Some(1.0), "a", None));
        let scalar = br#"{"status":"success","data":{"resultType":"scalar","result":[1795979508.781,"2.5"]}}"#;
        assert_eq!(parse(scalar), Some(Answer::Series(vec![Series { labels: BTreeMap::new(), value: Some(2.5) }])));
        let error = br#"{"status":"error","errorType":"bad_data","error":"parse error"}"#;
        assert_eq!(parse(error), Some(Answer::Error("parse error".to_owned())));
        let matrix = br#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#;
        assert_eq!(parse(matrix), Some(Answer::Other("matrix".to_owned())));
        assert_eq!(parse(br#"{"status":"success"}"#), None);
        let empty = br#"{"status":"success","data":{"resultType":"vector","result":[]}}"#;
        assert_eq!(parse(empty), Some(Answer::Series(Vec::new())));
    }

    #[test]
    fn a_cut_answer_is_none() {
        for end in 0..VECTOR.len() {
            assert_eq!(parse(&VECTOR.as_bytes()[..end]), None, "{end}");
        }
    }

    #[test]
    fn an_answer_changed_at_any_byte_gives_what_is_written_there_or_nothing() {
        let values = |body: &[u8]| match parse(body) {
            Some(Answer::Series(series)) => series.into_iter().enumerate().filter_map(|(at, one)| Some((at, one.value?))).collect(),
            _ => Vec::new(),
        };
        hold(VECTOR.as_bytes(), values, is_written);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = parse(&bytes);
        }
    }
}
