//! Raw rows: records of one instant share a row if they have no channel in common (F4).
//!
//! Example: of three records of one instant with the channels `a`, `b` and `a`, the first two share
//! a row, and the third begins another row.

use super::collector::{Collector, ColumnValues, RowRun, SelectedRows};
use super::field_map::FieldMap;
use super::rows::{Channel, EntityRows};
use crate::model::batch::RowSet;
use crate::model::names::FieldId;

/// No row.
const NONE: u32 = u32::MAX;

/// Collects records without aggregation.
pub struct RawRows {
    entities: Vec<EntityRecords>,
    values: usize,
    values_max: usize,
}

/// Records of one entity in write order.
#[derive(Default)]
struct EntityRecords {
    times_ns: Vec<i64>,
    fields: FieldMap<RawField>,
}

/// The values of one field.
struct RawField {
    /// The records that have a value. [`RowSet::All`] means the first records, as many as there are
    /// values.
    records: RowSet,
    values: Vec<f64>,
}

impl RawRows {
    /// Returns a collector for this many entities, which is full if it has more than `values_max`
    /// values.
    #[must_use]
    pub fn new(entities: usize, values_max: usize) -> Self {
        let entities = std::iter::repeat_with(EntityRecords::default).take(entities).collect();
        Self { entities, values: 0, values_max }
    }

    /// Returns the rows of each entity.
    #[must_use]
    pub fn finish(self) -> Vec<EntityRows> {
        self.entities.into_iter().map(EntityRecords::into_rows).collect()
    }
}

impl Collector for RawRows {
    /// For each run, the index of its first record among the records of its entity.
    type Targets = Vec<usize>;

    fn records(&mut self, selected: &SelectedRows<'_>) -> Self::Targets {
        let mut first_records = Vec::with_capacity(selected.runs.len());
        for RowRun { entity, rows } in &selected.runs {
            let records = &mut self.entities[*entity as usize];
            first_records.push(records.times_ns.len());
            records.times_ns.extend_from_slice(&selected.times_ns[rows.clone()]);
        }
        first_records
    }

    fn values(
        &mut self,
        selected: &SelectedRows<'_>,
        targets: &Self::Targets,
        field: FieldId,
        cells: &ColumnValues<'_>,
    ) {
        cells.for_each_run(&selected.runs, |at, RowRun { entity, rows }, indices| {
            let (first, records) = (targets[at], &mut self.entities[*entity as usize]);
            let cell = records.fields.get(field);
            self.values += indices.len();
            if indices.len() < rows.len() || !cell.is_dense_until(first) {
                let record = |index| number(first + cells.row_at(index) - rows.start);
                cell.list().extend(indices.clone().map(record));
            }
            cell.values.extend_from_slice(cells.values(indices));
        });
    }

    fn is_full(&self) -> bool {
        self.values > self.values_max
    }
}

impl Default for RawField {
    fn default() -> Self {
        Self { records: RowSet::All, values: Vec::new() }
    }
}

impl RawField {
    /// Returns true if all records before `record` have a value and no later record has one.
    fn is_dense_until(&self, record: usize) -> bool {
        self.values.len() == record && matches!(self.records, RowSet::All)
    }

    /// Returns the list of the records that have a value.
    fn list(&mut self) -> &mut Vec<u32> {
        if self.records == RowSet::All {
            self.records = RowSet::Some((0..number(self.values.len())).collect());
        }
        match &mut self.records {
            RowSet::Some(list) => list,
            RowSet::All => unreachable!("it became a list"),
        }
    }
}

fn number(record: usize) -> u32 {
    u32::try_from(record).expect("records of one entity that fit in memory")
}

impl EntityRecords {
    fn into_rows(self) -> EntityRows {
        let records = self.times_ns.len();
        let mut fields = self.fields.into_entries();
        let has_value = have_value(records, &mut fields);
        if has_value.is_some() || !self.times_ns.is_sorted_by(|a, b| a < b) {
            return merge(&self.times_ns, fields, has_value);
        }
        let channel = |(field, mut cell): (FieldId, RawField)| {
            if cell.values.len() == records {
                cell.records = RowSet::All;
            } else {
                cell.list();
            }
            Channel { field, rows: cell.records, values: cell.values }
        };
        let channels = fields.into_iter().map(channel).collect();
        EntityRows { times_ns: self.times_ns, channels }
    }
}

/// Flags the records that have a value in any field. Returns `None` if all records have one.
fn have_value(records: usize, fields: &mut [(FieldId, RawField)]) -> Option<Vec<bool>> {
    if fields.iter().any(|(_, cell)| cell.values.len() == records) {
        return None;
    }
    let mut has_value = vec![false; records];
    for (_, cell) in fields {
        for record in cell.list() {
            has_value[*record as usize] = true;
        }
    }
    has_value.contains(&false).then_some(has_value)
}

