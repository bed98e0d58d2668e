//! Names of the columns that fields become in a table with rows of many measurements.
//!
//! A column has the name of its field. If that name alone would be ambiguous, the type follows as a
//! suffix. Each column name therefore belongs to exactly one field name.
//!
//! Example: if `state` is a boolean in one measurement and a text in another, the columns are
//! `state:bool` and `state:text`.

use std::borrow::Cow;

use super::batch::FieldType;

/// Columns that every row has in addition to its fields.
pub const ROW_COLUMNS: [&str; 3] = ["time", "measurement", "tags"];

const SUFFIXES: [(&str, FieldType); 3] =
    [(":float", FieldType::Float), (":bool", FieldType::Bool), (":text", FieldType::Text)];

/// Last character of a name in which NUL and `%` are escaped, because names end at NUL in C.
const ESCAPED: char = '%';

/// Returns the name of the column of a field. `has_other_type` is true if a field of this name has
/// another type in another measurement.
///
/// Example: `speed` stays `speed`, but becomes `speed:float` if `has_other_type`. A float field
/// `time` is always `time:float`, because every row has a column `time`.
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

/// Returns the field of a column, and its type if the name has a suffix.
///
/// Example: `speed:float` is the field `speed` with type float, and `speed` has no type.
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

/// Splits a name: the name without suffix, the type of the suffix, and true if the name is escaped.
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
