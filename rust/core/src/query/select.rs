//! Picks the rows of the wanted entities out of blocks, and hands their channels to a collector.

use std::collections::HashMap;
use std::ops::{Range, RangeInclusive};

use super::collector::{Cells, Collector, Picked, Run};
use super::request::SeriesQuery;
use crate::aggregate::{Aggregation, Fold, Statistic};
use crate::batch::{Column, FieldId, FieldType, SeriesId, Table, Values};
use crate::catalog::{Catalog, MeasurementIndex};
use crate::column::{BlockReader, TableReader, TimeBounds};
use crate::error::Result;
use crate::segment::statistics;

/// Which entities, channels and times a query wants, in stored ids.
pub struct Selection {
    entity_of_series: HashMap<SeriesId, u32>,
    /// The series, ascending, each with its entity.
    sorted: Vec<(SeriesId, u32)>,
    /// One bit per series id, so that most rows are passed over without a hash.
    wanted: Vec<u64>,
    channels: Vec<(FieldId, Box<str>)>,
    times_ns: Range<i64>,
    measurement: Option<MeasurementIndex>,
    entity_count: usize,
    /// Leaders of the entities, ascending, each with its entity.
    leaders: Vec<(SeriesId, u32)>,
}

impl Selection {
    /// Resolves the names of `query`, of these of its entities alone; rows outside `times_ns` are
    /// not wanted. Unknown names select nothing.
    #[must_use]
    pub fn new(
        query: &SeriesQuery,
        entity_ids: &[String],
        times_ns: Range<i64>,
        catalog: &Catalog,
    ) -> Self {
        let mut selection = Self {
            measurement: None,
            entity_count: entity_ids.len(),
            leaders: Vec::new(),
            entity_of_series: HashMap::new(),
            sorted: Vec::new(),
            wanted: Vec::new(),
            channels: Vec::new(),
            times_ns,
        };
        let Some(measurement) = catalog.measurement(&query.measurement) else {
            return selection;
        };
        selection.measurement = Some(measurement);
        for (position, id) in (0..).zip(entity_ids) {
            if let Some(entity) = catalog.find_entity(measurement, id) {
                selection.leaders.push((catalog.entity(entity).leader, position));
                for series in catalog.entity(entity).series() {
                    selection.want(series, position);
                }
            }
        }
        selection.sorted =
            selection.entity_of_series.iter().map(|(series, entity)| (*series, *entity)).collect();
        selection.sorted.sort_unstable();
        selection.leaders.sort_unstable();
        selection.channels = catalog
            .fields_of(measurement)
            .filter(|(_, field)| field.field_type == FieldType::Float)
            .filter(|(_, field)| {
                query.fields.is_empty() || query.fields.iter().any(|name| **name == *field.name)
            })
            .map(|(id, field)| (id, field.name.clone()))
            .collect();
        selection.channels.sort_unstable_by(|(_, a), (_, b)| a.cmp(b));
        selection
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

    /// Names of the channels, ascending; a collector knows them by their index here.
    pub fn channel_names(&self) -> impl Iterator<Item = &str> {
        self.channels.iter().map(|(_, name)| &**name)
    }

    /// Number of channels.
    #[must_use]
    pub fn channel_count(&self) -> usize {
        self.channels.len()
    }

    /// Number of entities, known or not.
    #[must_use]
    pub const fn entity_count(&self) -> usize {
        self.entity_count
    }

    /// Puts the end of the wanted times elsewhere.
    pub const fn end_at(&mut self, end_ns: i64) {
        self.times_ns.end = end_ns;
    }

    /// Whether no stored row can match.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entity_of_series.is_empty() || self.channels.is_empty()
    }

    /// The times that are wanted; empty where the start is not before the end.
    #[must_use]
    pub const fn times_ns(&self) -> &Range<i64> {
        &self.times_ns
    }

    /// The measurement, if it is known.
    #[must_use]
    pub const fn measurement(&self) -> Option<MeasurementIndex> {
        self.measurement
    }

    /// Whether an entity with such a leader is wanted.
    #[must_use]
    pub fn wants_leader_in(&self, leaders: RangeInclusive<SeriesId>) -> bool {
        let at = self.leaders.partition_point(|(leader, _)| leader < leaders.start());
        self.leaders.get(at).is_some_and(|(leader, _)| leader <= leaders.end())
    }

    /// Hands the rows of a block that match and lie in `times_ns` to `collector`, in write order
    /// within each entity.
    ///
    /// # Errors
    /// [`crate::error::Error::Corrupt`] where the block does not decode.
    pub fn collect(
        &self,
        block: &BlockReader<'_>,
        times_ns: &Range<i64>,
        collector: &mut impl Collector,
    ) -> Result<()> {
        let overlaps =
            |times: TimeBounds| times.max_ns >= times_ns.start && times.min_ns < times_ns.end;
        for (index, head) in block.tables().iter().enumerate() {
            if head.times.is_some_and(overlaps) {
                self.collect_table(&block.table(index)?, times_ns, collector)?;
            }
        }
        Ok(())
    }

