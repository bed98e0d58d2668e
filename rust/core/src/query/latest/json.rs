//! The newest samples as JSON.

use std::panic::resume_unwind;
use std::thread;

use super::entity::EntityWriter;
use super::table::LatestTable;
use super::view::LatestView;
use crate::model::catalog::Catalog;
use crate::model::chunks::Chunks;

/// Minimum number of entities for a thread. Starting a thread takes as long as writing some hundred
/// entities.
const ENTITIES_PER_THREAD_MIN: usize = if cfg!(test) { 2 } else { 4_096 };

/// Estimated bytes of an entity with a few tags and fields, for the reservation of memory.
pub(super) const ENTITY_BYTES: usize = 384;

/// Entities to write: slots of some tables, in order.
type Part<'a> = Vec<(&'a LatestTable, &'a [u32])>;

impl LatestView<'_> {
    /// Writes `head`, then the JSON objects of the entities of one measurement or of all, with
    /// commas between them. If the entities are many, up to `processors` threads share them.
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

/// Splits the slots of all tables into parts of `size` slots. The last part may be smaller. No part
/// is empty.
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
    for (index, (table, slots)) in part.iter().enumerate() {
        let Some(mut writer) = EntityWriter::new(table, catalog) else { continue };
        for (at, slot) in slots.iter().enumerate() {
            writer.write(chunks.open(), *slot, index > 0 || at > 0);
        }
    }
}
