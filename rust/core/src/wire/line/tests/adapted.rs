use super::*;
use crate::model::batch::FieldType;
use crate::model::catalog::Catalog;
use crate::wire::{Backslashes, ParseContext};

use crate::wire::mapping::{Adapter, NameRules, Rule};

fn mapping() -> NameRules {
    let cpu = Rule {
        measurement: Some("telemetry".into()),
        prefix: "cpu_".into(),
        entity: Some("host".into()),
    };
    let disk = Rule { prefix: "disk_".into(), entity: Some("path".into()), ..cpu.clone() };
    NameRules::new([("cpu".into(), cpu), ("disk".into(), disk)], Rule::default())
}

fn read(body: &[u8], known: &[(&str, FieldType)]) -> ParseResult {
    let mut catalog = Catalog::default();
    let measurement = catalog.intern_measurement("telemetry");
    for (id, (name, field_type)) in (0..).zip(known) {
        catalog.insert_field(id, measurement, name, *field_type);
    }
    let adapter = Adapter { mapping: &mapping(), catalog: &catalog };
    parse_adapted_lines(
        body,
        (Precision::Nanoseconds, Backslashes::Paired),
        adapter,
        ParseContext::new(&RawKeyCache::default(), &LIMITS, "acme", NOW_NS),
    )
}

/// Returns the lines that were left out, with their faults.
fn dropped(batch: &Batch) -> Vec<String> {
    faults_of(Err(BatchRefusal::Faults(batch.dropped.clone())))
}

#[test]
fn names_are_mapped_by_the_measurement_of_the_line() {
    let body = b"cpu,host=a,dc=x idle=1\ndisk,host=a,path=/ free=2\ncpu,host=a,dc=x idle=3\n\
                 link,host=a free=4\n";
    let batch = read(body, &[]).unwrap();
    assert_eq!(batch.measurements, ["telemetry", "link"]);
    assert_eq!(columns(&batch), ["cpu_idle=[1.0, 3.0]", "disk_free=[2.0]"]);
    let series: Vec<Vec<_>> =
        batch.new_series.iter().map(|series| series.name.tags().collect()).collect();
    assert_eq!(
        series,
        [
            vec![("dc", "x"), ("entity_id", "a")],
            vec![("entity_id", "/"), ("host", "a")],
            vec![("entity_id", "a")]
        ]
    );
}

/// Returns the tags of each new series of `body`, read by the rules of a version.
fn tags_by(backslashes: Backslashes, body: &str) -> Vec<Vec<(String, String)>> {
    let (mapping, catalog, cache) =
        (NameRules::default(), Catalog::default(), RawKeyCache::default());
    let adapter = Adapter { mapping: &mapping, catalog: &catalog };
    let context = ParseContext::new(&cache, &LIMITS, "acme", NOW_NS);
    let precision = (Precision::Nanoseconds, backslashes);
    let batch = parse_adapted_lines(body.as_bytes(), precision, adapter, context).unwrap();
    assert_eq!(dropped(&batch), [""; 0], "{body}");
    let own = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    batch.new_series.iter().map(|series| series.name.tags().map(own).collect()).collect()
}

#[test]
fn without_a_rule_the_entity_is_the_host_or_else_the_first_tag_by_name() {
    let cases = [
        (",z=1,host=h,a=2", "host", "h"),
        (",z=1,b=2,c=3", "b", "2"),
        (",z=1,a=,tenant=t", "z", "1"),
        (",host=,z=1", "z", "1"),
        (",z=1,entity_id=e,host=h", "entity_id", "e"),
        (",z=1,entity_id=,host=h", "entity_id", ""),
    ];
    for (tags, named, entity) in cases {
        let found = tags_by(Backslashes::Apart, &format!("m{tags} x=1"));
        let mut sent: Vec<_> =
            tags[1..].split(',').map(|tag| tag.split_once('=').unwrap()).collect();
        sent.retain(|(key, _)| *key != named);
        sent.push(("entity_id", entity));
        sent.iter_mut().filter(|(key, _)| *key == "tenant").for_each(|tag| tag.1 = "acme");
        sent.sort_unstable();
        let found: Vec<_> = found[0].iter().map(|(key, value)| (&**key, &**value)).collect();
        assert_eq!(found, sent, "{tags}");
    }
    for tags in ["", ",a=", ",tenant=t"] {
        let found = tags_by(Backslashes::Apart, &format!("m{tags} x=1"));
        assert!(found[0].iter().all(|(key, _)| key != "entity_id"), "{tags}");
    }
}

#[test]
fn backslashes_mean_what_they_do_in_the_version_of_the_client() {
    let body = "m,entity_id=e,p=C:\\\\\\ temp,s=\\\\server x=1,y=18446744073709551615u 1789999999000000000\n\
                m,entity_id=e,p=C:\\\\\\ temp,s=\\\\server x=2,y=3u 1789999999000000000\n\
                m,entity_id=f,p=C:\\\\\\ temp,s=\\\\server x=3,y=4u 1789999999000000000";
    for (backslashes, path, server) in [
        (Backslashes::Apart, "C:\\\\ temp", "\\\\server"),
        (Backslashes::Paired, "C:\\ temp", "\\server"),
    ] {
        let found = tags_by(backslashes, body);
        assert_eq!(found.len(), 2);
        for (tags, entity) in found.iter().zip(["e", "f"]) {
            let found: Vec<_> = tags.iter().map(|(key, value)| (&**key, &**value)).collect();
            assert_eq!(found, [("entity_id", entity), ("p", path), ("s", server)]);
        }
    }
}

