//! The order of rows in a stored block: entity by entity, in write order within each.
//!
//! Neighbours of one entity pack far better than neighbours in arrival order, and nothing is lost:
//! write order matters between the rows of one entity only (F4, F6, H27).

use crate::model::batch::{Rows, Table, Values};
use crate::model::catalog::Catalog;
use crate::model::names::SeriesId;

/// Rows for each value from which on a column costs its values alone.
const ROWS_PER_VALUE_MAX: usize = 8;

/// Groups the rows of `table`, whose series are stored ids, by entity.
pub(super) fn by_entity(table: &mut Table, catalog: &Catalog) {
    // Tag sets of one entity sort under the first of them.
    let representative = |id: &SeriesId| {
        let entity = catalog.series(*id).and_then(|series| series.entity);
        entity.map_or(*id, |entity| catalog.entity(entity).first_series())
    };
    // Representative series and row number in one word: sorting it is a stable sort by the former.
    let mut keys: Vec<u64> = (0_u64..)
        .zip(&table.series)
        .map(|(row, id)| u64::from(representative(id)) << 32 | row)
        .collect();
    if keys.is_sorted() {
        return;
    }
    keys.sort_unstable();
    let order: Vec<usize> = keys.iter().map(|key| (key & 0xffff_ffff) as usize).collect();
    let mut moved_to = vec![0; order.len()];
    for (to, from) in (0_u32..).zip(&order) {
        moved_to[*from] = to;
    }
    table.series = gather(&table.series, &order);
    table.times_ns = gather(&table.times_ns, &order);
    for column in &mut table.columns {
        arrange_column(&mut column.rows, &mut column.values, &order, &moved_to);
    }
}

/// Row `order[i]` becomes row `i`, and row `i` becomes row `moved_to[i]`.
fn arrange_column(rows: &mut Rows, values: &mut Values, order: &[usize], moved_to: &[u32]) {
    let moved_order;
    let order = match rows {
        Rows::All => order,
        Rows::Some(present) => {
            let moved = present.iter().map(|row| moved_to[*row as usize]);
            (*present, moved_order) = by_row(moved, order.len());
            &moved_order
        }
    };
    match values {
        Values::Float(values) => *values = gather(values, order),
        Values::Bool(values) => *values = gather(values, order),
        Values::Text(values) => *values = gather(values, order),
    }
}

/// The `moved` rows of a table of `row_count`, in order, and the index that the value of each had.
fn by_row(moved: impl ExactSizeIterator<Item = u32>, row_count: usize) -> (Vec<u32>, Vec<usize>) {
    if moved.len() * ROWS_PER_VALUE_MAX < row_count {
        let mut moved: Vec<(u32, usize)> = moved.zip(0..).collect();
        moved.sort_unstable();
        return moved.into_iter().unzip();
    }
    let mut index_of = vec![usize::MAX; row_count];
    moved.zip(0..).for_each(|(row, index)| index_of[row as usize] = index);
    (0..).zip(index_of).filter(|(_, index)| *index != usize::MAX).unzip()
}

fn gather<T: Clone>(items: &[T], order: &[usize]) -> Vec<T> {
    order.iter().map(|at| items[*at].clone()).collect()
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
            catalog.insert_series(id, SeriesName::new("link", &tags));
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
                column(Rows::All, Values::Float(vec![0.0, 1.0, 2.0, 3.0])),
                column(Rows::Some(vec![1, 2]), Values::Bool(vec![true, false])),
            ],
        };
        by_entity(&mut table, &catalog());
        assert_eq!(table.series, [2, 0, 1, 1]);
        assert_eq!(table.times_ns, [10, 12, 11, 13]);
        assert_eq!(table.columns[0].values, Values::Float(vec![0.0, 2.0, 1.0, 3.0]));
        assert_eq!(table.columns[1].rows, Rows::Some(vec![1, 2]));
        assert_eq!(table.columns[1].values, Values::Bool(vec![false, true]));
    }

    #[test]
    fn a_column_of_few_values_moves_with_its_rows() {
        let rows = Rows::Some(vec![1, 10, 90]);
        let values = Values::Float(vec![1.0, 10.0, 90.0]);
        let mut table = Table {
            series: (0..100).map(|row| row % 2).collect(),
            times_ns: (0..100).collect(),
            columns: vec![Column { field: 0, rows, values }],
        };
        by_entity(&mut table, &catalog());
        assert_eq!(table.columns[0].rows, Rows::Some(vec![5, 45, 50]));
        assert_eq!(table.columns[0].values, Values::Float(vec![10.0, 90.0, 1.0]));
        assert_eq!([5, 45, 50].map(|row| table.times_ns[row]), [10, 90, 1]);
    }
}
