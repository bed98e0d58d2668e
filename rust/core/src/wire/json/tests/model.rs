//! Random batches, written in random styles, against a slow model of the rules.

use std::collections::BTreeMap;
use std::fmt::Write;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::model::batch::{CellPosition, Conflict, NEW_SERIES_BASE, RowSet};
use crate::model::names::SeriesName;
use crate::model::time::write_rfc3339;

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Float(u64),
    Bool(bool),
    Text(String),
}

#[derive(Clone, Debug)]
struct Record {
    measurement: String,
    time_ns: i64,
    tags: BTreeMap<String, String>,
    fields: Vec<(String, Value)>,
    /// Chooses the style. Records with the same style have the same key order, spaces and escapes.
    style: u64,
}

/// A row as a reader sees it.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    name: SeriesName,
    time_ns: i64,
    cells: BTreeMap<String, Value>,
}

fn value() -> impl Strategy<Value = Value> {
    let float = prop_oneof![
        4 => (-2_000_000_i32..2_000_000).prop_map(|scaled| f64::from(scaled) / 1e4),
        2 => any::<f64>().prop_filter("finite", |value| value.is_finite()),
        1 => select(vec![0.0, -0.0, 1e22, 5e-324, f64::MAX]),
    ];
    prop_oneof![
        6 => float.prop_map(|value| Value::Float(value.to_bits())),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => "[a-z\"\\\\é🚀\u{0}\n}{]{0,12}".prop_map(Value::Text),
    ]
}

/// Draws mostly one type per name, so that conflicts are rare enough to see other results.
fn typed_field() -> impl Strategy<Value = (String, Value)> {
    let names = ["lat", "lon", "a field of more than sixteen bytes", "s\"q", "é", "n"];
    (select(names.to_vec()), value(), 0..12).prop_map(|(name, value, odd)| {
        let fits = match name {
            "s\"q" => matches!(value, Value::Text(_)),
            "n" => matches!(value, Value::Bool(_)),
            _ => matches!(value, Value::Float(_)),
        };
        let plain = match name {
            "s\"q" => Value::Text("plain".into()),
            "n" => Value::Bool(true),
            _ => Value::Float(2.5_f64.to_bits()),
        };
        (name.to_owned(), if fits || odd == 0 { value } else { plain })
    })
}

fn record() -> impl Strategy<Value = Record> {
    let tags =
        proptest::collection::btree_map("[ab}\"]{1,2}|tenant|entity_id", "[a-c}\"]{0,2}", 0..3);
    let time = prop_oneof![
        8 => (0_i64..120_000).prop_map(|ms| INGEST_NS - 60 * SECOND_NS + ms * 1_000_000),
        2 => any::<i64>(),
    ];
    let measurement = select(vec!["link", "sat\"", "a much longer measurement"]);
    (measurement, time, tags, vec(typed_field(), 0..6), any::<u64>()).prop_map(
        |(measurement, time_ns, tags, mut fields, style)| {
            let mut seen = Vec::new();
            fields.retain(|(name, _)| {
                let new = !seen.contains(name);
                seen.push(name.clone());
                new
            });
            Record { measurement: measurement.to_owned(), time_ns, tags, fields, style }
        },
    )
}

/// Draws batches of a few templates, repeated with other values, as producers send them.
fn batch() -> impl Strategy<Value = Vec<Record>> {
    (vec(record(), 1..4), vec((record(), any::<bool>(), 0_usize..4), 0..40)).prop_map(
        |(templates, records)| {
            let like = |(mut record, same, at): (Record, bool, usize)| {
                let template = &templates[at % templates.len()];
                if same {
                    record.style = template.style;
                    record.measurement.clone_from(&template.measurement);
                    record.tags.clone_from(&template.tags);
                    let values: BTreeMap<_, _> = record.fields.drain(..).collect();
                    record.fields = template.fields.clone();
                    for (name, value) in &mut record.fields {
                        if let Some(other) = values.get(name) {
                            value.clone_from(other);
                        }
                    }
                }
                record
            };
            records.into_iter().map(like).collect()
        },
    )
}

/// Choices of a style.
struct Style(u64);

