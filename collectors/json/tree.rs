//! Numbers in a JSON text: by a path, or all of them. Pure functions of bytes.

use serde_json::Value;

/// Reads a whole text. A bare number is believed only where the server said how long its answer is: cut, it is another.
pub(super) fn parse(body: &[u8], framed: bool) -> Option<Value> {
    let value: Value = serde_json::from_slice(body).ok()?;
    (framed || value.is_object() || value.is_array()).then_some(value)
}

/// What stands at a path: `pool.waiting`, `queues[0].depth`, or a JSON pointer `/queues/0/depth` for keys with dots.
pub(super) fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    if path.starts_with('/') {
        return value.pointer(path);
    }
    let mut here = value;
    for part in path.trim_start_matches("$.").split('.').filter(|part| !part.is_empty()) {
        let (key, indices) = part.find('[').map_or((part, ""), |open| part.split_at(open));
        if !key.is_empty() {
            here = here.get(key)?;
        }
        for index in indices.split('[').skip(1) {
            here = here.get(index.strip_suffix(']')?.parse::<usize>().ok()?)?;
        }
    }
    Some(here)
}

/// A number, or yes and no as 1 and 0; nothing else, since a text that reads like a number may be anything.
pub(super) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64().filter(|number| number.is_finite()),
        Value::Bool(yes) => Some(f64::from(*yes)),
        _ => None,
    }
}

/// The paths of all numbers in objects, in the order of the text, `most` of them; and whether there were more. Lists are
/// passed over: how long they are changes.
pub(super) fn numbers(value: &Value, most: usize) -> (Vec<String>, bool) {
    let (mut found, mut more) = (Vec::new(), false);
    walk(value, "", 0, most, &mut found, &mut more);
    (found, more)
}

fn walk(value: &Value, path: &str, depth: usize, most: usize, found: &mut Vec<String>, more: &mut bool) {
    match value {
        Value::Number(_) if found.len() < most => found.push(path.to_owned()),
        Value::Number(_) => *more = true,
        Value::Object(entries) if depth < 16 => {
            for (key, value) in entries {
                walk(value, &format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")), depth + 1, most, found, more);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damaged::{hold, is_written};
    use proptest::prelude::*;

    const TEXT: &str = r#"{"requests": 120, "pool": {"waiting": 3, "a.b": 1.5, "x/y": 7}, "queues": [{"depth": 9}, [1, 2]], "ok": true, "name": "12"}"#;

    #[test]
    fn paths_of_both_kinds_find_numbers() {
        let value = parse(TEXT.as_bytes(), false).unwrap();
        let get = |path| at(&value, path).and_then(number);
        assert_eq!((get("requests"), get("$.pool.waiting"), get("queues[0].depth")), (Some(120.0), Some(3.0), Some(9.0)));
        assert_eq!((get("queues[1][1]"), get("/pool/a.b"), get("/pool/x~1y")), (Some(2.0), Some(1.5), Some(7.0)));
        assert_eq!(
            (get("ok"), get("name"), get("pool"), get("queues[7].depth"), get("nothing")),
            (Some(1.0), None, None, None, None)
        );
        assert_eq!(get("queues[x]"), None);
    }

    #[test]
    fn all_numbers_are_found_in_order_and_bounded() {
        let value = parse(TEXT.as_bytes(), false).unwrap();
        assert_eq!(
            numbers(&value, 9),
            (vec!["/requests".into(), "/pool/waiting".into(), "/pool/a.b".into(), "/pool/x~1y".into()], false)
        );
        assert!(numbers(&value, 2).1);
        for path in numbers(&value, 9).0 {
            assert!(at(&value, &path).and_then(number).is_some(), "{path}");
        }
    }

    #[test]
    fn a_cut_text_is_no_text() {
        for end in 0..TEXT.len() {
            assert_eq!(parse(&TEXT.as_bytes()[..end], false), None, "{end}");
        }
        assert_eq!(parse(b"12", false), None);
        assert!(parse(b"123", true).is_some());
    }

    #[test]
    fn a_text_changed_at_any_byte_gives_what_is_written_there_or_nothing() {
        let values = |body: &[u8]| {
            let value = parse(body, false).unwrap_or_default();
            let (paths, _) = numbers(&value, 100);
            let found = paths.into_iter().filter_map(|path| Some((path.clone(), at(&value, &path).and_then(number)?)));
            found.collect::<Vec<_>>()
        };
        hold(TEXT.as_bytes(), values, is_written);
    }

    proptest! {
        #[test]
        fn no_text_and_no_path_panics(text in ".{0,80}", path in "[a-z./~\\[\\]0-9]{0,20}") {
            let value = parse(TEXT.as_bytes(), false).unwrap();
            let _ = at(&value, &path).and_then(number);
            if let Some(value) = parse(text.as_bytes(), true) {
                let _ = (at(&value, &path), numbers(&value, 5));
            }
        }
    }
}
