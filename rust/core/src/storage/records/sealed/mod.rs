//! Records sealed under the master key. A sealed record is valid only in its place in its store.
//!
//! A program without the master key may be able to write the files or the database. It cannot make
//! a record, nor move or exchange records: a record does not open in another place. The sum in the
//! store's head shows records that were removed or put back to an earlier state. A file elsewhere
//! shows that an older copy of the whole store was put back. The format is in `docs/format.md`,
//! "Sealed records".

mod head;

mod seal;

mod revision;

mod context;

mod snapshot;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use self::context::{CountedSpaces, SealContext, each, stored_head};
use self::head::RecordsHead;
use self::revision::RevisionFile;
use self::seal::{HEAD, OPEN_CHECK_KEY, RecordSeal};
use self::snapshot::SealedSnapshot;
use super::interface::{Changes, Item, RecordSnapshot, RecordStore, StateMark};
use crate::model::error::Result;

/// Space of the facts about the store.
const FACTS: &str = "facts";
/// Space of the facts of a store that was written without a seal.
const OPEN_FACTS: &str = "";

/// A store whose records are sealed.
pub struct SealedRecords {
    records: Arc<dyn RecordStore>,
    sealed: Arc<SealContext>,
    /// True once the first use has checked the store.
    is_checked: AtomicBool,
}

impl SealedRecords {
    /// Returns all spaces of a sealed store that keeps records in `spaces`.
    #[must_use]
    pub fn spaces(spaces: &[String]) -> Vec<String> {
        [spaces, &[FACTS.to_owned(), HEAD.0.to_owned()]].concat()
    }

    /// Makes a store that seals `records` in `spaces`. The key is derived from the master key and
    /// from `name`, which no other store of the installation has.
    #[must_use]
    pub fn new(
        records: Arc<dyn RecordStore>,
        master_key: &[u8; 32],
        name: &str,
        spaces: &[String],
    ) -> Self {
        let mut spaces = spaces.to_vec();
        spaces.push(FACTS.to_owned());
        let (seal, place) = (RecordSeal::new(master_key, name), records.place());
        let sealed = Arc::new(SealContext { seal, place, spaces, counted: None });
        Self { records, sealed, is_checked: AtomicBool::new(false) }
    }

    /// Makes the first use look at all records. Every change of a record in `spaces` is then
    /// counted in `file`, which shows if an older copy of the store was put back.
    ///
    /// # Panics
    /// If the store was already used.
    #[must_use]
    pub fn counting(mut self, spaces: &[String], file: &Path) -> Self {
        let sealed = Arc::get_mut(&mut self.sealed).expect("snapshots share it");
        sealed.counted =
            Some(CountedSpaces { spaces: spaces.to_vec(), file: RevisionFile::new(file) });
        self
    }

    /// Returns the changes that turn an empty store into a sealed store. Call [`Self::note`] after
    /// they are made.
    ///
    /// # Errors
    /// Returns [`crate::model::error::Error::Io`] if the system has no random bytes.
    pub fn beginning(&self) -> Result<Changes> {
        let mut changes = Changes::new();
        self.sealed.put_head(&mut changes, &RecordsHead::new()?)?;
        Ok(changes)
    }

    /// Replaces the file of the store's revision, without reading it.
    ///
    /// # Errors
    /// Returns [`crate::model::error::Error::Io`] or [`crate::model::error::Error::DiskFull`] if the
    /// file cannot be written, and the errors of [`RecordStore::begin`].
    pub fn note(&self) -> Result<()> {
        let Some(counted) = &self.sealed.counted else { return Ok(()) };
        let head = self.sealed.head(&mut *self.records.begin(false)?)?;
        counted.file.prepare(&self.sealed.seal, &head)?.publish()
    }

    /// Returns true if the store was made with this master key.
    ///
    /// # Errors
    /// Returns the errors of [`RecordStore::begin`].
    pub fn is_of_master_key(&self) -> Result<bool> {
        let mut snapshot = self.records.begin(false)?;
        let seal = &self.sealed.seal;
        if let Some(head) = stored_head(&mut *snapshot)? {
            return Ok(seal.knows(&head));
        }
        let check = snapshot.get_all(OPEN_FACTS, &[OPEN_CHECK_KEY])?.pop().flatten();
        Ok(check.is_none_or(|check| check == seal.open_check))
    }

