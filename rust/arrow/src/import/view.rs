//! Rows of an array. Their buffers are read without a copy.

use std::ffi::c_void;

use super::bits::Bits;
use super::field::{ArrowField, invalid};
use crate::interface::ArrowArray;
use fleetcast_core::model::error::Result;

/// An array that the caller handed over. It is released when dropped.
pub(super) struct OwnedArray(pub(super) ArrowArray);

// SAFETY: the interface allows any thread to use and release an array, one thread at a time.
unsafe impl Send for OwnedArray {}

impl Drop for OwnedArray {
    fn drop(&mut self) {
        if let Some(release) = self.0.release {
            // SAFETY: `release` is set, so the array has not been released, and this value owns it.
            unsafe { release(&raw mut self.0) };
        }
    }
}

/// A range of rows of an array, with the array's type.
#[derive(Clone, Copy)]
pub(super) struct ArrayView<'a> {
    pub(super) array: &'a ArrowArray,
    pub(super) field: &'a ArrowField,
    /// Index of the first row, from the beginning of the buffers.
    pub(super) start: usize,
    pub(super) rows: usize,
}

impl<'a> ArrayView<'a> {
    /// Returns `rows` rows of `array`, from its row `start` on.
    ///
    /// # Errors
    /// Returns [`fleetcast_core::model::error::Error::Invalid`] if the array has fewer rows.
    pub(super) fn new(
        array: &'a ArrowArray,
        field: &'a ArrowField,
        start: usize,
        rows: usize,
    ) -> Result<Self> {
        let count = |count: i64| usize::try_from(count).ok();
        let (length, offset) = (count(array.length), count(array.offset));
        let end = start.checked_add(rows).filter(|end| length.is_some_and(|length| *end <= length));
        let end = end.zip(offset).and_then(|(end, offset)| end.checked_add(offset));
        // An item has at most 16 bytes, and a buffer fills at most half of the address space.
        let Some(end) = end.filter(|end| *end < isize::MAX as usize / 16) else {
            return Err(invalid(format!("column {:?} has fewer rows than it says", field.name)));
        };
        Ok(Self { array, field, start: end - rows, rows })
    }

    /// Returns the child at an index, with the rows of this struct.
    pub(super) fn child(&self, index: usize) -> Result<Self> {
        Self::new(self.child_array(index)?, &self.field.children[index], self.start, self.rows)
    }

    /// Returns the array of the child at an index.
    pub(super) fn child_array(&self, index: usize) -> Result<&'a ArrowArray> {
        let count = usize::try_from(self.array.n_children).unwrap_or(0);
        if index < count && index < self.field.children.len() && !self.array.children.is_null() {
            // SAFETY: a live array has `n_children` children, all live as long as the array.
            if let Some(child) = unsafe { (*self.array.children.add(index)).as_ref() } {
                return Ok(child);
            }
        }
        Err(invalid(format!("column {:?} has no part {index}", self.field.name)))
    }

    /// Returns the array of the texts that the rows refer to.
    pub(super) fn dictionary(&self) -> Option<&'a ArrowArray> {
        // SAFETY: the dictionary of a live array is live as long as it is.
        unsafe { self.array.dictionary.as_ref() }
    }

    /// Returns the address of a buffer, or `None` if there is no buffer.
    fn address(&self, index: usize) -> Option<*const c_void> {
        let count = usize::try_from(self.array.n_buffers).unwrap_or(0);
        if index >= count || self.array.buffers.is_null() {
            return None;
        }
        // SAFETY: a live array has `n_buffers` buffers.
        let address = unsafe { *self.array.buffers.add(index) };
        (!address.is_null()).then_some(address)
    }

    /// Returns `count` items of a buffer from `start` on.
    ///
    /// # Errors
    /// Returns [`fleetcast_core::model::error::Error::Invalid`] if there is no such buffer, or if
    /// its items are not aligned.
    pub(super) fn buffer<T: Primitive>(
        &self,
        index: usize,
        start: usize,
        count: usize,
    ) -> Result<&'a [T]> {
        if count == 0 {
            return Ok(&[]);
        }
        let address = self.address(index).map(<*const c_void>::cast::<T>);
        let Some(address) = address.filter(|address| address.is_aligned()) else {
            return Err(invalid(format!("column {:?} has no buffer {index}", self.field.name)));
        };
        // SAFETY: the interface promises an item for each row, or as many items as the earlier
        // offsets say. It also promises that the buffer lives as long as the array. Any bits are
        // valid for `T`.
        Ok(unsafe { std::slice::from_raw_parts(address.add(start), count) })
    }

    fn bits(&self, index: usize) -> Result<Bits<'a>> {
        let bytes = self.buffer(index, 0, (self.start + self.rows).div_ceil(8))?;
        Ok(Bits::new(bytes, self.start, self.rows))
    }

    /// Returns the rows with a value, as bits. Returns `None` if no value is missing, or if the
    /// type has no values at all.
    pub(super) fn validity(&self) -> Result<Option<Bits<'a>>> {
        if self.field.format == "n" || self.array.null_count == 0 || self.address(0).is_none() {
            return Ok(None);
        }
        self.bits(0).map(Some)
    }

    /// Returns the rows with a value, or `None` if every row has a value.
    pub(super) fn present(&self) -> Result<Option<Vec<u32>>> {
        if self.field.format == "n" {
            return Ok(Some(Vec::new()));
        }
        let validity = self.validity()?.filter(|validity| validity.count() < self.rows);
        Ok(validity.map(|validity| validity.set_rows()))
    }

    /// Returns the booleans in a buffer of bits.
    pub(super) fn bools(&self) -> Result<Vec<bool>> {
        Ok(self.bits(1)?.to_bools())
    }
}

/// An item of a buffer. Any bits are a valid item.
pub(super) trait Primitive: Copy {}

impl Primitive for u8 {}
impl Primitive for i8 {}
impl Primitive for u16 {}
impl Primitive for i16 {}
impl Primitive for u32 {}
impl Primitive for i32 {}
impl Primitive for u64 {}
impl Primitive for i64 {}
impl Primitive for f32 {}
impl Primitive for f64 {}
impl Primitive for [u8; 16] {}
