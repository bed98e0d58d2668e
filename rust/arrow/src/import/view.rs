//! Rows of an array, whose buffers are read where they lie.

use super::field::{Field, invalid};
use crate::interface::ArrowArray;
use fleetcast_core::model::error::Result;

/// An array that was handed over, released when it is dropped.
pub(super) struct OwnedArray(pub(super) ArrowArray);

// SAFETY: the interface lets an array be used and released by another thread than the one that made
// it, one at a time.
unsafe impl Send for OwnedArray {}

impl Drop for OwnedArray {
    fn drop(&mut self) {
        if let Some(release) = self.0.release {
            // SAFETY: `release` is set, so nobody has released the array, and it is ours.
            unsafe { release(&raw mut self.0) };
        }
    }
}

/// Some rows of an array of a type.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) array: &'a ArrowArray,
    pub(super) field: &'a Field,
    /// First row, from the beginning of the buffers.
    pub(super) start: usize,
    pub(super) rows: usize,
}

impl<'a> View<'a> {
    /// `rows` rows of `array` from its row `start` on.
    ///
    /// # Errors
    /// [`fleetcast_core::model::error::Error::Invalid`] where it has not so many.
    pub(super) fn new(
        array: &'a ArrowArray,
        field: &'a Field,
        start: usize,
        rows: usize,
    ) -> Result<Self> {
        let count = |count: i64| usize::try_from(count).ok();
        let (length, offset) = (count(array.length), count(array.offset));
        let end = start.checked_add(rows);
        if end.is_none() || end > length || offset.is_none() {
            return Err(invalid(format!("column {:?} has fewer rows than it says", field.name)));
        }
        Ok(Self { array, field, start: offset.unwrap_or(0) + start, rows })
    }

    /// The child at an index, whose rows are those of this struct.
    pub(super) fn child(&self, index: usize) -> Result<Self> {
        Self::new(self.child_array(index)?, &self.field.children[index], self.start, self.rows)
    }

    /// The array of the child at an index.
    pub(super) fn child_array(&self, index: usize) -> Result<&'a ArrowArray> {
        let count = usize::try_from(self.array.n_children).unwrap_or(0);
        if index >= count || index >= self.field.children.len() {
            return Err(invalid(format!("column {:?} has no part {index}", self.field.name)));
        }
        // SAFETY: a live array has so many children, all live as long as it is.
        Ok(unsafe { &**self.array.children.add(index) })
    }

    /// `count` items of a buffer from `start` on.
    ///
    /// # Errors
    /// [`fleetcast_core::model::error::Error::Invalid`] where there is no such buffer, or its items
    /// are not aligned.
    pub(super) fn buffer<T: Copy>(
        &self,
        index: usize,
        start: usize,
        count: usize,
    ) -> Result<&'a [T]> {
        if count == 0 {
            return Ok(&[]);
        }
        let buffers = usize::try_from(self.array.n_buffers).unwrap_or(0);
        if index < buffers {
            // SAFETY: a live array has so many buffers.
            let pointer = unsafe { *self.array.buffers.add(index) }.cast::<T>();
            if !pointer.is_null() && pointer.is_aligned() {
                // SAFETY: the interface promises that the buffer has an item for each row, or as
                // many as the offsets before it say, and that it lives as long as the array. `T` is
                // a number, so any bits will do.
                return Ok(unsafe { std::slice::from_raw_parts(pointer.add(start), count) });
            }
        }
        Err(invalid(format!("column {:?} has no buffer {index}", self.field.name)))
    }

    /// Tells if bit `row` of a buffer of bits is set.
    fn bits(&self, index: usize) -> Result<impl Fn(usize) -> bool + use<'a>> {
        let bytes: &[u8] = self.buffer(index, 0, (self.start + self.rows).div_ceil(8))?;
        let start = self.start;
        Ok(move |row: usize| bytes[(start + row) / 8] >> ((start + row) % 8) & 1 == 1)
    }

    /// True where no row can be missing.
    pub(super) fn is_full(&self) -> bool {
        // SAFETY: a live array of a type with values has a validity buffer, which may be null.
        let has_validity = self.array.n_buffers > 0 && !unsafe { *self.array.buffers }.is_null();
        self.array.null_count == 0 || !has_validity
    }

    /// Rows with a value, `None` where all have one.
    pub(super) fn present(&self) -> Result<Option<Vec<u32>>> {
        if self.field.format == "n" {
            return Ok(Some(Vec::new()));
        }
        if self.is_full() {
            return Ok(None);
        }
        let is_valid = self.bits(0)?;
        let rows = (0..).zip(0..self.rows).filter(|(_, row)| is_valid(*row));
        let present: Vec<u32> = rows.map(|(number, _)| number).collect();
        Ok((present.len() < self.rows).then_some(present))
    }

    /// Tells of each row if it has a value.
    pub(super) fn validity(&self) -> Result<Vec<bool>> {
        if self.field.format == "n" {
            return Ok(vec![false; self.rows]);
        }
        if self.is_full() {
            return Ok(vec![true; self.rows]);
        }
        let is_valid = self.bits(0)?;
        Ok((0..self.rows).map(is_valid).collect())
    }

    /// Booleans of a buffer of bits.
    pub(super) fn bools(&self) -> Result<Vec<bool>> {
        let is_set = self.bits(1)?;
        Ok((0..self.rows).map(is_set).collect())
    }
}
