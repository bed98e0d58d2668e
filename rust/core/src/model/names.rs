//! Names as bytes: what is hashed to find a name and sealed to keep it (`docs/format.md`, "Names").

use crate::model::error::{Error, Result};
use crate::model::json;

/// Stored id of a series (measurement and tag set) within one tenant.
pub type SeriesId = u32;
/// Stored id of a field (measurement and field name) within one tenant.
pub type FieldId = u32;

const CORRUPT: Error = Error::Corrupt { what: "a page of names" };

/// Key of the tag that makes an entity of a series.
pub(crate) const ENTITY_ID: &str = "entity_id";

/// Stands for a length where a measurement is that of the field before: one long name must not be
/// stored with each of its fields.
const SAME: [u8; 4] = [0xff; 4];

/// Name of a series: its measurement, then key and value of each tag in ascending byte order of the
/// keys. It is its own stored form, one piece of memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SeriesName(Box<[u8]>);

/// A [`SeriesName`] that lies somewhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NameRef<'n>(&'n [u8]);

/// Parts of a name by which its series is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameParts {
    /// Offset and length of the value of its `entity_id` in [`NameRef::as_bytes`]; `None` also where
    /// it is empty.
    pub entity_id: Option<(u32, u32)>,
    /// Tells that its tags need no escapes in JSON, as those of nearly all series.
    pub has_plain_tags: bool,
}

/// A text as names have it: its length, then its bytes.
pub(crate) struct EncodedText(Box<[u8]>);

/// A name that is put together of its parts.
pub(crate) struct EncodedName<'t, T> {
    pub(crate) measurement: &'t str,
    /// Tags in ascending order of their keys, each key once.
    pub(crate) tags: T,
    /// Index of the tag of the entity.
    pub(crate) entity: Option<usize>,
    pub(crate) has_plain_tags: bool,
}

impl EncodedText {
    pub(crate) fn new(text: &str) -> Self {
        let mut bytes = Vec::with_capacity(4 + text.len());
        put(&mut bytes, text);
        Self(bytes.into_boxed_slice())
    }
}

impl<'t, T: ExactSizeIterator<Item = (&'t EncodedText, &'t str)>> EncodedName<'t, T> {
    /// Appends the name to others; its parts.
    pub(super) fn put(self, names: &mut Vec<u8>) -> NameParts {
        let start = names.len();
        put(names, self.measurement);
        names.extend(length(self.tags.len()));
        let mut entity_id = None;
        for (index, (key, value)) in self.tags.enumerate() {
            names.extend_from_slice(&key.0);
            put(names, value);
            if self.entity == Some(index) && !value.is_empty() {
                let at = names.len() - value.len() - start;
                entity_id = Some((number(at), number(value.len())));
            }
        }
        NameParts { entity_id, has_plain_tags: self.has_plain_tags }
    }
}

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

    /// A view of it.
    #[must_use]
    pub fn view(&self) -> NameRef<'_> {
        NameRef(&self.0)
    }
}

impl<'n> NameRef<'n> {
    /// The name of these bytes.
    ///
    /// # Safety
    /// They were [`Self::as_bytes`] of a name.
    #[expect(unsafe_code, reason = "what a name is made of is checked once")]
    pub(super) const unsafe fn of(bytes: &'n [u8]) -> Self {
        Self(bytes)
    }

    /// A copy that owns its bytes.
    #[must_use]
    pub fn to_name(self) -> SeriesName {
        SeriesName(self.0.into())
    }

    /// Its bytes, as they are stored.
    #[must_use]
    pub const fn as_bytes(self) -> &'n [u8] {
        self.0
    }

    /// The measurement, never empty.
    #[must_use]
    pub fn measurement(self) -> &'n str {
        text_of(self.0).0
    }

    /// Key and value of each tag, ascending by key; no key is empty.
    pub fn tags(self) -> impl Iterator<Item = (&'n str, &'n str)> {
        let (_, rest) = text_of(self.0);
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

    /// Its parts.
    ///
    /// # Panics
    /// If a text is of 4 GiB.
    #[must_use]
    pub fn parts(self) -> NameParts {
        let mut parts = NameParts { entity_id: None, has_plain_tags: true };
        for (key, value) in self.tags() {
            parts.has_plain_tags &= json::is_plain(key) & json::is_plain(value);
            if key == ENTITY_ID && !value.is_empty() {
                let at = value.as_ptr().addr() - self.0.as_ptr().addr();
                parts.entity_id = Some((number(at), number(value.len())));
            }
        }
        parts
    }

    /// The text at a span of [`NameParts`].
    ///
    /// # Panics
    /// If it is no span of this name.
    #[must_use]
    pub fn text_at(self, span: (u32, u32)) -> &'n str {
        std::str::from_utf8(self.bytes_at(span)).expect("a span of this name")
    }

    /// The bytes of that text, which nobody looks at.
    ///
    /// # Panics
    /// As [`Self::text_at`].
    #[must_use]
    pub fn bytes_at(self, (at, length): (u32, u32)) -> &'n [u8] {
        &self.0[at as usize..][..length as usize]
    }

    /// The value of the `entity_id` tag; `None` also where it is empty.
    #[must_use]
    pub fn entity_id(self) -> Option<&'n str> {
        let value = self.tags().find(|(key, _)| *key == ENTITY_ID)?.1;
        Some(value).filter(|id| !id.is_empty())
    }
}

/// The text at the start of the bytes of a name, or of those that are left after one of its
/// texts; and the bytes after it.
#[expect(unsafe_code, reason = "names are read far more often than made, and checked when made")]
fn text_of(bytes: &[u8]) -> (&str, &[u8]) {
    let mut reader = NameReader { rest: bytes, is_ascii: false };
    let text = reader.text_bytes().expect("a name is sound");
    // SAFETY: the bytes of a name are private to this module. `SeriesName::new` makes them of texts,
    // `NameReader::series` takes them after it has checked each text, or that all bytes are ASCII;
    // `NameRef::of` is given those of either. Lengths and texts are where they are read here, one
    // after the other. So these are the bytes of a text.
    (unsafe { std::str::from_utf8_unchecked(text) }, reader.rest)
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
    number(length).to_le_bytes()
}

fn number(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("a body is far below 4 GiB")
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
    pub fn series(&mut self) -> Result<NameRef<'a>> {
        let whole = self.rest;
        self.pass_text()?;
        for _ in 0..self.length()? {
            self.pass_text()?;
            self.pass_text()?;
        }
        Ok(NameRef(&whole[..whole.len() - self.rest.len()]))
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
        assert_eq!(name().view().measurement(), "link");
        assert!(name().view().tags().eq([("entity_id", "a\0b"), ("site", "")]));
        assert_eq!(name().view().entity_id(), Some("a\0b"));
        assert_eq!(SeriesName::new("link", &[("entity_id", "")]).view().entity_id(), None, "C23");
        assert_eq!(SeriesName::new::<&str>("link", &[]).view().tags().next(), None);
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
