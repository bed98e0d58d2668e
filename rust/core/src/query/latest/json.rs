//! The newest samples as JSON.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use foldhash::fast::RandomState;

use super::merged_sample::MergedSample;
use super::samples::Shape;
use super::table::LatestTable;
use super::value::ValueRef;
use crate::model::catalog::Catalog;
use crate::model::json::{self, Chunks};
use crate::model::names::FieldId;

/// Bytes of keys that are kept for the rows that follow: few fleets have more.
const KEYS_BYTES_MAX: usize = 1 << 20;

/// The keys of the shapes that were written last.
#[derive(Default)]
struct KeyCache {
    keys: Vec<Keys>,
    /// Index in `keys` by shape.
    of_shape: HashMap<u32, usize, RandomState>,
    /// The shape asked for last, which usually is the next one, too.
    last: Option<(u32, usize)>,
    bytes: usize,
}

/// The keys of a shape's values, in byte order of the fields' names.
#[derive(Default)]
struct Keys {
    /// Keys with colons and commas, one after another.
    text: Vec<u8>,
    /// Index of each value, and the end of its key in `text`.
    ends: Vec<(u32, u32)>,
}

impl LatestTable {
    /// Appends a slot's tags as a JSON object: those of its newest sample, merged where several
    /// tag sets share its instant, the later write winning.
    pub fn write_tags(&self, out: &mut Vec<u8>, slot: u32, catalog: &Catalog) {
        let merged = self.merged.get(&slot).filter(|sample| sample.tag_set_count() > 1);
        if let Some(sample) = merged {
            let series = sample.tag_sets().filter_map(|id| catalog.series(id));
            let tags: BTreeMap<&str, &str> = series.flat_map(|series| series.name.tags()).collect();
            json::write_object_of_strings(out, tags);
        } else if let Some(series) = catalog.series(self.series[slot as usize]) {
            series.write_tags(out);
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
        let mut merged = MergedKeys::default();
        for slot in self.slots_in(range_ns) {
            let out = chunks.open();
            if out.last() != Some(&b'[') {
                out.push(b',');
            }
            out.extend_from_slice(&head);
            json::write_string(out, catalog.entity_id(self.entity(slot)));
            out.extend_from_slice(b",\"observed_at\":");
            json::write_time(out, self.time_ns(slot));
            out.extend_from_slice(b",\"tags\":");
            self.write_tags(out, slot, catalog);
            out.extend_from_slice(b",\"fields\":{");
            if let Some((shape, row)) = self.samples.get(slot) {
                keys.of(shape, row.shape, catalog).write(out, |at| row.value(at));
            } else if let Some(sample) = self.merged.get(&slot) {
                merged.write(out, sample, catalog);
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
        let keys = Keys::new(shape.fields(), shape.by_name(catalog), catalog);
        self.bytes += keys.text.len() + size_of_val(keys.ends.as_slice());
        self.of_shape.insert(number, self.keys.len());
        self.keys.push(keys);
        self.keys.len() - 1
    }
}

impl Keys {
    /// The keys of `fields`, which are at `order` in order of their names.
    fn new(fields: &[FieldId], order: &[u32], catalog: &Catalog) -> Self {
        let mut keys = Self::default();
        for at in order {
            if !keys.ends.is_empty() {
                keys.text.push(b',');
            }
            // The name of a field is stored before its first value.
            let name = catalog.field(fields[*at as usize]).map_or("", |field| &field.name);
            json::write_string(&mut keys.text, name);
            keys.text.push(b':');
            let end = u32::try_from(keys.text.len()).expect("names are far below 4 GiB");
            keys.ends.push((*at, end));
        }
        keys
    }

    /// Writes a value after each key.
    #[inline]
    fn write<'v>(&self, out: &mut Vec<u8>, value: impl Fn(usize) -> ValueRef<'v>) {
        let mut start = 0;
        for (at, end) in &self.ends {
            let end = *end as usize;
            out.extend_from_slice(&self.text[start..end]);
            match value(*at as usize) {
                ValueRef::Float(value) => json::write_f64(out, value),
                ValueRef::Bool(value) => json::write_bool(out, value),
                ValueRef::Text(value) => json::write_string(out, value),
            }
            start = end;
        }
    }
}

/// Values of several rows, and the keys of the fields that came last: a fleet whose entities send
/// several records of one instant has the same fields again and again.
#[derive(Default)]
struct MergedKeys {
    fields: Vec<FieldId>,
    keys: Keys,
}

impl MergedKeys {
    fn write(&mut self, out: &mut Vec<u8>, sample: &MergedSample, catalog: &Catalog) {
        let values: Vec<(FieldId, ValueRef<'_>)> = sample.values().collect();
        if !self.fields.iter().eq(values.iter().map(|(field, _)| field)) {
            self.fields = values.iter().map(|(field, _)| *field).collect();
            let name = |at: &u32| catalog.field(self.fields[*at as usize]).map(|of| &*of.name);
            let mut order: Vec<u32> = (0..).take(values.len()).collect();
            order.sort_unstable_by(|a, b| name(a).cmp(&name(b)));
            self.keys = Keys::new(&self.fields, &order, catalog);
        }
        self.keys.write(out, |at| values[at].1);
    }
}
