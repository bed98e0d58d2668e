//! Writes an entity as JSON.

use std::collections::BTreeMap;

use super::keys::{KeyCache, MergedKeys};
use super::table::LatestTable;
use crate::model::catalog::Catalog;
use crate::model::json;
use crate::model::time::TimeWriter;

impl LatestTable {
    /// Appends the tags of a slot's newest sample as a JSON object. If several tag sets share the
    /// instant, their tags are merged, and the later write wins.
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

/// Writes entities of one table, and caches the parts that they have in common.
pub(super) struct EntityWriter<'a> {
    table: &'a LatestTable,
    catalog: &'a Catalog,
    /// Start of every entity, with the comma in front.
    head: Vec<u8>,
    times: TimeWriter,
    keys: KeyCache,
    merged: MergedKeys,
}

impl<'a> EntityWriter<'a> {
    /// Returns a writer for the slots of `table`, or `None` if the table has no slots.
    pub(super) fn new(table: &'a LatestTable, catalog: &'a Catalog) -> Option<Self> {
        let measurement = catalog.entity(*table.entities.first()?).measurement;
        let mut head = b",{\"measurement\":".to_vec();
        json::write_string(&mut head, catalog.measurement_name(measurement));
        head.extend_from_slice(b",\"entity_id\":");
        let (times, keys, merged) = Default::default();
        Some(Self { table, catalog, head, times, keys, merged })
    }

    /// Appends the whole entity of a slot, after a comma if it follows another entity.
    pub(super) fn write(&mut self, out: &mut Vec<u8>, slot: u32, follows: bool) {
        self.begin(out, slot, follows);
        self.go_on(out, slot, 0, usize::MAX);
    }

    /// Appends the part of the entity before the values.
    pub(super) fn begin(&mut self, out: &mut Vec<u8>, slot: u32, follows: bool) {
        let Self { table, catalog, head, times, .. } = self;
        out.extend_from_slice(&head[usize::from(!follows)..]);
        let entity = table.entity(slot);
        // The id is one of the tags.
        match catalog.series(table.series[slot as usize]) {
            Some(series) if series.has_plain_tags() => {
                json::write_plain_string(out, catalog.entity_id_bytes(entity));
            }
            _ => json::write_string(out, catalog.entity_id(entity)),
        }
        out.extend_from_slice(b",\"observed_at\":\"");
        times.write(out, table.time_ns(slot));
        out.extend_from_slice(b"\",\"tags\":");
        table.write_tags(out, slot, catalog);
        out.extend_from_slice(b",\"fields\":{");
    }

    /// Appends the values from index `from` on, and the end of the entity. If the names of the
    /// entity are long, the writer pauses when `out` has `bytes_max`. Returns the index of the
    /// value to continue with, or `None` at the end.
    pub(super) fn go_on(
        &mut self,
        out: &mut Vec<u8>,
        slot: u32,
        from: usize,
        bytes_max: usize,
    ) -> Option<usize> {
        let Self { table, catalog, keys, merged, .. } = self;
        let bounds = (from, bytes_max);
        let next = if let Some((shape, row)) = table.samples.get(slot) {
            let keys = keys.of(shape, row.shape, catalog);
            keys.write(out, bounds, catalog, |at| row.value(at))
        } else if let Some(sample) = table.merged.get(&slot) {
            merged.write(out, bounds, sample, catalog)
        } else {
            None
        };
        if next.is_none() {
            out.extend_from_slice(b"}}");
        }
        next
    }
}
