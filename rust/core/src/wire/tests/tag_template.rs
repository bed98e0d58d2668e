//! Tags of new series that are read by the template of earlier tags.

use crate::model::limits::WriteLimits;
use crate::model::new_series::NewEntry;
use crate::model::raw_keys::RawKeyCache;
use crate::wire::ParseContext;
use crate::wire::json::parse_json;

/// Returns the names of the series of these tags, written in one body.
fn names(tags: &[&str]) -> Vec<String> {
    let record = |tags: &&str| {
        format!(
            r#"{{"measurement":"link","time":"2026-01-01T00:00:00Z","tags":{tags},"fields":{{"a":1}}}}"#
        )
    };
    let body = format!("[{}]", tags.iter().map(record).collect::<Vec<_>>().join(","));
    let limits = WriteLimits::default();
    let batch = parse_json(
        body.as_bytes(),
        ParseContext::new(&RawKeyCache::default(), &limits, "acme", i64::MAX),
    );
    let batch = batch.unwrap();
    let check = |new: NewEntry<'_>| {
        assert_eq!(new.parts, new.name.parts(), "{:?}", new.name);
        format!("{:?}", new.name.tags().collect::<Vec<_>>())
    };
    batch.new_series.iter().map(check).collect()
}

#[test]
fn tags_of_a_template_mean_what_the_rules_say() {
    let all = [
        r#"{"entity_id":"a","site":"north","tenant":"x"}"#,
        r#"{"entity_id":"b","site":"south","tenant":"y"}"#,
        r#"{"entity_id":"","site":"ä","tenant":""}"#,
        r#"{"entity_id":"c\"","site":"\\","tenant":"z"}"#,
        r#"{"entity_id":"d","site":"}","tenant":"z"}"#,
        r#"{"site":"e","entity_id":"e","tenant":"z"}"#,
        r#"{"site":"f","entity_id":"f","tenant":"z"}"#,
        r#"{"site" : "g", "entity_id":"g","tenant":"z"}"#,
        r#"{"entity_id":"h","site":"h","tenant":"z","zone":"1"}"#,
    ];
    let together = names(&all);
    let alone: Vec<String> = all.iter().flat_map(|tags| names(&[tags])).collect();
    assert_eq!(together, alone);
}
