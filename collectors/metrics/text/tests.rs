use super::*;
use crate::http::whole_lines;
use proptest::prelude::*;

const HAPROXY: &[u8] = include_bytes!("../../../fixtures/metrics/haproxy-2.6.prom");
const FPM: &[u8] = include_bytes!("../../../fixtures/metrics/phpfpm-8.2-openmetrics.txt");
const NODE: &[u8] = include_bytes!("../../../fixtures/metrics/node_exporter-1.5.0.prom");

type Owned = (String, Vec<(String, String)>, f64);

fn samples(body: &[u8]) -> Vec<Owned> {
    lines(body)
        .filter_map(|(_, line)| match line {
            Line::Sample(sample) => {
                let labels = sample.labels().into_iter().map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
                Some((sample.name.into_owned(), labels, sample.value))
            }
            _ => None,
        })
        .collect()
}

fn bad(body: &[u8]) -> Vec<(usize, &'static str)> {
    lines(body).filter_map(|(number, line)| if let Line::Bad(why) = line { Some((number, why)) } else { None }).collect()
}

fn one(line: &str) -> Owned {
    assert_eq!(bad(line.as_bytes()), [], "{line}");
    let mut found = samples(line.as_bytes());
    assert_eq!(found.len(), 1, "{line}");
    found.remove(0)
}

fn expect(line: &str, name: &str, labels: &[(&str, &str)], value: f64) {
    let labels: Vec<_> = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    assert_eq!(one(line), (name.to_owned(), labels, value), "{line}");
}

