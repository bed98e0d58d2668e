//! Records of JSON: every order of the fields, and every byte changed.

use super::*;

pub(super) fn json_array(records: &[&[u8]]) -> Vec<u8> {
    [b"[", &*records.join(&b","[..]), b"]"].concat()
}

/// Sends records in every order of the fields, and then with a field too many. The first record may
/// lack a field that later records have.
#[test]
fn the_fields_of_json_records_come_in_any_order_and_some_are_absent() {
    let fields = [r#""a":1.5"#, r#""b":true"#, r#""c":-7"#, r#""d":"x""#];
    let mut texts = Vec::new();
    for kept in 1_u32..16 {
        let mut kept: Vec<_> =
            (0..4).filter(|at| kept & 1 << at != 0).map(|at| fields[at]).collect();
        for _ in 0..kept.len() {
            kept.rotate_left(1);
            texts.push(kept.join(","));
            let reversed: Vec<_> = kept.iter().rev().copied().collect();
            texts.push(reversed.join(","));
        }
    }
    let record = |fields: &str, entity: usize| {
        format!(
            r#"{{"measurement":"m","time":"2026-01-31T11:59:01Z","tags":{{"entity_id":"{entity}"}},"fields":{{{fields}}},"k":0}}"#
        )
    };
    for first in 0..texts.len() {
        // The first record decides which template exists for the others.
        let order = (first..texts.len()).chain(0..first);
        let bodies: Vec<_> = order.map(|at| record(&texts[at], at)).collect();
        let body: Vec<_> = bodies.iter().map(String::as_bytes).collect();
        let batch = parse(Format::Json, &json_array(&body), &RawKeyCache::default()).unwrap();
        let alone = bodies.iter().map(|body| {
            let body = json_array(&[body.as_bytes()]);
            let batch = parse(Format::Json, &body, &RawKeyCache::default()).unwrap();
            rows(&batch, &[]).remove(0)
        });
        assert_eq!(rows(&batch, &[]), alone.collect::<Vec<_>>());
        let mut twice = bodies.clone();
        twice.push(record(r#""c":1,"a":2,"b":true,"a":3"#, 99));
        let body: Vec<_> = twice.iter().map(String::as_bytes).collect();
        let refused = parse(Format::Json, &json_array(&body), &RawKeyCache::default());
        assert!(matches!(refused, Err(BatchRefusal::Faults(faults)) if faults.len() == 1));
    }
}

/// Replacements in the third record.
const EXCHANGED: &[(&str, &str)] = &[
    (r#""n":12"#, r#""n":-0.0"#),
    (r#""n":12"#, r#""n":01.5"#),
    (r#""n":12"#, r#""n":1.5e400"#),
    (r#""n":12"#, r#""n":1234567.1234567"#),
    (r#""n":12"#, r#""n":12345678.12345678"#),
    (r#""n":12"#, r#""n":"12""#),
    (r#""n":12"#, r#""n":null"#),
    (r#","n":12"#, ""),
    (r#""n":12"#, r#""n":12,"n":13"#),
    (r#""n":12"#, r#""n":12,"m":13"#),
    (r#""on":true,"note":"x""#, r#""note":"x","on":true"#),
    (r#""on":true,"note":"x","n":12"#, r#""n":-3, "note" : "y" ,"on":false"#),
    (r#""on":true,"note":"x","n":12"#, r#""n":12,"on":true,"on":true"#),
    (r#""on":true,"note":"x","n":12"#, r#""n":12,"snr_db":7.5"#),
    (r#""on":true,"note":"x","n":12"#, r#""n":true"#),
    (r#""on":true,"note":"x","n":12"#, r#""n":12,"note":null"#),
    (r#""on":true,"note":"x","n":12"#, r#""n":1e400"#),
    (r#""on":true,"note":"x","n":12"#, r#""n":12,"\u006fn":true"#),
    (r#""on":true,"note":"x","n":12"#, r#""n":12,}"#),
    (r#""on":true,"note":"x","n":12"#, r#""n":12}}"#),
    (r#","on":true,"note":"x","n":12"#, ""),
    (r#","on":true,"note":"x","n":12"#, r#","m":[1]"#),
    (r#""on":true"#, r#""on":false"#),
    (r#""note":"x""#, r#""note":"\u0041\"""#),
    (r#""note":"x""#, r#""note":"a rather longer note than before""#),
    (r#""snr_db""#, r#""snr_dbm""#),
    (r#""snr_db""#, r#""snr_d\u0062""#),
    (r#""measurement":"link","#, ""),
    (r#""measurement":"link""#, r#""measurement":"links""#),
    (r#""measurement":"link""#, r#""measurement":"link","measurement":"link""#),
    (r#""measurement":"link""#, r#""measurement":"link","more":[1]"#),
    (r#"{"entity_id":"c"}"#, r#"{"entity_id":"c","entity_id":"c"}"#),
    (r#"{"entity_id":"c"}"#, r#"{"entity_id":"c","site":"{}"}"#),
    (r#"{"entity_id":"c"}"#, r#"{"entity_id":"c","site":"a}"}"#),
    (r#"{"entity_id":"c"}"#, r#"{"entity_id":"c","site":1}"#),
    (r#"{"entity_id":"c"}"#, r#"{"entity_id":"c","":"x"}"#),
    (r#"{"entity_id":"c"}"#, r#"{"entity_id":"c","tenant":"other"}"#),
    (r#"{"entity_id":"c"}"#, r#"{"entity_id":"\u0063","site":"b"}"#),
    (r#"{"entity_id":"c"}"#, r#"{ "entity_id":"c"}"#),
    (r#"{"entity_id":"c"}"#, "{}"),
    (r#","tags":{"entity_id":"c"}"#, ""),
    ("11:59:03Z", "11:59:03.123456789Z"),
    ("11:59:03Z", "11:59:03.1234567890Z"),
    ("11:59:03Z", "11:59:60Z"),
    ("11:59:03Z", "11:59:03+00:00"),
    ("11:59:03Z", "11:59"),
    ("11:59:03Z", "12:00:03Z"),
    ("2026-01-31T11:59:03Z", "1999-12-31T23:59:59Z"),
];

#[test]
fn json_records_that_are_nearly_like_those_before() {
    let record = |entity: &str, time: &str, snr_db: &str| {
        format!(
            r#"{{"measurement":"link","time":"{time}","tags":{{"entity_id":"{entity}"}},"fields":{{"snr_db":{snr_db},"on":true,"note":"x","n":12}}}}"#
        )
    };
    let [a, b, c] = [
        record("a", "2026-01-31T11:59:01.5Z", "1.5"),
        record("b", "2026-01-31T11:59:02.25Z", "-12.125"),
        record("c", "2026-01-31T11:59:03Z", "1e-3"),
    ];
    let mut changed = byte_changes(c.as_bytes(), b"\"\\{}[]:,0-1.eEtfnz \xc3");
    for (from, to) in EXCHANGED {
        assert!(c.contains(from), "{from}");
        changed.push(c.replace(from, to).into_bytes());
    }
    check(Format::Json, json_array, [a.as_bytes(), b.as_bytes(), c.as_bytes()], &changed);
}
