//! Variable-length numbers, and a cursor over untrusted bytes.

use std::ops::RangeInclusive;

use crate::model::error::{Error, Result};

/// Appends an unsigned number in its shortest LEB128 form.
///
/// Example: 127 becomes `7f`, and 128 becomes `80 01`.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Appends a length or count.
pub(crate) fn put_len(out: &mut Vec<u8>, len: usize) {
    put_varint(out, len as u64);
}

/// Appends a signed number. Numbers near 0 take the fewest bytes.
///
/// Example: -1 becomes `01`, 1 becomes `02`, and -64 becomes `7f`.
pub(crate) fn put_zigzag(out: &mut Vec<u8>, value: i64) {
    put_varint(out, zigzag(value));
}

const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// Bytes that [`put_varint`] takes for `value`.
pub(crate) const fn varint_len(value: u64) -> usize {
    // A byte holds seven bits. Zero also takes one byte.
    (70 - (value | 1).leading_zeros() as usize) / 7
}

/// Bytes that [`put_zigzag`] takes for `value`.
pub(crate) const fn zigzag_len(value: i64) -> usize {
    varint_len(zigzag(value))
}

/// The bytes of a part of a block that are not read yet. Every error names the part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteReader<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> ByteReader<'a> {
    pub(crate) const fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { rest: bytes, what }
    }

    /// Number of bytes that are left.
    pub(crate) const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The error for bytes that do not follow the format.
    pub(crate) const fn corrupt(&self) -> Error {
        Error::Corrupt { what: self.what }
    }

    /// Returns [`Self::corrupt`] unless `holds`.
    pub(crate) const fn check(&self, holds: bool) -> Result<()> {
        if holds { Ok(()) } else { Err(self.corrupt()) }
    }

    /// The next `len` bytes.
    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or_else(|| self.corrupt())?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next `N` bytes.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or_else(|| self.corrupt())?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn byte(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    /// Refuses a version other than `current`. Builds before 0.3.0 wrote the lower versions.
    pub(crate) fn version(&mut self, current: u8) -> Result<()> {
        self.version_among(current..=current).map(drop)
    }

    /// Returns the version if it is among `current`, and refuses it otherwise.
    pub(crate) fn version_among(&mut self, current: RangeInclusive<u8>) -> Result<u8> {
        match self.byte()? {
            version if current.contains(&version) => Ok(version),
            version if (1..*current.start()).contains(&version) => {
                Err(Error::too_old(self.what, version.into()))
            }
            _ => Err(self.corrupt()),
        }
    }

    pub(crate) fn varint(&mut self) -> Result<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has room for only one bit.
            self.check(shift < 63 || bits <= 1)?;
            value |= bits << shift;
            if byte < 0x80 {
                // A last byte of zero means that a shorter form exists.
                self.check(byte != 0 || shift == 0)?;
                return Ok(value);
            }
        }
        Err(self.corrupt())
    }

    pub(crate) fn zigzag(&mut self) -> Result<i64> {
        let coded = self.varint()?;
        Ok((coded >> 1).cast_signed() ^ -(coded & 1).cast_signed())
    }

    /// A length or count of at most `max`.
    pub(crate) fn len(&mut self, max: usize) -> Result<usize> {
        let len = usize::try_from(self.varint()?).map_err(|_| self.corrupt())?;
        self.check(len <= max)?;
        Ok(len)
    }

    /// Refuses bytes that are left over.
    pub(crate) const fn end(&self) -> Result<()> {
        self.check(self.rest.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_their_lengths_are_known() {
        let edges = (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit]).chain([u64::MAX]);
        for value in edges {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            assert_eq!(bytes.len(), varint_len(value), "{value}");
            assert_eq!(ByteReader::new(&bytes, "number").varint().unwrap(), value);
            let signed = value.cast_signed();
            let mut bytes = Vec::new();
            put_zigzag(&mut bytes, signed);
            assert_eq!(bytes.len(), zigzag_len(signed), "{signed}");
            assert_eq!(ByteReader::new(&bytes, "number").zigzag().unwrap(), signed);
        }
    }

    #[test]
    fn long_forms_and_overflows_are_refused() {
        let overflow = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        for bytes in [&[0x80, 0x00][..], &[0x80], &[], &overflow, &[0x80; 11]] {
            assert!(ByteReader::new(bytes, "number").varint().is_err(), "{bytes:?}");
        }
    }
}
