//! The newest samples as JSON.

use std::collections::{BTreeMap, HashMap};
use std::panic::resume_unwind;
use std::thread;

use foldhash::fast::RandomState;

use super::merged_sample::MergedSample;
use super::samples::Shape;
use super::table::LatestTable;
use super::value::ValueRef;
use super::view::LatestView;
use crate::model::catalog::Catalog;
use crate::model::chunks::Chunks;
use crate::model::json;
use crate::model::names::FieldId;
use crate::model::time::TimeWriter;

/// Entities that a thread writes at least: starting one takes as long as writing some hundred.
const ENTITIES_PER_THREAD_MIN: usize = if cfg!(test) { 2 } else { 4_096 };

/// Bytes of one entity, of a few tags and fields, by which memory is set aside.
const ENTITY_BYTES: usize = 384;

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
            let tags: BTreeMap<&str, &str> =
                series.flat_map(|series| series.name().tags()).collect();
            json::write_object_of_strings(out, tags);
        } else if let Some(series) = catalog.series(self.series[slot as usize]) {
            series.write_tags(out);
        }
    }
}

/// Entities to write: slots of some tables, in order.
type Part<'a> = Vec<(&'a LatestTable, &'a [u32])>;

impl LatestView<'_> {
    /// `head`, then the JSON objects of the entities, of one measurement or of all, with commas
    /// between them; many are shared among as many threads as there are `processors`.
    #[must_use]
    pub fn write_entities(
        &self,
        head: &[u8],
        measurement: Option<&str>,
        processors: usize,
    ) -> Vec<Vec<u8>> {
        let tables = self.measurements(measurement).into_iter();
        let tables: Vec<(&LatestTable, Vec<u32>)> = tables
            .filter_map(|index| self.latest.table(index))
            .map(|table| (table, table.slots_in(self.range_ns.clone()).collect()))
            .collect();
        let count: usize = tables.iter().map(|(_, slots)| slots.len()).sum();
        let threads = processors.min(count / ENTITIES_PER_THREAD_MIN).max(1);
        let parts = parts(&tables, count.div_ceil(threads));
        let write = |part: &Part<'_>, before: &[u8]| {
            let entities: usize = part.iter().map(|(_, slots)| slots.len()).sum();
            let mut chunks = Chunks::with_capacity(before.len() + entities * ENTITY_BYTES);
            chunks.open().extend_from_slice(before);
            write_part(&mut chunks, part, self.catalog);
            chunks.finish()
        };
        let Some((first, others)) = parts.split_first() else { return vec![head.to_vec()] };
        thread::scope(|scope| {
            let write = &write;
            let others: Vec<_> =
                others.iter().map(|part| scope.spawn(move || write(part, b","))).collect();
            let mut pieces = write(first, head);
            for other in others {
                pieces.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
            pieces
        })
    }
}

/// The slots of all tables in parts of `size`, the last one as many as are left; none is empty.
fn parts<'a>(tables: &'a [(&'a LatestTable, Vec<u32>)], size: usize) -> Vec<Part<'a>> {
    let mut parts: Vec<Part<'a>> = Vec::new();
    let mut room = 0;
    for (table, slots) in tables {
        let mut rest = slots.as_slice();
        while !rest.is_empty() {
            if room == 0 {
                parts.push(Part::default());
                room = size;
            }
            let (some, after) = rest.split_at(room.min(rest.len()));
            if let Some(part) = parts.last_mut() {
                part.push((table, some));
            }
            room -= some.len();
            rest = after;
        }
    }
    parts
}

fn write_part(chunks: &mut Chunks, part: &Part<'_>, catalog: &Catalog) {
    let mut times = TimeWriter::default();
    for (index, (table, slots)) in part.iter().enumerate() {
        table.write_entities(chunks, (index > 0, slots), &mut times, catalog);
    }
}

impl LatestTable {
    /// Appends the JSON objects of some slots, with commas between them and, where it is said,
    /// before the first.
    pub(super) fn write_entities(
        &self,
        chunks: &mut Chunks,
        (follows, slots): (bool, &[u32]),
        times: &mut TimeWriter,
        catalog: &Catalog,
    ) {
        let Some(first) = self.entities.first() else { return };
        let measurement = catalog.entity(*first).measurement;
        let mut head = b",{\"measurement\":".to_vec();
        json::write_string(&mut head, catalog.measurement_name(measurement));
        head.extend_from_slice(b",\"entity_id\":");
        let mut keys = KeyCache::default();
        let mut merged = MergedKeys::default();
        for (index, slot) in slots.iter().copied().enumerate() {
            let out = chunks.open();
            out.extend_from_slice(&head[usize::from(index == 0 && !follows)..]);
            json::write_string(out, catalog.entity_id(self.entity(slot)));
            out.extend_from_slice(b",\"observed_at\":\"");
            times.write(out, self.time_ns(slot));
            out.extend_from_slice(b"\",\"tags\":");
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
