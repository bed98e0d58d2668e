//! Compares `parse_json` with `serde_json`: both must agree on which text is JSON, and on its
//! meaning.
//!
//! A document that `serde_json` reads and writes again, in its style and order, must mean the same.

use fleetcast_core::model::batch::ParseResult;
use fleetcast_core::model::fault::{BatchRefusal, FaultCode};
use fleetcast_core::model::limits::{FAULTS_MAX, JSON_DEPTH_MAX};
use fleetcast_core::model::raw_keys::RawKeyCache;
use fleetcast_core::wire::Format;

use crate::cost::Body;

use super::target::Target;
use super::view::{cost, is_json_invalid, parse, view_of};

pub(super) const TARGET: Target = Target {
    name: "json",
    seeds,
    words: &[
        br#""measurement":"#,
        br#""time":"#,
        br#""tags":"#,
        br#""fields":"#,
        br#""entity_id":"#,
        br#""tenant":"#,
        br#""2026-01-01T00:00:00.123Z""#,
        br#""1999-12-31""#,
        b"{}",
        b"[]",
        b"null",
        b"true",
        b"-0",
        b"1e400",
        b"1E-7",
        b"0.1",
        b"\\u0000",
        b"\\ud83d\\ude80",
        b"\\ud800",
        b"\xef\xbb\xbf",
        b",",
        b":",
        b"\"",
        b"{",
        b"}",
        b"[",
        b"]",
    ],
    memory_bytes_max: 8 << 20,
    cost: Some(|body| cost(Body::Own(Format::Json, body))),
    run,
};

fn seeds() -> Vec<Vec<u8>> {
    [
        "[]",
        r#"[{"measurement":"link","time":"2026-01-01T00:00:00Z","tags":{"entity_id":"a"},"fields":{"x":1.5}}]"#,
        r#"[{"measurement":"m","time":"2026-01-01","tags":{"entity_id":"a","site":"x"},"fields":{"x":1,"y":true}},
            {"measurement":"m","time":"2026-01-01","tags":{"entity_id":"b","site":"x"},"fields":{"x":2,"y":false}},
            {"measurement":"m","time":"2026-01-02","tags":{"entity_id":"a","site":"x"},"fields":{"x":3,"z":"text"}}]"#,
        r#"[{"time":"2100-01-01T00:00:00+02:00","measurement":"é\"","fields":{"a":"\u0041\ud83d\ude80","b":-1e-3},"more":[{"x":[null]}]}]"#,
        r#"[{"measurement":"m","time":"1999-01-01","fields":{"a":1}},{"measurement":"m","time":"2026-01-01","fields":{}}]"#,
        r#"[{"measurement":"","time":5,"tags":[],"fields":{"":null}},3,{"measurement":"m","measurement":"n"}]"#,
        r#"[{"measurement":"m","time":"2026-01-01","fields":{"a":1}},{"measurement":"m","time":"2026-01-01","fields":{"a":"b"}}]"#,
        r#"[{"measurement":"m","time":"2026-01-01","fields":{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6}},
            {"measurement":"m","time":"2026-01-01","fields":{"g":1,"h":2,"i":3,"j":4}},
            {"measurement":"m","time":"2026-01-01","fields":{"g":1,"h":2,"i":3,"j":4}}]"#,
        r#"[{"measurement":"m","time":"2026-01-01","fields":{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7}}]"#,
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

fn run(body: &[u8]) {
    let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let ours = parse(Format::Json, body, &RawKeyCache::default());
    let theirs = serde_json::from_slice::<serde_json::Value>(text);
    if text.is_empty() {
        assert!(ours.is_err());
        return;
    }
    let seen = view_of(Format::Json, body);
    let Ok(value) = theirs else {
        assert!(is_json_invalid(&ours), "no JSON, and accepted as such: {ours:?}");
        return;
    };
    if is_json_invalid(&ours) {
        assert!(depth(text) > JSON_DEPTH_MAX, "JSON, and refused as none: {ours:?}");
        return;
    }
    if has_lost_order(&ours) {
        return;
    }
    let again = serde_json::to_vec(&value).expect("memory");
    assert_eq!(view_of(Format::Json, &again), seen, "{}", String::from_utf8_lossy(&again));
}

/// Returns true if the answer depends on details that `serde_json` drops: keys that come twice, and
/// which faults are the first of too many.
fn has_lost_order(ours: &ParseResult) -> bool {
    matches!(ours, Err(BatchRefusal::Faults(faults))
        if faults.len() == FAULTS_MAX
            || faults.iter().any(|fault| fault.code == FaultCode::DuplicateKey))
}

/// Returns the depth of nesting of valid JSON.
fn depth(text: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth -= 1,
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}