#[test]
fn label_values_may_hold_braces_commas_equals_signs_and_quotes() {
    expect(r#"req{route="/users/{id}"} 1"#, "req", &[("route", "/users/{id}")], 1.0);
    expect(r#"req{route="/a,b",x="y"} 2"#, "req", &[("route", "/a,b"), ("x", "y")], 2.0);
    expect(r#"req{route="/s?q=1"} 3"#, "req", &[("route", "/s?q=1")], 3.0);
    expect(r#"req{route="say \"hi\" \\ there\nand \d"} 4"#, "req", &[("route", "say \"hi\" \\ there\nand \\d")], 4.0);
    expect("req{route=\"# 5 } grün\"} 5", "req", &[("route", "# 5 } grün")], 5.0);
    expect(r#"req{route=""} 6"#, "req", &[("route", "")], 6.0);
}

#[test]
fn names_and_label_blocks_take_every_allowed_form() {
    expect("job:req:rate5m 1", "job:req:rate5m", &[], 1.0);
    expect("req{} 1", "req", &[], 1.0);
    expect("req{ } 1", "req", &[], 1.0);
    expect(r#"req{a="b",} 1"#, "req", &[("a", "b")], 1.0);
    expect("  req\t{ a = \"b\" , c=\"d\" }\t1  ", "req", &[("a", "b"), ("c", "d")], 1.0);
    expect(r#"req{a="b"}1"#, "req", &[("a", "b")], 1.0);
    expect(r#"{"a name.with dots",a="b"} 1"#, "a name.with dots", &[("a", "b")], 1.0);
    expect(r#"req{"a.b"="c"} 1"#, "req", &[("a.b", "c")], 1.0);
}

#[test]
fn numbers_take_every_allowed_form_and_timestamps_and_exemplars_are_dropped() {
    for (text, value) in [("1", 1.0), ("-1.5e3", -1500.0), ("+2", 2.0), (".5", 0.5), ("1e-7", 1e-7), ("0", 0.0)] {
        assert_eq!(one(&format!("a {text}")).2, value, "{text}");
    }
    assert!(one("a NaN").2.is_nan());
    assert_eq!((one("a +Inf").2, one("a -Inf").2, one("a Inf").2), (f64::INFINITY, f64::NEG_INFINITY, f64::INFINITY));
    expect("a 1 1395066363000", "a", &[], 1.0);
    expect("a 1 -1", "a", &[], 1.0);
    expect(r#"a_bucket{le="0.1"} 8 # {trace_id="x}y"} 0.067"#, "a_bucket", &[("le", "0.1")], 8.0);
    expect("a_total 17 1520879607.789 # {t=\"1\"} 0.6 1520879607.7", "a_total", &[], 17.0);
}

#[test]
fn what_cannot_be_read_is_bad_with_its_line_and_never_a_0() {
    for line in [
        "a",
        "a ",
        "a x",
        "a 1 2 3",
        "a 1,5",
        "1a 2",
        "a{b=\"c\" 1",
        "a{b=c} 1",
        "a{b} 1",
        "a{b=\"c\"d=\"e\"} 1",
        "a{=\"c\"} 1",
        "{} 1",
        "a{\"b\"} 1",
        "a{b=\"c} 1",
        "a{b=\"c\\",
        "a1",
        "a-b 1",
        "a 0x10",
        "{b=\"c\"} 1",
        "a 1 x",
        "\u{fffd} 1",
        "a{,} 1",
        "a{b=\"c\"}",
    ] {
        assert_eq!(samples(line.as_bytes()), [], "{line}");
        assert_eq!(
            bad(format!("ok 1\n{line}\nok 2").as_bytes()).iter().map(|(number, _)| *number).collect::<Vec<_>>(),
            [2],
            "{line}"
        );
    }
}

#[test]
fn comments_types_and_helps_are_told_apart_and_nothing_counts_after_the_end() {
    let page = b"# hello\r\n#TYPE a counter\r\n# HELP a What \\\\ it\\nis\r\n# TYPE \"b c\" gauge\n# TYPE d stateset\n\n# UNIT a seconds\na_total 1\r\n# EOF\na_total 2\nx";
    let found: Vec<_> = lines(page).map(|(_, line)| line).collect();
    assert_eq!(found.len(), 6);
    assert_eq!(found[0], Line::Type("a".into(), Type::Counter));
    assert_eq!(found[1], Line::Help("a".into(), "What \\ it\nis".into()));
    assert_eq!(found[2], Line::Type("b c".into(), Type::Gauge));
    assert_eq!(found[3], Line::Type("d".into(), Type::Info));
    assert!(matches!(&found[4], Line::Sample(sample) if sample.value == 1.0));
    assert_eq!(found[5], Line::Eof);
}

#[test]
fn a_last_line_without_an_end_counts() {
    assert_eq!(samples(b"a 1\nb 2").len(), 2);
}

#[test]
fn pages_of_real_exporters_are_read_to_the_last_line() {
    for (page, name) in [(HAPROXY, "haproxy"), (FPM, "php-fpm"), (NODE, "node_exporter")] {
        assert_eq!(bad(page), [], "{name}");
        let written = page.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && line[0] != b'#').count();
        assert_eq!(samples(page).len(), written, "{name}");
    }
    let queue = samples(HAPROXY).into_iter().find(|(name, ..)| name == "haproxy_server_queue_limit").unwrap();
    assert!(queue.2.is_nan());
    assert!(samples(FPM).contains(&("phpfpm_listen_queue_length".to_owned(), vec![], 8.0)));
}

#[test]
fn a_page_cut_anywhere_gives_its_first_samples_or_fewer() {
    // Every byte of the small page, and every byte of a stretch of the large one.
    for (page, cuts) in [(FPM, 0..FPM.len()), (HAPROXY, 20_000..22_000)] {
        let full = samples(page);
        for end in cuts {
            let cut = samples(whole_lines(&page[..end]));
            for (found, expected) in cut.iter().zip(&full) {
                assert!(
                    found.0 == expected.0 && found.1 == expected.1 && found.2.to_bits() == expected.2.to_bits(),
                    "cut at {end}: {found:?}"
                );
            }
        }
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(body in proptest::collection::vec(any::<u8>(), 0..500)) {
        for (_, line) in lines(&body) {
            if let Line::Sample(sample) = line {
                let _ = sample.labels();
            }
        }
    }

    #[test]
    fn no_text_of_its_own_alphabet_makes_it_panic(body in "[a-z{}\",=\\\\# 0-9eN.+\n-]{0,200}") {
        for (_, line) in lines(body.as_bytes()) {
            if let Line::Sample(sample) = line {
                let _ = sample.labels();
            }
        }
    }

    #[test]
    fn what_is_written_is_read(
        name in "[a-zA-Z_:][a-zA-Z0-9_:]{0,20}",
        labels in proptest::collection::vec(("[a-zA-Z_][a-zA-Z0-9_]{0,8}", "\\PC{0,12}|.{0,6}\n?"), 0..5),
        value in any::<f64>(),
        time in proptest::option::of(any::<i64>()),
    ) {
        let block: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escape(value))).collect();
        let time = time.map(|time| format!(" {time}")).unwrap_or_default();
        let line = format!("{name}{{{}}} {value}{time}\n", block.join(","));
        let found = samples(line.as_bytes());
        prop_assert_eq!(found.len(), 1, "{}", line);
        prop_assert_eq!(&found[0].0, &name);
        prop_assert_eq!(&found[0].1, &labels);
        prop_assert!(found[0].2 == value || (found[0].2.is_nan() && value.is_nan()));
    }

    #[test]
    fn a_changed_byte_of_a_real_page_never_makes_a_value_that_is_not_written_there(at in 0..FPM.len(), to in any::<u8>()) {
        let mut page = FPM.to_vec();
        page[at] = to;
        let text = String::from_utf8_lossy(&page).into_owned();
        for (_, _, value) in samples(&page) {
            let written = text.split(|c: char| c.is_whitespace() || c == '}').any(|word| word.parse() == Ok(value));
            prop_assert!(value.is_nan() || written, "{}", value);
        }
    }
}
