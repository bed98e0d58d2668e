//! Texts of columns in any layout that Arrow has for texts.

use std::borrow::Cow;
use std::hash::Hasher;

use fleetcast_core::model::error::Result;
use fleetcast_core::wire::columnar::{GroupBy, Groups};

use super::bits::Bits;
use super::field::{ArrowField, invalid};
use super::view::{ArrayView, Primitive};

/// Most bytes of a text that its view holds itself.
const INLINE_BYTES: usize = 12;

/// Texts of rows, as bytes.
pub(super) struct TextColumn<'a> {
    field: &'a ArrowField,
    rows: usize,
    /// Rows that have a text; `None` if every row has a text.
    validity: Option<Bits<'a>>,
    layout: TextLayout<'a>,
}

enum TextLayout<'a> {
    /// A column without values.
    Null,
    Offsets(ByOffsets<'a>),
    Views(ByViews<'a>),
    Dictionary(ByDictionary<'a>),
}

impl<'a> TextColumn<'a> {
    /// Reads the texts of a column, after a check that every text is inside the buffers.
    ///
    /// # Errors
    /// Returns [`fleetcast_core::model::error::Error::Invalid`] if the column does not hold texts,
    /// or refers to bytes outside of its buffers.
    pub(super) fn new(view: &ArrayView<'a>) -> Result<Self> {
        let validity = view.validity()?;
        let layout = if let Some(field) = &view.field.dictionary {
            TextLayout::Dictionary(ByDictionary::new(view, field, validity.as_ref())?)
        } else {
            match view.field.format.as_str() {
                "n" => TextLayout::Null,
                "u" => TextLayout::Offsets(ByOffsets::new::<i32>(view)?),
                "U" => TextLayout::Offsets(ByOffsets::new::<i64>(view)?),
                "vu" => TextLayout::Views(ByViews::new(view, validity.as_ref())?),
                _ => {
                    let (name, type_name) = (&view.field.name, view.field.type_name());
                    return Err(invalid(format!("column {name:?} is {type_name}, not text")));
                }
            }
        };
        Ok(Self { field: view.field, rows: view.rows, validity, layout })
    }

    /// Returns the text of a row, or `None` if the row has no text.
    pub(super) fn get(&self, row: usize) -> Option<&'a [u8]> {
        if self.validity.is_some_and(|validity| !validity.is_set(row)) {
            return None;
        }
        match &self.layout {
            TextLayout::Null => None,
            TextLayout::Offsets(texts) => Some(texts.get(row)),
            TextLayout::Views(texts) => Some(texts.get(row)),
            TextLayout::Dictionary(texts) => texts.get(row),
        }
    }

    /// Returns the text of a row as UTF-8, or `None` if the row has no text.
    pub(super) fn utf8(&self, row: usize) -> Result<Option<&'a str>> {
        let text = self.get(row).map(std::str::from_utf8);
        text.transpose().map_err(|_| not_utf8(self.field))
    }

    /// Returns all texts as UTF-8, and an empty text for rows without a text.
    pub(super) fn all_utf8(&self) -> Result<Vec<&'a str>> {
        match &self.layout {
            // The slow path below runs if a text is missing, because bytes of a missing text may be
            // invalid.
            TextLayout::Offsets(texts) if self.validity.is_none() => match texts.all_utf8() {
                Some(texts) => Ok(texts),
                None => Err(not_utf8(self.field)),
            },
            TextLayout::Dictionary(texts) => {
                let entries = texts.entries.all_utf8()?;
                let text = |row: usize| {
                    let is_valid = self.validity.is_none_or(|validity| validity.is_set(row));
                    if is_valid { entries[texts.code(row)] } else { "" }
                };
                Ok((0..self.rows).map(text).collect())
            }
            _ => (0..self.rows).map(|row| Ok(self.utf8(row)?.unwrap_or_default())).collect(),
        }
    }

    /// Splits groups whose rows have different texts.
    pub(super) fn split(&self, groups: &mut Groups) {
        match &self.layout {
            TextLayout::Null => {}
            TextLayout::Offsets(texts) => self.split_by(texts, groups),
            TextLayout::Views(texts) => self.split_by(texts, groups),
            TextLayout::Dictionary(texts) => self.split_by(&texts.codes, groups),
        }
    }

    fn split_by(&self, column: &impl GroupBy, groups: &mut Groups) {
        match self.validity {
            None => groups.split(column),
            Some(validity) => groups.split(&NullableColumn { validity, column }),
        }
    }
}

