//! An answer as named columns, for programs that want frames instead of JSON.
//!
//! Example: two entities with the channels `snr_db` and `rtt_ms` give the columns `entity_id`,
//! `time`, `snr_db` and `rtt_ms`. All rows of the first entity are above the rows of the second.

use std::collections::HashMap;

use super::answer::SeriesAnswer;
use super::arrays::{SeriesArrays, check_cells};
use super::latest::{LatestTable, LatestView, ValueRef};
use super::windows::FieldHours;
use crate::model::aggregate::Statistic;
use crate::model::error::Result;
use crate::model::fold::Fold;
use crate::model::names::FieldId;
use crate::storage::segment::HOUR_NS;

/// Columns of equal length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frame {
    /// Number of rows.
    pub row_count: usize,
    /// Name and values of each column.
    pub columns: Vec<(String, FrameColumn)>,
}

/// Values of one column: a value for each row.
#[derive(Clone, Debug, PartialEq)]
pub enum FrameColumn {
    /// Instants in nanoseconds since 1970, UTC.
    TimeNs(Vec<i64>),
    /// Doubles. NaN stands for no value.
    Float(Vec<f64>),
    /// Booleans. `None` stands for no value.
    Bool(Vec<Option<bool>>),
    /// Strings. `None` stands for no value.
    Text(Vec<Option<String>>),
}

impl Frame {
    /// Makes a frame of the rows of a series answer, entity below entity. The columns are
    /// `entity_id`, `time` and the channels in which any entity has a value.
    ///
    /// # Errors
    /// Returns [`crate::model::error::Error::Invalid`] if the frame would have millions of cells,
    /// nearly all of them empty.
    pub fn of_series(answer: &SeriesAnswer) -> Result<Self> {
        let SeriesArrays { rows, times_ns, channels } = SeriesArrays::new(answer)?;
        let row_count = times_ns.len();
        let mut ids = Vec::with_capacity(row_count);
        for (id, rows) in answer.query.entity_ids.iter().zip(rows) {
            ids.resize(ids.len() + rows, Some(id.clone()));
        }
        let mut columns = vec![
            ("entity_id".to_owned(), FrameColumn::Text(ids)),
            ("time".to_owned(), FrameColumn::TimeNs(times_ns)),
        ];
        let channels = channels.into_iter();
        columns.extend(channels.map(|(name, values)| (name, FrameColumn::Float(values))));
        Ok(Self { row_count, columns })
    }

    /// Makes a frame of the hours of an entity: a row for each hour and field, by time and name. The
    /// columns are `time`, `field`, `count`, `sum`, `min`, `max`, `last` and `last_time`. A sum that
    /// exceeds every double is no value.
    #[must_use]
    pub fn of_hours(fields: &[FieldHours]) -> Self {
        let mut rows: Vec<(i64, &str, &Fold)> = Vec::new();
        for field in fields {
            for (hour, fold) in &field.hours {
                rows.push((hour.saturating_mul(HOUR_NS), &field.name, fold));
            }
        }
        rows.sort_unstable_by_key(|(start_ns, name, _)| (*start_ns, *name));
        let numbers = |statistic| {
            let number = |(start_ns, _, fold): &(i64, &str, &Fold)| fold.get(statistic, *start_ns);
            FrameColumn::Float(rows.iter().map(|row| number(row).unwrap_or(f64::NAN)).collect())
        };
        let columns = [
            ("time", FrameColumn::TimeNs(rows.iter().map(|row| row.0).collect())),
            ("field", FrameColumn::Text(rows.iter().map(|row| Some(row.1.to_owned())).collect())),
            ("count", numbers(Statistic::Count)),
            ("sum", numbers(Statistic::Sum)),
            ("min", numbers(Statistic::Min)),
            ("max", numbers(Statistic::Max)),
            ("last", numbers(Statistic::Last)),
            ("last_time", FrameColumn::TimeNs(rows.iter().map(|row| row.2.last_ns()).collect())),
        ];
        let columns = columns.map(|(name, column)| (name.to_owned(), column)).into();
        Self { row_count: rows.len(), columns }
    }