    /// Returns true if the store has a seal, even if it has no records.
    ///
    /// # Errors
    /// Returns the errors of [`RecordStore::begin`].
    pub fn is_sealed(&self) -> Result<bool> {
        Ok(stored_head(&mut *self.records.begin(false)?)?.is_some())
    }

    /// Looks at all records. Each record must be the last record written in its place, and no
    /// record may be missing.
    ///
    /// # Errors
    /// Returns [`crate::model::error::Error::Foreign`] if a record is not as it was written or the
    /// store is an older copy, and the errors of [`RecordStore::begin`].
    pub fn check(&self) -> Result<()> {
        // The file is read before the records, because it is never ahead of them.
        let counted = self.sealed.counted.as_ref();
        let noted = counted.map(|counted| counted.file.read()).transpose()?.flatten();
        self.records.renew()?;
        let head = self.sealed.check(&mut *self.records.begin(false)?)?;
        if let Some(counted) = counted {
            counted.file.compare(noted, &self.sealed.seal, &head, &self.sealed.place)?;
        }
        self.is_checked.store(true, Ordering::Release);
        Ok(())
    }

    /// Returns the records of a space of a store without a seal. Returns no records for other
    /// stores.
    ///
    /// # Errors
    /// Returns the errors of [`RecordStore::begin`].
    pub fn unsealed(&self, space: &str) -> Result<Vec<Item>> {
        let mut snapshot = self.records.begin(false)?;
        let mut found = Vec::new();
        if stored_head(&mut *snapshot)?.is_none() {
            each(&mut *snapshot, space, |key, value| {
                found.push((key, value));
                Ok(())
            })?;
        }
        Ok(found)
    }

    /// Seals a store that was written without a seal, in one transaction: all records in its
    /// spaces, and the facts under these keys. Returns false if the store is already sealed.
    ///
    /// # Errors
    /// Returns the errors of [`RecordStore::begin`] and [`RecordSnapshot::commit`]. Returns
    /// [`crate::model::error::Error::Foreign`] if the file of its revision says that the store was
    /// sealed before.
    pub fn take_over(&self, facts: &[&[u8]]) -> Result<bool> {
        if self.is_sealed()? {
            return Ok(false);
        }
        let mut snapshot = self.records.begin(true)?;
        if stored_head(&mut *snapshot)?.is_some() {
            return Ok(false); // another process was faster
        }
        if let Some(counted) = &self.sealed.counted {
            counted.file.refuse_unsealed(&self.sealed.place)?;
        }
        let (mut changes, mut found) = (Changes::new(), Changes::new());
        for space in &self.sealed.spaces {
            let records = found.entry(space.clone()).or_default();
            each(&mut *snapshot, space, |key, value| {
                records.insert(key, Some(value));
                Ok(())
            })?;
        }
        for (key, value) in facts.iter().zip(snapshot.get_all(OPEN_FACTS, facts)?) {
            if value.is_some() {
                found.entry(FACTS.to_owned()).or_default().insert(key.to_vec(), value);
                changes.entry(OPEN_FACTS.to_owned()).or_default().insert(key.to_vec(), None);
            }
        }
        changes.entry(OPEN_FACTS.to_owned()).or_default().insert(OPEN_CHECK_KEY.to_vec(), None);
        let mut head = RecordsHead::new()?;
        self.sealed.seal_all(&mut head, &found, &mut changes)?;
        self.sealed.commit(snapshot, changes, &head, true)?;
        Ok(true)
    }

    /// Checks the store at the first use: all records if changes are counted, otherwise the head.
    fn ready(&self) -> Result<()> {
        if self.is_checked.load(Ordering::Acquire) {
            return Ok(());
        }
        if self.sealed.counted.is_some() {
            return self.check();
        }
        self.sealed.head(&mut *self.records.begin(false)?)?;
        self.is_checked.store(true, Ordering::Release);
        Ok(())
    }
}

impl RecordStore for SealedRecords {
    fn place(&self) -> String {
        self.sealed.place.clone()
    }

    fn begin(&self, writes: bool) -> Result<Box<dyn RecordSnapshot>> {
        self.ready()?;
        let snapshot = self.records.begin(writes)?;
        Ok(Box::new(SealedSnapshot { snapshot, sealed: Arc::clone(&self.sealed) }))
    }

    fn mark(&self) -> Result<StateMark> {
        self.ready()?;
        self.records.mark()
    }

    fn renew(&self) -> Result<bool> {
        self.records.renew()
    }

    fn close(&self) {
        self.is_checked.store(false, Ordering::Release);
        self.records.close();
    }
}