/// Sorts by (time, write order), and lets records join the rows of their instant.
fn merge(
    times_ns: &[i64],
    mut fields: Vec<(FieldId, RawField)>,
    has_value: Option<Vec<bool>>,
) -> EntityRows {
    let mut order: Vec<u32> = (0..number(times_ns.len())).collect();
    if let Some(has_value) = has_value {
        order.retain(|record| has_value[*record as usize]);
    }
    order.sort_by_key(|record| times_ns[*record as usize]);
    let shared = fields_of_shared(times_ns, &order, &mut fields);
    let mut rows_ns = Vec::with_capacity(order.len());
    let mut row_of = vec![NONE; times_ns.len()];
    // The row with the last value of each field.
    let mut last_row = vec![NONE; fields.len()];
    for record in order {
        let time_ns = times_ns[record as usize];
        let start = shared.partition_point(|(other, _)| *other < record);
        let of_record =
            || shared[start..].iter().take_while(|(other, _)| *other == record).map(|(_, at)| *at);
        let newest = number(rows_ns.len()).wrapping_sub(1);
        let joins =
            rows_ns.last() == Some(&time_ns) && of_record().all(|field| last_row[field] != newest);
        if !joins {
            rows_ns.push(time_ns);
        }
        row_of[record as usize] = number(rows_ns.len()) - 1;
        of_record().for_each(|field| last_row[field] = row_of[record as usize]);
    }
    let row_count = rows_ns.len();
    let channel = |(field, cell): (FieldId, RawField)| cell.into_channel(field, &row_of, row_count);
    let channels = fields.into_iter().map(channel).collect();
    EntityRows { times_ns: rows_ns, channels }
}

/// Finds the records that share their instant with others. Returns each such record with the index
/// of each of its fields, sorted by record. `order` has the records by time.
fn fields_of_shared(
    times_ns: &[i64],
    order: &[u32],
    fields: &mut [(FieldId, RawField)],
) -> Vec<(u32, usize)> {
    let mut is_shared = vec![false; times_ns.len()];
    let of_instant = order.chunk_by(|a, b| times_ns[*a as usize] == times_ns[*b as usize]);
    for records in of_instant.filter(|records| records.len() > 1) {
        for record in records {
            is_shared[*record as usize] = true;
        }
    }
    let mut shared = Vec::new();
    for (at, (_, cell)) in fields.iter_mut().enumerate() {
        let records = cell.list().iter().filter(|record| is_shared[**record as usize]);
        shared.extend(records.map(|record| (*record, at)));
    }
    shared.sort_unstable();
    shared
}

impl RawField {
    /// Places the values at the rows of their records. There are `row_count` rows.
    fn into_channel(mut self, field: FieldId, row_of: &[u32], row_count: usize) -> Channel {
        let mut rows = std::mem::take(self.list());
        for record in &mut rows {
            *record = row_of[*record as usize];
        }
        let mut values = self.values;
        if !rows.is_sorted() {
            let mut cells: Vec<(u32, f64)> = rows.into_iter().zip(values).collect();
            cells.sort_unstable_by_key(|(row, _)| *row);
            (rows, values) = cells.into_iter().unzip();
        }
        let rows = if rows.len() == row_count { RowSet::All } else { RowSet::Some(rows) };
        Channel { field, rows, values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::collector::offer;

    fn rows(records: &[(i64, [Option<f64>; 2])]) -> EntityRows {
        let mut raw = RawRows::new(1, usize::MAX);
        for record in records {
            offer(&mut raw, &[*record]);
        }
        let apart = raw.finish().remove(0);
        let mut raw = RawRows::new(1, usize::MAX);
        offer(&mut raw, records);
        let together = raw.finish().remove(0);
        for field in 0..2 {
            assert_eq!(together.cells(field), apart.cells(field));
        }
        assert_eq!(together.times_ns, apart.times_ns);
        together
    }

    #[test]
    fn f4_disjoint_records_of_an_instant_share_a_row() {
        let rows = rows(&[(7, [Some(1.0), None]), (7, [None, Some(2.0)])]);
        assert_eq!(rows.times_ns, [7]);
        assert_eq!((rows.cells(0), rows.cells(1)), (vec![Some(1.0)], vec![Some(2.0)]));
    }

    #[test]
    fn f4_a_repeated_channel_opens_a_row_and_later_records_join_the_newest() {
        let rows = rows(&[
            (7, [Some(1.0), None]),
            (7, [Some(2.0), None]),
            (7, [None, Some(3.0)]),
            (7, [None, Some(4.0)]),
        ]);
        assert_eq!(rows.times_ns, [7, 7, 7]);
        assert_eq!(rows.cells(0), [Some(1.0), Some(2.0), None]);
        assert_eq!(rows.cells(1), [None, Some(3.0), Some(4.0)]);
    }

    #[test]
    fn f4_a_record_without_a_returned_channel_opens_no_row() {
        let rows = rows(&[(7, [None, None]), (8, [Some(1.0), None])]);
        assert_eq!(rows.times_ns, [8]);
        assert_eq!(rows.cells(1), [None]);
    }

    #[test]
    fn d13_late_records_take_their_place_in_time() {
        let rows = rows(&[(9, [Some(9.0), None]), (3, [Some(3.0), None])]);
        assert_eq!(rows.times_ns, [3, 9]);
        assert_eq!(rows.cells(0), [Some(3.0), Some(9.0)]);
    }

    #[test]
    fn h11_a_channel_that_begins_or_ends_amid_the_rows_has_a_value_where_it_had_one() {
        let rows = rows(&[
            (1, [Some(1.0), None]),
            (2, [Some(2.0), Some(20.0)]),
            (3, [None, Some(30.0)]),
            (4, [Some(4.0), None]),
        ]);
        assert_eq!(rows.cells(0), [Some(1.0), Some(2.0), None, Some(4.0)]);
        assert_eq!(rows.cells(1), [None, Some(20.0), Some(30.0), None]);
    }
}