    /// Hands the hours in `hours_ns` of the wanted entities to `collector`, out of the statistics
    /// of a block.
    ///
    /// # Errors
    /// [`crate::error::Error::Corrupt`] where the statistics do not decode.
    pub fn collect_statistics(
        &self,
        block: &BlockReader<'_>,
        hours_ns: &Range<i64>,
        aggregation: Aggregation,
        collector: &mut impl Collector,
    ) -> Result<()> {
        for index in 0..block.tables().len() {
            let table = block.table(index)?;
            let mut picked: Vec<(usize, u32)> = Vec::new();
            for (leader, rows) in table.runs().iter() {
                let at = self.leaders.binary_search_by_key(&leader, |(leader, _)| *leader);
                let Ok(at) = at else { continue };
                picked.extend(rows.map(|row| (row, self.leaders[at].1)));
            }
            if picked.is_empty() {
                continue;
            }
            let starts_ns = table.times_ns()?;
            picked.retain(|(row, _)| hours_ns.contains(&starts_ns[*row]));
            for (channel, (field, _)) in self.channels.iter().enumerate() {
                let mut folds = vec![Fold::default(); picked.len()];
                for statistic in Statistic::of(aggregation) {
                    let wanted = statistics::column_of(*field, *statistic);
                    let columns = &table.head().columns;
                    let at = columns.iter().position(|column| Some(column.field) == wanted);
                    let Some(at) = at else { continue };
                    let column = table.column(at)?;
                    let Values::Float(values) = &column.values else { continue };
                    let cells = Cells::new(&column.rows, values);
                    for ((row, _), fold) in picked.iter().zip(&mut folds) {
                        if let [value] = cells.within(&(*row..*row + 1)).0 {
                            fold.set(*statistic, starts_ns[*row], *value);
                        }
                    }
                }
                for ((row, entity), fold) in picked.iter().zip(&folds) {
                    if !fold.is_empty() {
                        collector.hour(*entity, starts_ns[*row], channel, fold);
                    }
                }
            }
        }
        Ok(())
    }

    fn collect_table(
        &self,
        table: &TableReader<'_>,
        times_ns: &Range<i64>,
        collector: &mut impl Collector,
    ) -> Result<()> {
        let wanted: Vec<Run> = table
            .runs()
            .iter()
            .filter_map(|(series, rows)| Some(Run { entity: self.entity(series)?, rows }))
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let table_times_ns = table.times_ns()?;
        let picked = Picked::new(&wanted, &table_times_ns, times_ns);
        let marks = collector.records(&picked);
        for (index, head) in table.head().columns.iter().enumerate() {
            if let Some(channel) = self.channel(head.field) {
                hand_over(&table.column(index)?, channel, &picked, &marks, collector);
            }
        }
        Ok(())
    }

    /// As [`Self::collect`], of a table that is decoded already.
    pub fn collect_decoded(&self, table: &Table, collector: &mut impl Collector) {
        let mut wanted: Vec<Run> = Vec::new();
        let series = table.series.as_slice();
        if series.is_sorted() {
            // Nearly every block: its rows are grouped by entity, in order of their first series.
            for (id, entity) in &self.sorted {
                let start = series.partition_point(|other| other < id);
                let rows = series[start..].iter().take_while(|other| *other == id).count();
                if rows > 0 {
                    wanted.push(Run { entity: *entity, rows: start..start + rows });
                }
            }
        } else {
            let rows = series.iter().enumerate();
            wanted.extend(rows.filter_map(|(row, id)| {
                Some(Run { entity: self.entity(*id)?, rows: row..row + 1 })
            }));
        }
        if wanted.is_empty() {
            return;
        }
        let picked = Picked::new(&wanted, &table.times_ns, &self.times_ns);
        let marks = collector.records(&picked);
        for column in &table.columns {
            if let Some(channel) = self.channel(column.field) {
                hand_over(column, channel, &picked, &marks, collector);
            }
        }
    }

    fn channel(&self, field: FieldId) -> Option<usize> {
        self.channels.iter().position(|(id, _)| *id == field)
    }
}

fn hand_over<C: Collector>(
    column: &Column,
    channel: usize,
    picked: &Picked<'_>,
    marks: &C::Marks,
    collector: &mut C,
) {
    if let Values::Float(values) = &column.values {
        let cells = Cells::new(&column.rows, values);
        collector.values(picked, marks, channel, &cells);
    }
}
