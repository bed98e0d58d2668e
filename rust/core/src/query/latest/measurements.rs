//! Newest samples of all measurements.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use super::row_view::RowView;
use super::table::{LatestTable, NONE};
use crate::model::batch::Table;
use crate::model::catalog::{Catalog, EntityIndex, MeasurementIndex};
use crate::model::names::SeriesId;

/// The newest samples within a range of times. Rows must be applied in write order.
#[derive(Default)]
pub struct Latest {
    tables: HashMap<MeasurementIndex, LatestTable>,
    /// Slot of each entity in the table of its measurement.
    slots: Vec<u32>,
}

impl Latest {
    /// Applies the rows of `table` whose time is in `range_ns`.
    pub fn apply(&mut self, table: &Table, range_ns: &Range<i64>, catalog: &Catalog) {
        let measurement = table.series.iter().find_map(|id| Some(catalog.series(*id)?.measurement));
        let Some(measurement) = measurement else { return };
        let target = self.tables.entry(measurement).or_default();
        let mut rows = RowView::new(table);
        for (row, (series, time_ns)) in table.series.iter().zip(&table.times_ns).enumerate() {
            let entity = catalog.series(*series).and_then(|series| series.entity);
            if let Some(entity) = entity
                && range_ns.contains(time_ns)
                && !rows.is_followed(row, range_ns)
            {
                let slot = slot_of(&mut self.slots, target, entity);
                target.apply(slot, (*series, *time_ns), &mut rows.cells(row), catalog);
            }
        }
        target.samples.sweep();
    }

    /// Sorts the added entities. Call this after a run of [`Self::apply`], before reading.
    pub fn sort(&mut self, catalog: &Catalog) {
        for table in self.tables.values_mut() {
            table.sort(catalog);
        }
    }

    /// Removes the samples whose times are not `kept`.
    pub fn retain(&mut self, kept: impl Fn(i64) -> bool) {
        for table in self.tables.values_mut() {
            table.retain(&kept);
        }
    }

    /// Returns the newest instant of any entity of one measurement or of all.
    #[must_use]
    pub fn newest_ns(&self, measurement: Option<MeasurementIndex>) -> Option<i64> {
        match measurement {
            Some(measurement) => self.tables.get(&measurement)?.newest_ns,
            None => self.tables.values().filter_map(|table| table.newest_ns).max(),
        }
    }

    /// Returns true if the entity of a series has a sample in `range_ns`.
    #[must_use]
    pub fn has(&self, series: SeriesId, range_ns: &Range<i64>, catalog: &Catalog) -> bool {
        let found = || {
            let series = catalog.series(series)?;
            let slot = *self.slots.get(series.entity? as usize)?;
            self.tables.get(&series.measurement)?.time_of(slot)
        };
        found().is_some_and(|time_ns| range_ns.contains(&time_ns))
    }

    /// Returns the slots of some entities of a measurement, in byte order of their ids. Leaves out
    /// entities whose newest sample is not in `range_ns`. Does not look at any other entity.
    #[must_use]
    pub fn slots_of(
        &self,
        measurement: MeasurementIndex,
        ids: &[String],
        range_ns: &Range<i64>,
        catalog: &Catalog,
    ) -> Vec<u32> {
        let Some(table) = self.tables.get(&measurement) else { return Vec::new() };
        let ids: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
        let slot = |id| {
            let slot = *self.slots.get(catalog.find_entity(measurement, id)? as usize)?;
            range_ns.contains(&table.time_of(slot)?).then_some(slot)
        };
        ids.into_iter().filter_map(slot).collect()
    }

    /// Returns the newest samples of a measurement.
    #[must_use]
    pub fn table(&self, measurement: MeasurementIndex) -> Option<&LatestTable> {
        self.tables.get(&measurement)
    }

    /// Returns the tables of all measurements that have one, in no particular order.
    pub fn tables(&self) -> impl Iterator<Item = (MeasurementIndex, &LatestTable)> {
        self.tables.iter().map(|(measurement, table)| (*measurement, table))
    }
}

fn slot_of(slots: &mut Vec<u32>, table: &mut LatestTable, entity: EntityIndex) -> u32 {
    let at = entity as usize;
    if slots.len() <= at {
        slots.resize(at + 1, NONE);
    }
    if slots[at] == NONE {
        slots[at] = table.add(entity);
    }
    slots[at]
}
