//! The rules of a call, by clause of the contract.

use super::*;
use crate::model::new_series::NewEntry;
use crate::model::raw_key::RawKey;
use crate::wire::ParseContext;
use crate::wire::protobuf::parser::RAW_KEY_FORMAT;
use crate::wire::tests::messages::{entry, integer, varint};

#[test]
fn an_empty_call_is_an_empty_batch() {
    let batch = parse(b"").unwrap();
    assert_eq!((batch.accepted_count, batch.rejected_indices), (0, vec![]), "L28");
}

#[test]
fn content_that_refuses_the_call() {
    let with_tags = |tags: &[(&str, &str)]| Record { tags: owned(tags), ..record() };
    for (clause, sent, expected) in [
        ("L2", record(), None),
        ("L11", with_tags(&[]), Some("entity_id")),
        ("C23", with_tags(&[("entity_id", "")]), Some("entity_id")),
        ("C20", with_tags(&[("entity_id", "a"), ("b", ""), ("c", ""), ("d", "")]), Some("tags")),
        ("C21", with_tags(&[("entity_id", "a"), ("b", ""), ("c", ""), ("tenant", "")]), None),
        ("C22", with_tags(&[("entity_id", "a"), ("", "b")]), Some("tags")),
        ("L8", fields(&[("", Sent::Bool(true))]), Some("fields")),
        ("L8", fields(&[("a", Sent::Number(f64::NAN))]), Some("fields")),
        ("L8", fields(&[("a", Sent::Number(f64::INFINITY))]), Some("fields")),
        ("L9", Record { measurement: String::new(), ..record() }, Some("measurement")),
    ] {
        assert_eq!(refusal(&[record(), sent.clone()]), expected, "{clause}: {sent:?}");
        let old = Record { time_ns: 0, ..sent };
        assert_eq!(refusal(&[old]), expected, "L11, when the record is rejected anyway");
    }
}

#[test]
fn more_fields_than_a_record_may_have_refuse_the_call() {
    let counted = |count: usize| Record {
        fields: (0..count).map(|field| (field.to_string(), Sent::Bool(true))).collect(),
        ..record()
    };
    let (fits, exceeds) = (LIMITS.fields_max, LIMITS.fields_max + 1);
    assert_eq!(parse(&encode(&[counted(fits)])).map(|batch| batch.fields.len()), Ok(fits));
    assert_eq!(refusal(&[record(), counted(exceeds)]), Some("fields"), "N1");
    let old = Record { time_ns: 0, ..counted(exceeds) };
    assert_eq!(refusal(&[old]), Some("fields"), "N1: also of a record that is rejected by itself");
    let untagged = Record { tags: owned(&[("entity_id", "a"), ("", "")]), ..counted(exceeds) };
    assert_eq!(refusal(&[untagged]), Some("tags"), "L10");
    // A repeated key is one field, and a message that ends early is not a message.
    let again =
        Record { fields: [counted(fits).fields, counted(fits).fields].concat(), ..record() };
    assert_eq!(refusal(&[again]), None);
    let mut parts = counted(exceeds).parts();
    parts.push(entry(4, "a", &delimited(3, b"\xff")));
    assert!(is_malformed(&message(&parts)), "L7");
}

#[test]
fn every_record_that_is_not_acceptable_refuses_the_call_after_the_count() {
    let nameless = Record { tags: Vec::new(), ..record() };
    assert_eq!(refusal(&vec![record(); 20]), None);
    assert_eq!(refusal(&vec![nameless; 21]), Some("too many"), "L3: the count comes first");
    let mut body = encode(&vec![record(); 21]);
    body.push(0);
    assert!(is_malformed(&body), "L3: decoding comes before the count");
}

#[test]
fn the_first_faulty_record_is_named_and_in_it_entity_then_tags_then_fields() {
    let unset = [("a", Sent::Number(f64::NAN))];
    let all = Record { measurement: String::new(), tags: owned(&[("", "")]), ..fields(&unset) };
    let tagged = Record { tags: owned(&[("entity_id", "a"), ("", "")]), ..all.clone() };
    let named = Record { tags: owned(&[("entity_id", "a")]), ..all.clone() };
    assert_eq!(refusal(&[all]), Some("entity_id"), "L10");
    assert_eq!(refusal(&[tagged]), Some("tags"), "L10");
    assert_eq!(refusal(std::slice::from_ref(&named)), Some("fields"), "L10");
    let later = Record { tags: Vec::new(), ..record() };
    assert_eq!(refusal(&[record(), named, later]), Some("fields"), "L10");
}

