//! The newest sample of every entity, in memory (G1 to G4, F6, N5). It takes what the
//! values take that are the newest, however many fields and tag sets others have.

mod answer;
mod instant;
mod order;
mod rows;
mod samples;
mod table_rows;
#[cfg(test)]
mod tests;
mod value;
mod view;

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use foldhash::fast::RandomState;

pub use self::value::ValueRef;
pub use self::view::LatestView;

use self::instant::Instant;
use self::order::Order;
use self::samples::Samples;
use self::table_rows::{Cells, TableRows};
use crate::model::batch::Table;
use crate::model::catalog::{Catalog, EntityIndex, MeasurementIndex};
use crate::model::names::{FieldId, SeriesId};

/// No slot, or no series.
const NONE: u32 = u32::MAX;

/// The newest samples within a range of times. Rows must be applied in write order.
#[derive(Default)]
pub struct Latest {
    tables: HashMap<MeasurementIndex, LatestTable>,
    /// By entity: its slot in the table of its measurement.
    slots: Vec<u32>,
}

/// Newest samples of one measurement: a slot per entity.
#[derive(Default)]
pub struct LatestTable {
    entities: Vec<EntityIndex>,
    times_ns: Vec<i64>,
    /// Of the row written last; [`NONE`] where there is no sample.
    series: Vec<SeriesId>,
    /// The samples that are one row.
    samples: Samples,
    /// The others, by slot.
    instants: HashMap<u32, Instant, RandomState>,
    order: Order,
    newest_ns: Option<i64>,
}

