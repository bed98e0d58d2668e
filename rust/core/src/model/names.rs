//! Names as bytes: what is hashed to find a name and sealed to keep it (`docs/format.md`, "Names").

use crate::model::error::{Error, Result};
use crate::model::limits::NAME_BYTES;

/// Stored id of a series (measurement and tag set) within one tenant.
pub type SeriesId = u32;
/// Stored id of a field (measurement and field name) within one tenant.
pub type FieldId = u32;

const CORRUPT: Error = Error::Corrupt { what: "a page of names" };

/// Stands for a length where a measurement is that of the field before: one long name must not be
/// stored with each of its fields.
const SAME: [u8; 4] = [0xff; 4];

/// Name of a series: its measurement, then key and value of each tag in ascending byte order of the
/// keys. It is its own stored form, one piece of memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SeriesName(Box<[u8]>);

impl SeriesName {
    /// The name of these tags, which are sorted by key and have each key once.
    ///
    /// # Panics
    /// If a text is of 4 GiB.
    #[must_use]
    pub fn new<T: AsRef<str>>(measurement: &str, tags: &[(T, T)]) -> Self {
        let text_len = |text: &T| 4 + text.as_ref().len();
        let tags_len: usize = tags.iter().map(|(key, value)| text_len(key) + text_len(value)).sum();
        let mut bytes = Vec::with_capacity(8 + measurement.len() + tags_len);
        put(&mut bytes, measurement);
        bytes.extend(length(tags.len()));
        for (key, value) in tags {
            put(&mut bytes, key.as_ref());
            put(&mut bytes, value.as_ref());
        }
        Self(bytes.into_boxed_slice())
    }

    /// Its bytes, as they are stored.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The measurement, never empty.
    #[must_use]
    pub fn measurement(&self) -> &str {
        text_of(&self.0).0
    }

    /// Key and value of each tag, ascending by key; no key is empty.
    pub fn tags(&self) -> impl Iterator<Item = (&str, &str)> {
        let (_, rest) = text_of(&self.0);
        let mut rest = rest.get(4..).unwrap_or_default();
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let (key, after) = text_of(rest);
            let (value, after) = text_of(after);
            rest = after;
            Some((key, value))
        })
    }

    /// Offset and length in [`Self::as_bytes`] of a text that this name gave.
    ///
    /// # Panics
    /// If another name gave it.
    #[must_use]
    pub fn span_of(&self, text: &str) -> (u32, u32) {
        let at = text.as_ptr().addr().checked_sub(self.0.as_ptr().addr());
        let at = at.filter(|at| at + text.len() <= self.0.len()).expect("a text of this name");
        let number = |bytes| u32::try_from(bytes).expect("a body is far below 4 GiB");
        (number(at), number(text.len()))
    }

    /// The text at a span of [`Self::span_of`].
    ///
    /// # Panics
    /// If it is no span of this name.
    #[must_use]
    pub fn text_at(&self, span: (u32, u32)) -> &str {
        std::str::from_utf8(self.bytes_at(span)).expect("a span of this name")
    }

    /// The bytes of that text, which nobody looks at.
    ///
    /// # Panics
    /// As [`Self::text_at`].
    #[must_use]
    pub fn bytes_at(&self, (at, length): (u32, u32)) -> &[u8] {
        &self.0[at as usize..][..length as usize]
    }

    /// The value of the `entity_id` tag; `None` also where it is empty.
    #[must_use]
    pub fn entity_id(&self) -> Option<&str> {
        let value = self.tags().find(|(key, _)| *key == "entity_id")?.1;
        Some(value).filter(|id| !id.is_empty())
    }
}

/// The text at the start of the bytes of a [`SeriesName`], or of those that are left after one of its
/// texts; and the bytes after it.
#[expect(unsafe_code, reason = "names are read far more often than made, and checked when made")]
fn text_of(bytes: &[u8]) -> (&str, &[u8]) {
    let mut reader = NameReader { rest: bytes, is_ascii: false };
    let text = reader.text_bytes().expect("a name is sound");
    // SAFETY: the bytes of a name are private to this module. `SeriesName::new` makes them of texts,
    // `NameReader::series` takes them after it has checked each text, or that all bytes are ASCII; both put lengths and texts where
    // they are read here, one after the other. So these are the bytes of a text.
    (unsafe { std::str::from_utf8_unchecked(text) }, reader.rest)
}

/// Number of names as which one of `bytes` counts against the bounds of a tenant.
#[must_use]
pub const fn counted(bytes: usize) -> usize {
    if bytes > NAME_BYTES { bytes.div_ceil(NAME_BYTES) } else { 1 }
}