impl Style {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
        (self.0 >> 33) % bound
    }

    fn space(&mut self) -> &'static str {
        ["", "", "", " ", "\n\t", " \r "][usize::try_from(self.below(6)).unwrap()]
    }

    fn quote(&mut self, text: &str) -> String {
        let mut out = String::from('"');
        for character in text.chars() {
            let must = character < ' ' || matches!(character, '"' | '\\');
            if must || self.below(24) == 0 {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}").unwrap();
                }
            } else {
                out.push(character);
            }
        }
        out + "\""
    }

    fn object(&mut self, members: Vec<(String, String)>) -> String {
        let mut out = String::from('{');
        for (at, (key, value)) in members.into_iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let (a, b, c, d) = (self.space(), self.space(), self.space(), self.space());
            let key = self.quote(&key);
            write!(out, "{comma}{a}{key}{b}:{c}{value}{d}").unwrap();
        }
        out + self.space() + "}"
    }

    fn record(&mut self, record: &Record) -> String {
        let mut time = Vec::new();
        write_rfc3339(&mut time, record.time_ns);
        let time = format!("\"{}\"", String::from_utf8(time).unwrap());
        let tags = record.tags.iter().map(|(key, value)| (key.clone(), self.quote(value)));
        let tags = tags.collect();
        let fields = record.fields.iter().map(|(name, value)| {
            let value = match value {
                Value::Float(bits) if self.below(8) == 0 => format!("{:e}", f64::from_bits(*bits)),
                Value::Float(bits) => f64::from_bits(*bits).to_string(),
                Value::Bool(value) => value.to_string(),
                Value::Text(value) => self.quote(value),
            };
            (name.clone(), value)
        });
        let fields = fields.collect();
        let mut members = vec![
            ("measurement".to_owned(), self.quote(&record.measurement)),
            ("time".to_owned(), time),
            ("tags".to_owned(), self.object(tags)),
            ("fields".to_owned(), self.object(fields)),
        ];
        if record.tags.is_empty() && self.below(2) == 0 {
            members.remove(2);
        }
        if self.below(4) == 0 {
            members.push(("tenant_id".to_owned(), "[{\"x\": [null, 1e999]}, \"}\"]".to_owned()));
        }
        for at in (1..members.len()).rev() {
            if self.below(2) == 0 {
                members.swap(at, usize::try_from(self.below(at as u64 + 1)).unwrap());
            }
        }
        self.object(members)
    }
}

fn render(records: &[Record]) -> String {
    let records: Vec<_> = records.iter().map(|record| Style(record.style).record(record)).collect();
    format!("[{}]", records.join(" ,"))
}

/// Rows by measurement, rejected indices, clamped count, first conflict.
type Outcome = (Vec<(String, Vec<Row>)>, Vec<u32>, u32, Option<Conflict>);

/// Applies the rules one after the other, without optimization.
fn modelled(records: &[Record]) -> Outcome {
    let mut tables: Vec<(String, Vec<Row>)> = Vec::new();
    let mut types = BTreeMap::new();
    let (mut rejected, mut clamped_count, mut conflict) = (Vec::new(), 0, None);
    for (index, record) in (0..).zip(records) {
        if record.fields.is_empty() || record.time_ns < YEAR_2000_NS {
            rejected.push(index);
            continue;
        }
        clamped_count += u32::from(record.time_ns > INGEST_NS);
        let mut cells = BTreeMap::new();
        for (key, (name, value)) in (0..).zip(&record.fields) {
            let kind = std::mem::discriminant(value);
            if *types.entry((&record.measurement, name)).or_insert(kind) == kind {
                cells.insert(name.clone(), value.clone());
            } else if conflict.is_none() {
                let at = CellPosition { record: index, key };
                conflict = Some(Conflict { at, field: name.clone() });
            }
        }
        let mut tags = record.tags.clone();
        if let Some(tenant) = tags.get_mut("tenant") {
            "acme".clone_into(tenant);
        }
        let tags: Vec<_> = tags.into_iter().collect();
        let name = SeriesName::new(&record.measurement, &tags);
        let row = Row { name, time_ns: record.time_ns.min(INGEST_NS), cells };
        match tables.iter_mut().find(|(measurement, _)| *measurement == record.measurement) {
            Some((_, rows)) => rows.push(row),
            None => tables.push((record.measurement.clone(), vec![row])),
        }
    }
    (tables, rejected, clamped_count, conflict)
}

