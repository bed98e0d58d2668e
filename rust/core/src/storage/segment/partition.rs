//! Groups rows for segments: by day, then by measurement.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::representatives::Representatives;
use super::sort::sorted;
use super::span::RowSpan;
use super::subset::split_by_day;
use crate::model::batch::Table;
use crate::model::error::Result;

/// Tables by the rank of their measurement. Tables of the same measurement stay in write order.
pub(crate) type ByRank<'t> = BTreeMap<u32, Vec<Cow<'t, Table>>>;

/// Splits `tables`, which are in write order, by day.
///
/// # Errors
/// Returns [`crate::model::error::Error::Corrupt`] if a series has no name.
pub(crate) fn partitioned<'t>(
    tables: impl IntoIterator<Item = &'t Table>,
    representatives: &Representatives,
) -> Result<BTreeMap<i64, ByRank<'t>>> {
    let mut days: BTreeMap<i64, ByRank<'t>> = BTreeMap::new();
    for table in tables {
        let rank = representatives.rank(table)?;
        for (day, table) in split_by_day(table) {
            days.entry(day).or_default().entry(rank).or_default().push(table);
        }
    }
    Ok(days)
}

/// Returns the rows of some days as one sorted table for each measurement.
///
/// # Errors
/// Returns the errors of [`partitioned`].
pub(crate) fn sorted_by_rank(
    of_days: ByRank<'_>,
    representatives: &Representatives,
) -> Result<Vec<Table>> {
    let of_measurement = |tables: Vec<Cow<'_, Table>>| {
        let spans: Vec<_> = tables.iter().map(|table| RowSpan::whole(table)).collect();
        sorted(&spans, representatives)
    };
    of_days.into_values().map(of_measurement).collect()
}
