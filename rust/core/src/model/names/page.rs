//! Pages of names: the names of series or of fields, one after another.

use super::{NameRef, put, split_length, split_text};
use crate::model::error::{Error, Result};

const CORRUPT: Error = Error::Corrupt { what: "a page of names" };

/// Takes the place of the length of a measurement if the field before has the same measurement. A
/// long name is thus not stored with each of its fields.
const SAME: [u8; 4] = [0xff; 4];

/// Appends a field name: its measurement, or `None` for the measurement of the field before, and
/// the field.
pub fn put_field(page: &mut Vec<u8>, measurement: Option<&str>, field: &str) {
    match measurement {
        Some(measurement) => put(page, measurement),
        None => page.extend(SAME),
    }
    put(page, field);
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
