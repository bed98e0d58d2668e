//! The newest samples as rows of a checkpoint, which can rebuild the samples, and a comparison.

use std::collections::BTreeMap;

use super::measurements::Latest;
use super::merged_sample::SAMPLE_BYTES_MAX;
use super::table::{LatestTable, NONE};
use super::value::ValueRef;
use crate::model::batch::{Column, RowSet, Table, Values};
use crate::model::catalog::Catalog;
use crate::model::names::{FieldId, SeriesId};

/// Builds a table row by row.
#[derive(Default)]
struct TableBuilder {
    series: Vec<SeriesId>,
    times_ns: Vec<i64>,
    columns: BTreeMap<FieldId, (Vec<u32>, Values)>,
}

impl Latest {
    /// Returns true if `other` has the same samples. An earlier version may have joined several
    /// rows of `other` into one. A joined row may hold more than the bytes of a sample.
    #[must_use]
    pub fn is_given_by(&self, other: &Self, catalog: &Catalog) -> bool {
        let samples = |latest: &Self| latest.tables().map(|(_, table)| table.len()).sum::<usize>();
        samples(self) == samples(other)
            && self.tables().filter(|(_, table)| table.len() > 0).all(|(measurement, table)| {
                other.table(measurement).is_some_and(|other| table.is_given_by(other, catalog))
            })
    }
}

impl LatestTable {
    /// Returns the number of samples.
    fn len(&self) -> usize {
        self.series.iter().filter(|series| **series != NONE).count()
    }

    /// Returns rows that rebuild the samples whose times are `kept`, if they are applied to an
    /// empty table. The rows of an entity are in write order.
    #[must_use]
    pub fn rows(&self, kept: impl Fn(i64) -> bool) -> Table {
        let mut rows = TableBuilder::default();
        for shape in self.samples.shapes() {
            for (slot, row) in shape.slots().iter().zip(shape.rows()) {
                let time_ns = self.times_ns[*slot as usize];
                if kept(time_ns) {
                    rows.push(self.series[*slot as usize], time_ns, row.values());
                }
            }
        }
        for (slot, sample) in &self.merged {
            let time_ns = self.times_ns[*slot as usize];
            if kept(time_ns) {
                sample.rows().for_each(|(series, own)| rows.push(series, time_ns, own));
            }
        }
        rows.finish()
    }

    /// Returns the series of any sample, or `None` if there are no samples.
    #[must_use]
    pub fn any_series(&self) -> Option<SeriesId> {
        self.series.iter().copied().find(|series| *series != NONE)
    }

    fn is_given_by(&self, other: &Self, catalog: &Catalog) -> bool {
        let others: BTreeMap<_, u32> = other.entities.iter().copied().zip(0..).collect();
        (0_u32..).zip(&self.entities).all(|(slot, entity)| {
            let Some(time_ns) = self.time_of(slot) else { return true };
            let Some(other_slot) = others.get(entity).copied() else { return false };
            let is_whole = self.merged.get(&slot).is_none_or(|of| of.bytes() < SAMPLE_BYTES_MAX);
            let mine: BTreeMap<_, _> = self.values(slot).collect();
            let theirs: BTreeMap<_, _> = other.values(other_slot).collect();
            let is_there = |field: &FieldId| theirs.get(field) == mine.get(field);
            let tags = |table: &Self, slot| {
                let mut tags = Vec::new();
                table.write_tags(&mut tags, slot, catalog);
                tags
            };
            other.time_of(other_slot) == Some(time_ns)
                && mine.keys().all(is_there)
                && (!is_whole || mine.len() == theirs.len())
                && (!is_whole || tags(self, slot) == tags(other, other_slot))
        })
    }
}

impl TableBuilder {
    fn push<'v>(
        &mut self,
        series: SeriesId,
        time_ns: i64,
        values: impl Iterator<Item = (FieldId, ValueRef<'v>)>,
    ) {
        let row = u32::try_from(self.series.len()).expect("rows have 32 bits");
        self.series.push(series);
        self.times_ns.push(time_ns);
        for (field, value) in values {
            let empty = || (Vec::new(), Values::new(value.field_type()));
            let (rows, values) = self.columns.entry(field).or_insert_with(empty);
            rows.push(row);
            match (values, value) {
                (Values::Float(values), ValueRef::Float(value)) => values.push(value),
                (Values::Bool(values), ValueRef::Bool(value)) => values.push(value),
                (Values::Text(values), ValueRef::Text(value)) => values.push(value.into()),
                _ => debug_assert!(false, "one field id has one type for ever"),
            }
        }
    }

    fn finish(self) -> Table {
        let row_count = self.series.len();
        let column = |(field, (rows, values)): (FieldId, (Vec<u32>, Values))| {
            let rows = if rows.len() == row_count { RowSet::All } else { RowSet::Some(rows) };
            Column { field, rows, values }
        };
        let columns = self.columns.into_iter().map(column).collect();
        Table { series: self.series, times_ns: self.times_ns, columns }
    }
}
