//! Decides which rows are accepted, if no fault refuses the whole batch.

use super::input::{InputRows, InputValues};
use crate::wire::rules::{is_rejected, is_stored};

/// Returns which rows are accepted, or `None` if all are.
pub(super) fn accepted(rows: &InputRows<'_>) -> Option<Vec<bool>> {
    // Do not stop early, so that the compiler uses wide instructions.
    let are_stored = rows.times_ns.iter().fold(true, |all, time_ns| all & is_stored(*time_ns));
    let has_all = rows.fields.iter().any(|field| field.present.is_none());
    if are_stored && has_all {
        return None;
    }
    let mut has_fields = vec![has_all; rows.row_count];
    if !has_all {
        for row in rows.fields.iter().filter_map(|field| field.present.as_ref()).flatten() {
            has_fields[*row as usize] = true;
        }
    }
    let of_row = has_fields.iter().zip(&*rows.times_ns);
    let accepted: Vec<bool> =
        of_row.map(|(has_fields, time_ns)| !is_rejected(*has_fields, Some(*time_ns))).collect();
    accepted.contains(&false).then_some(accepted)
}

/// Returns true if a row has more than `fields_max` fields.
pub(super) fn has_more_fields(rows: &InputRows<'_>, fields_max: usize) -> bool {
    if rows.fields.len() <= fields_max {
        return false;
    }
    let some = rows.fields.iter().filter_map(|field| field.present.as_ref());
    let in_all = rows.fields.len() - some.clone().count();
    let mut counts = vec![in_all; rows.row_count];
    for row in some.flatten() {
        counts[*row as usize] += 1;
    }
    counts.iter().any(|count| *count > fields_max)
}

/// Returns the indices of columns with a number that no field can have, and the rows of these
/// numbers.
pub(super) fn not_finite(rows: &InputRows<'_>) -> Vec<(usize, Vec<usize>)> {
    let mut found = Vec::new();
    for (index, field) in rows.fields.iter().enumerate() {
        let InputValues::Float(values) = &field.values else { continue };
        // Do not stop early, so that the compiler uses wide instructions.
        if values.iter().fold(true, |finite, value| finite & value.is_finite()) {
            continue;
        }
        let is_bad = |row: &usize| !values[*row].is_finite();
        let bad: Vec<usize> = match &field.present {
            None => (0..values.len()).filter(is_bad).collect(),
            Some(present) => present.iter().map(|row| *row as usize).filter(is_bad).collect(),
        };
        if !bad.is_empty() {
            found.push((index, bad));
        }
    }
    found
}
