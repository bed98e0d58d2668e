//! Names as bytes. A name is found by the hash of its bytes, and its bytes are sealed to keep it
//! (`docs/format.md`, "Names").

mod page;

pub use page::{NameReader, pack, put_field, unpack};

use crate::model::json;

/// Stored id of a series (a measurement and a tag set) within one tenant.
pub type SeriesId = u32;
/// Stored id of a field (a measurement and a field name) within one tenant.
pub type FieldId = u32;

/// Key of the mark of a series that came by remote write. No tag has this key.
const REMOTE: &str = "";

/// Key of the tag whose value makes a series belong to an entity.
pub(crate) const ENTITY_ID: &str = "entity_id";

/// Name of a series: its measurement, then key and value of each tag in ascending byte order of the
/// keys. The bytes in memory are the stored form.
///
/// Example: the measurement `link` with the tags `entity_id=a` and `band=x` is the texts `link`,
/// `band`, `x`, `entity_id` and `a`, in this order. A series that came by remote write has a mark
/// before its tags: an empty key, and the label that became `entity_id`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SeriesName(Box<[u8]>);

/// A [`SeriesName`] whose bytes are borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NameRef<'n>(&'n [u8]);

/// Parts of a name with which its series is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameParts {
    /// Offset and length of the `entity_id` value in [`NameRef::as_bytes`]. `None` if the tag is
    /// absent or empty.
    pub entity_id: Option<(u32, u32)>,
    /// True if the tags need no escapes in JSON, as is the case for nearly all series.
    pub has_plain_tags: bool,
}

/// A text as names hold it: its length, then its bytes.
pub(crate) struct EncodedText(Box<[u8]>);

/// A name that is assembled from its parts.
pub(crate) struct EncodedName<'t, T> {
    pub(crate) measurement: &'t str,
    /// Tags in ascending order of their keys, each key once.
    pub(crate) tags: T,
    /// Index of the `entity_id` tag.
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
    /// Appends the name to `names`. Returns its parts.
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
    /// Returns the name of a measurement and tags. The tags are sorted by key, and no key occurs
    /// twice.
    ///
    /// # Panics
    /// Panics if a text has 4 GiB or more.
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

    /// Marks the series as one that came by remote write of Prometheus. `entity` is the label that
    /// became the tag `entity_id`, or an empty text if no label did.
    #[must_use]
    pub fn of_remote_write(self, entity: &str) -> Self {
        let (measurement, rest) = text_of(&self.0);
        let tags = self.view().pairs().count();
        let mut bytes = Vec::with_capacity(self.0.len() + 8 + entity.len());
        put(&mut bytes, measurement);
        bytes.extend(length(tags + 1));
        put(&mut bytes, REMOTE);
        put(&mut bytes, entity);
        bytes.extend_from_slice(rest.get(4..).unwrap_or_default());
        Self(bytes.into_boxed_slice())
    }

    /// Borrows the name.
    #[must_use]
    pub fn view(&self) -> NameRef<'_> {
        NameRef(&self.0)
    }
}

impl<'n> NameRef<'n> {
    /// Returns the name with these bytes.
    ///
    /// # Safety
    /// The bytes must be [`Self::as_bytes`] of a name.
    #[expect(unsafe_code, reason = "what a name is made of is checked once")]
    pub(super) const unsafe fn of(bytes: &'n [u8]) -> Self {
        Self(bytes)
    }

    /// Returns a copy that owns its bytes.
    #[must_use]
    pub fn to_name(self) -> SeriesName {
        SeriesName(self.0.into())
    }

    /// Returns the bytes of the name, as they are stored.
    #[must_use]
    pub const fn as_bytes(self) -> &'n [u8] {
        self.0
    }

    /// Returns the measurement, which is never empty.
    #[must_use]
    pub fn measurement(self) -> &'n str {
        text_of(self.0).0
    }

    /// Returns key and value of each tag, ascending by key. No key is empty.
    pub fn tags(self) -> impl Iterator<Item = (&'n str, &'n str)> {
        self.pairs().skip(usize::from(self.remote_entity().is_some()))
    }

    /// Returns the label that became the tag `entity_id` if the series came by remote write of
    /// Prometheus, or an empty text if no label did. Returns `None` for all other series.
    #[must_use]
    pub fn remote_entity(self) -> Option<&'n str> {
        self.pairs().next().filter(|(key, _)| *key == REMOTE).map(|(_, label)| label)
    }

    /// Returns the tags, after the mark of remote write if the name has one.
    fn pairs(self) -> impl Iterator<Item = (&'n str, &'n str)> {
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

    /// Computes the parts of the name.
    ///
    /// # Panics
    /// Panics if a text has 4 GiB or more.
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

    /// Returns the text at a span of [`NameParts`].
    ///
    /// # Panics
    /// Panics if the span does not belong to this name.
    #[must_use]
    pub fn text_at(self, span: (u32, u32)) -> &'n str {
        std::str::from_utf8(self.bytes_at(span)).expect("a span of this name")
    }

    /// Returns the bytes of the text at a span of [`NameParts`], without a UTF-8 check.
    ///
    /// # Panics
    /// Panics if the span does not belong to this name.
    #[must_use]
    pub fn bytes_at(self, (at, length): (u32, u32)) -> &'n [u8] {
        &self.0[at as usize..][..length as usize]
    }

    /// Returns the value of the `entity_id` tag, or `None` if the tag is absent or empty.
    #[must_use]
    pub fn entity_id(self) -> Option<&'n str> {
        let value = self.tags().find(|(key, _)| *key == ENTITY_ID)?.1;
        Some(value).filter(|id| !id.is_empty())
    }
}

/// Returns the first text in `bytes` and the bytes after it. `bytes` are the bytes of a name, or
/// the rest of them after a text.
#[expect(unsafe_code, reason = "names are read far more often than made, and checked when made")]
fn text_of(bytes: &[u8]) -> (&str, &[u8]) {
    let (text, rest) = split_text(bytes).expect("a name is sound");
    // SAFETY: the bytes of a name are private to this module and its `page`. `SeriesName` and
    // `EncodedName` make them of texts. `NameReader::series` takes them after it has checked that
    // each text is UTF-8 or that all bytes are ASCII. `NameRef::of` is given bytes of a name that
    // was made so. This function reads lengths and texts at the same positions, one after the
    // other. So these are the bytes of a text.
    (unsafe { std::str::from_utf8_unchecked(text) }, rest)
}

/// Splits the bytes of the first text from the bytes after it. Returns `None` if `bytes` end early.
#[inline]
fn split_text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = split_length(bytes)?;
    rest.split_at_checked(length)
}

#[inline]
fn split_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    Some((usize::try_from(u32::from_le_bytes(*length)).ok()?, rest))
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
    fn the_mark_of_remote_write_is_no_tag() {
        let marked = name().of_remote_write("instance");
        assert!(marked.view().tags().eq(name().view().tags()));
        assert_eq!(marked.view().remote_entity(), Some("instance"));
        assert_eq!(name().view().remote_entity(), None);
        assert_eq!(
            marked.view().parts().entity_id.map(|span| marked.view().text_at(span)),
            Some("a\0b")
        );
        let mut reader = NameReader::new(marked.view().as_bytes());
        assert_eq!(reader.series().unwrap(), marked.view());
        assert!(reader.is_empty());
        let bare = SeriesName::new::<&str>("link", &[]).of_remote_write("");
        assert_eq!((bare.view().remote_entity(), bare.view().tags().next()), (Some(""), None));
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
