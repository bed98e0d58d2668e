//! A header as steps through a row.

use super::columns::CsvColumns;
use crate::model::batch::FieldType;

/// One step: some cells side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Time,
    /// So many cells of the measurement and of tags.
    Key(usize),
    /// A field of this type; `None` while no cell has told it.
    Field(Option<FieldType>),
    Ignored,
}

/// Steps through a row, with the index of the first cell of each; `None` where a column has several
/// roles or two columns are one field: such rows are read by the rules.
pub(super) fn steps(columns: &CsvColumns) -> Option<Vec<(Step, usize)>> {
    let mut steps: Vec<(Step, usize)> = Vec::new();
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
                Step::Field(field.field_type)
            }
            None if column.is_time => Step::Time,
            None if is_key => {
                if let Some((Step::Key(count), _)) = steps.last_mut() {
                    *count += 1;
                    continue;
                }
                Step::Key(1)
            }
            None => Step::Ignored,
        };
        steps.push((step, index));
    }
    names.sort_unstable();
    let is_unique = names.windows(2).all(|pair| pair[0] != pair[1]);
    is_unique.then_some(steps)
}