/// Returns the same view of a parsed batch. `known` are the series of the cache.
fn seen(batch: &Batch, known: &[SeriesName]) -> Outcome {
    let name_of = |series: u32| match series.checked_sub(NEW_SERIES_BASE) {
        Some(new) => batch.new_series.get(new as usize).unwrap().name.to_name(),
        None => known[series as usize].clone(),
    };
    let tables = batch.measurements.iter().zip(&batch.tables).map(|(measurement, table)| {
        let rows = table.series.iter().zip(&table.times_ns).map(|(&series, &time_ns)| Row {
            name: name_of(series),
            time_ns,
            cells: BTreeMap::new(),
        });
        let mut rows: Vec<_> = rows.collect();
        for column in &table.columns {
            let name = &batch.fields[column.field as usize].name;
            for at in 0..column.values.len() {
                let value = match &column.values {
                    Values::Float(values) => Value::Float(values[at].to_bits()),
                    Values::Bool(values) => Value::Bool(values[at]),
                    Values::Text(values) => Value::Text(values[at].to_string()),
                };
                let row = match &column.rows {
                    RowSet::All => at,
                    RowSet::Some(rows) => rows[at] as usize,
                };
                assert!(rows[row].cells.insert(name.clone(), value).is_none());
            }
        }
        (measurement.clone(), rows)
    });
    let conflict = batch.conflict.clone();
    (tables.collect(), batch.rejected_indices.clone(), batch.clamped_count, conflict)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn batches_are_read_as_modelled(records in batch()) {
        let body = render(&records);
        let expected = modelled(&records);
        let cold = accepted(&body);
        prop_assert_eq!(&seen(&cold, &[]), &expected, "{}", body);
        // Test a cache that knows every series, and a cache that knows some.
        let all: Vec<_> = cold.new_series.iter().map(|new| new.name.to_name()).collect();
        let some: Vec<_> = all.iter().step_by(2).cloned().collect();
        let warm = parse_with(&cache_of(&cold, 1), body.as_bytes()).unwrap();
        prop_assert!(warm.new_series.is_empty());
        prop_assert_eq!(&seen(&warm, &all), &expected, "{}", body);
        let mixed = parse_with(&cache_of(&cold, 2), body.as_bytes()).unwrap();
        prop_assert_eq!(&seen(&mixed, &some), &expected, "{}", body);
    }

    #[test]
    fn records_alone_are_read_as_in_company(
        records in batch(), at in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>(),
        byte in select(b"\"\\{}[]:,0-1.eEtfn x".to_vec()),
    ) {
        // A template reads a changed record after a similar record, as far as possible. The rules
        // read a copy of it after an empty record. Both must have the same result.
        prop_assume!(!records.is_empty());
        let record = Style(records[at.index(records.len())].style).record(&records[at.index(records.len())]);
        let mut changed = record.clone().into_bytes();
        let cut = cut.index(changed.len());
        changed[cut] = byte;
        let Ok(changed) = String::from_utf8(changed) else { return Ok(()) };
        let after_like = parse(&format!("[{record},{changed}]"));
        let first = parse(&format!("[{record}]")).unwrap();
        let alone = parse(&format!("[{:1$},{changed}]", "{}", record.len()));
        match (after_like, alone) {
            (Ok(batch), Err(BatchRefusal::Faults(faults))) => {
                // The only faults are faults of the empty record.
                prop_assert_eq!(faults.len(), 2, "{}", changed);
                prop_assert!(batch.accepted_count >= first.accepted_count);
            }
            (Err(BatchRefusal::Faults(found)), Err(BatchRefusal::Faults(faults))) => {
                let own = faults.iter().filter(|fault| fault.loc[0] != LocationStep::Index(0));
                let syntax = faults[0].code == FaultCode::JsonInvalid;
                prop_assert!(found.iter().eq(own) || syntax && found == faults, "{}", changed);
            }
            (Err(BatchRefusal::InvalidInput { .. }), Err(BatchRefusal::Faults(_))) => {}
            (found, alone) => prop_assert!(false, "{found:?} {alone:?}"),
        }
    }

    #[test]
    fn damaged_bodies_never_panic(
        records in batch(), damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        end in any::<prop::sample::Index>(), cut: bool,
    ) {
        let body = render(&records);
        let names = cache_of(&accepted(&body), 1);
        let mut body = body.into_bytes();
        for (at, byte) in damage {
            let at = at.index(body.len());
            body[at] = byte;
        }
        if cut {
            body.truncate(end.index(body.len()));
        }
        let cold = parse_with(&RawKeyCache::default(), &body);
        let warm = parse_with(&names, &body);
        prop_assert_eq!(cold.is_ok(), warm.is_ok(), "{}", String::from_utf8_lossy(&body));
        if let (Err(cold), Err(warm)) = (cold, warm) {
            prop_assert_eq!(cold, warm);
        }
    }
}
