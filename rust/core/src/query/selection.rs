//! Selects the rows of the wanted entities in blocks, and hands their channels to a collector.

use std::collections::HashMap;
use std::ops::{Range, RangeInclusive};

use super::collector::{Collector, ColumnValues, RowRun, SelectedRows};
use super::hours::Hours;
use super::request::SeriesQuery;
use super::series_index::SeriesIndex;
use crate::codec::{BlockReader, TableHead, TableReader, TimeBounds};
use crate::model::aggregate::{Aggregation, Statistic};
use crate::model::batch::{Column, FieldType, Table, Values};
use crate::model::catalog::{Catalog, MeasurementIndex};
use crate::model::error::Result;
use crate::model::names::{FieldId, SeriesId};
use crate::storage::segment::statistics;
use crate::storage::tombstone::{HiddenTimes, Origin, Tombstone};

/// Fields of the measurement that a query wants.
enum FieldSelection {
    AllNumeric,
    /// Only these fields, ascending. None of them is a text.
    Some(Vec<FieldId>),
}

/// A tombstone that may hide wanted rows.
struct HiddenExtent {
    tombstone: Tombstone,
    /// For each wanted entity, true if the tombstone names it.
    entities: Vec<bool>,
}

/// Entities, fields and times that a query wants, in stored ids.
pub struct Selection {
    entity_of_series: HashMap<SeriesId, u32>,
    /// The series in ascending order, each with its entity.
    sorted: Vec<(SeriesId, u32)>,
    /// A bit for each series id, so that most rows are skipped without a hash.
    wanted: Vec<u64>,
    fields: FieldSelection,
    /// True if rows without a value of a wanted field may be left out.
    needs_values: bool,
    times_ns: Range<i64>,
    measurement: Option<MeasurementIndex>,
    entity_count: usize,
    /// Representative series of the entities in ascending order, each with its entity.
    representatives: Vec<(SeriesId, u32)>,
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
        let mut selection = Self {
            measurement: None,
            entity_count: entity_ids.len(),
            representatives: Vec::new(),
            entity_of_series: HashMap::new(),
            sorted: Vec::new(),
            wanted: Vec::new(),
            fields: FieldSelection::AllNumeric,
            needs_values: false,
            hidden: hidden(query, entity_ids, &times_ns, tombstones),
            times_ns,
        };
        let Some(measurement) = catalog.measurement(&query.measurement) else {
            return selection;
        };
        selection.measurement = Some(measurement);
        for (position, id) in (0..).zip(entity_ids) {
            if let Some(entity) = catalog.find_entity(measurement, id) {
                selection.representatives.push((catalog.entity(entity).representative, position));
                for series in catalog.series_of(entity) {
                    selection.want(series, position);
                }
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
        let hides = |tombstone: &Tombstone| HiddenExtent {
            entities: series
                .iter()
                .map(|id| {
                    let series = catalog.series(*id);
                    series.is_some_and(|series| tombstone.extent.has_series(series, catalog))
                })
                .collect(),
            tombstone: tombstone.clone(),
        };
        let near = tombstones.iter().filter(|each| overlap(&each.extent.times_ns, &times_ns));
        let hidden = near.map(hides).filter(|hidden| hidden.entities.contains(&true)).collect();
        let mut selection = Self {
            measurement: Some(measurement),
            entity_count: series.len(),
            representatives: Vec::new(),
            entity_of_series: HashMap::with_capacity(series.len()),
            sorted: Vec::new(),
            wanted: Vec::new(),
            fields: FieldSelection::Some(fields),
            needs_values: true,
            hidden,
            times_ns,
        };
        for (position, id) in (0..).zip(series) {
            let entity = catalog.series(*id).and_then(|series| series.entity);
            let representative = entity.map_or(*id, |entity| catalog.entity(entity).representative);
            selection.representatives.push((representative, position));
            selection.want(*id, position);
        }
        selection.sort();
        selection
    }

    fn sort(&mut self) {
        self.sorted =
            self.entity_of_series.iter().map(|(series, entity)| (*series, *entity)).collect();
        self.sorted.sort_unstable();
        self.representatives.sort_unstable();
    }

    fn want(&mut self, series: SeriesId, entity: u32) {
        self.entity_of_series.insert(series, entity);
        let word = (series / 64) as usize;
        if self.wanted.len() <= word {
            self.wanted.resize(word + 1, 0);
        }
        self.wanted[word] |= 1 << (series % 64);
    }

    fn entity(&self, series: SeriesId) -> Option<u32> {
        let word = self.wanted.get((series / 64) as usize)?;
        if word & (1 << (series % 64)) == 0 {
            return None;
        }
        self.entity_of_series.get(&series).copied()
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
        self.entity_of_series.is_empty() || no_field
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

    fn hiding<'s>(
        &'s self,
        origin: &Origin,
        times_ns: &Range<i64>,
    ) -> impl Iterator<Item = &'s HiddenExtent> {
        self.hidden.iter().filter(|hidden| {
            overlap(&hidden.tombstone.extent.times_ns, times_ns) && hidden.tombstone.reaches(origin)
        })
    }

