//! Rows of several blocks of the log, those of an entity side by side.

use std::collections::BTreeMap;

use super::recent::{Joinable, table_bytes};
use crate::model::batch::Table;
use crate::model::catalog::MeasurementIndex;
use crate::model::names::SeriesId;
use crate::query::SeriesIndex;
use crate::storage::segment::{filtered, grouped};

/// Rows of one measurement of several blocks: ordered by entity, those of one in write order.
pub(in crate::plane) struct JoinedTable {
    table: Table,
    index: SeriesIndex,
    /// Position of the first block.
    first: u64,
    /// By row: how far the position of its block is from the first.
    blocks: Vec<u32>,
}

/// Tables of one measurement that are to be joined.
#[derive(Default)]
struct Sources<'t> {
    tables: Vec<&'t Table>,
    /// By row of each, what its entity is ordered by.
    entities: Vec<Vec<SeriesId>>,
    /// Where the position of each row's block is known from.
    positions: Vec<Positions<'t>>,
}

#[derive(Clone, Copy)]
enum Positions<'t> {
    Block(u64),
    Joined(&'t JoinedTable),
}

/// Tables that are to be joined, by measurement, and all that is needed of the names for that.
pub(in crate::plane) struct Joining<'t> {
    measurements: BTreeMap<MeasurementIndex, Sources<'t>>,
    first: u64,
}

impl<'t> Joining<'t> {
    /// The tables of `parts`. `key` gives the measurement of a series, and what its entity is
    /// ordered by.
    pub(in crate::plane) fn new(
        parts: &'t Joinable,
        key: impl Fn(SeriesId) -> (MeasurementIndex, SeriesId),
    ) -> Self {
        let mut measurements: BTreeMap<MeasurementIndex, Sources<'_>> = BTreeMap::new();
        for (position, tables) in parts.tables() {
            for (table, joined) in tables.with_joined() {
                let Some(series) = table.series.first() else { continue };
                let sources = measurements.entry(key(*series).0).or_default();
                sources.tables.push(table);
                sources.entities.push(table.series.iter().map(|series| key(*series).1).collect());
                sources
                    .positions
                    .push(joined.map_or(Positions::Block(position), Positions::Joined));
            }
        }
        Self { measurements, first: parts.first() }
    }

    /// Joins the tables of each measurement.
    pub(in crate::plane) fn finish(self) -> Vec<JoinedTable> {
        self.measurements.into_values().map(|sources| sources.join(self.first)).collect()
    }
}

impl JoinedTable {
    fn new(table: Table, first: u64, blocks: Vec<u32>) -> Self {
        Self { index: SeriesIndex::new(&table), table, first, blocks }
    }

    pub(in crate::plane) const fn table(&self) -> &Table {
        &self.table
    }

    pub(in crate::plane) const fn index(&self) -> &SeriesIndex {
        &self.index
    }

    pub(super) fn bytes(&self) -> usize {
        table_bytes(&self.table) + self.index.bytes() + size_of_val(self.blocks.as_slice())
    }

    /// The rows of blocks after a position; `None` where there are none.
    pub(super) fn after(&self, position: u64) -> Option<Self> {
        let is_after = |block: u32| self.first + u64::from(block) > position;
        let table = filtered(&self.table, |row| is_after(self.blocks[row])).into_owned();
        let blocks = self.blocks.iter().copied().filter(|block| is_after(*block)).collect();
        (table.row_count() > 0).then(|| Self::new(table, self.first, blocks))
    }
}

impl Sources<'_> {
    fn join(self, first: u64) -> JoinedTable {
        let (table, origins) = grouped(&self.tables, &self.entities);
        let mut blocks = Vec::with_capacity(table.row_count());
        for (source, rows) in origins {
            match self.positions[source] {
                Positions::Block(position) => {
                    blocks.resize(blocks.len() + rows.len(), offset(first, position));
                }
                Positions::Joined(joined) => {
                    let base = offset(first, joined.first);
                    blocks.extend(joined.blocks[rows].iter().map(|block| base + block));
                }
            }
        }
        JoinedTable::new(table, first, blocks)
    }
}

fn offset(first: u64, position: u64) -> u32 {
    u32::try_from(position - first).expect("blocks that are joined follow each other")
}
