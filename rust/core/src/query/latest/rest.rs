//! Long answers that are written while they are read. The samples that are not written yet keep the
//! state that they had when the answer began.

use std::collections::VecDeque;

use super::entity::EntityWriter;
use super::table::LatestTable;
use super::view::LatestView;
use crate::model::catalog::Catalog;
use crate::model::chunks;

/// Estimated bytes of an entity with a few tags and fields, for the reservation of memory.
const ENTITY_BYTES: usize = 384;

/// Entities that have not been written. The memory grows with their values. Names stay in the
/// catalog.
#[derive(Default)]
pub struct LatestRest {
    /// Tables of the measurements. No table is empty.
    tables: VecDeque<LatestTable>,
    /// The next slot of the first table.
    slot: u32,
    /// The next value of that slot, if the entity is partly written.
    value: Option<usize>,
}

impl LatestView<'_> {
    /// Writes `head`, then the JSON objects of the entities of one measurement or of all, with
    /// commas between them. Stops at about `bytes_max` bytes. Returns the text and the entities
    /// that remain.
    #[must_use]
    pub fn begin_entities(
        &self,
        head: &[u8],
        measurement: Option<&str>,
        bytes_max: usize,
    ) -> (Vec<u8>, LatestRest) {
        let tables = self.measurements(measurement).into_iter();
        let tables: Vec<(&LatestTable, Vec<u32>)> = tables
            .filter_map(|index| self.latest.table(index))
            .map(|table| (table, table.slots_in(self.range_ns.clone()).collect()))
            .collect();
        let entities: usize = tables.iter().map(|(_, slots)| slots.len()).sum();
        let bytes = head.len() + entities * ENTITY_BYTES;
        let mut out =
            if bytes < bytes_max { Vec::with_capacity(bytes) } else { chunks::piece(bytes) };
        out.extend_from_slice(head);
        let mut rest = LatestRest::default();
        let mut follows = false;
        for (table, slots) in &tables {
            let Some(mut writer) = EntityWriter::new(table, self.catalog) else { continue };
            for (index, slot) in slots.iter().enumerate() {
                let is_full = out.len() >= bytes_max;
                if !is_full {
                    writer.begin(&mut out, *slot, follows);
                    rest.value = writer.go_on(&mut out, *slot, 0, bytes_max);
                    follows = true;
                }
                if is_full || rest.value.is_some() {
                    rest.tables.push_back(table.of_slots(&slots[index..]));
                    break;
                }
            }
        }
        (out, rest)
    }
}

impl LatestRest {
    /// Returns true if no entities remain.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Returns the approximate bytes of memory that the remaining entities hold.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.tables.iter().map(LatestTable::held_bytes).sum()
    }

    /// Returns about `bytes_max` bytes of the next entities, each after a comma.
    pub fn next_piece(&mut self, catalog: &Catalog, bytes_max: usize) -> Vec<u8> {
        let mut out = chunks::piece(bytes_max);
        while let Some(table) = self.tables.front() {
            let Some(mut writer) = EntityWriter::new(table, catalog) else { break };
            while (self.slot as usize) < table.slot_count() {
                if out.len() >= bytes_max {
                    return out;
                }
                if self.value.is_none() {
                    writer.begin(&mut out, self.slot, true);
                }
                let from = self.value.unwrap_or(0);
                self.value = writer.go_on(&mut out, self.slot, from, bytes_max);
                if self.value.is_some() {
                    return out;
                }
                self.slot += 1;
            }
            self.tables.pop_front();
            self.slot = 0;
        }
        out
    }
}