impl Latest {
    /// Applies the rows of `table` whose time lies in `range_ns`.
    pub fn apply(&mut self, table: &Table, range_ns: &Range<i64>, catalog: &Catalog) {
        let measurement = table.series.iter().find_map(|id| Some(catalog.series(*id)?.measurement));
        let Some(measurement) = measurement else { return };
        let target = self.tables.entry(measurement).or_default();
        let mut rows = TableRows::new(table);
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

    /// Sorts what was added since; call after a run of [`Self::apply`], before reading.
    pub fn sort(&mut self, catalog: &Catalog) {
        for table in self.tables.values_mut() {
            table.sort(catalog);
        }
    }

    /// Forgets the samples whose times are not `kept`.
    pub fn retain(&mut self, kept: impl Fn(i64) -> bool) {
        for table in self.tables.values_mut() {
            table.retain(&kept);
        }
    }

    /// Newest instant of any entity, of one measurement or of all.
    #[must_use]
    pub fn newest_ns(&self, measurement: Option<MeasurementIndex>) -> Option<i64> {
        match measurement {
            Some(measurement) => self.tables.get(&measurement)?.newest_ns,
            None => self.tables.values().filter_map(|table| table.newest_ns).max(),
        }
    }

    /// Tells if the entity of a series has a sample in `range_ns`.
    #[must_use]
    pub fn has(&self, series: SeriesId, range_ns: &Range<i64>, catalog: &Catalog) -> bool {
        let found = || {
            let series = catalog.series(series)?;
            let slot = *self.slots.get(series.entity? as usize)?;
            self.tables.get(&series.measurement)?.time_of(slot)
        };
        found().is_some_and(|time_ns| range_ns.contains(&time_ns))
    }

    /// Slots of some entities of a measurement whose newest sample lies in `range_ns`, in byte
    /// order of their ids. No other entity is looked at.
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

    /// The newest samples of a measurement.
    #[must_use]
    pub fn table(&self, measurement: MeasurementIndex) -> Option<&LatestTable> {
        self.tables.get(&measurement)
    }

    /// Those of every measurement that has any, in no particular order.
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

impl LatestTable {
    fn add(&mut self, entity: EntityIndex) -> u32 {
        let slot = u32::try_from(self.entities.len()).expect("there are fewer than 2^32 entities");
        self.entities.push(entity);
        self.times_ns.push(i64::MIN);
        self.series.push(NONE);
        self.samples.push_slot();
        slot
    }

    fn sort(&mut self, catalog: &Catalog) {
        let Self { order, entities, .. } = self;
        let end = u32::try_from(entities.len()).expect("slots have 32 bits");
        order.extend_to(end, |slot| catalog.entity_id(entities[slot as usize]));
    }

    /// Applies a row to the slot of its entity.
    fn apply(
        &mut self,
        slot: u32,
        (series, time_ns): (SeriesId, i64),
        cells: &mut Cells<'_>,
        catalog: &Catalog,
    ) {
        let at = slot as usize;
        let before = (self.series[at] != NONE).then_some((self.series[at], self.times_ns[at]));
        if before.is_some_and(|(_, newest_ns)| time_ns < newest_ns) {
            return;
        }
        self.series[at] = series;
        let shape = self.samples.shape_for(slot, cells);
        match before {
            // Nothing is left of a row of the same tags and fields.
            Some((before, newest_ns))
                if time_ns == newest_ns && (before != series || !self.samples.has(slot, shape)) =>
            {
                self.join(slot, before, series, cells, catalog);
                return;
            }
            _ => {}
        }
        if !self.instants.is_empty() {
            self.instants.remove(&slot);
        }
        self.times_ns[at] = time_ns;
        self.newest_ns = self.newest_ns.max(Some(time_ns));
        self.samples.set(slot, shape, cells);
    }

    /// Adds a row to those of the same instant, the last of which is of series `before`.
    fn join(
        &mut self,
        slot: u32,
        before: SeriesId,
        series: SeriesId,
        cells: &Cells<'_>,
        catalog: &Catalog,
    ) {
        let tags_bytes = |series| {
            let tags = catalog.series(series).map(|series| series.name.tags());
            tags.into_iter().flatten().map(|(key, value)| key.len() + value.len()).sum()
        };
        let samples = &mut self.samples;
        let instant = self.instants.entry(slot).or_insert_with(|| {
            let mut instant = Instant::default();
            if let Some((_, row)) = samples.get(slot) {
                let own = row.values().map(|(field, value)| (field, value.into()));
                instant.add(before, tags_bytes(before), own);
            }
            samples.remove(slot);
            instant
        });
        instant.add(series, tags_bytes(series), cells.values());
    }

    fn retain(&mut self, kept: &impl Fn(i64) -> bool) {
        self.newest_ns = None;
        for (slot, time_ns) in (0_u32..).zip(&mut self.times_ns) {
            let series = &mut self.series[slot as usize];
            if *series == NONE {
                continue;
            }
            if kept(*time_ns) {
                self.newest_ns = self.newest_ns.max(Some(*time_ns));
            } else {
                (*series, *time_ns) = (NONE, i64::MIN);
                self.samples.remove(slot);
                self.instants.remove(&slot);
            }
        }
        self.samples.sweep();
    }

    fn time_of(&self, slot: u32) -> Option<i64> {
        let series = *self.series.get(slot as usize)?;
        (series != NONE).then(|| self.times_ns[slot as usize])
    }

    /// Slots whose newest sample lies in `range_ns`, in byte order of their entity ids.
    pub fn slots_in(&self, range_ns: Range<i64>) -> impl Iterator<Item = u32> {
        let in_range =
            move |slot: &u32| self.time_of(*slot).is_some_and(|at| range_ns.contains(&at));
        self.order.iter().filter(in_range)
    }

    /// Entity of a slot.
    ///
    /// # Panics
    /// When there is no such slot; so do the other methods that take one.
    #[must_use]
    pub fn entity(&self, slot: u32) -> EntityIndex {
        self.entities[slot as usize]
    }

    /// Instant of a slot's newest sample.
    #[must_use]
    pub fn time_ns(&self, slot: u32) -> i64 {
        self.times_ns[slot as usize]
    }

    /// Takes the values of a slot's newest sample, in no particular order.
    pub fn visit<'a>(&'a self, slot: u32, mut take: impl FnMut(FieldId, ValueRef<'a>)) {
        if let Some((_, row)) = self.samples.get(slot) {
            row.values().for_each(|(field, value)| take(field, value));
        } else if let Some(instant) = self.instants.get(&slot) {
            instant.values().for_each(|(field, value)| take(field, value));
        }
    }
}
