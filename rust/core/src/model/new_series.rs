//! Series of a batch that the parser did not find in its cache, in few pieces of memory.

use std::fmt;

use super::names::{EncodedName, EncodedText, NameParts, NameRef};

/// Series, each with its raw key: the bytes that named it in the body.
#[derive(Clone, Default)]
pub struct NewSeries {
    /// Names, one after another, as on a page.
    names: Vec<u8>,
    raw_keys: Vec<u8>,
    entries: Vec<SeriesEnds>,
}

#[derive(Clone, Copy)]
struct SeriesEnds {
    name_end: u32,
    raw_key_end: u32,
    raw_key_hash: u64,
    parts: NameParts,
}

/// An entry of [`NewSeries`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewEntry<'s> {
    /// Name of the series. Its tags are sorted and include the tags that the service adds.
    pub name: NameRef<'s>,
    /// Parts of the name.
    pub parts: NameParts,
    /// The bytes that named the series in the body, for the cache of raw keys.
    pub raw_key: &'s [u8],
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

    /// Adds a series. `put_raw_key` appends its raw key, which has the hash `raw_key_hash`.
    ///
    /// # Panics
    /// Panics if there are 4 GiB of names or of raw keys.
    pub(crate) fn push(
        &mut self,
        name: NameRef<'_>,
        raw_key_hash: u64,
        put_raw_key: impl FnOnce(&mut Vec<u8>),
    ) {
        self.names.extend_from_slice(name.as_bytes());
        self.end(name.parts(), raw_key_hash, put_raw_key);
    }

    /// Adds a series as [`Self::push`] does, with a name that is not assembled yet.
    pub(crate) fn push_encoded<'t>(
        &mut self,
        name: EncodedName<'t, impl ExactSizeIterator<Item = (&'t EncodedText, &'t str)>>,
        raw_key_hash: u64,
        put_raw_key: impl FnOnce(&mut Vec<u8>),
    ) {
        let parts = name.put(&mut self.names);
        self.end(parts, raw_key_hash, put_raw_key);
    }

    fn end(&mut self, parts: NameParts, raw_key_hash: u64, put_raw_key: impl FnOnce(&mut Vec<u8>)) {
        put_raw_key(&mut self.raw_keys);
        let end = |bytes: &[u8]| u32::try_from(bytes.len()).expect("a body is far below 4 GiB");
        let (name_end, raw_key_end) = (end(&self.names), end(&self.raw_keys));
        self.entries.push(SeriesEnds { name_end, raw_key_end, raw_key_hash, parts });
    }

    /// Returns the series at an index.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<NewEntry<'_>> {
        let entry = self.entries.get(index)?;
        let before = index.checked_sub(1).map(|before| self.entries[before]);
        let (name_start, raw_key_start) =
            before.map_or((0, 0), |before| (before.name_end, before.raw_key_end));
        let name = &self.names[name_start as usize..entry.name_end as usize];
        let raw_key = &self.raw_keys[raw_key_start as usize..entry.raw_key_end as usize];
        // SAFETY: `end` recorded the end of these bytes when they were the bytes of one whole name
        // after the others.
        #[expect(unsafe_code, reason = "a name is checked once")]
        let name = unsafe { NameRef::of(name) };
        Some(NewEntry { name, parts: entry.parts, raw_key })
    }

    /// Returns the hash of the raw key of the series at an index.
    ///
    /// # Panics
    /// Panics if there is no series at this index.
    #[inline]
    #[must_use]
    pub fn raw_key_hash(&self, index: usize) -> u64 {
        self.entries[index].raw_key_hash
    }

    /// Returns all series, in order.
    pub fn iter(&self) -> impl Iterator<Item = NewEntry<'_>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Returns the bytes of all names and raw keys.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.names.len() + self.raw_keys.len()
    }

    /// Returns the bytes of all names, one after another.
    #[must_use]
    pub fn names(&self) -> &[u8] {
        &self.names
    }

    /// Makes all raw keys empty.
    #[cfg(test)]
    pub(crate) fn forget_raw_keys(&mut self) {
        self.raw_keys.clear();
        self.entries.iter_mut().for_each(|entry| entry.raw_key_end = 0);
    }
}

/// Compares the series. The hashes are not compared, because another cache hashes differently.
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