    /// Makes a frame of the newest samples of one measurement. The columns are `entity_id`,
    /// `observed_at`, `tags` (a JSON object) and the fields that any sample has, in byte order of
    /// their names. Both lists restrict the frame to some entities and fields.
    ///
    /// # Errors
    /// Returns [`crate::model::error::Error::Invalid`] if the frame would have millions of cells,
    /// nearly all of them empty.
    pub fn of_latest(
        view: &LatestView<'_>,
        measurement: &str,
        entity_ids: Option<&[String]>,
        fields: Option<&[String]>,
    ) -> Result<Self> {
        let catalog = view.catalog;
        let index = catalog.measurement(measurement);
        let empty = LatestTable::default();
        let table = index.and_then(|index| view.latest.table(index)).unwrap_or(&empty);
        let id_of = |slot: u32| catalog.entity_id(table.entity(slot));
        let slots: Vec<u32> = match (index, entity_ids) {
            (Some(index), Some(ids)) => view.latest.slots_of(index, ids, &view.range_ns, catalog),
            _ => table.slots_in(view.range_ns.clone()).collect(),
        };
        let is_taken = |field: FieldId| {
            let name = catalog.field(field).map(|field| &*field.name);
            fields.is_none_or(|wanted| wanted.iter().any(|field| Some(&**field) == name))
        };
        let columns = columns_of(table, &slots, is_taken)?;
        let tags = |slot: &u32| {
            let mut json = Vec::new();
            table.write_tags(&mut json, *slot, catalog);
            Some(String::from_utf8_lossy(&json).into_owned())
        };
        let times_ns = slots.iter().map(|slot| table.time_ns(*slot)).collect();
        let ids = slots.iter().map(|slot| Some(id_of(*slot).to_owned())).collect();
        let mut named: Vec<_> = columns
            .into_iter()
            .filter_map(|(field, column)| Some((catalog.field(field)?.name.to_string(), column)))
            .collect();
        named.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let mut columns = vec![
            ("entity_id".to_owned(), FrameColumn::Text(ids)),
            ("observed_at".to_owned(), FrameColumn::TimeNs(times_ns)),
            ("tags".to_owned(), FrameColumn::Text(slots.iter().map(tags).collect())),
        ];
        columns.append(&mut named);
        Ok(Self { row_count: slots.len(), columns })
    }
}

/// Returns a column for each field that is wanted and that any of `slots` has.
fn columns_of(
    table: &LatestTable,
    slots: &[u32],
    is_taken: impl Fn(FieldId) -> bool,
) -> Result<HashMap<FieldId, FrameColumn>> {
    let mut taken: HashMap<FieldId, Option<FrameColumn>> = HashMap::new();
    let mut values = 0;
    for slot in slots {
        for (field, value) in table.values(*slot) {
            let empty = || is_taken(field).then(|| empty_column(value));
            values += usize::from(taken.entry(field).or_insert_with(empty).is_some());
        }
    }
    check_cells(taken.values().flatten().count() * slots.len(), values)?;
    for (row, slot) in slots.iter().enumerate() {
        for (field, value) in table.values(*slot) {
            if let Some(Some(column)) = taken.get_mut(&field) {
                put(column, row, value);
            }
        }
    }
    let columns = taken.into_iter().filter_map(|(field, column)| Some((field, column?)));
    Ok(columns.map(|(field, column)| (field, padded(column, slots.len()))).collect())
}

fn empty_column(like: ValueRef<'_>) -> FrameColumn {
    match like {
        ValueRef::Float(_) => FrameColumn::Float(Vec::new()),
        ValueRef::Bool(_) => FrameColumn::Bool(Vec::new()),
        ValueRef::Text(_) => FrameColumn::Text(Vec::new()),
    }
}

/// Appends the value of a row. Fills the rows without a value before it.
fn put(column: &mut FrameColumn, row: usize, value: ValueRef<'_>) {
    match (column, value) {
        (FrameColumn::Float(values), ValueRef::Float(value)) => {
            values.resize(row, f64::NAN);
            values.push(value);
        }
        (FrameColumn::Bool(values), ValueRef::Bool(value)) => {
            values.resize(row, None);
            values.push(Some(value));
        }
        (FrameColumn::Text(values), ValueRef::Text(value)) => {
            values.resize(row, None);
            values.push(Some(value.to_owned()));
        }
        _ => debug_assert!(false, "one field id has one type for ever"),
    }
}

fn padded(mut column: FrameColumn, rows: usize) -> FrameColumn {
    match &mut column {
        FrameColumn::TimeNs(_) => {}
        FrameColumn::Float(values) => values.resize(rows, f64::NAN),
        FrameColumn::Bool(values) => values.resize(rows, None),
        FrameColumn::Text(values) => values.resize(rows, None),
    }
    column
}
