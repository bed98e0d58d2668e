//! Numbers of any width in a stream of bits, which starts at the lowest bit of the first byte.

use crate::codec::bytes::ByteReader;
use crate::model::error::Result;

/// Number of bytes of one load, and of bits that it covers from any bit of the first byte.
const LOADED_BYTES: usize = 8;
const LOADED_BITS: u32 = 56;

#[derive(Default)]
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    pending: u64,
    pending_bits: u32,
}

impl BitWriter {
    /// Appends the low `count` bits of `number`, at most 63. The other bits of `number` are 0.
    #[inline]
    pub(super) fn put(&mut self, number: u64, count: u32) {
        if count <= 32 {
            return self.put_few(number, count);
        }
        self.put_few(number & u64::from(u32::MAX), 32);
        self.put_few(number >> 32, count - 32);
    }

    #[inline]
    fn put_few(&mut self, number: u64, count: u32) {
        self.pending |= number << self.pending_bits;
        self.pending_bits += count;
        if self.pending_bits >= 32 {
            self.bytes.extend_from_slice(&self.pending.to_le_bytes()[..4]);
            self.pending >>= 32;
            self.pending_bits -= 32;
        }
    }

    /// Returns all bytes. Zeros fill up the last byte.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let rest = self.pending_bits.div_ceil(8) as usize;
        self.bytes.extend_from_slice(&self.pending.to_le_bytes()[..rest]);
        self.bytes
    }
}

pub(super) struct BitReader {
    /// The bytes of the stream, and eight zeros, so that each byte of the stream begins a load.
    bytes: Vec<u8>,
    at: usize,
}

impl BitReader {
    /// Takes a length and that number of bytes off `input`.
    pub(super) fn open(input: &mut ByteReader<'_>) -> Result<Self> {
        let len = input.len(input.remaining())?;
        let bytes = [input.take(len)?, &[0; LOADED_BYTES]].concat();
        Ok(Self { bytes, at: 0 })
    }

    /// Takes the next `count` bits, at most 63. Bits beyond the end are 0.
    #[inline]
    pub(super) fn take(&mut self, count: u32) -> u64 {
        if count > LOADED_BITS {
            return self.take_few(32) | self.take_few(count - 32) << 32;
        }
        self.take_few(count)
    }

    #[inline]
    fn take_few(&mut self, count: u32) -> u64 {
        let first = self.at / 8;
        let bytes = self.bytes.get(first..first + LOADED_BYTES).unwrap_or_default();
        let word = bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        let taken = (word >> (self.at % 8)) & ((1 << count) - 1);
        self.at += count as usize;
        taken
    }

    /// Returns true if no bits were taken beyond the end and no whole byte is left.
    pub(super) fn is_at_end(&self) -> bool {
        self.at.div_ceil(8) + LOADED_BYTES == self.bytes.len()
    }
}
