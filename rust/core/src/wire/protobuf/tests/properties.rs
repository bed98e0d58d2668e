//! Random records, compared with the same records in JSON, and bytes that are not records.

use proptest::prelude::*;

use super::*;
use crate::model::time::YEAR_2000_NS;
use crate::wire::ParseContext;

fn sent() -> impl Strategy<Value = Sent> {
    prop_oneof![
        4 => prop_oneof![any::<f64>().prop_filter("finite", |v| v.is_finite()), Just(-0.0)]
            .prop_map(Sent::Number),
        1 => any::<i64>().prop_map(Sent::Int),
        1 => any::<bool>().prop_map(Sent::Bool),
        1 => "[a-zé ]{0,4}".prop_map(Sent::Text),
    ]
}

fn records() -> impl Strategy<Value = Vec<Record>> {
    let name = prop::sample::select(vec!["a", "b", "c", "entity_id", "tenant", "é", "long_name"]);
    let pairs = prop::collection::btree_map(name.clone(), "[xy]{0,2}", 0..4);
    let one = (
        prop::sample::select(vec!["link", "satellite", "l"]),
        prop_oneof![
            4 => NOW_NS - 1_000_000..NOW_NS + 10,
            1 => Just(YEAR_2000_NS),
            1 => any::<i64>(),
        ],
        pairs,
        prop::collection::vec((name, sent()), 0..7).prop_shuffle(),
    );
    let record = one.prop_map(|(measurement, time_ns, mut tags, mut fields)| {
        tags.insert("entity_id", "x".to_owned());
        let mut seen = std::collections::HashSet::new();
        fields.retain(|(name, _)| seen.insert(*name));
        Record {
            measurement: measurement.to_owned(),
            time_ns,
            tags: tags.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
            fields: fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        }
    });
    prop::collection::vec(record, 0..12)
}

proptest! {
    /// Equal records become equal columns in both formats.
    #[test]
    fn protobuf_and_json_are_parsed_to_equal_batches(records in records()) {
        let limits = WriteLimits { tags_max: 64, ..LIMITS };
        let names = RawKeyCache::default();
        let (message, document) = (encode(&records), json(&records));
        let context = ParseContext::new(&names, &limits, "acme", NOW_NS);
        let ours = parse_protobuf(&message, context).unwrap();
        let theirs = parse_json(document.as_bytes(), context).unwrap();
        prop_assert_eq!(without_raw_keys(ours), without_raw_keys(theirs));
    }

    /// The order of the parts of a record is not part of its meaning.
    #[test]
    fn parts_may_come_in_any_order(parts in Just(fields(&[
        ("a", Sent::Number(1.0)), ("b", Sent::Bool(true)), ("c", Sent::Text("x".into())),
    ]).parts()).prop_shuffle()) {
        let batch = parse(&[message(&parts), message(&parts)].concat()).unwrap();
        prop_assert_eq!(batch.accepted_count, 2);
        let mut found: Vec<_> = batch.fields.iter().map(|field| &field.name).collect();
        found.sort();
        prop_assert_eq!(found, ["a", "b", "c"]);
        prop_assert!(batch.tables[0].columns.iter().all(|column| column.values.len() == 2));
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let _ = parse(&bytes);
        let _ = parse(&message(&[record().parts(), vec![bytes]].concat()));
    }

    #[test]
    fn no_damage_panics(records in records(), at: prop::sample::Index, bits in 1..=255_u8) {
        let mut body = encode(&records);
        if !body.is_empty() {
            let _ = parse(&body[..at.index(body.len())]);
            let at = at.index(body.len());
            body[at] ^= bits;
            let _ = parse(&body);
        }
    }
}