#[test]
fn one_cache_serves_both_rules_of_backslashes() {
    let (mapping, catalog) = (NameRules::default(), Catalog::default());
    let adapter = Adapter { mapping: &mapping, catalog: &catalog };
    let mut cache = RawKeyCache::default();
    for backslashes in [Backslashes::Apart, Backslashes::Paired] {
        let context = ParseContext::new(&cache, &LIMITS, "acme", NOW_NS);
        let precision = (Precision::Nanoseconds, backslashes);
        let batch = parse_adapted_lines(br"m,s=\\a x=1", precision, adapter, context).unwrap();
        assert_eq!(batch.new_series.len(), 1, "{backslashes:?}");
        for new in batch.new_series.iter() {
            cache.insert(new.raw_key, 7);
        }
    }
}

#[test]
fn unsigned_integers_have_64_bits() {
    let batch = |value: &str| read(format!("m x={value}").as_bytes(), &[]).unwrap();
    let cases = [
        ("0u", "0.0"),
        ("9223372036854775808u", "9.223372036854776e18"),
        ("18446744073709551615u", "1.8446744073709552e19"),
    ];
    for (value, stored) in cases {
        assert_eq!(columns(&batch(value)), [format!("x=[{stored}]")]);
    }
    for value in ["18446744073709551616u", "99999999999999999999u"] {
        assert_eq!(dropped(&batch(value)), ["int_parsing_size 1.fields.x"]);
    }
    for value in ["-1u", "+1u", "u", "1.5u"] {
        assert_eq!(dropped(&batch(value)), ["int_parsing 1.fields.x"], "{value}");
    }
    assert_eq!(dropped(&batch("9223372036854775808i")), ["int_parsing_size 1.fields.x"]);
}

#[test]
fn a_fault_rejects_its_line_alone_and_says_which() {
    let body = b"link x=1\n\nlink\n# c\nlink x=1 1\nlink x=\"a\nb\"\nlink x=y\nlink x=2";
    let limits = WriteLimits { batch_records_max: 50, ..LIMITS };
    let adapter = Adapter { mapping: &mapping(), catalog: &Catalog::default() };
    let batch = parse_adapted_lines(
        body,
        (Precision::Nanoseconds, Backslashes::Paired),
        adapter,
        ParseContext::new(&RawKeyCache::default(), &limits, "acme", NOW_NS),
    );
    let batch = batch.unwrap();
    assert_eq!(columns(&batch), ["x=[1.0, 2.0]"]);
    assert_eq!(batch.rejected_indices, [1, 2, 3, 4]);
    assert_eq!(
        dropped(&batch),
        [
            "no_fields 3",
            "time_too_early 5.time",
            "field_type_conflict 6.fields.x",
            "field_value_type 8.fields.x"
        ]
    );
}

#[test]
fn tags_and_fields_beyond_their_bounds_reject_their_line() {
    let body = b"link,a=1,b=1,c=1,d=1 x=1\nlink a=1,b=1,c=1,d=1,e=1\nlink,=1 x=1\nlink x=1";
    let batch = read(body, &[]).unwrap();
    assert_eq!(dropped(&batch), ["tags_invalid 1", "fields_invalid 2", "tags_invalid 3"]);
    assert_eq!(batch.accepted_count, 1);
}

#[test]
fn a_field_keeps_the_type_that_it_is_stored_with() {
    let body = b"cpu,host=a idle=1\ncpu,host=a idle=t\ncpu,host=a up=1,idle=t\n";
    let known = [("cpu_idle", FieldType::Bool), ("cpu_up", FieldType::Bool)];
    let batch = read(body, &known).unwrap();
    assert_eq!(columns(&batch), ["cpu_idle=[true]"]);
    let conflicts =
        ["field_type_conflict 1.fields.cpu_idle", "field_type_conflict 3.fields.cpu_up"];
    assert_eq!(dropped(&batch), conflicts);
}

#[test]
fn lines_that_are_no_text_are_rejected_alone() {
    let batch =
        read(b"\xef\xbb\xbflink x=1\nlink x=\xff\n\xef\xbb\xbflink x=2\n\xff", &[]).unwrap();
    assert_eq!(columns(&batch), ["x=[1.0, 2.0]"]);
    assert_eq!(dropped(&batch), ["line_invalid 2", "line_invalid 4"]);
    assert_eq!(batch.rejected_indices, [1, 3]);
}

#[test]
fn more_lines_than_allowed_refuse_all_of_them() {
    let refused = read(&b"link x=1\n".repeat(6), &[]);
    assert_eq!(refused, Err(BatchRefusal::TooManyRecords { received: 6, max: 5 }));
    let refused = read(&b"link x\n".repeat(6), &[]);
    assert_eq!(refused, Err(BatchRefusal::TooManyRecords { received: 6, max: 5 }));
}

#[test]
fn a_body_in_which_nothing_is_mapped_is_read_as_any_other() {
    let body = "link,entity_id=a x=1,y=2i 1789999999000000000\n\
                link,entity_id=b x=2,y=3i 1789999998000000000\n\
                link,entity_id=a x=3,y=4i 1789999997000000000";
    let adapted = read(body.as_bytes(), &[]).unwrap();
    let plain = accepted(body);
    assert_eq!(adapted.tables, plain.tables);
    assert_eq!(adapted.fields, plain.fields);
}
