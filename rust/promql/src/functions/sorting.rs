//! `sort` and `sort_desc`. Only the answer at a single instant has an order.

use std::cmp::Ordering;

use crate::column::StepColumn;

/// Sorts columns by their first value. NaN comes last.
pub(crate) fn sorted(mut columns: Vec<StepColumn>, is_descending: bool) -> Vec<StepColumn> {
    let first = |column: &StepColumn| column.values.first().copied().unwrap_or(f64::NAN);
    columns.sort_by(|one, other| {
        let (one, other) = (first(one), first(other));
        match one.partial_cmp(&other) {
            Some(order) if is_descending => order.reverse(),
            Some(order) => order,
            None => match (one.is_nan(), other.is_nan()) {
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                _ => Ordering::Equal,
            },
        }
    });
    columns
}
