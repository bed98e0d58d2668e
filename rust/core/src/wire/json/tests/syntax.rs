//! Compares the syntax with another parser.
//!
//! Exceptions: nesting beyond the limit, which these tests avoid, and the byte order mark.
//! `serde_json` keeps numbers as text here, so that large numbers are not an error. `rules` and
//! `model` compare the value of a number with the standard library.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::model::limits::JSON_DEPTH_MAX;

fn check(body: &[u8]) {
    let nesting = body.iter().filter(|byte| matches!(byte, b'[' | b'{')).count();
    if nesting <= JSON_DEPTH_MAX {
        let theirs = serde_json::from_slice::<serde_json::Value>(body);
        let ours = parse_with(&RawKeyCache::default(), body);
        let text = String::from_utf8_lossy(body);
        assert_eq!(is_json_invalid(&ours), theirs.is_err(), "{text:?}: {ours:?}, {theirs:?}");
    }
}

/// Values that are nearly valid, or valid and rare.
const VALUES: &[&str] = &[
    "0",
    "-0",
    "00",
    "-",
    "-a",
    "01",
    "1.",
    "1.e1",
    ".5",
    "+1",
    "1e",
    "1e+",
    "1e-",
    "1E5",
    "1e+05",
    "1.5e-7",
    "0x1",
    "1_0",
    "--1",
    "0.0.0",
    "1e1.5",
    "1e5e5",
    "nul",
    "nulll",
    "True",
    "tru",
    "truee",
    "\"\\u12\"",
    "\"\\u123g\"",
    "\"\\x\"",
    "\"\\\"",
    "\"\\\\\"",
    "\"\\/\\b\\f\\n\\r\\t\"",
    "\"\t\"",
    "\"\u{1f}\"",
    "\"\u{7f}\"",
    "\"\\ud800\"",
    "\"\\udc00\"",
    "\"\\ud800\\ud800\"",
    "\"\\ud83d\\ude80\"",
    "\"\\ud83dx\"",
    "\"\\uD83D\\uDE80\"",
    "\"\\ud83d\\n\"",
    "'a'",
    "\"a",
    "{\"a\"}",
    "{\"a\":}",
    "{a:1}",
    "{\"a\":1,}",
    "{,}",
    "[,]",
    "[1 2]",
    "[1,,2]",
    "{\"a\":1 \"b\":2}",
    "{\"a\" : 1 , \"b\" : [ ] }",
    "\u{b}1",
    "\u{a0}1",
    "1 ",
    " 1",
    "// c",
    "\u{0}",
    "1\u{0}",
    "\"\u{0}\"",
    "{\"a\":1}}",
    "{1:2}",
    "[\"\u{ffff}\"]",
];

#[test]
fn corners() {
    for value in VALUES {
        for body in [(*value).to_owned(), format!("[{value}]"), format!("[{{\"x\":{value}}}]")] {
            check(body.as_bytes());
        }
        // Each key for which a record has its own rules.
        for key in ["measurement", "time", "tags", "fields"] {
            check(format!("[{{\"{key}\":{value}}}]").as_bytes());
            check(format!("[{{\"{key}\":{{\"x\":{value},\"y\":0}}}}]").as_bytes());
        }
    }
    for bytes in [&b"[\"\xff\"]"[..], b"[\"\xc3\"]", b"\xff", b"[]\xff", b"[\"\xed\xa0\x80\"]"] {
        check(bytes);
        assert!(is_json_invalid(&parse_with(&RawKeyCache::default(), bytes)), "C10");
    }
    assert!(parse("\u{feff}[]").is_ok());
    assert!(is_json_invalid(&parse("\u{feff}\u{feff}[]")));
    assert_eq!(fault_words("\u{feff}[x]"), ["json_invalid 4"], "offsets count the mark");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn tokens_in_any_order(tokens in vec(select(vec![
        "[", "]", "{", "}", ",", ":", " ", "1", "-0.5", "12345678901", ".", "e5", "\"a\"", "\"time\"",
        "\"tags\"", "\"fields\"", "\"measurement\"", "true", "null", "\"", "\\", "\\u0041", "0",
    ]), 0..14)) {
        check(tokens.concat().as_bytes());
    }

    #[test]
    fn numbers_of_any_form(
        text in "-?[0-9]{0,10}[.]?[0-9]{0,10}([eE][+-]?[0-9]{0,3})?", pad in 0_usize..20,
    ) {
        let space = " ".repeat(pad);
        check(format!("[{{\"fields\":{{\"a\":{text}{space}}}}}]").as_bytes());
        let body = format!(
            "[{{\"measurement\":\"m\",\"time\":\"2026-01-01\",\"fields\":{{\"a\":{text}}}}}]{space}"
        );
        if let Ok(batch) = parse(&body) {
            let Values::Float(values) = &batch.tables[0].columns[0].values else { panic!("{body}") };
            let expected: f64 = text.parse().unwrap();
            prop_assert_eq!(values[0].to_bits(), expected.to_bits(), "{}", text);
        }
    }

    #[test]
    fn strings_of_any_bytes(bytes in vec(prop_oneof![
        6 => any::<u8>(),
        2 => select(b"\\u\"abd0189/".to_vec()),
    ], 0..24)) {
        check(&[b"[\"", &bytes[..], b"\"]"].concat());
    }
}

#[test]
fn bytes_beyond_ascii_are_checked_wherever_they_stand() {
    let body =
        br#"[{"measurement":"link","time":"2026-01-01","fields":{"note":"aaaaaaaaaaaaaaaaaaa"}}]"#;
    for at in 0..body.len() {
        for byte in [0x80, 0xc3, 0xff] {
            let mut body = body.to_vec();
            body[at] = byte;
            let found = parse_with(&RawKeyCache::default(), &body);
            assert!(is_json_invalid(&found), "C10: {byte:#x} at {at}: {found:?}");
        }
    }
}
