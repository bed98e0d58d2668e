//! Names of the columns that fields become in a table of rows of many measurements.
//!
//! A column is named as its field is, with the type as a suffix where the name alone would not
//! tell the field: so each column name stands for one field name, and the other way round.

use std::borrow::Cow;

use super::batch::FieldType;

/// Columns of every row beside its fields.
pub const ROW_COLUMNS: [&str; 3] = ["time", "measurement", "tags"];

const SUFFIXES: [(&str, FieldType); 3] =
    [(":float", FieldType::Float), (":bool", FieldType::Bool), (":text", FieldType::Text)];

/// Follows the suffix of a name in which NUL and `%` are escaped, because names end at NUL in C.
const ESCAPED: char = '%';

/// The name of the column of a field, where `has_other_type` tells that a field of this name has
/// another type in another measurement.
#[must_use]
pub fn of_field(field: &str, field_type: FieldType, has_other_type: bool) -> String {
    let has_nul = field.contains('\0');
    let looks_suffixed = parts(field).1.is_some();
    if !has_other_type && !has_nul && !looks_suffixed && !ROW_COLUMNS.contains(&field) {
        return field.to_owned();
    }
    let suffix = SUFFIXES.iter().find(|(_, of)| *of == field_type).map_or("", |(suffix, _)| suffix);
    if has_nul {
        let escaped = field.replace('%', "%25").replace('\0', "%00");
        return format!("{escaped}{suffix}{ESCAPED}");
    }
    format!("{field}{suffix}")
}

/// The field of a column, and its type where the name has it.
#[must_use]
pub fn field_of(column: &str) -> (Cow<'_, str>, Option<FieldType>) {
    match parts(column) {
        (field, Some(field_type), true) => {
            let field = field.replace("%00", "\0").replace("%25", "%");
            (field.into(), Some(field_type))
        }
        (field, field_type, _) => (field.into(), field_type),
    }
}

/// A name without its suffix, the type that this says, and whether it says that the name is escaped.
fn parts(name: &str) -> (&str, Option<FieldType>, bool) {
    let (plain, is_escaped) =
        name.strip_suffix(ESCAPED).map_or((name, false), |plain| (plain, true));
    let of_suffix = |(suffix, field_type): &(&str, FieldType)| {
        let field = plain.strip_suffix(suffix)?;
        (!field.is_empty()).then_some((field, Some(*field_type), is_escaped))
    };
    SUFFIXES.iter().find_map(of_suffix).unwrap_or((name, None, false))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_column_tells_its_field_and_no_two_fields_have_one_column() {
        let mut seen = HashSet::new();
        let names =
            ["a", "time", "a:float", ":float", "a:bool%", "a\0b", "a%00b", "%", "a%00\0:text"];
        for name in names {
            for field_type in [FieldType::Float, FieldType::Bool, FieldType::Text] {
                let column = of_field(name, field_type, true);
                assert_eq!(field_of(&column), (name.into(), Some(field_type)));
                assert!(!column.contains('\0') && seen.insert(column));
            }
            let column = of_field(name, FieldType::Float, false);
            assert_eq!(field_of(&column).0, name);
        }
        assert_eq!(of_field("snr_db", FieldType::Float, false), "snr_db");
        assert_eq!(of_field(":float", FieldType::Bool, false), ":float");
        assert_eq!(of_field("time", FieldType::Bool, false), "time:bool");
    }
}