    /// Hands the matching rows of a block of `origin` in `times_ns` to `collector`, in write order
    /// within each entity. If `fields` is given, only these ascending fields are handed over.
    ///
    /// # Errors
    /// Returns [`crate::model::error::Error::Corrupt`] if the block cannot be decoded.
    pub fn collect(
        &self,
        (origin, block): (&Origin, &BlockReader<'_>),
        times_ns: &Range<i64>,
        fields: Option<&[FieldId]>,
        collector: &mut impl Collector,
    ) -> Result<()> {
        let hiding: Vec<&HiddenExtent> = self.hiding(origin, times_ns).collect();
        let overlaps =
            |times: TimeBounds| times.max_ns >= times_ns.start && times.min_ns < times_ns.end;
        for (index, head) in block.tables().iter().enumerate() {
            if head.times.is_some_and(overlaps) {
                let table = block.table(index)?;
                self.collect_table(&table, (times_ns, &hiding), fields, collector)?;
            }
        }
        Ok(())
    }

    /// Hands the hours in `hours_ns` of the wanted entities to `collector`, from the statistics of
    /// a block. Returns the wanted fields without statistics, ascending.
    ///
    /// # Errors
    /// Returns [`crate::model::error::Error::Corrupt`] if the statistics cannot be decoded.
    pub fn collect_statistics(
        &self,
        block: &BlockReader<'_>,
        hours_ns: &Range<i64>,
        aggregation: Aggregation,
        collector: &mut impl Collector,
    ) -> Result<Vec<FieldId>> {
        let mut left_out = Vec::new();
        for (index, head) in block.tables().iter().enumerate() {
            if head.row_count == 0 {
                let wanted =
                    head.columns.iter().filter(|each| self.wants(each.field, each.field_type));
                left_out.extend(wanted.map(|column| column.field));
                continue;
            }
            let table = block.table(index)?;
            let mut selected: Vec<(usize, u32)> = Vec::new();
            for (representative, rows) in table.runs().iter() {
                let at = self
                    .representatives
                    .binary_search_by_key(&representative, |(representative, _)| *representative);
                let Ok(at) = at else { continue };
                selected.extend(rows.map(|row| (row, self.representatives[at].1)));
            }
            if selected.is_empty() {
                continue;
            }
            let starts_ns = table.times_ns()?;
            selected.retain(|(row, _)| hours_ns.contains(&starts_ns[*row]));
            let selected: Vec<RowRun> = selected
                .into_iter()
                .map(|(row, entity)| RowRun { entity, rows: row..row + 1 })
                .collect();
            let mut hours = Hours::new(selected, starts_ns);
            let columns = self.statistics_of(aggregation, table.head());
            for of_field in columns.chunk_by(|a, b| a.0 == b.0) {
                for (_, statistic, at) in of_field {
                    hours.set(*statistic, &table.column(*at)?);
                }
                hours.hand_over(of_field[0].0, collector);
            }
        }
        left_out.sort_unstable();
        Ok(left_out)
    }

    /// Returns the columns of statistics that an aggregation needs, sorted by field. Each column
    /// has its statistic and its index in the table.
    fn statistics_of(
        &self,
        aggregation: Aggregation,
        head: &TableHead,
    ) -> Vec<(FieldId, Statistic, usize)> {
        let columns = head.columns.iter().enumerate().filter_map(|(at, column)| {
            let (field, statistic) = statistics::of_column(column.field)?;
            let wanted = Statistic::of(aggregation).contains(&statistic)
                && self.wants(field, column.field_type);
            wanted.then_some((field, statistic, at))
        });
        let mut columns: Vec<_> = columns.collect();
        columns.sort_unstable_by_key(|(field, _, at)| (*field, *at));
        columns
    }

    fn collect_table(
        &self,
        table: &TableReader<'_>,
        (times_ns, hiding): (&Range<i64>, &[&HiddenExtent]),
        fields: Option<&[FieldId]>,
        collector: &mut impl Collector,
    ) -> Result<()> {
        let mut columns = table.head().columns.iter();
        if self.needs_values && !columns.any(|each| self.wants(each.field, each.field_type)) {
            return Ok(());
        }
        let wanted: Vec<RowRun> = table
            .runs()
            .iter()
            .filter_map(|(series, rows)| Some(RowRun { entity: self.entity(series)?, rows }))
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let table_times_ns = table.times_ns()?;
        let mut selected = SelectedRows::new(&wanted, &table_times_ns, times_ns);
        if !hiding.is_empty() {
            selected.hide(|entity| {
                let of_entity = hiding.iter().filter(|hidden| hidden.entities[entity as usize]);
                HiddenTimes::of(of_entity.map(|hidden| &hidden.tombstone.extent))
            });
        }
        let targets = collector.records(&selected);
        let is_asked =
            |field: &FieldId| fields.is_none_or(|fields| fields.binary_search(field).is_ok());
        for (index, head) in table.head().columns.iter().enumerate() {
            if self.wants(head.field, head.field_type) && is_asked(&head.field) {
                hand_over(&table.column(index)?, &selected, &targets, collector);
            }
        }
        Ok(())
    }

    /// Does the same as [`Self::collect`] for a decoded table with no hidden rows. `index` is the
    /// index of the table, if there is one.
    pub fn collect_decoded(
        &self,
        (table, index): (&Table, Option<&SeriesIndex>),
        times_ns: &Range<i64>,
        collector: &mut impl Collector,
    ) {
        let wants = |column: &Column| self.wants(column.field, column.values.field_type());
        if self.needs_values && !table.columns.iter().any(wants) {
            return;
        }
        let mut wanted: Vec<RowRun> = Vec::new();
        let series = table.series.as_slice();
        if let Some(index) = index {
            index.visit(&self.sorted, |entity, rows| wanted.push(RowRun { entity, rows }));
        } else if series.is_sorted() {
            // Nearly every block takes this path: its rows are grouped by entity, in order of their
            // first series.
            for (id, entity) in &self.sorted {
                let start = series.partition_point(|other| other < id);
                let rows = series[start..].iter().take_while(|other| *other == id).count();
                if rows > 0 {
                    wanted.push(RowRun { entity: *entity, rows: start..start + rows });
                }
            }
        } else {
            let rows = series.iter().enumerate();
            wanted.extend(rows.filter_map(|(row, id)| {
                Some(RowRun { entity: self.entity(*id)?, rows: row..row + 1 })
            }));
        }
        if wanted.is_empty() {
            return;
        }
        let selected = SelectedRows::new(&wanted, &table.times_ns, times_ns);
        let targets = collector.records(&selected);
        for column in table.columns.iter().filter(|column| wants(column)) {
            hand_over(column, &selected, &targets, collector);
        }
    }

    /// Returns true if values of this type in this field are wanted.
    fn wants(&self, field: FieldId, field_type: FieldType) -> bool {
        match &self.fields {
            FieldSelection::AllNumeric => field_type == FieldType::Float,
            FieldSelection::Some(fields) => fields.binary_search(&field).is_ok(),
        }
    }
}

/// Returns the tombstones that may hide rows of a query.
fn hidden(
    query: &SeriesQuery,
    entity_ids: &[String],
    times_ns: &Range<i64>,
    tombstones: &[Tombstone],
) -> Vec<HiddenExtent> {
    let of_query = tombstones.iter().filter(|tombstone| {
        let extent = &tombstone.extent;
        extent.has_measurement(&query.measurement) && overlap(&extent.times_ns, times_ns)
    });
    let hidden = of_query.map(|tombstone| HiddenExtent {
        entities: entity_ids.iter().map(|id| tombstone.extent.has_entity(id)).collect(),
        tombstone: tombstone.clone(),
    });
    hidden.filter(|hidden| hidden.entities.contains(&true)).collect()
}

const fn overlap(a: &Range<i64>, b: &Range<i64>) -> bool {
    a.start < b.end && b.start < a.end
}

fn hand_over<C: Collector>(
    column: &Column,
    selected: &SelectedRows<'_>,
    targets: &C::Targets,
    collector: &mut C,
) {
    let numbers: Vec<f64>;
    let values = match &column.values {
        Values::Float(values) => values,
        Values::Bool(values) => {
            numbers = values.iter().map(|value| f64::from(u8::from(*value))).collect();
            &numbers
        }
        Values::Text(_) => return,
    };
    collector.values(selected, targets, column.field, &ColumnValues::new(&column.rows, values));
}
