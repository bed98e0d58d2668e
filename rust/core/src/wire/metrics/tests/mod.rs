//! Messages built by hand, with the field numbers of the protocol definitions.

mod otlp;
mod remote_write;

use crate::model::batch::{Batch, FieldType, NEW_SERIES_BASE, ParseResult, RowSet, Values};
use crate::model::catalog::Catalog;
use crate::model::fault::{BatchRefusal, LocationStep};
use crate::model::limits::WriteLimits;
use crate::model::raw_keys::RawKeyCache;
use crate::model::time::SECOND_NS;
use crate::wire::mapping::{Adapter, NameRules, Rule};
use crate::wire::{ParseContext, Protocol, tokens::protobuf};

const NOW_NS: i64 = 1_790_000_000 * SECOND_NS;
const LIMITS: WriteLimits = WriteLimits {
    batch_records_max: 6,
    tags_max: 4,
    fields_max: 6,
    tenant_fields_max: 100,
    tenant_series_max: 100,
    tenant_names_bytes_max: 1 << 20,
};

/// Returns a field whose value is a message or a text.
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

fn mapping() -> NameRules {
    let rule = |prefix: &str, entity: Option<&str>| Rule {
        measurement: Some("link".into()),
        prefix: prefix.into(),
        entity: entity.map(str::to_owned),
    };
    let rules = [("up".to_owned(), rule("is_", Some("job"))), ("down".into(), rule("", None))];
    NameRules::new(rules, Rule::default())
}

/// Returns a catalog with a single field, which is a text.
fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    let measurement = catalog.intern_measurement("telemetry");
    catalog.insert_field(0, measurement, "text", FieldType::Text);
    catalog
}

/// Reads `body` without known series, then with each series known alone, then with all series
/// known. The result must always be the same.
fn read(protocol: Protocol, body: &[u8]) -> ParseResult {
    let mapping = mapping();
    let parse = |names: &_, catalog: &_| {
        let adapter = Adapter { mapping: &mapping, catalog };
        protocol.parse(body, adapter, ParseContext::new(names, &LIMITS, "acme", NOW_NS))
    };
    let cold = parse(&RawKeyCache::default(), &catalog())?;
    let count = cold.new_series.len();
    for known in (0..count).map(|one| one..one + 1).chain(std::iter::once(0..count)) {
        let (mut names, mut catalog) = (RawKeyCache::default(), catalog());
        for new in known.clone().filter_map(|at| cold.new_series.get(at)) {
            let id = catalog.find_series(new.name, &new.parts);
            let id = id.unwrap_or_else(|| u32::try_from(catalog.series_count()).unwrap());
            catalog.insert_series(id, new.name);
            names.insert(new.raw_key, id);
        }
        let warm = parse(&names, &catalog)?;
        assert_eq!(warm.new_series.len(), count - known.len());
        assert_eq!(warm.dropped, cold.dropped);
        if warm.new_series.is_empty() {
            assert_eq!(warm.fields, cold.fields);
        }
        let sorted = |mut rows: Vec<String>| {
            rows.sort();
            rows
        };
        assert_eq!(sorted(rows_of(&warm, &catalog)), sorted(rows(&cold)), "{known:?} are known");
    }
    Ok(cold)
}

/// Returns rows in words: measurement, tags, seconds before now and fields.
fn rows(batch: &Batch) -> Vec<String> {
    rows_of(batch, &Catalog::default())
}

fn rows_of(batch: &Batch, catalog: &Catalog) -> Vec<String> {
    let mut found = Vec::new();
    for (measurement, table) in batch.measurements.iter().zip(&batch.tables) {
        for row in 0..table.row_count() {
            let name = match table.series[row].checked_sub(NEW_SERIES_BASE) {
                Some(new) => batch.new_series.get(new as usize).unwrap().name,
                None => catalog.series(table.series[row]).unwrap().name(),
            };
            let tags: Vec<_> = name.tags().map(|(key, value)| format!("{key}={value}")).collect();
            let mut fields = Vec::new();
            for column in &table.columns {
                let Values::Float(values) = &column.values else { panic!("{column:?}") };
                let at = match &column.rows {
                    RowSet::All => Some(row),
                    RowSet::Some(rows) => rows.iter().position(|at| *at as usize == row),
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

/// Returns the values that were left out with a fault: number, code and place.
fn dropped(batch: &Batch) -> Vec<String> {
    let words = batch.dropped.iter().map(|fault| {
        let steps = fault.loc.iter().map(|step| match step {
            LocationStep::Index(index) => index.to_string(),
            LocationStep::Key(key) => key.clone(),
        });
        format!("{} {}", steps.collect::<Vec<_>>().join("."), fault.code.as_str())
    });
    words.collect()
}

fn is_malformed(result: &ParseResult) -> bool {
    *result == Err(BatchRefusal::InvalidInput { field: "payload" })
}