#[test]
fn times() {
    let timed = |time: Option<&[u8]>| {
        let mut parts = record().parts();
        parts.splice(1..2, time.map(|time| delimited(2, time)));
        message(&parts)
    };
    let nanos = |nanos| [integer(1, 1_790_000_000), integer(2, nanos)].concat();
    assert_eq!(parse(&timed(None)).unwrap().rejected_indices, [0], "L12");
    for time in [nanos(-1), nanos(1_000_000_000), integer(1, 253_402_300_800), integer(1, i64::MIN)]
    {
        let refused = parse(&timed(Some(&time)));
        assert_eq!(refused, Err(BatchRefusal::InvalidInput { field: "time" }), "L13: {time:?}");
    }
    let future = parse(&timed(Some(&nanos(1)))).unwrap();
    assert_eq!((future.tables[0].times_ns[0], future.clamped_count), (NOW_NS, 1), "D10");
    let merged = [
        delimited(2, &integer(1, 1_700_000_000)),
        delimited(2, &integer(2, 7)),
        delimited(2, &[integer(9, 1), integer(1, 1_710_000_000)].concat()),
    ];
    let batch = parse(&timed(None)).map(drop);
    assert_eq!(batch, Ok(()));
    let batch = parse(&message(&[record().parts(), merged.to_vec()].concat())).unwrap();
    assert_eq!(batch.tables[0].times_ns, [1_710_000_000 * SECOND_NS + 7], "messages merge");
}

#[test]
fn integers_become_doubles() {
    for value in [0, -1, (1 << 53) + 1, i64::MIN, i64::MAX] {
        let sent = [fields(&[("n", Sent::Int(value))])];
        let batch = parse(&encode(&sent)).unwrap();
        let expected = parse_json(
            json(&sent).as_bytes(),
            ParseContext::new(&RawKeyCache::default(), &LIMITS, "acme", NOW_NS),
        );
        assert_eq!(only_value(&batch), only_value(&expected.unwrap()), "L2, C6: {value}");
    }
}

#[test]
fn the_last_one_wins() {
    let base = record().parts();
    let value = |bytes: &[Vec<u8>]| entry(4, "v", &bytes.concat());
    let two = Sent::Number(2.0).encode();
    for (what, parts) in [
        ("map keys", vec![value(&[Sent::Bool(true).encode()]), value(std::slice::from_ref(&two))]),
        ("an unset value first", vec![value(&[]), value(std::slice::from_ref(&two))]),
        ("oneof", vec![value(&[Sent::Text("x".into()).encode(), two.clone()])]),
        ("oneof, twice", vec![value(&[two.clone(), vec![0x10, 1], two.clone()])]),
        (
            "an entry's key",
            vec![delimited(
                4,
                &[delimited(1, b"w"), delimited(2, &two), delimited(1, b"v")].concat(),
            )],
        ),
        (
            "an entry's value, merged",
            vec![delimited(
                4,
                &[delimited(1, b"v"), delimited(2, &two), delimited(2, b"")].concat(),
            )],
        ),
    ] {
        let batch = parse(&message(&[base[..3].to_vec(), parts].concat())).unwrap();
        assert_eq!(batch.fields[0].name, "v", "{what}");
        assert_eq!(only_value(&batch), &Values::Float(vec![2.0]), "{what}");
    }
    let parts = [vec![delimited(1, b"satellite"), entry(3, "entity_id", b"b")], base].concat();
    let batch = parse(&message(&parts)).unwrap();
    assert_eq!(batch.measurements, ["link"]);
    assert_eq!(batch.new_series.get(0).unwrap().name.entity_id(), Some("a"));
}

#[test]
fn a_value_of_no_kind_refuses_the_call() {
    for part in [entry(4, "v", b""), delimited(4, b""), delimited(4, &delimited(1, b"v"))] {
        let body = message(&[record().parts(), vec![part]].concat());
        assert_eq!(parse(&body), Err(BatchRefusal::InvalidInput { field: "fields" }), "L8");
    }
}

#[test]
fn many_keys_out_of_order_and_more_than_once() {
    let number = |value: u32| Sent::Number(f64::from(value)).encode();
    let mut parts = record().parts();
    parts.extend((0..200).map(|key| entry(4, &key.to_string(), &number(key))));
    parts.extend((0..200).rev().map(|key| entry(4, &key.to_string(), &number(key + 1000))));
    let batch = parse(&[message(&parts), message(&parts)].concat()).unwrap();
    assert_eq!((batch.tables[0].columns.len(), batch.accepted_count), (201, 2));
    for (key, column) in (0..).zip(&batch.tables[0].columns[1..]) {
        let value = f64::from(key + 1000);
        assert_eq!(column.values, Values::Float(vec![value, value]));
    }
}

