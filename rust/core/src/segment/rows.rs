//! Rows of a measurement put in order, taken apart and put together.

use std::ops::Range;

use super::day_of;
use crate::batch::{Column, Rows, SeriesId, Table, Values};
use crate::catalog::Catalog;
use crate::error::{Error, Result};

/// Where the rows of each series belong, as the catalog has it.
pub struct Leaders {
    /// By series id: rank of its measurement among the names, and its entity's leader.
    of_series: Vec<Option<(u32, SeriesId)>>,
}

impl Leaders {
    /// Those of every series known to `catalog`.
    #[must_use]
    pub fn new(catalog: &Catalog) -> Self {
        let order = catalog.measurements_by_name();
        let mut ranks = vec![0; order.len()];
        for (rank, measurement) in (0..).zip(order) {
            ranks[measurement as usize] = rank;
        }
        let place = |(id, series): (SeriesId, &crate::catalog::Series)| {
            let leader = series.entity.map_or(id, |entity| catalog.entity(entity).leader);
            (id, (ranks[series.measurement as usize], leader))
        };
        let mut of_series = Vec::new();
        for (id, place) in catalog.all_series().map(place) {
            of_series.resize((id as usize + 1).max(of_series.len()), None);
            of_series[id as usize] = Some(place);
        }
        Self { of_series }
    }

    fn of(&self, series: SeriesId) -> Result<(u32, SeriesId)> {
        let place = self.of_series.get(series as usize).copied().flatten();
        place.ok_or(Error::Corrupt { what: "a series without a name" })
    }

    /// The leader of a series' entity.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a series that has no name.
    pub fn leader(&self, series: SeriesId) -> Result<SeriesId> {
        Ok(self.of(series)?.1)
    }

    /// Rank of the measurement of a table, by its first row; 0 where there is none.
    ///
    /// # Errors
    /// As [`Self::leader`].
    pub fn rank(&self, table: &Table) -> Result<u32> {
        table.series.first().map_or(Ok(0), |series| Ok(self.of(*series)?.0))
    }
}

/// The rows of some tables of one measurement, ordered by leader and time; rows alike in both stay
/// in the order of the tables.
///
/// # Errors
/// [`Error::Corrupt`] for a series that has no name.
#[expect(clippy::stable_sort_primitive, reason = "tables are in order, mostly: it merges runs")]
pub fn sorted(tables: &[Table], leaders: &Leaders) -> Result<Table> {
    let mut keys = Vec::with_capacity(tables.iter().map(Table::row_count).sum());
    for (source, table) in (0_u32..).zip(tables) {
        let rows = (0_u32..).zip(table.series.iter().zip(&table.times_ns));
        for (row, (series, time_ns)) in rows {
            keys.push((leaders.leader(*series)?, *time_ns, source, row));
        }
    }
    if !keys.is_sorted() {
        keys.sort();
    } else if let [table] = tables {
        return Ok(table.clone());
    }
    let picks: Vec<(u32, u32)> = keys.into_iter().map(|(.., source, row)| (source, row)).collect();
    Ok(gather(tables, &picks))
}

/// The rows of `table` by the day they lie in, each day's in their order.
#[must_use]
pub fn split_by_day(table: Table) -> Vec<(i64, Table)> {
    let mut days: Vec<i64> = table.times_ns.iter().map(|time_ns| day_of(*time_ns)).collect();
    let of_row = days.clone();
    days.sort_unstable();
    days.dedup();
    if let [day] = *days {
        return vec![(day, table)];
    }
    let tables = [table];
    let part = |day: i64| {
        let rows = (0_u32..).zip(&of_row).filter(|(_, other)| **other == day);
        let picks: Vec<(u32, u32)> = rows.map(|(row, _)| (0, row)).collect();
        (day, gather(&tables, &picks))
    };
    days.into_iter().map(part).collect()
}

/// The picked rows, each a table and a row in it.
fn gather(tables: &[Table], picks: &[(u32, u32)]) -> Table {
    let source = |(table, row): &(u32, u32)| (&tables[*table as usize], *row as usize);
    let mut fields: Vec<u32> =
        tables.iter().flat_map(|table| &table.columns).map(|column| column.field).collect();
    fields.sort_unstable();
    fields.dedup();
    Table {
        series: picks.iter().map(source).map(|(table, row)| table.series[row]).collect(),
        times_ns: picks.iter().map(source).map(|(table, row)| table.times_ns[row]).collect(),
        columns: fields
            .into_iter()
            .filter_map(|field| gather_column(tables, field, picks))
            .collect(),
    }
}

