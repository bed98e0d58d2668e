//! Entities, fields and times that a read wants, by name and by stored id.

use std::ops::{Range, RangeInclusive};

use super::request::SeriesQuery;
use crate::model::batch::FieldType;
use crate::model::catalog::{Catalog, EntityIndex, MeasurementIndex};
use crate::model::names::{FieldId, SeriesId};
use crate::storage::tombstone::{Extent, Origin, Tombstone};

/// Fields of the measurement that a query wants.
#[derive(Default)]
enum FieldSelection {
    #[default]
    AllNumeric,
    /// Only these fields, ascending. None of them is a text.
    Some(Vec<FieldId>),
}

/// A tombstone that may hide wanted rows.
pub(super) struct HiddenExtent {
    pub(super) tombstone: Tombstone,
    /// For each wanted entity, true if the tombstone names it.
    pub(super) entities: Vec<bool>,
}

/// Entities, fields and times that a query wants, in stored ids.
#[derive(Default)]
pub struct Selection {
    /// The series in ascending order, each with its entity.
    pub(super) series: Vec<(SeriesId, u32)>,
    /// For 64 series ids each: a bit for each wanted series, and the number of wanted series with
    /// smaller ids. So a row is skipped or finds its entity without a search.
    wanted: Vec<(u64, u32)>,
    fields: FieldSelection,
    /// True if rows without a value of a wanted field may be left out.
    pub(super) needs_values: bool,
    times_ns: Range<i64>,
    measurement: Option<MeasurementIndex>,
    entity_count: usize,
    /// Representative series of the entities in ascending order, each with its entity.
    pub(super) representatives: Vec<(SeriesId, u32)>,
    hidden: Vec<HiddenExtent>,
}

impl Selection {
    /// Looks up the names of `query`. Of its entities, only `entity_ids` are wanted. Rows outside
    /// `times_ns` and rows that one of `tombstones` hides are not wanted. Unknown names select no
    /// rows.
    #[must_use]
    pub fn new(
        query: &SeriesQuery,
        entity_ids: &[String],
        times_ns: Range<i64>,
        tombstones: &[Tombstone],
        catalog: &Catalog,
    ) -> Self {
        let hidden = hidden(tombstones, &times_ns, |extent| {
            let has_measurement = extent.has_measurement(&query.measurement);
            entity_ids.iter().map(|id| has_measurement && extent.has_entity(id)).collect()
        });
        let entity_count = entity_ids.len();
        let mut selection = Self { times_ns, entity_count, hidden, ..Self::default() };
        let Some(measurement) = catalog.measurement(&query.measurement) else {
            return selection;
        };
        selection.measurement = Some(measurement);
        for (position, id) in (0..).zip(entity_ids) {
            if let Some(entity) = catalog.find_entity(measurement, id) {
                selection.want_entity(entity, position, catalog);
            }
        }
        selection.sort();
        if !query.fields.is_empty() {
            let known =
                query.fields.iter().filter_map(|name| catalog.find_field(measurement, name));
            let numeric = known.filter(|(_, field_type)| *field_type == FieldType::Float);
            let mut fields: Vec<FieldId> = numeric.map(|(id, _)| id).collect();
            fields.sort_unstable();
            selection.fields = FieldSelection::Some(fields);
        }
        selection
    }

    /// Wants all numbers of some entities of one measurement. Rows outside `times_ns` and rows that
    /// one of `tombstones` hides are not wanted.
    #[must_use]
    pub fn of_entities(
        measurement: MeasurementIndex,
        entities: &[EntityIndex],
        times_ns: Range<i64>,
        tombstones: &[Tombstone],
        catalog: &Catalog,
    ) -> Self {
        let hidden = hidden(tombstones, &times_ns, |extent| {
            let has_measurement = extent.has_measurement(catalog.measurement_name(measurement));
            let has_entity = |entity: &EntityIndex| extent.has_entity(catalog.entity_id(*entity));
            entities.iter().map(|entity| has_measurement && has_entity(entity)).collect()
        });
        let entity_count = entities.len();
        let measurement = Some(measurement);
        let mut selection = Self { times_ns, measurement, entity_count, hidden, ..Self::default() };
        for (position, entity) in (0..).zip(entities) {
            selection.want_entity(*entity, position, catalog);
        }
        selection.sort();
        selection
    }