#[test]
fn unknown_fields_are_skipped_and_groups_refused() {
    let unknown = [
        integer(15, -1),
        vec![0x79, 1, 2, 3, 4, 5, 6, 7, 8],
        delimited(2047, b"anything"),
        vec![0x7d, 1, 2, 3, 4],
        vec![0x80, 0x01, 0x00],
        // Known numbers with another wire type are unknown fields.
        integer(1, 7),
        vec![0x25, 1, 2, 3, 4],
    ];
    let expected = without_raw_keys(parse(&encode(&[record()])).unwrap());
    for field in &unknown {
        let inside = message(&[record().parts(), vec![field.clone()]].concat());
        for body in [&[&field[..], &inside[..]].concat(), &[&inside[..], &field[..]].concat()] {
            assert_eq!(parse(body).map(without_raw_keys), Ok(expected.clone()), "{field:?}");
        }
    }
    for group in [vec![0x7b, 0x7c], vec![0x7c], vec![0x7e, 0], vec![0x7f], vec![0x00, 0x00]] {
        assert!(is_malformed(&group), "{group:?}");
        assert!(is_malformed(&message(&[record().parts(), vec![group]].concat())));
    }
}

#[test]
fn bytes_that_are_no_message() {
    for (what, body) in [
        ("a length beyond the end", vec![0x0a, 0x05, 0x00]),
        ("a length of 2^63", [vec![0x0a], varint(1 << 63)].concat()),
        ("a varint without an end", vec![0x0a, 0xff, 0xff]),
        ("a varint of eleven bytes", [vec![0x78], vec![0x80; 10], vec![0]].concat()),
        ("a tag of six bytes", [vec![0x88; 5], vec![0, 0]].concat()),
        ("a tag beyond 32 bits", vec![0x8a, 0x80, 0x80, 0x80, 0x10, 0]),
        ("not UTF-8", message(&[delimited(1, b"\xff")])),
        ("a key that is not UTF-8", message(&[delimited(4, &delimited(1, b"\xff"))])),
        ("a tag that is not UTF-8", message(&[delimited(3, &delimited(2, b"\xc0\x80"))])),
        ("a text that is not UTF-8", message(&[entry(4, "a", &delimited(3, b"\xed\xa0\x80"))])),
        ("a surrogate", message(&[delimited(1, b"\xed\xa0\x80")])),
    ] {
        assert!(is_malformed(&body), "L7: {what}");
        assert!(is_malformed(&[encode(&[record()]), body].concat()), "L7: {what}");
    }
}

#[test]
fn a_known_raw_key_finds_its_series_and_no_other_does() {
    let mut names = RawKeyCache::default();
    let tags = entry(3, "entity_id", b"a");
    names.insert(RawKey::of(RAW_KEY_FORMAT, "link", &tags), 7);
    names.insert(RawKey::of(b'j', "satellite", &tags), 8);
    let other = Record { measurement: "satellite".to_owned(), ..record() };
    let body = encode(&[record(), other.clone(), other]);
    let batch = parse_protobuf(&body, ParseContext::new(&names, &LIMITS, "acme", NOW_NS)).unwrap();
    assert_eq!(batch.tables[0].series, [7]);
    assert_eq!(batch.new_series.len(), 1);
    let NewEntry { name, raw_key, .. } = batch.new_series.get(0).unwrap();
    assert_eq!(name.measurement(), "satellite");
    assert_eq!(raw_key, RawKey::of(RAW_KEY_FORMAT, "satellite", &tags));
    assert_eq!(batch.tables[1].series[0], batch.tables[1].series[1]);
}

#[test]
fn tags_in_pieces_are_the_same_tags() {
    let [measurement, time, field] = [0, 1, 3]
        .map(|at| Record { tags: owned(&[("entity_id", "a")]), ..record() }.parts()[at].clone());
    let (id, site) = (entry(3, "entity_id", b"a"), entry(3, "site", b"x"));
    let together = [&measurement, &time, &id, &site, &field].map(Clone::clone);
    let apart = [&id, &measurement, &time, &site, &field].map(Clone::clone);
    let batch = parse(&[message(&together), message(&apart)].concat()).unwrap();
    assert_eq!(batch.new_series.len(), 1);
    assert_eq!(batch.tables[0].series[0], batch.tables[0].series[1]);
}

#[test]
fn more_tags_than_can_be_right_are_read_but_not_kept() {
    let mut parts = record().parts();
    parts.extend((0..5_000).map(|tag| entry(3, &tag.to_string(), b"x")));
    assert_eq!(parse(&message(&parts)), Err(BatchRefusal::InvalidInput { field: "tags" }), "C20");
    parts.push(entry(3, "entity_id", b""));
    assert_eq!(
        parse(&message(&parts)),
        Err(BatchRefusal::InvalidInput { field: "entity_id" }),
        "L10"
    );
    parts.push(entry(3, "a", b"\xff"));
    assert!(is_malformed(&message(&parts)));
}
