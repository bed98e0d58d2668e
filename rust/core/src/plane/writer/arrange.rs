//! The order of rows in a stored block: entity by entity, in write order within each entity.
//!
//! Neighbouring rows of one entity pack far better than rows in arrival order. The order loses no
//! information: write order matters only between the rows of one entity (F4, F6, H27).

use crate::model::batch::{RowSet, Table, Values};
use crate::model::catalog::Catalog;
use crate::model::names::SeriesId;

/// Rows per value up to which all rows of a column are visited to move its values. A sparser column
/// is moved by visiting only its values. Example: of 800 rows, 100 values are moved row by row.
const ROWS_PER_VALUE_MAX: usize = 8;

/// Ids per row up to which rows are counted by id instead of sorted.
const IDS_PER_ROW_MAX: usize = 4;

/// Index that no value has: the row has no value.
const NONE: u32 = u32::MAX;

/// Groups the rows of `table` by entity. Their series are stored ids.
pub(super) fn by_entity(table: &mut Table, catalog: &Catalog) {
    // All tag sets of one entity sort under its first series.
    let representative = |id: &SeriesId| {
        let entity = catalog.series(*id).and_then(|series| series.entity);
        entity.map_or(*id, |entity| catalog.entity(entity).first_series())
    };
    let representatives: Vec<SeriesId> = table.series.iter().map(representative).collect();
    if representatives.is_sorted() {
        return;
    }
    let order = stable_order(&representatives);
    let mut moved_to = Vec::new();
    table.series = gather(&table.series, &order);
    table.times_ns = gather(&table.times_ns, &order);
    for column in &mut table.columns {
        let RowSet::Some(rows) = &mut column.rows else {
            arrange_values(&mut column.values, &order);
            continue;
        };
        let from = if rows.len() * ROWS_PER_VALUE_MAX < order.len() {
            if moved_to.is_empty() {
                moved_to = inverse(&order);
            }
            move_few(rows, &moved_to)
        } else {
            move_many(rows, &order)
        };
        arrange_values(&mut column.values, &from);
    }
}

/// Returns the order of the rows by id. Rows with the same id keep their order. Example: ids 5, 3,
/// 5, 3 give rows 1, 3, 0, 2.
fn stable_order(ids: &[SeriesId]) -> Vec<u32> {
    let (min, max) = ids.iter().fold((u32::MAX, 0), |(min, max), id| (min.min(*id), max.max(*id)));
    let span = (max - min) as usize;
    if span >= ids.len() * IDS_PER_ROW_MAX {
        let mut keys: Vec<(SeriesId, u32)> = ids.iter().copied().zip(0..).collect();
        keys.sort_unstable();
        return keys.into_iter().map(|(_, row)| row).collect();
    }
    // Index of the next row of each id.
    let mut next_of = vec![0_u32; span + 2];
    for id in ids {
        next_of[(id - min) as usize + 1] += 1;
    }
    let mut end = 0;
    for next in &mut next_of {
        end += *next;
        *next = end;
    }
    let mut order = vec![0; ids.len()];
    for (row, id) in (0..).zip(ids) {
        let next = &mut next_of[(id - min) as usize];
        order[*next as usize] = row;
        *next += 1;
    }
    order
}

/// Inverts an order: if row `order[i]` becomes row `i`, returns the new place of each row. Example:
/// 2, 0, 1 becomes 1, 2, 0.
fn inverse(order: &[u32]) -> Vec<u32> {
    let mut moved_to = vec![0; order.len()];
    for (to, from) in (0..).zip(order) {
        moved_to[*from as usize] = to;
    }
    moved_to
}

/// Moves the rows of a column. Returns the old index of each value.
fn move_few(rows: &mut Vec<u32>, moved_to: &[u32]) -> Vec<u32> {
    let mut moved: Vec<(u32, u32)> =
        rows.iter().map(|row| moved_to[*row as usize]).zip(0..).collect();
    moved.sort_unstable();
    let from;
    (*rows, from) = moved.into_iter().unzip();
    from
}

