//! Messages by hand, as the definitions of the protocols number their fields.

mod otlp;
mod remote_write;

use crate::model::batch::{Batch, FieldType, ParseResult, Rows, Values};
use crate::model::fault::{Refusal, Step};
use crate::model::limits::WriteLimits;
use crate::model::raw_keys::RawKeyCache;
use crate::model::time::SECOND_NS;
use crate::wire::mapping::{Adapter, Mapping, Rule};
use crate::wire::{ParseContext, Protocol, tokens::protobuf};

const NOW_NS: i64 = 1_790_000_000 * SECOND_NS;
const LIMITS: WriteLimits = WriteLimits {
    batch_records_max: 6,
    tags_max: 4,
    fields_max: 6,
    tenant_fields_max: 100,
    tenant_series_max: 100,
};

/// A field whose value is a message or a text.
fn message(number: u32, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    let mut bytes = vec![u8::try_from(number << 3 | 2).unwrap()];
    put_varint(&mut bytes, content.len() as u64);
    bytes.extend_from_slice(content);
    bytes
}

fn varint(number: u32, value: u64) -> Vec<u8> {
    let mut bytes = vec![u8::try_from(number << 3).unwrap()];
    put_varint(&mut bytes, value);
    bytes
}

fn word(number: u32, value: u64) -> Vec<u8> {
    let mut bytes = vec![u8::try_from(number << 3 | 1).unwrap()];
    bytes.extend_from_slice(&value.to_le_bytes());
    bytes
}

fn double(number: u32, value: f64) -> Vec<u8> {
    word(number, value.to_bits())
}

fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value > u64::from(protobuf::LAST_BYTE_MAX) {
        bytes.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
        value >>= 7;
    }
    bytes.push(u8::try_from(value).unwrap());
}

fn mapping() -> Mapping {
    let rule = |prefix: &str, entity: Option<&str>| Rule {
        measurement: Some("link".into()),
        prefix: prefix.into(),
        entity: entity.map(str::to_owned),
    };
    let rules = [("up".to_owned(), rule("is_", Some("job"))), ("down".into(), rule("", None))];
    Mapping::new(rules, Rule::default())
}

/// Reads `body` with no series known, then with all of them; both batches must be alike.
fn read(protocol: Protocol, body: &[u8]) -> ParseResult {
    let known_type = |measurement: &str, field: &str| {
        ((measurement, field) == ("telemetry", "text")).then_some(FieldType::Text)
    };
    let mapping = mapping();
    let adapter = Adapter { mapping: &mapping, known_type: &known_type };
    let mut names = RawKeyCache::default();
    let parse = |names: &_| {
        protocol.parse(body, adapter, ParseContext::new(names, &LIMITS, "acme", NOW_NS))
    };
    let cold = parse(&names)?;
    for (id, new) in (0..).zip(cold.new_series.iter()) {
        names.insert(new.raw_key, id);
    }
    let warm = parse(&names)?;
    assert!(warm.new_series.is_empty());
    assert_eq!((&warm.fields, &warm.dropped), (&cold.fields, &cold.dropped));
    Ok(cold)
}

/// Rows in words: measurement, tags, seconds before now and fields.
fn rows(batch: &Batch) -> Vec<String> {
    let mut found = Vec::new();
    for (measurement, table) in batch.measurements.iter().zip(&batch.tables) {
        for row in 0..table.row_count() {
            let series = (table.series[row] - crate::model::batch::NEW_SERIES_BASE) as usize;
            let series = batch.new_series.get(series).unwrap();
            let tags: Vec<_> =
                series.name.tags().map(|(key, value)| format!("{key}={value}")).collect();
            let mut fields = Vec::new();
            for column in &table.columns {
                let Values::Float(values) = &column.values else { panic!("{column:?}") };
                let at = match &column.rows {
                    Rows::All => Some(row),
                    Rows::Some(rows) => rows.iter().position(|at| *at as usize == row),
                };
                let name = &batch.fields[column.field as usize].name;
                fields.extend(at.map(|at| format!("{name}={}", values[at])));
            }
            let age = (NOW_NS - table.times_ns[row]) / SECOND_NS;
            let (tags, fields) = (tags.join(","), fields.join(","));
            found.push(format!("{measurement},{tags} {fields} -{age}"));
        }
    }
    found
}

/// Values that were left out with a word: number, code and place.
fn dropped(batch: &Batch) -> Vec<String> {
    let words = batch.dropped.iter().map(|fault| {
        let steps = fault.loc.iter().map(|step| match step {
            Step::Index(index) => index.to_string(),
            Step::Key(key) => key.clone(),
        });
        format!("{} {}", steps.collect::<Vec<_>>().join("."), fault.code.as_str())
    });
    words.collect()
}

fn is_malformed(result: &ParseResult) -> bool {
    *result == Err(Refusal::InvalidInput { field: "payload" })
}
