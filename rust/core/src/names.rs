//! Names as bytes: what is hashed to find a name and sealed to keep it (`docs/format.md`, "Names").

use crate::batch::SeriesName;
use crate::error::{Error, Result};

const CORRUPT: Error = Error::Corrupt { what: "a page of names" };

/// Bytes of a series name: measurement, tag count, then key and value of each tag in key order.
#[must_use]
pub fn encode_series(name: &SeriesName) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, &name.measurement);
    bytes.extend(length(name.tags.len()));
    for (key, value) in &name.tags {
        put(&mut bytes, key);
        put(&mut bytes, value);
    }
    bytes
}

/// Bytes of a field name: measurement, field.
#[must_use]
pub fn encode_field(measurement: &str, field: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, measurement);
    put(&mut bytes, field);
    bytes
}

fn put(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend(length(text.len()));
    bytes.extend_from_slice(text.as_bytes());
}

fn length(length: usize) -> [u8; 4] {
    u32::try_from(length).expect("a body is far below 4 GiB").to_le_bytes()
}

/// Takes names off the front of a page.
pub struct NameReader<'a> {
    rest: &'a [u8],
}

impl<'a> NameReader<'a> {
    /// Reads `page`, as one or more names were appended to it.
    #[must_use]
    pub fn new(page: &'a [u8]) -> Self {
        Self { rest: page }
    }

    /// Whether every name was taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next name, a series.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the page ends early or holds something else.
    pub fn series(&mut self) -> Result<SeriesName> {
        let measurement = self.text()?;
        let tag_count = self.length()?;
        let mut tags = Vec::new();
        for _ in 0..tag_count {
            tags.push((self.text()?, self.text()?));
        }
        Ok(SeriesName { measurement, tags })
    }

    /// The next name, a field: measurement and field.
    ///
    /// # Errors
    /// As [`Self::series`].
    pub fn field(&mut self) -> Result<(String, String)> {
        Ok((self.text()?, self.text()?))
    }

    fn length(&mut self) -> Result<usize> {
        let (length, rest) = self.rest.split_first_chunk::<4>().ok_or(CORRUPT)?;
        self.rest = rest;
        usize::try_from(u32::from_le_bytes(*length)).map_err(|_| CORRUPT)
    }

    fn text(&mut self) -> Result<String> {
        let length = self.length()?;
        let (text, rest) = self.rest.split_at_checked(length).ok_or(CORRUPT)?;
        self.rest = rest;
        String::from_utf8(text.to_vec()).map_err(|_| CORRUPT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> SeriesName {
        let tag = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        SeriesName {
            measurement: "link".to_owned(),
            tags: vec![tag("entity_id", "a\0b"), tag("site", "")],
        }
    }

    #[test]
    fn names_read_back_in_the_order_they_were_appended() {
        let mut page = encode_series(&name());
        page.extend(encode_field("link", "snr_db"));
        let mut reader = NameReader::new(&page);
        assert_eq!(reader.series().unwrap(), name());
        assert_eq!(reader.field().unwrap(), ("link".to_owned(), "snr_db".to_owned()));
        assert!(reader.is_empty());
    }

    #[test]
    fn no_truncated_name_reads_back() {
        let bytes = encode_series(&name());
        for length in 0..bytes.len() {
            assert!(NameReader::new(&bytes[..length]).series().is_err());
        }
    }

    #[test]
    fn a_name_cannot_be_spelled_as_another() {
        let moved = SeriesName { measurement: "linkentity_id".to_owned(), tags: Vec::new() };
        assert_ne!(encode_series(&name()), encode_series(&moved));
        assert_ne!(encode_field("ab", "c"), encode_field("a", "bc"));
    }
}