/// Moves rows as [`move_few`] does, for a column with values in most rows. Visits all rows without
/// a branch that the processor would guess wrong.
fn move_many(rows: &mut Vec<u32>, order: &[u32]) -> Vec<u32> {
    let mut index_of = vec![NONE; order.len()];
    for (index, row) in (0..).zip(&*rows) {
        index_of[*row as usize] = index;
    }
    let mut moved = vec![0; order.len()];
    let mut from = vec![0; order.len()];
    let mut count = 0;
    for (to, row) in (0..).zip(order) {
        let index = index_of[*row as usize];
        moved[count] = to;
        from[count] = index;
        count += usize::from(index != NONE);
    }
    moved.truncate(count);
    from.truncate(count);
    *rows = moved;
    from
}

fn arrange_values(values: &mut Values, from: &[u32]) {
    match values {
        Values::Float(values) => *values = gather(values, from),
        Values::Bool(values) => *values = gather(values, from),
        Values::Text(values) => {
            let mut text = |at: &u32| std::mem::take(&mut values[*at as usize]);
            *values = from.iter().map(&mut text).collect();
        }
    }
}

fn gather<T: Copy>(items: &[T], from: &[u32]) -> Vec<T> {
    from.iter().map(|at| items[*at as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::batch::Column;
    use crate::model::names::SeriesName;

    fn catalog() -> Catalog {
        let mut catalog = Catalog::default();
        for (id, entity, site) in [(0, "a", "x"), (1, "b", "x"), (2, "a", "y")] {
            let tags = [("entity_id", entity), ("site", site)];
            catalog.insert_series(id, SeriesName::new("link", &tags).view());
        }
        catalog
    }

    #[test]
    fn rows_of_an_entity_stand_together_in_write_order_over_all_its_tag_sets() {
        let column = |rows, values| Column { field: 0, rows, values };
        let mut table = Table {
            series: vec![2, 1, 0, 1],
            times_ns: vec![10, 11, 12, 13],
            columns: vec![
                column(RowSet::All, Values::Float(vec![0.0, 1.0, 2.0, 3.0])),
                column(RowSet::Some(vec![1, 2]), Values::Bool(vec![true, false])),
            ],
        };
        by_entity(&mut table, &catalog());
        assert_eq!(table.series, [2, 0, 1, 1]);
        assert_eq!(table.times_ns, [10, 12, 11, 13]);
        assert_eq!(table.columns[0].values, Values::Float(vec![0.0, 2.0, 1.0, 3.0]));
        assert_eq!(table.columns[1].rows, RowSet::Some(vec![1, 2]));
        assert_eq!(table.columns[1].values, Values::Bool(vec![false, true]));
    }

    #[test]
    fn order_is_stable_however_far_ids_lie_apart() {
        for far in [3, 100, u32::MAX - 2] {
            let ids = [far, 1, far, 2, 1, far];
            assert_eq!(stable_order(&ids), [1, 4, 3, 0, 2, 5], "{far}");
        }
    }

    #[test]
    fn texts_move_with_their_rows() {
        let texts =
            |texts: &[&str]| Values::Text(texts.iter().map(|text| (*text).into()).collect());
        let mut table = Table {
            series: vec![1, 0, 1],
            times_ns: vec![10, 11, 12],
            columns: vec![
                Column { field: 0, rows: RowSet::All, values: texts(&["a", "b", "c"]) },
                Column { field: 1, rows: RowSet::Some(vec![0, 1]), values: texts(&["a", "b"]) },
            ],
        };
        by_entity(&mut table, &catalog());
        assert_eq!(table.columns[0].values, texts(&["b", "a", "c"]));
        assert_eq!(table.columns[1].rows, RowSet::Some(vec![0, 1]));
        assert_eq!(table.columns[1].values, texts(&["b", "a"]));
    }

    #[test]
    fn a_column_of_few_values_moves_with_its_rows() {
        let rows = RowSet::Some(vec![1, 10, 90]);
        let values = Values::Float(vec![1.0, 10.0, 90.0]);
        let mut table = Table {
            series: (0..100).map(|row| row % 2).collect(),
            times_ns: (0..100).collect(),
            columns: vec![Column { field: 0, rows, values }],
        };
        by_entity(&mut table, &catalog());
        assert_eq!(table.columns[0].rows, RowSet::Some(vec![5, 45, 50]));
        assert_eq!(table.columns[0].values, Values::Float(vec![10.0, 90.0, 1.0]));
        assert_eq!([5, 45, 50].map(|row| table.times_ns[row]), [10, 90, 1]);
    }
}