    /// Wants `fields`, which ascend, of some series of one measurement. Each series counts as an
    /// entity: the index of the series in `series`. Rows outside `times_ns` and rows that one of
    /// `tombstones` hides are not wanted.
    pub(crate) fn of_series(
        measurement: MeasurementIndex,
        series: &[SeriesId],
        fields: Vec<FieldId>,
        times_ns: Range<i64>,
        tombstones: &[Tombstone],
        catalog: &Catalog,
    ) -> Self {
        let hidden = hidden(tombstones, &times_ns, |extent| {
            let is_named = |id: &SeriesId| {
                catalog.series(*id).is_some_and(|series| extent.has_series(series, catalog))
            };
            series.iter().map(is_named).collect()
        });
        let mut selection = Self {
            measurement: Some(measurement),
            entity_count: series.len(),
            fields: FieldSelection::Some(fields),
            needs_values: true,
            hidden,
            times_ns,
            ..Self::default()
        };
        for (position, id) in (0..).zip(series) {
            let representative = catalog.series(*id).map(|series| series.representative(*id));
            selection.representatives.push((representative.unwrap_or(*id), position));
            selection.want(*id, position);
        }
        selection.sort();
        selection
    }

    #[expect(clippy::stable_sort_primitive, reason = "it finds the few runs that ascend already")]
    fn sort(&mut self) {
        self.representatives.sort();
        self.series.sort_unstable();
        self.series.dedup_by_key(|(series, _)| *series);
        let mut before = 0;
        for (bits, count) in &mut self.wanted {
            *count = before;
            before += bits.count_ones();
        }
    }

    fn want_entity(&mut self, entity: EntityIndex, position: u32, catalog: &Catalog) {
        self.representatives.push((catalog.entity(entity).representative, position));
        for series in catalog.series_of(entity) {
            self.want(series, position);
        }
    }

    fn want(&mut self, series: SeriesId, entity: u32) {
        self.series.push((series, entity));
        let word = (series / 64) as usize;
        if self.wanted.len() <= word {
            self.wanted.resize(word + 1, (0, 0));
        }
        self.wanted[word].0 |= 1 << (series % 64);
    }

    pub(super) fn entity(&self, series: SeriesId) -> Option<u32> {
        let (bits, before) = self.wanted.get((series / 64) as usize)?;
        let bit = 1 << (series % 64);
        if bits & bit == 0 {
            return None;
        }
        let at = before + (bits & (bit - 1)).count_ones();
        Some(self.series[at as usize].1)
    }

    /// Returns the number of entities, known or not.
    #[must_use]
    pub const fn entity_count(&self) -> usize {
        self.entity_count
    }

    /// Changes the end of the wanted times.
    pub const fn end_at(&mut self, end_ns: i64) {
        self.times_ns.end = end_ns;
    }

    /// Returns true if no stored row can match.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let no_field = matches!(&self.fields, FieldSelection::Some(fields) if fields.is_empty());
        self.series.is_empty() || no_field
    }

    /// Returns the wanted times. The range is empty if the start is not before the end.
    #[must_use]
    pub const fn times_ns(&self) -> &Range<i64> {
        &self.times_ns
    }

    /// Returns the measurement, if it is known.
    #[must_use]
    pub const fn measurement(&self) -> Option<MeasurementIndex> {
        self.measurement
    }

    /// Returns true if an entity with a representative series in this range is wanted.
    #[must_use]
    pub fn wants_representative_in(&self, representatives: RangeInclusive<SeriesId>) -> bool {
        let at = self
            .representatives
            .partition_point(|(representative, _)| representative < representatives.start());
        self.representatives
            .get(at)
            .is_some_and(|(representative, _)| representative <= representatives.end())
    }

    /// Returns true if a tombstone may hide wanted rows of `origin` in `times_ns`.
    #[must_use]
    pub fn hides_in(&self, origin: &Origin, times_ns: &Range<i64>) -> bool {
        self.hiding(origin, times_ns).next().is_some()
    }

    pub(super) fn hiding<'s>(
        &'s self,
        origin: &Origin,
        times_ns: &Range<i64>,
    ) -> impl Iterator<Item = &'s HiddenExtent> {
        self.hidden.iter().filter(|hidden| {
            hidden.tombstone.extent.overlaps(times_ns) && hidden.tombstone.reaches(origin)
        })
    }

    /// Returns true if values of this type in this field are wanted.
    pub(super) fn wants(&self, field: FieldId, field_type: FieldType) -> bool {
        match &self.fields {
            FieldSelection::AllNumeric => field_type == FieldType::Float,
            FieldSelection::Some(fields) => fields.binary_search(&field).is_ok(),
        }
    }
}

/// Returns the tombstones that may hide wanted rows in `times_ns`. `entities_of` returns for each
/// wanted entity true if an extent names it.
fn hidden(
    tombstones: &[Tombstone],
    times_ns: &Range<i64>,
    entities_of: impl Fn(&Extent) -> Vec<bool>,
) -> Vec<HiddenExtent> {
    let near = tombstones.iter().filter(|tombstone| tombstone.extent.overlaps(times_ns));
    let hidden = near.map(|tombstone| HiddenExtent {
        entities: entities_of(&tombstone.extent),
        tombstone: tombstone.clone(),
    });
    hidden.filter(|hidden| hidden.entities.contains(&true)).collect()
}
