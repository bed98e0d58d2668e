//! Distinct pairs of measurement and tags of rows.

use std::borrow::Cow;
use std::hash::Hasher;

use fleetcast_core::model::error::Result;
use fleetcast_core::wire::columnar::{GroupBy, Groups, InputKey, InputTag};

use super::bits::Bits;
use super::plan::{ColumnPlan, Measurement, TagsPlan};
use super::texts::{Integers, NullableColumn, TextColumn, offsets};
use super::view::ArrayView;

/// Measurements and tags of rows.
pub(super) struct RowKeys<'a> {
    pub(super) distinct: Vec<InputKey<'a>>,
    /// Index into `distinct` for each row; empty if all rows have index 0.
    pub(super) of_row: Vec<u32>,
    pub(super) tags: Vec<InputTag<'a>>,
}

/// Columns of tags.
enum TagColumns<'a> {
    Map(Box<MapColumn<'a>>),
    Columns(Vec<(&'a str, TagValues<'a>)>),
}

impl ColumnPlan {
    /// Finds the measurements and tags of the rows of a view.
    pub(super) fn keys<'a>(&'a self, view: &ArrayView<'a>) -> Result<RowKeys<'a>> {
        let mut groups = Groups::new(view.rows);
        let (name, names) = match &self.measurement {
            Measurement::Name(name) => (Some(name.as_str()), None),
            Measurement::Column(column) => (None, Some(TextColumn::new(&view.child(*column)?)?)),
        };
        if let Some(names) = &names {
            names.split(&mut groups);
        }
        let (columns, fixed) = match &self.tags {
            TagsPlan::Map(column) => {
                let maps = MapColumn::new(&view.child(*column)?)?;
                groups.split(&&maps);
                (TagColumns::Map(Box::new(maps)), [].as_slice())
            }
            TagsPlan::Columns { columns, fixed } => {
                let mut found = Vec::with_capacity(columns.len());
                for (key, column) in columns {
                    let values = TagValues::new(&view.child(*column)?)?;
                    values.split(&mut groups);
                    found.push((key.as_str(), values));
                }
                (TagColumns::Columns(found), fixed.as_slice())
            }
        };
        let mut distinct = Vec::with_capacity(groups.first_rows().len());
        let mut tags = Vec::new();
        for row in groups.first_rows().iter().map(|row| *row as usize) {
            let measurement = match &names {
                Some(names) => names.utf8(row)?,
                None => name,
            };
            for (key, value) in fixed {
                let value = Some(Cow::Borrowed(value.as_bytes()));
                tags.push(InputTag { key: Some(key.as_bytes()), value });
            }
            columns.put(row, &mut tags);
            distinct.push(InputKey { measurement, tags_end: tags.len() });
        }
        Ok(RowKeys { distinct, of_row: groups.into_group_of(), tags })
    }
}

impl<'a> TagColumns<'a> {
    /// Appends the tags of a row to `tags`.
    fn put(&self, row: usize, tags: &mut Vec<InputTag<'a>>) {
        match self {
            Self::Map(maps) => {
                for entry in maps.offsets[row]..maps.offsets[row + 1] {
                    let value = maps.values.get(entry).map(Cow::Borrowed);
                    tags.push(InputTag { key: maps.keys.get(entry), value });
                }
            }
            Self::Columns(columns) => {
                for (key, values) in columns {
                    if let Some(value) = values.get(row) {
                        tags.push(InputTag { key: Some(key.as_bytes()), value: Some(value) });
                    }
                }
            }
        }
    }
}

/// Values of a tag: texts, or integers in their shortest spelling.
enum TagValues<'a> {
    Texts(TextColumn<'a>),
    /// Unsigned integers are kept as signed integers of the same bits.
    Integers {
        numbers: Integers<'a>,
        is_unsigned: bool,
        validity: Option<Bits<'a>>,
    },
}

impl<'a> TagValues<'a> {
    fn new(view: &ArrayView<'a>) -> Result<Self> {
        if view.field.is_integer() && view.field.dictionary.is_none() {
            let is_unsigned = view.field.is_u64();
            let numbers = if is_unsigned { view.bits_of_u64()?.into() } else { view.integers()? };
            let (numbers, validity) = (Integers(numbers), view.validity()?);
            return Ok(Self::Integers { numbers, is_unsigned, validity });
        }
        TextColumn::new(view).map(Self::Texts)
    }

    fn split(&self, groups: &mut Groups) {
        match self {
            Self::Texts(texts) => texts.split(groups),
            Self::Integers { numbers, validity: None, .. } => groups.split(numbers),
            Self::Integers { numbers: column, validity: Some(validity), .. } => {
                groups.split(&NullableColumn { validity: *validity, column });
            }
        }
    }

    fn get(&self, row: usize) -> Option<Cow<'a, [u8]>> {
        match self {
            Self::Texts(texts) => texts.get(row).map(Cow::Borrowed),
            Self::Integers { numbers, is_unsigned, validity } => {
                let is_valid = validity.is_none_or(|validity| validity.is_set(row));
                let number = numbers.0[row];
                let text = || match is_unsigned {
                    true => number.cast_unsigned().to_string(),
                    false => number.to_string(),
                };
                is_valid.then(|| Cow::Owned(text().into_bytes()))
            }
        }
    }
}

/// Maps from text to text.
struct MapColumn<'a> {
    /// Ends of the entries of rows.
    offsets: Vec<usize>,
    keys: TextColumn<'a>,
    values: TextColumn<'a>,
    /// Group of each entry. Entries of one group have the same key and value.
    group_of: Vec<u32>,
}

impl<'a> MapColumn<'a> {
    fn new(view: &ArrayView<'a>) -> Result<Self> {
        let (first, offsets) = match view.field.format.as_str() {
            "+L" => offsets::<i64>(view)?,
            _ => offsets::<i32>(view)?,
        };
        let count = offsets.last().copied().unwrap_or(0);
        let entries = ArrayView::new(view.child_array(0)?, &view.field.children[0], first, count)?;
        let (keys, values) =
            (TextColumn::new(&entries.child(0)?)?, TextColumn::new(&entries.child(1)?)?);
        let mut groups = Groups::new(count);
        keys.split(&mut groups);
        values.split(&mut groups);
        Ok(Self { offsets, keys, values, group_of: groups.group_of().to_vec() })
    }
}

impl<'m> GroupBy for &'m MapColumn<'_> {
    type Value = &'m [u32];

    #[inline]
    fn value(&self, row: usize) -> &'m [u32] {
        &self.group_of[self.offsets[row]..self.offsets[row + 1]]
    }

    #[inline]
    fn is_same(value: &'m [u32], other: &'m [u32]) -> bool {
        value == other
    }

    fn hash(value: &'m [u32], hasher: &mut impl Hasher) {
        for entry in value {
            hasher.write_u32(*entry);
        }
    }
}