/// Appends a field name: its measurement, `None` for that of the field before, and the field.
pub fn put_field(page: &mut Vec<u8>, measurement: Option<&str>, field: &str) {
    match measurement {
        Some(measurement) => put(page, measurement),
        None => page.extend(SAME),
    }
    put(page, field);
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
    /// All bytes of the page are ASCII, so all texts are UTF-8: looked up once, not text by text.
    is_ascii: bool,
}

impl<'a> NameReader<'a> {
    /// Reads `page`, as one or more names were appended to it.
    #[must_use]
    pub fn new(page: &'a [u8]) -> Self {
        Self { rest: page, is_ascii: page.is_ascii() }
    }

    /// Tells whether all names were taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next name, a series.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the page ends early or holds something else.
    pub fn series(&mut self) -> Result<SeriesName> {
        let whole = self.rest;
        self.pass_text()?;
        for _ in 0..self.length()? {
            self.pass_text()?;
            self.pass_text()?;
        }
        Ok(SeriesName(whole[..whole.len() - self.rest.len()].into()))
    }

    /// The next name, a field: its measurement, `None` for that of the field before, and the field.
    ///
    /// # Errors
    /// As [`Self::series`].
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
        let Some((length, rest)) = self.rest.split_first_chunk::<4>() else { return Err(CORRUPT) };
        self.rest = rest;
        usize::try_from(u32::from_le_bytes(*length)).map_err(|_| CORRUPT)
    }

    fn text(&mut self) -> Result<&'a str> {
        std::str::from_utf8(self.text_bytes()?).map_err(|_| CORRUPT)
    }

    /// Passes over a text, which is checked.
    #[inline]
    fn pass_text(&mut self) -> Result<()> {
        let text = self.text_bytes()?;
        if !self.is_ascii {
            std::str::from_utf8(text).map_err(|_| CORRUPT)?;
        }
        Ok(())
    }

    /// A text whose bytes nobody has looked at.
    fn text_bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.length()?;
        let Some((text, rest)) = self.rest.split_at_checked(length) else { return Err(CORRUPT) };
        self.rest = rest;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> SeriesName {
        SeriesName::new("link", &[("entity_id", "a\0b"), ("site", "")])
    }

    #[test]
    fn a_name_shows_what_it_was_made_of() {
        assert_eq!(name().measurement(), "link");
        assert!(name().tags().eq([("entity_id", "a\0b"), ("site", "")]));
        assert_eq!(name().entity_id(), Some("a\0b"));
        assert_eq!(SeriesName::new("link", &[("entity_id", "")]).entity_id(), None, "C23");
        assert_eq!(SeriesName::new::<&str>("link", &[]).tags().next(), None);
    }

    #[test]
    fn names_read_back_in_the_order_they_were_appended() {
        let mut page = name().as_bytes().to_vec();
        put_field(&mut page, Some("link"), "snr_db");
        put_field(&mut page, None, "note");
        let mut reader = NameReader::new(&page);
        assert_eq!(reader.series().unwrap(), name());
        assert_eq!(reader.field().unwrap(), (Some("link"), "snr_db"));
        assert_eq!(reader.field().unwrap(), (None, "note"));
        assert!(reader.is_empty());
    }

    #[test]
    fn no_truncated_name_reads_back() {
        let name = name();
        for length in 0..name.as_bytes().len() {
            assert!(NameReader::new(&name.as_bytes()[..length]).series().is_err());
        }
    }

    #[test]
    fn what_is_no_text_is_no_name() {
        let whole = SeriesName::new("l\u{e9}", &[("k\u{e9}", "v\u{e9}")]);
        assert!(whole.tags().eq([("k\u{e9}", "v\u{e9}")]));
        let accents = whole.as_bytes().iter().enumerate().filter(|(_, byte)| **byte == 0xc3);
        for (at, _) in accents {
            let mut bytes = whole.as_bytes().to_vec();
            bytes[at] = b'e';
            assert!(NameReader::new(&bytes).series().is_err(), "{at}");
        }
    }

    #[test]
    fn no_two_names_have_the_same_bytes() {
        assert_ne!(name(), SeriesName::new("linkentity_id", &[("a\0b", "site")]));
        let field = |measurement, field| {
            let mut page = Vec::new();
            put_field(&mut page, Some(measurement), field);
            page
        };
        assert_ne!(field("ab", "c"), field("a", "bc"));
    }
}
