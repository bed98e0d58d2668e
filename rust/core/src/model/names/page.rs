//! Pages of names: the names of series or of fields, one after another.

use std::borrow::Cow;

use super::{NameRef, put, split_length, split_text};
use crate::model::error::{Error, Result};

const CORRUPT: Error = Error::Corrupt { what: "a page of names" };

/// Takes the place of the length of a measurement if the field before has the same measurement. A
/// long name is thus not stored with each of its fields.
const SAME: [u8; 4] = [0xff; 4];

/// Begins a page that is packed. No other page begins so, because its first name has a measurement.
const PACKED: [u8; 4] = [0xff; 4];

/// Most bytes that a byte of a packed page stands for. Snappy's shortest way to repeat 64 bytes
/// takes three.
const UNPACKED_PER_BYTE_MAX: usize = 22;

/// Appends a field name: its measurement, or `None` for the measurement of the field before, and
/// the field.
pub fn put_field(page: &mut Vec<u8>, measurement: Option<&str>, field: &str) {
    match measurement {
        Some(measurement) => put(page, measurement),
        None => page.extend(SAME),
    }
    put(page, field);
}

/// Returns a page in the form that is stored: packed with Snappy if it is shorter so. Names repeat
/// each other. Example: a truck has the same tags in each of its measurements.
#[must_use]
pub fn pack(page: &[u8]) -> Cow<'_, [u8]> {
    let mut packed = vec![0; PACKED.len() + snap::raw::max_compress_len(page.len())];
    let (mark, rest) = packed.split_at_mut(PACKED.len());
    mark.copy_from_slice(&PACKED);
    match snap::raw::Encoder::new().compress(page, rest) {
        Ok(len) if PACKED.len() + len < page.len() => {
            packed.truncate(PACKED.len() + len);
            Cow::Owned(packed)
        }
        _ => Cow::Borrowed(page),
    }
}

/// Returns the page of which [`pack`] made `stored`.
///
/// # Errors
/// Returns [`Error::Corrupt`] if `stored` is packed and cannot be unpacked.
pub fn unpack(stored: Vec<u8>) -> Result<Vec<u8>> {
    let Some(packed) = stored.strip_prefix(&PACKED) else { return Ok(stored) };
    let len = snap::raw::decompress_len(packed).map_err(|_| CORRUPT)?;
    if len > UNPACKED_PER_BYTE_MAX * packed.len() {
        return Err(CORRUPT);
    }
    snap::raw::Decoder::new().decompress_vec(packed).map_err(|_| CORRUPT)
}

/// Takes names off the front of a page.
pub struct NameReader<'a> {
    rest: &'a [u8],
    /// True if all bytes of the page are ASCII, so that all texts are UTF-8. A single check of the
    /// page replaces a check of each text.
    is_ascii: bool,
}

impl<'a> NameReader<'a> {
    /// Reads `page`, which holds names one after another.
    #[must_use]
    pub fn new(page: &'a [u8]) -> Self {
        Self { rest: page, is_ascii: page.is_ascii() }
    }

    /// Returns true if all names were taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Takes the name of a series.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] if the page ends early or does not hold a series name here.
    pub fn series(&mut self) -> Result<NameRef<'a>> {
        let whole = self.rest;
        self.pass_text()?;
        for _ in 0..self.length()? {
            self.pass_text()?;
            self.pass_text()?;
        }
        Ok(NameRef(&whole[..whole.len() - self.rest.len()]))
    }

    /// Takes the name of a field: its measurement, or `None` for the measurement of the field
    /// before, and the field.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] if the page ends early or does not hold a field name here.
    pub fn field(&mut self) -> Result<(Option<&'a str>, &'a str)> {
        let measurement = match self.rest.strip_prefix(&SAME) {
            Some(rest) => {
                self.rest = rest;
                None
            }
            None => Some(self.text()?),
        };
        Ok((measurement, self.text()?))
    }

    fn length(&mut self) -> Result<usize> {
        let (length, rest) = split_length(self.rest).ok_or(CORRUPT)?;
        self.rest = rest;
        Ok(length)
    }

    fn text(&mut self) -> Result<&'a str> {
        std::str::from_utf8(self.text_bytes()?).map_err(|_| CORRUPT)
    }

    /// Skips a text after checking it.
    #[inline]
    fn pass_text(&mut self) -> Result<()> {
        let text = self.text_bytes()?;
        if !self.is_ascii {
            std::str::from_utf8(text).map_err(|_| CORRUPT)?;
        }
        Ok(())
    }

    /// Takes the bytes of a text without checking them.
    fn text_bytes(&mut self) -> Result<&'a [u8]> {
        let (text, rest) = split_text(self.rest).ok_or(CORRUPT)?;
        self.rest = rest;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::names::SeriesName;

    fn name() -> SeriesName {
        SeriesName::new("link", &[("entity_id", "a\0b"), ("site", "")])
    }

    #[test]
    fn names_read_back_in_the_order_they_were_appended() {
        let mut page = name().view().as_bytes().to_vec();
        put_field(&mut page, Some("link"), "snr_db");
        put_field(&mut page, None, "note");
        let mut reader = NameReader::new(&page);
        assert_eq!(reader.series().unwrap(), name().view());
        assert_eq!(reader.field().unwrap(), (Some("link"), "snr_db"));
        assert_eq!(reader.field().unwrap(), (None, "note"));
        assert!(reader.is_empty());
    }

    #[test]
    fn a_packed_page_reads_back_and_a_damaged_page_takes_no_memory() {
        let mut page = name().view().as_bytes().to_vec();
        assert_eq!(*pack(&page), page, "a single short name stays as it is");
        page = page.repeat(500);
        let packed = pack(&page).into_owned();
        assert!(packed.len() < page.len() / 10, "{}", packed.len());
        assert_eq!(unpack(page.clone()).unwrap(), page, "pages before version 4 are not packed");
        assert_eq!(unpack(packed.clone()).unwrap(), page);
        for length in PACKED.len()..packed.len() {
            assert!(unpack(packed[..length].to_vec()).is_err(), "{length}");
        }
        // The length that is promised comes first: 2^32 - 1 bytes.
        let mut promising = packed;
        promising.splice(PACKED.len()..PACKED.len() + 2, [0xff, 0xff, 0xff, 0xff, 0x0f]);
        assert!(unpack(promising).is_err());
    }

    #[test]
    fn no_truncated_name_reads_back() {
        let name = name();
        let name = name.view();
        for length in 0..name.as_bytes().len() {
            assert!(NameReader::new(&name.as_bytes()[..length]).series().is_err());
        }
    }

    #[test]
    fn what_is_no_text_is_no_name() {
        let whole = SeriesName::new("l\u{e9}", &[("k\u{e9}", "v\u{e9}")]);
        let whole = whole.view();
        assert!(whole.tags().eq([("k\u{e9}", "v\u{e9}")]));
        let accents = whole.as_bytes().iter().enumerate().filter(|(_, byte)| **byte == 0xc3);
        for (at, _) in accents {
            let mut bytes = whole.as_bytes().to_vec();
            bytes[at] = b'e';
            assert!(NameReader::new(&bytes).series().is_err(), "{at}");
        }
    }
}