fn not_utf8(field: &ArrowField) -> fleetcast_core::model::error::Error {
    invalid(format!("column {:?} has text that is not UTF-8", field.name))
}

/// A column whose values may be missing. All missing values are equal.
pub(super) struct NullableColumn<'c, 'a, C> {
    pub(super) validity: Bits<'a>,
    pub(super) column: &'c C,
}

impl<C: GroupBy> GroupBy for NullableColumn<'_, '_, C> {
    type Value = Option<C::Value>;

    #[inline]
    fn value(&self, row: usize) -> Self::Value {
        self.validity.is_set(row).then(|| self.column.value(row))
    }

    #[inline]
    fn is_same(value: Self::Value, other: Self::Value) -> bool {
        match (value, other) {
            (Some(value), Some(other)) => C::is_same(value, other),
            (value, other) => value.is_none() && other.is_none(),
        }
    }

    fn hash(value: Self::Value, hasher: &mut impl Hasher) {
        if let Some(value) = value {
            C::hash(value, hasher);
        }
    }
}

/// Integers, such as the indices of texts in a dictionary.
#[derive(Clone)]
pub(super) struct Integers<'a>(pub(super) Cow<'a, [i64]>);

impl GroupBy for Integers<'_> {
    type Value = i64;

    #[inline]
    fn value(&self, row: usize) -> i64 {
        self.0[row]
    }

    #[inline]
    fn is_same(value: i64, other: i64) -> bool {
        value == other
    }

    fn hash(value: i64, hasher: &mut impl Hasher) {
        hasher.write_i64(value);
    }
}

/// Texts stored one after the other.
struct ByOffsets<'a> {
    /// Ends of the texts, counted from the start of the first text.
    offsets: Vec<usize>,
    bytes: &'a [u8],
}

impl<'a> ByOffsets<'a> {
    fn new<T: Primitive + TryInto<usize>>(view: &ArrayView<'a>) -> Result<Self> {
        let (first, offsets) = offsets::<T>(view)?;
        let count = offsets.last().copied().unwrap_or(0);
        Ok(Self { offsets, bytes: view.buffer(2, first, count)? })
    }

    #[inline]
    fn get(&self, row: usize) -> &'a [u8] {
        &self.bytes[self.offsets[row]..self.offsets[row + 1]]
    }

    /// Returns `None` if a text is not UTF-8.
    fn all_utf8(&self) -> Option<Vec<&'a str>> {
        let all = std::str::from_utf8(self.bytes).ok()?;
        self.offsets.windows(2).map(|ends| all.get(ends[0]..ends[1])).collect()
    }
}

impl<'a> GroupBy for ByOffsets<'a> {
    type Value = &'a [u8];

    #[inline]
    fn value(&self, row: usize) -> &'a [u8] {
        self.get(row)
    }

    #[inline]
    fn is_same(value: &'a [u8], other: &'a [u8]) -> bool {
        value.len() == other.len() && is_equal(value, other)
    }

    fn hash(value: &'a [u8], hasher: &mut impl Hasher) {
        hasher.write(value);
    }
}

/// Returns the first offset of a view's rows, and all offsets relative to it. Example: offsets 5,
/// 7, 9 give 5 and 0, 2, 4.
pub(super) fn offsets<T: Primitive + TryInto<usize>>(
    view: &ArrayView<'_>,
) -> Result<(usize, Vec<usize>)> {
    let broken = || invalid(format!("column {:?} has offsets that do not ascend", view.field.name));
    if view.rows == 0 {
        return Ok((0, vec![0]));
    }
    let offsets: &[T] = view.buffer(1, view.start, view.rows + 1)?;
    let mut last = offsets[0].try_into().map_err(|_| broken())?;
    let first = last;
    let mut counted = Vec::with_capacity(offsets.len());
    for offset in offsets {
        let offset = (*offset).try_into().ok().filter(|offset| *offset >= last);
        last = offset.ok_or_else(broken)?;
        counted.push(last - first);
    }
    Ok((first, counted))
}

/// Texts inside their views, or in buffers of texts.
struct ByViews<'a> {
    views: &'a [[u8; 16]],
    buffers: Vec<&'a [u8]>,
}

