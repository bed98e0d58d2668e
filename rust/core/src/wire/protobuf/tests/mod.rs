use std::fmt::Write;

use super::{is_acceptable, parse_protobuf};
use crate::model::batch::{Batch, ParseResult, Values};
use crate::model::fault::BatchRefusal;
use crate::model::limits::WriteLimits;
use crate::model::raw_keys::RawKeyCache;
use crate::model::time::{SECOND_NS, write_rfc3339};
use crate::wire::tests::messages::{Record, Sent, delimited, encode};
use crate::wire::{ParseContext, parse_json};

mod properties;
mod rules;

const NOW_NS: i64 = 1_790_000_000 * SECOND_NS;
const LIMITS: WriteLimits = WriteLimits {
    batch_records_max: 20,
    tags_max: 3,
    fields_max: 201,
    tenant_fields_max: 400,
    tenant_series_max: 60,
    tenant_names_bytes_max: 1 << 20,
};

fn parse(body: &[u8]) -> ParseResult {
    let result =
        parse_protobuf(body, ParseContext::new(&RawKeyCache::default(), &LIMITS, "acme", NOW_NS));
    assert_eq!(is_acceptable(body, &LIMITS), result.is_ok());
    result
}

fn refusal(records: &[Record]) -> Option<&'static str> {
    match parse(&encode(records)) {
        Ok(_) => None,
        Err(BatchRefusal::InvalidInput { field }) => Some(field),
        Err(BatchRefusal::TooManyRecords { .. }) => Some("too many"),
        Err(other) => panic!("{other:?}"),
    }
}

fn is_malformed(body: &[u8]) -> bool {
    parse(body) == Err(BatchRefusal::InvalidInput { field: "payload" })
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn record() -> Record {
    Record {
        measurement: "link".to_owned(),
        time_ns: NOW_NS - 5,
        tags: owned(&[("entity_id", "a")]),
        fields: vec![("snr_db".to_owned(), Sent::Number(1.5))],
    }
}

fn fields(pairs: &[(&str, Sent)]) -> Record {
    let fields = pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    Record { fields, ..record() }
}

/// Returns a message with one record, which has these parts.
fn message(parts: &[Vec<u8>]) -> Vec<u8> {
    delimited(1, &parts.concat())
}

/// Returns the only value of the only column of a batch.
fn only_value(batch: &Batch) -> &Values {
    let [table] = &batch.tables[..] else { panic!("{batch:?}") };
    let [column] = &table.columns[..] else { panic!("{batch:?}") };
    &column.values
}

/// Returns the batch without its raw keys, which differ between formats.
fn without_raw_keys(mut batch: Batch) -> Batch {
    batch.new_series.forget_raw_keys();
    batch
}

fn json(records: &[Record]) -> String {
    let quote = |text: &str| format!("{text:?}");
    let items = records.iter().map(|record| {
        let mut time = Vec::new();
        write_rfc3339(&mut time, record.time_ns);
        let tags: Vec<_> =
            record.tags.iter().map(|(k, v)| format!("{}:{}", quote(k), quote(v))).collect();
        let fields = record.fields.iter().map(|(key, value)| {
            let mut text = quote(key) + ":";
            match value {
                Sent::Number(value) => write!(text, "{value:?}").unwrap(),
                Sent::Bool(value) => write!(text, "{value}").unwrap(),
                Sent::Text(value) => text += &quote(value),
                Sent::Int(value) => write!(text, "{value}").unwrap(),
            }
            text
        });
        format!(
            r#"{{"measurement":{},"time":"{}","tags":{{{}}},"fields":{{{}}}}}"#,
            quote(&record.measurement),
            String::from_utf8(time).unwrap(),
            tags.join(","),
            fields.collect::<Vec<_>>().join(","),
        )
    });
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}
