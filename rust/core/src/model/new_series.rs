//! Series of a batch that the parser did not find in its cache, in few pieces of memory.

use std::fmt;

use super::names::{EncodedName, EncodedText, NameParts, NameRef};
use super::raw_key::RawKey;

/// Series, each with the raw key that named it in the body.
#[derive(Clone, Default)]
pub struct NewSeries {
    /// Names, one after another, as on a page.
    names: Vec<u8>,
    entries: Vec<SeriesEntry>,
}

#[derive(Clone, Copy)]
struct SeriesEntry {
    name_end: u32,
    raw_key: RawKey,
    parts: NameParts,
}

/// An entry of [`NewSeries`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewEntry<'s> {
    /// Name of the series. Its tags are sorted and include the tags that the service adds.
    pub name: NameRef<'s>,
    /// Parts of the name.
    pub parts: NameParts,
    /// Raw key of the series in the body, for the cache of raw keys.
    pub raw_key: RawKey,
}

impl NewSeries {
    /// Returns the number of series.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there are no series.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a series.
    ///
    /// # Panics
    /// Panics if there are 4 GiB of names.
    pub(crate) fn push(&mut self, name: NameRef<'_>, raw_key: RawKey) {
        self.names.extend_from_slice(name.as_bytes());
        self.end(name.parts(), raw_key);
    }

    /// Adds a series as [`Self::push`] does, with a name that is not assembled yet.
    pub(crate) fn push_encoded<'t>(
        &mut self,
        name: EncodedName<'t, impl ExactSizeIterator<Item = (&'t EncodedText, &'t str)>>,
        raw_key: RawKey,
    ) {
        let parts = name.put(&mut self.names);
        self.end(parts, raw_key);
    }

    fn end(&mut self, parts: NameParts, raw_key: RawKey) {
        let name_end = u32::try_from(self.names.len()).expect("a body is far below 4 GiB");
        self.entries.push(SeriesEntry { name_end, raw_key, parts });
    }

    /// Returns the series at an index.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<NewEntry<'_>> {
        let entry = self.entries.get(index)?;
        let name_start = index.checked_sub(1).map_or(0, |before| self.entries[before].name_end);
        let name = &self.names[name_start as usize..entry.name_end as usize];
        // SAFETY: `end` recorded the end of these bytes when they were the bytes of one whole name
        // after the others.
        #[expect(unsafe_code, reason = "a name is checked once")]
        let name = unsafe { NameRef::of(name) };
        Some(NewEntry { name, parts: entry.parts, raw_key: entry.raw_key })
    }

    /// Returns the raw key of the series at an index.
    #[inline]
    pub(crate) fn raw_key(&self, index: usize) -> Option<&RawKey> {
        self.entries.get(index).map(|entry| &entry.raw_key)
    }

    /// Returns all series, in order.
    pub fn iter(&self) -> impl Iterator<Item = NewEntry<'_>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Returns the bytes of all names, one after another.
    #[must_use]
    pub fn names(&self) -> &[u8] {
        &self.names
    }

    /// Makes all raw keys equal.
    #[cfg(test)]
    pub(crate) fn forget_raw_keys(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.raw_key = RawKey::default());
    }
}

impl PartialEq for NewSeries {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl fmt::Debug for NewSeries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
