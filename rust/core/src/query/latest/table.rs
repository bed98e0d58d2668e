//! Newest samples of one measurement.

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::RandomState;

use super::merged_sample::MergedSample;
use super::row_view::RowCells;
use super::samples::Samples;
use super::sorted_slots::SortedSlots;
use super::value::ValueRef;
use crate::model::catalog::{Catalog, EntityIndex};
use crate::model::names::{FieldId, SeriesId};

/// Stands for no slot or no series.
pub(super) const NONE: u32 = u32::MAX;

/// Newest samples of one measurement, with a slot for each entity.
#[derive(Default)]
pub struct LatestTable {
    pub(super) entities: Vec<EntityIndex>,
    pub(super) times_ns: Vec<i64>,
    /// Series of the last written row of each slot, or [`NONE`] if the slot has no sample.
    pub(super) series: Vec<SeriesId>,
    /// The samples that consist of one row.
    pub(super) samples: Samples,
    /// The samples that consist of several rows, by slot.
    pub(super) merged: HashMap<u32, MergedSample, RandomState>,
    order: SortedSlots,
    pub(super) newest_ns: Option<i64>,
}

impl LatestTable {
    /// Adds a slot without a sample.
    pub(super) fn add(&mut self, entity: EntityIndex) -> u32 {
        let slot = u32::try_from(self.entities.len()).expect("there are fewer than 2^32 entities");
        self.entities.push(entity);
        self.times_ns.push(i64::MIN);
        self.series.push(NONE);
        self.samples.push_slot();
        slot
    }

    pub(super) fn sort(&mut self, catalog: &Catalog) {
        let Self { order, entities, .. } = self;
        let end = u32::try_from(entities.len()).expect("slots have 32 bits");
        order.extend_to(end, |slot| catalog.entity_id_bytes(entities[slot as usize]));
    }

    /// Applies a row to the slot of its entity.
    pub(super) fn apply(
        &mut self,
        slot: u32,
        (series, time_ns): (SeriesId, i64),
        cells: &mut RowCells<'_>,
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
            // A row with other tags or fields joins the rows of its instant. A row with the same
            // tags and fields is replaced.
            Some((before, newest_ns))
                if time_ns == newest_ns && (before != series || !self.samples.has(slot, shape)) =>
            {
                self.join(slot, before, series, cells, catalog);
                return;
            }
            _ => {}
        }
        if !self.merged.is_empty() {
            self.merged.remove(&slot);
        }
        self.times_ns[at] = time_ns;
        self.newest_ns = self.newest_ns.max(Some(time_ns));
        self.samples.set(slot, shape, cells);
    }

    /// Adds a row to the rows of the same instant. The last of these rows has the series `before`.
    fn join(
        &mut self,
        slot: u32,
        before: SeriesId,
        series: SeriesId,
        cells: &RowCells<'_>,
        catalog: &Catalog,
    ) {
        let tags_bytes = |series| {
            let tags = catalog.series(series).map(|series| series.name().tags());
            tags.into_iter().flatten().map(|(key, value)| key.len() + value.len()).sum()
        };
        let samples = &mut self.samples;
        let sample = self.merged.entry(slot).or_insert_with(|| {
            let mut sample = MergedSample::default();
            if let Some((_, row)) = samples.get(slot) {
                let own = row.values().map(|(field, value)| (field, value.into()));
                sample.add(before, tags_bytes(before), own);
            }
            samples.remove(slot);
            sample
        });
        sample.add(series, tags_bytes(series), cells.values());
    }

    pub(super) fn retain(&mut self, kept: &impl Fn(i64) -> bool) {
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
                self.merged.remove(&slot);
            }
        }
        self.samples.sweep();
    }

    /// Copies the samples of some slots, in this order.
    pub(super) fn of_slots(&self, slots: &[u32]) -> Self {
        fn picked<T: Copy>(all: &[T], slots: &[u32]) -> Vec<T> {
            slots.iter().map(|slot| all[*slot as usize]).collect()
        }
        let merged = |(slot, at)| Some((at, self.merged.get(slot)?.clone()));
        Self {
            entities: picked(&self.entities, slots),
            times_ns: picked(&self.times_ns, slots),
            series: picked(&self.series, slots),
            samples: self.samples.of_slots(slots),
            merged: slots.iter().zip(0..).filter_map(merged).collect(),
            order: SortedSlots::default(),
            newest_ns: None,
        }
    }

    pub(super) fn slot_count(&self) -> usize {
        self.entities.len()
    }

    /// Returns the approximate bytes of memory that the table takes.
    pub(super) fn held_bytes(&self) -> usize {
        let each = size_of::<EntityIndex>() + size_of::<i64>() + size_of::<SeriesId>();
        let merged: usize = self.merged.values().map(MergedSample::held_bytes).sum();
        self.entities.len() * each + self.samples.held_bytes() + merged
    }

    /// Returns the time of a slot's sample, or `None` if the slot has no sample.
    pub(super) fn time_of(&self, slot: u32) -> Option<i64> {
        let series = *self.series.get(slot as usize)?;
        (series != NONE).then(|| self.times_ns[slot as usize])
    }

    /// Returns the slots whose newest sample is in `range_ns`, in byte order of their entity ids.
    pub fn slots_in(&self, range_ns: Range<i64>) -> impl Iterator<Item = u32> {
        let in_range =
            move |slot: &u32| self.time_of(*slot).is_some_and(|at| range_ns.contains(&at));
        self.order.iter().filter(in_range)
    }

    /// Returns the entity of a slot.
    ///
    /// # Panics
    /// Panics if there is no such slot, like all methods that take a slot.
    #[must_use]
    pub fn entity(&self, slot: u32) -> EntityIndex {
        self.entities[slot as usize]
    }

    /// Returns the instant of a slot's newest sample, in nanoseconds since 1970.
    #[must_use]
    pub fn time_ns(&self, slot: u32) -> i64 {
        self.times_ns[slot as usize]
    }

    /// Returns the values of a slot's newest sample, in no particular order.
    pub fn values(&self, slot: u32) -> impl Iterator<Item = (FieldId, ValueRef<'_>)> {
        // A slot has either one row or several rows that are merged.
        let row = self.samples.get(slot).map(|(_, row)| row.values());
        let merged = self.merged.get(&slot).map(MergedSample::values);
        row.into_iter().flatten().chain(merged.into_iter().flatten())
    }
}
