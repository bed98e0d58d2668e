//! Hands the rows that a selection wants to a collector: from blocks, from their statistics, and
//! from decoded tables.

use std::ops::Range;

use super::collector::{Collector, ColumnValues, RowRun, SelectedRows};
use super::hours::Hours;
use super::selection::{HiddenExtent, Selection};
use super::series_index::SeriesIndex;
use crate::codec::{BlockReader, ColumnHead, TableHead, TableReader, TimeBounds};
use crate::model::aggregate::Statistic;
use crate::model::batch::{Column, RowSet, Table, Values};
use crate::model::error::Result;
use crate::model::fold::Fold;
use crate::model::names::{FieldId, SeriesId};
use crate::model::prefetch::prefetch_line;
use crate::storage::segment::statistics;
use crate::storage::tombstone::{HiddenTimes, Origin};

/// Rows of a table that are looked at in the time in which one series is searched among its rows.
const ROWS_PER_SEARCH: usize = 8;

/// Number of rows between the row that is looked at and the row whose memory is asked for.
const ROWS_AHEAD: usize = 16;

impl Selection {
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
        statistics: &[Statistic],
        collector: &mut impl Collector,
    ) -> Result<Vec<FieldId>> {
        let mut left_out = Vec::new();
        let mut take = |entity, start_ns, field, fold: &Fold| {
            collector.add_hour(entity, start_ns, field, fold);
        };
        for (index, head) in block.tables().iter().enumerate() {
            if head.row_count == 0 {
                let wanted =
                    head.columns.iter().filter(|each| self.wants(each.field, each.field_type));
                left_out.extend(wanted.map(|column| column.field));
                continue;
            }
            self.take_hours(&block.table(index)?, (hours_ns, &[]), statistics, &mut take)?;
        }
        left_out.sort_unstable();
        Ok(left_out)
    }

    /// Hands the kept hours in `hours_ns` of the wanted entities to `collector`, from a block of
    /// hours of `origin`.
    ///
    /// # Errors
    /// Returns [`crate::model::error::Error::Corrupt`] if the block cannot be decoded.
    pub fn collect_kept_hours(
        &self,
        (origin, block): (&Origin, &BlockReader<'_>),
        hours_ns: &Range<i64>,
        statistics: &[Statistic],
        collector: &mut impl Collector,
    ) -> Result<()> {
        let hiding: Vec<&HiddenExtent> = self.hiding(origin, hours_ns).collect();
        // The last sample gives the other statistics of a single sample.
        let statistics = [statistics, &[Statistic::Last]].concat();
        for index in 0..block.tables().len() {
            let table = block.table(index)?;
            let take = &mut |entity, start_ns, field, fold: &Fold| {
                collector.set_hour(entity, start_ns, field, &fold.completed());
            };
            self.take_hours(&table, (hours_ns, &hiding), &statistics, take)?;
        }
        Ok(())
    }

    /// Hands the hours of the wanted entities and fields to `take`, except for hidden hours.
    fn take_hours(
        &self,
        table: &TableReader<'_>,
        (hours_ns, hiding): (&Range<i64>, &[&HiddenExtent]),
        statistics: &[Statistic],
        take: &mut impl FnMut(u32, i64, FieldId, &Fold),
    ) -> Result<()> {
        let mut selected: Vec<(usize, u32)> = Vec::new();
        for (representative, rows) in table.runs().iter() {
            let at = self
                .representatives
                .binary_search_by_key(&representative, |(representative, _)| *representative);
            let Ok(at) = at else { continue };
            selected.extend(rows.map(|row| (row, self.representatives[at].1)));
        }
        if selected.is_empty() {
            return Ok(());
        }
        let starts_ns = table.times_ns()?;
        selected.retain(|(row, entity)| {
            let start_ns = starts_ns[*row];
            let hides = |hidden: &&HiddenExtent| {
                hidden.entities[*entity as usize]
                    && hidden.tombstone.extent.times_ns.contains(&start_ns)
            };
            hours_ns.contains(&start_ns) && !hiding.iter().any(hides)
        });
        let selected: Vec<RowRun> = selected
            .into_iter()
            .map(|(row, entity)| RowRun { entity, rows: row..row + 1 })
            .collect();
        let mut hours = Hours::new(selected, starts_ns);
        let columns = self.columns_of(statistics, table.head());
        for of_field in columns.chunk_by(|a, b| a.0 == b.0) {
            for (_, statistic, at) in of_field {
                hours.set(*statistic, &table.column(*at)?);
            }
            let field = of_field[0].0;
            hours.hand_over(|entity, start_ns, fold| take(entity, start_ns, field, fold));
        }
        Ok(())
    }

    /// Returns the columns of wanted fields that hold one of `statistics`, sorted by field. Each
    /// column has its statistic and its index in the table.
    fn columns_of(
        &self,
        statistics: &[Statistic],
        head: &TableHead,
    ) -> Vec<(FieldId, Statistic, usize)> {
        let columns = head.columns.iter().enumerate().filter_map(|(at, column)| {
            let (field, statistic) = statistics::of_column(column.field)?;
            let wanted = statistics.contains(&statistic) && self.wants(field, column.field_type);
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
        let heads = &table.head().columns;
        let is_asked =
            |field: &FieldId| fields.is_none_or(|fields| fields.binary_search(field).is_ok());
        let is_wanted =
            |head: &ColumnHead| self.wants(head.field, head.field_type) && is_asked(&head.field);
        let columns: Vec<usize> = (0..heads.len()).filter(|at| is_wanted(&heads[*at])).collect();
        let mut only = None;
        if self.needs_values {
            match columns.as_slice() {
                [] => return Ok(()),
                [at] if heads[*at].count < self.series.len() => only = Some(table.column(*at)?),
                _ => {}
            }
        }
        let wanted = if let Some(Column { rows: RowSet::Some(present), .. }) = &only {
            self.runs(&table.series(), present.iter().map(|row| *row as usize))
        } else {
            let runs = table.runs().iter();
            let wanted = |(series, rows)| Some(RowRun { entity: self.entity(series)?, rows });
            runs.filter_map(wanted).collect()
        };
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
        for at in columns {
            let column = only.take().map_or_else(|| table.column(at), Ok)?;
            hand_over(&column, &selected, &targets, collector);
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
        let wants = |column: &&Column| self.wants(column.field, column.values.field_type());
        let columns: Vec<&Column> = table.columns.iter().filter(wants).collect();
        if self.needs_values && columns.is_empty() {
            return;
        }
        let wanted = self.wanted_rows((table, index), &columns);
        if wanted.is_empty() {
            return;
        }
        let selected = SelectedRows::new(&wanted, &table.times_ns, times_ns);
        let targets = collector.records(&selected);
        for column in columns {
            hand_over(column, &selected, &targets, collector);
        }
    }

    /// Returns the rows of the wanted series. The cost is that of the series, or of the rows that may
    /// have a wanted value, in whatever there are fewest.
    fn wanted_rows(
        &self,
        (table, index): (&Table, Option<&SeriesIndex>),
        columns: &[&Column],
    ) -> Vec<RowRun> {
        let series = table.series.as_slice();
        let present = match columns {
            [column] if self.needs_values => &column.rows,
            _ => &RowSet::All,
        };
        let runs_within = |rows: Range<usize>| {
            let indices = present.within(&rows);
            let RowSet::Some(present) = present else { return self.runs(series, indices) };
            // Rows with a value may lie far from each other.
            let rows = indices.map(|at| {
                if let Some(row) = present.get(at + ROWS_AHEAD) {
                    prefetch_row(table, *row as usize);
                }
                present[at] as usize
            });
            self.runs(series, rows)
        };
        let all = 0..series.len();
        let is_searched = self.series.len() < present.within(&all).len() / ROWS_PER_SEARCH;
        let mut wanted: Vec<RowRun> = Vec::new();
        if let Some(index) = index.filter(|_| is_searched) {
            for (rows, only) in index.stretches(&self.series) {
                match only.and_then(|series| self.entity(series)) {
                    Some(entity) => wanted.push(RowRun { entity, rows }),
                    None => wanted.append(&mut runs_within(rows)),
                }
            }
        } else if is_searched && series.is_sorted() {
            // Nearly every block is sorted: its rows are grouped by entity, in order of their first
            // series.
            for (id, entity) in &self.series {
                let start = series.partition_point(|other| other < id);
                let rows = series[start..].iter().take_while(|other| *other == id).count();
                if rows > 0 {
                    wanted.push(RowRun { entity: *entity, rows: start..start + rows });
                }
            }
        } else {
            return runs_within(all);
        }
        wanted
    }

    /// Returns the wanted rows among `rows`, which ascend. `series` has the series of each row.
    fn runs(&self, series: &[SeriesId], rows: impl Iterator<Item = usize>) -> Vec<RowRun> {
        let mut runs: Vec<RowRun> = Vec::new();
        for row in rows {
            let Some(entity) = self.entity(series[row]) else { continue };
            match runs.last_mut() {
                Some(last) if last.entity == entity && last.rows.end == row => last.rows.end += 1,
                _ => runs.push(RowRun { entity, rows: row..row + 1 }),
            }
        }
        runs
    }
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

fn prefetch_row(table: &Table, row: usize) {
    if let (Some(id), Some(time_ns)) = (table.series.get(row), table.times_ns.get(row)) {
        prefetch_line(id);
        prefetch_line(time_ns);
    }
}