impl<'a> ByViews<'a> {
    fn new(view: &ArrayView<'a>, validity: Option<&Bits<'a>>) -> Result<Self> {
        let views: &[[u8; 16]] = view.buffer(1, view.start, view.rows)?;
        let broken =
            || invalid(format!("column {:?} has a text that is not there", view.field.name));
        // Buffers: validity, views, texts, and last the lengths of the buffers of texts.
        let count = usize::try_from(view.array.n_buffers).unwrap_or(0);
        let lengths: &[i64] = view.buffer(count.saturating_sub(1), 0, count.saturating_sub(3))?;
        let buffer = |(index, length): (usize, &i64)| {
            view.buffer(2 + index, 0, usize::try_from(*length).map_err(|_| broken())?)
        };
        let buffers = lengths.iter().enumerate().map(buffer).collect::<Result<_>>()?;
        let texts = Self { views, buffers };
        let is_there = |row: usize| {
            validity.is_some_and(|validity| !validity.is_set(row)) || texts.find(row).is_some()
        };
        if (0..view.rows).all(is_there) { Ok(texts) } else { Err(broken()) }
    }

    #[inline]
    fn find(&self, row: usize) -> Option<&'a [u8]> {
        let view = &self.views[row];
        let length = word(view, 0);
        if length <= INLINE_BYTES {
            return Some(&view[4..4 + length]);
        }
        let (buffer, start) = (word(view, 8), word(view, 12));
        self.buffers.get(buffer)?.get(start..start + length)
    }

    #[inline]
    fn get(&self, row: usize) -> &'a [u8] {
        self.find(row).expect("texts were looked for when they came")
    }
}

impl<'a> GroupBy for ByViews<'a> {
    /// The view, and the text if the view does not hold it.
    type Value = (u128, &'a [u8]);

    #[inline]
    fn value(&self, row: usize) -> Self::Value {
        let view = &self.views[row];
        let is_inline = word(view, 0) <= INLINE_BYTES;
        (u128::from_le_bytes(*view), if is_inline { &[] } else { self.get(row) })
    }

    #[inline]
    fn is_same((view, text): Self::Value, (other_view, other): Self::Value) -> bool {
        // Views of equal texts are mostly equal. Otherwise they share the length and the first
        // bytes.
        let differ = view ^ other_view;
        differ == 0
            || differ & u128::from(u64::MAX) == 0 && !text.is_empty() && is_equal(text, other)
    }

    fn hash((view, text): Self::Value, hasher: &mut impl Hasher) {
        if text.is_empty() { hasher.write_u128(view) } else { hasher.write(text) }
    }
}

/// Compares texts of equal length. Short texts, the usual case, are compared without a call.
#[inline]
fn is_equal(text: &[u8], other: &[u8]) -> bool {
    if let (Some(first), Some(last)) = (text.first_chunk::<16>(), text.last_chunk::<16>())
        && text.len() <= 32
    {
        return Some(first) == other.first_chunk() && Some(last) == other.last_chunk();
    }
    if let (Some(first), Some(last)) = (text.first_chunk::<8>(), text.last_chunk::<8>())
        && text.len() <= 16
    {
        return Some(first) == other.first_chunk() && Some(last) == other.last_chunk();
    }
    text == other
}

/// Returns four bytes of a view as a number.
#[inline]
fn word(view: &[u8; 16], at: usize) -> usize {
    let bytes = [view[at], view[at + 1], view[at + 2], view[at + 3]];
    u32::from_le_bytes(bytes) as usize
}

/// Distinct texts that rows share.
struct ByDictionary<'a> {
    codes: Integers<'a>,
    entries: Box<TextColumn<'a>>,
}

impl<'a> ByDictionary<'a> {
    fn new(
        view: &ArrayView<'a>,
        field: &'a ArrowField,
        validity: Option<&Bits<'a>>,
    ) -> Result<Self> {
        let broken = || invalid(format!("column {:?} has no dictionary", view.field.name));
        let dictionary = view.dictionary().ok_or_else(broken)?;
        let length = usize::try_from(dictionary.length).unwrap_or(0);
        let entries = TextColumn::new(&ArrayView::new(dictionary, field, 0, length)?)?;
        let codes = view.integers()?;
        let is_there = |(row, code): (usize, &i64)| {
            usize::try_from(*code).is_ok_and(|code| code < length)
                || validity.is_some_and(|validity| !validity.is_set(row))
        };
        if !codes.iter().enumerate().all(is_there) {
            let name = &view.field.name;
            return Err(invalid(format!(
                "column {name:?} has a text that is not in its dictionary"
            )));
        }
        Ok(Self { codes: Integers(codes), entries: Box::new(entries) })
    }

    /// Returns the index of the dictionary's entry for a row that has a text.
    fn code(&self, row: usize) -> usize {
        usize::try_from(self.codes.0[row]).expect("entries were looked for when they came")
    }

    fn get(&self, row: usize) -> Option<&'a [u8]> {
        self.entries.get(self.code(row))
    }
}