/// A column of one table: its values, and where those of its rows are.
struct Source<'t, T> {
    values: &'t [T],
    /// By row, `u32::MAX` for a row without a value; `None` where every row has its own.
    places: Option<Vec<u32>>,
}

fn gather_column(tables: &[Table], field: u32, picks: &[(u32, u32)]) -> Option<Column> {
    let mut columns = tables.iter().flat_map(|table| &table.columns);
    let like = columns.find(|column| column.field == field)?;
    // One field id has one type for ever, so each finds its own everywhere.
    let (present, values) = match like.values {
        Values::Float(_) => {
            let (present, values) = gather_values(tables, field, picks, |values| match values {
                Values::Float(values) => values,
                _ => &[],
            });
            (present, Values::Float(values))
        }
        Values::Bool(_) => {
            let (present, values) = gather_values(tables, field, picks, |values| match values {
                Values::Bool(values) => values,
                _ => &[],
            });
            (present, Values::Bool(values))
        }
        Values::Text(_) => {
            let (present, values) = gather_values(tables, field, picks, |values| match values {
                Values::Text(values) => values,
                _ => &[],
            });
            (present, Values::Text(values))
        }
    };
    if present.is_empty() {
        return None;
    }
    let rows = if present.len() == picks.len() { Rows::All } else { Rows::Some(present) };
    Some(Column { field, rows, values })
}

/// Which of the picked rows have a value, and these values.
fn gather_values<T: Clone>(
    tables: &[Table],
    field: u32,
    picks: &[(u32, u32)],
    typed: impl Fn(&Values) -> &[T],
) -> (Vec<u32>, Vec<T>) {
    let sources: Vec<_> = tables.iter().map(|table| source_of(table, field, &typed)).collect();
    let (mut present, mut values) =
        (Vec::with_capacity(picks.len()), Vec::with_capacity(picks.len()));
    for (row, (table, from)) in (0_u32..).zip(picks) {
        let Some(source) = &sources[*table as usize] else { continue };
        let place = source.places.as_ref().map_or(*from, |places| places[*from as usize]);
        if let Some(value) = source.values.get(place as usize) {
            present.push(row);
            values.push(value.clone());
        }
    }
    (present, values)
}

fn source_of<'t, T>(
    table: &'t Table,
    field: u32,
    typed: impl Fn(&'t Values) -> &'t [T],
) -> Option<Source<'t, T>> {
    let column = table.columns.iter().find(|column| column.field == field)?;
    let places = match &column.rows {
        Rows::All => None,
        Rows::Some(rows) => {
            let mut places = vec![u32::MAX; table.row_count()];
            for (place, row) in (0..).zip(rows) {
                places[*row as usize] = place;
            }
            Some(places)
        }
    };
    Some(Source { values: typed(&column.values), places })
}

/// Some neighbouring rows of a table; columns without a value there are left out.
pub(super) fn slice(table: &Table, rows: Range<usize>) -> Table {
    if rows == (0..table.row_count()) {
        return table.clone();
    }
    let cut = |column: &Column| {
        let (kept, places) = match &column.rows {
            Rows::All => (Rows::All, rows.clone()),
            Rows::Some(present) => {
                let places = places_within(present, &rows);
                let first = u32::try_from(rows.start).expect("rows have 32 bits");
                let kept: Vec<u32> =
                    present[places.clone()].iter().map(|row| row - first).collect();
                let is_whole = kept.len() == rows.len();
                (if is_whole { Rows::All } else { Rows::Some(kept) }, places)
            }
        };
        let values = match &column.values {
            Values::Float(values) => Values::Float(values[places].to_vec()),
            Values::Bool(values) => Values::Bool(values[places].to_vec()),
            Values::Text(values) => Values::Text(values[places].to_vec()),
        };
        Column { field: column.field, rows: kept, values }
    };
    Table {
        series: table.series[rows.clone()].to_vec(),
        times_ns: table.times_ns[rows.clone()].to_vec(),
        columns: table.columns.iter().map(cut).filter(|column| !column.values.is_empty()).collect(),
    }
}

/// Places, among the ascending rows `present`, of those in `rows`.
pub(super) fn places_within(present: &[u32], rows: &Range<usize>) -> Range<usize> {
    let place = |end: usize| present.partition_point(|row| (*row as usize) < end);
    place(rows.start)..place(rows.end)
}
