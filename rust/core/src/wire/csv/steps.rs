//! A header as steps through a row.

use super::columns::CsvColumns;
use crate::model::batch::FieldType;

/// A step over one cell or several neighbouring cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellStep {
    Time,
    /// This many cells of the measurement and of tags.
    Key(usize),
    /// A field of this type. `None` until a cell has shown the type.
    Field(Option<FieldType>),
    Ignored,
}

/// Returns the steps through a row, each with the index of its first cell. Returns `None` if a
/// column has several roles or two columns hold the same field: the rules read such rows.
pub(super) fn steps(columns: &CsvColumns) -> Option<Vec<(CellStep, usize)>> {
    let mut steps: Vec<(CellStep, usize)> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for (index, column) in columns.cells.iter().enumerate() {
        let is_key = column.is_measurement || !column.tags.is_empty();
        let roles = [column.is_time, is_key, column.field.is_some()];
        if roles.iter().filter(|role| **role).count() > 1 {
            return None;
        }
        let step = match &column.field {
            Some(field) => {
                names.push(&field.name);
                CellStep::Field(field.field_type)
            }
            None if column.is_time => CellStep::Time,
            None if is_key => {
                if let Some((CellStep::Key(count), _)) = steps.last_mut() {
                    *count += 1;
                    continue;
                }
                CellStep::Key(1)
            }
            None => CellStep::Ignored,
        };
        steps.push((step, index));
    }
    names.sort_unstable();
    let is_unique = names.windows(2).all(|pair| pair[0] != pair[1]);
    is_unique.then_some(steps)
}
