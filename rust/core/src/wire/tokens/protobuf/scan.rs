//! The protobuf wire format: tags, varints, lengths.

use crate::model::swar::{HIGH_BITS, word};

/// The bytes are not a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MalformedMessage;

pub(crate) type ProtobufResult<T> = Result<T, MalformedMessage>;

/// Bytes of the longest varint.
const VARINT_BYTES_MAX: usize = 10;
/// Bytes of the longest tag: field numbers have 29 bits.
const TAG_BYTES_MAX: usize = 5;
pub(crate) const LAST_BYTE_MAX: u8 = 0x7f;

/// Returns a field's number and wire type, as [`MessageReader::tag`] reads it. Example: `varint(4)`
/// is 32.
pub(crate) const fn varint(number: u32) -> u32 {
    number << 3
}

/// See [`varint`].
pub(crate) const fn fixed64(number: u32) -> u32 {
    number << 3 | 1
}

/// See [`varint`].
pub(crate) const fn delimited(number: u32) -> u32 {
    number << 3 | 2
}

/// The rest of a message.
#[derive(Clone, Copy)]
pub(crate) struct MessageReader<'a> {
    pub(crate) rest: &'a [u8],
}

impl<'a> MessageReader<'a> {
    pub(crate) const fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads number and wire type of the next field.
    #[inline]
    pub(crate) fn tag(&mut self) -> ProtobufResult<u32> {
        if let [byte, rest @ ..] = self.rest
            && *byte <= LAST_BYTE_MAX
        {
            self.rest = rest;
            return Ok(u32::from(*byte));
        }
        u32::try_from(self.long_varint(TAG_BYTES_MAX)?).map_err(|_| MalformedMessage)
    }

    #[inline]
    pub(crate) fn varint(&mut self) -> ProtobufResult<u64> {
        if let [byte, rest @ ..] = self.rest
            && *byte <= LAST_BYTE_MAX
        {
            self.rest = rest;
            return Ok(u64::from(*byte));
        }
        let word = word(self.rest);
        let stops = !word & HIGH_BITS;
        if self.rest.len() >= 8 && stops != 0 {
            // Bytes up to and including the last byte of a varint.
            let bits = word & (stops ^ (stops - 1));
            self.rest =
                self.rest.get((stops.trailing_zeros() / 8) as usize + 1..).unwrap_or_default();
            return Ok(joined_sevens(bits));
        }
        self.long_varint(VARINT_BYTES_MAX)
    }

    /// Bits beyond the 64th are lost, as in the reference implementations.
    fn long_varint(&mut self, bytes_max: usize) -> ProtobufResult<u64> {
        let mut value = 0;
        for (at, byte) in self.rest.iter().take(bytes_max).enumerate() {
            value |= u64::from(byte & LAST_BYTE_MAX) << (7 * at);
            if *byte <= LAST_BYTE_MAX {
                self.rest = self.rest.get(at + 1..).unwrap_or_default();
                return Ok(value);
            }
        }
        Err(MalformedMessage)
    }

    /// Reads the length of a string or message.
    #[inline]
    pub(crate) fn length(&mut self) -> ProtobufResult<usize> {
        usize::try_from(self.varint()?).map_err(|_| MalformedMessage)
    }

    /// Reads the bytes of a string or message.
    #[inline]
    pub(crate) fn delimited(&mut self) -> ProtobufResult<&'a [u8]> {
        let length = self.length()?;
        self.take(length)
    }

    /// Reads a double.
    #[inline]
    pub(crate) fn double(&mut self) -> ProtobufResult<f64> {
        let (bytes, rest) = self.rest.split_first_chunk::<8>().ok_or(MalformedMessage)?;
        self.rest = rest;
        Ok(f64::from_le_bytes(*bytes))
    }

    /// Reads eight bytes, lowest byte first.
    #[inline]
    pub(crate) fn word(&mut self) -> ProtobufResult<u64> {
        Ok(self.double()?.to_bits())
    }

    /// Skips the value of an unknown field.
    pub(crate) fn skip(&mut self, tag: u32) -> ProtobufResult<()> {
        if tag >> 3 == 0 {
            return Err(MalformedMessage);
        }
        match tag & 7 {
            0 => self.varint().map(drop),
            1 => self.take(8).map(drop),
            2 => self.delimited().map(drop),
            5 => self.take(4).map(drop),
            _ => Err(MalformedMessage),
        }
    }

    #[inline]
    pub(crate) fn take(&mut self, length: usize) -> ProtobufResult<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(MalformedMessage)?;
        self.rest = rest;
        Ok(taken)
    }
}

/// Joins the groups of seven bits in the bytes of `word`, lowest byte first. Example: the bytes ac
/// 02 are 300.
#[inline]
const fn joined_sevens(word: u64) -> u64 {
    let sevens = word & !HIGH_BITS;
    let pairs = sevens & 0x007f_007f_007f_007f | (sevens & 0x7f00_7f00_7f00_7f00) >> 1;
    let fours = pairs & 0x0000_3fff_0000_3fff | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    fours & 0x0000_0000_0fff_ffff | (fours & 0x0fff_ffff_0000_0000) >> 4
}

/// Returns a 64-bit integer as it is stored.
#[expect(clippy::cast_precision_loss, reason = "numbers are stored as doubles (contract)")]
pub(crate) const fn nearest(value: i64) -> f64 {
    value as f64
}

/// Returns a string, which must be UTF-8 in proto3.
#[inline]
pub(crate) fn text(bytes: &[u8]) -> ProtobufResult<&str> {
    std::str::from_utf8(bytes).map_err(|_| MalformedMessage)
}
