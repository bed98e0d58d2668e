//! The newest samples as JSON.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use foldhash::fast::RandomState;

use super::LatestTable;
use super::instant::Instant;
use super::samples::{Row, Shape};
use super::value::ValueRef;
use crate::batch::FieldId;
use crate::catalog::Catalog;
use crate::json::{self, Chunks};

/// Bytes of keys that are kept for the rows that follow: few fleets have more.
const KEYS_BYTES_MAX: usize = 1 << 20;

/// What stands in front of the values of the shapes that were written last.
#[derive(Default)]
struct KeyCache {
    keys: Vec<Keys>,
    /// By shape: where its keys are.
    of_shape: HashMap<u32, usize, RandomState>,
    /// The shape asked for last, which most often is the next, too.
    last: Option<(u32, usize)>,
    bytes: usize,
}

/// The keys of a shape's values, in byte order of the fields' names (G4).
#[derive(Default)]
struct Keys {
    /// Keys with colons, and commas between them, one behind the other.
    text: Vec<u8>,
    /// Index of each value, and where its key ends.
    ends: Vec<(u32, u32)>,
}

impl LatestTable {
    /// Appends a slot's tags as a JSON object: those of its newest sample, merged where several
    /// tag sets share its instant, the later write winning (F6).
    pub fn write_tags(&self, out: &mut Vec<u8>, slot: u32, catalog: &Catalog) {
        if let Some(instant) = self.instants.get(&slot) {
            let series = instant.tag_sets().filter_map(|id| catalog.series(id));
            let tags: BTreeMap<&str, &str> = series.flat_map(|series| series.name.tags()).collect();
            json::write_object_of_strings(out, tags);
        } else if let Some(series) = catalog.series(self.series[slot as usize]) {
            out.extend_from_slice(&series.tags_json);
        }
    }

    /// Appends the JSON objects of the slots in `range_ns`, each preceded by a comma unless it is
    /// the first thing after `[`.
    pub fn write_entities(&self, chunks: &mut Chunks, range_ns: Range<i64>, catalog: &Catalog) {
        let Some(first) = self.entities.first() else { return };
        let measurement = catalog.entity(*first).measurement;
        let mut head = b"{\"measurement\":".to_vec();
        json::write_string(&mut head, catalog.measurement_name(measurement));
        head.extend_from_slice(b",\"entity_id\":");
        let mut keys = KeyCache::default();
        for slot in self.slots_in(range_ns) {
            let out = chunks.open();
            if out.last() != Some(&b'[') {
                out.push(b',');
            }
            out.extend_from_slice(&head);
            json::write_string(out, &catalog.entity(self.entity(slot)).id);
            out.extend_from_slice(b",\"observed_at\":");
            json::write_time(out, self.time_ns(slot));
            out.extend_from_slice(b",\"tags\":");
            self.write_tags(out, slot, catalog);
            out.extend_from_slice(b",\"fields\":{");
            if let Some((shape, row)) = self.samples.get(slot) {
                write_row(out, &row, keys.of(shape, row.shape, catalog));
            } else if let Some(instant) = self.instants.get(&slot) {
                write_instant(out, instant, catalog);
            }
            out.extend_from_slice(b"}}");
        }
    }
}

impl KeyCache {
    fn of(&mut self, number: u32, shape: &Shape, catalog: &Catalog) -> &Keys {
        let at = match self.last {
            Some((last, at)) if last == number => at,
            _ => self.find(number, shape, catalog),
        };
        self.last = Some((number, at));
        &self.keys[at]
    }

    fn find(&mut self, number: u32, shape: &Shape, catalog: &Catalog) -> usize {
        if let Some(at) = self.of_shape.get(&number) {
            return *at;
        }
        if self.bytes > KEYS_BYTES_MAX {
            *self = Self::default();
        }
        let mut keys = Keys::default();
        for at in shape.by_name(catalog) {
            let field = shape.fields()[*at as usize];
            write_key(&mut keys.text, field, keys.ends.is_empty(), catalog);
            let end = u32::try_from(keys.text.len()).expect("names are far below 4 GiB");
            keys.ends.push((*at, end));
        }
        self.bytes += keys.text.len() + size_of_val(keys.ends.as_slice());
        self.of_shape.insert(number, self.keys.len());
        self.keys.push(keys);
        self.keys.len() - 1
    }
}

fn write_row(out: &mut Vec<u8>, row: &Row<'_>, keys: &Keys) {
    let mut start = 0;
    for (at, end) in &keys.ends {
        let end = *end as usize;
        out.extend_from_slice(&keys.text[start..end]);
        match row.floats.get(*at as usize) {
            // Nearly all are.
            Some(value) => json::write_f64(out, *value),
            None => write_value(out, row.value(*at as usize)),
        }
        start = end;
    }
}

fn write_instant(out: &mut Vec<u8>, instant: &Instant, catalog: &Catalog) {
    let name = |field| catalog.field(field).map(|field| &*field.name);
    let mut values: Vec<_> =
        instant.values().map(|(field, value)| (name(field), field, value)).collect();
    values.sort_unstable_by_key(|(name, field, _)| (*name, *field));
    for (index, (_, field, value)) in values.into_iter().enumerate() {
        write_key(out, field, index == 0, catalog);
        write_value(out, value);
    }
}

fn write_key(out: &mut Vec<u8>, field: FieldId, is_first: bool, catalog: &Catalog) {
    if !is_first {
        out.push(b',');
    }
    // Its name was stored before its first value.
    json::write_string(out, catalog.field(field).map_or("", |field| &field.name));
    out.push(b':');
}

fn write_value(out: &mut Vec<u8>, value: ValueRef<'_>) {
    match value {
        ValueRef::Float(value) => json::write_f64(out, value),
        ValueRef::Bool(value) => json::write_bool(out, value),
        ValueRef::Text(value) => json::write_string(out, value),
    }
}
