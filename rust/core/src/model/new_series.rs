//! Series of a batch that its parser did not know, in few pieces of memory.

use std::fmt;

use super::names::{EncodedName, EncodedText, NameParts, NameRef};

/// Series, each with the bytes that named it.
#[derive(Clone, Default)]
pub struct NewSeries {
    /// Names, one after another, as they are on a page.
    names: Vec<u8>,
    raw_keys: Vec<u8>,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy)]
struct Entry {
    name_end: u32,
    raw_key_end: u32,
    raw_key_hash: u64,
    parts: NameParts,
}

/// One of [`NewSeries`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewEntry<'s> {
    /// Its name, tags sorted, tenant tags already stamped.
    pub name: NameRef<'s>,
    /// Parts of the name.
    pub parts: NameParts,
    /// The bytes that named it, for the cache of raw keys.
    pub raw_key: &'s [u8],
}

impl NewSeries {
    /// Number of series.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Tells whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a series. Its raw key is what `put_raw_key` appends, and that has this hash.
    ///
    /// # Panics
    /// If there are 4 GiB of names or raw keys.
    pub(crate) fn push(
        &mut self,
        name: NameRef<'_>,
        raw_key_hash: u64,
        put_raw_key: impl FnOnce(&mut Vec<u8>),
    ) {
        self.names.extend_from_slice(name.as_bytes());
        self.end(name.parts(), raw_key_hash, put_raw_key);
    }

    /// As [`Self::push`], of a name that is not made yet.
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
        self.entries.push(Entry { name_end, raw_key_end, raw_key_hash, parts });
    }

    /// The series at an index.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<NewEntry<'_>> {
        let entry = self.entries.get(index)?;
        let before = index.checked_sub(1).map(|before| self.entries[before]);
        let (name_start, raw_key_start) =
            before.map_or((0, 0), |before| (before.name_end, before.raw_key_end));
        let name = &self.names[name_start as usize..entry.name_end as usize];
        let raw_key = &self.raw_keys[raw_key_start as usize..entry.raw_key_end as usize];
        // SAFETY: `end` noted where the bytes of a name end that were all there is behind others.
        #[expect(unsafe_code, reason = "a name is checked once")]
        let name = unsafe { NameRef::of(name) };
        Some(NewEntry { name, parts: entry.parts, raw_key })
    }

    /// Hash of the raw key of the series at an index.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    #[must_use]
    pub fn raw_key_hash(&self, index: usize) -> u64 {
        self.entries[index].raw_key_hash
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = NewEntry<'_>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Bytes of all names and raw keys.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.names.len() + self.raw_keys.len()
    }

    /// All names, one after another.
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

/// As the series in it; hashes of another cache are other ones.
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
