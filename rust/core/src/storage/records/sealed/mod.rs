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

mod taking_over;

mod turning;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use self::context::{CountedSpaces, SealContext, stored_head};
use self::head::RecordsHead;
use self::revision::RevisionFile;
use self::seal::{FACTS, HEAD, OPEN_CHECK_KEY, OPEN_FACTS, RecordSeal};
use self::snapshot::SealedSnapshot;
use super::interface::{Changes, RecordSnapshot, RecordStore, StateMark};
use crate::model::error::{Error, Result};
use crate::storage::seal::MasterKeys;

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
        master_key: impl Into<MasterKeys>,
        name: &str,
        spaces: &[String],
    ) -> Self {
        let mut spaces = spaces.to_vec();
        spaces.push(FACTS.to_owned());
        let place = records.place();
        let sealed = Arc::new(SealContext::new(master_key.into(), name, place, spaces));
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
    /// Returns [`Error::Io`] if the system has no random bytes.
    pub fn beginning(&self) -> Result<Changes> {
        let mut changes = Changes::new();
        SealContext::put_head(&self.sealed.newest(), &mut changes, &RecordsHead::new()?)?;
        Ok(changes)
    }

    /// Replaces the file of the store's revision, without reading it.
    ///
    /// # Errors
    /// Returns [`Error::Io`] or [`Error::DiskFull`] if the file cannot be written, and the errors
    /// of [`RecordStore::begin`].
    pub fn note(&self) -> Result<()> {
        let Some(counted) = &self.sealed.counted else { return Ok(()) };
        let (mut snapshot, seal) = self.snapshot(false)?;
        let head = self.sealed.head(&mut *snapshot, &seal)?;
        counted.file.prepare(&seal, &head)?.publish()
    }

    /// Returns true if the store is sealed under a known master key.
    ///
    /// # Errors
    /// Returns the errors of [`RecordStore::begin`].
    pub fn is_of_master_key(&self) -> Result<bool> {
        let (mut snapshot, seal) = self.snapshot(false)?;
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
    /// Returns [`Error::Foreign`] if a record is not as it was written or the store is an older
    /// copy, and the errors of [`RecordStore::begin`].
    pub fn check(&self) -> Result<()> {
        match self.check_once() {
            // The master key may have turned after the file was read.
            Err(Error::Foreign { .. }) if self.sealed.keys.can_turn() => self.check_once(),
            outcome => outcome,
        }
    }

    fn check_once(&self) -> Result<()> {
        // The file is read before the records, because it is never ahead of them.
        let counted = self.sealed.counted.as_ref();
        let noted = counted.map(|counted| counted.file.read()).transpose()?.flatten();
        self.records.renew()?;
        let (mut snapshot, seal) = self.snapshot(false)?;
        let head = self.sealed.check(&mut *snapshot, &seal)?;
        if let Some(counted) = counted {
            let open = |noted: &[u8]| self.sealed.open_revision(noted);
            counted.file.compare(noted, open, &seal, &head, &self.sealed.place)?;
        }
        self.is_checked.store(true, Ordering::Release);
        Ok(())
    }

    /// Checks the store at the first use: all records if changes are counted, otherwise the head.
    fn ready(&self) -> Result<()> {
        if self.is_checked.load(Ordering::Acquire) {
            return Ok(());
        }
        if self.sealed.counted.is_some() {
            return self.check();
        }
        let (mut snapshot, seal) = self.snapshot(false)?;
        self.sealed.head(&mut *snapshot, &seal)?;
        self.is_checked.store(true, Ordering::Release);
        Ok(())
    }

    /// Begins a snapshot of the stored records, and returns it with their seal.
    fn snapshot(&self, writes: bool) -> Result<(Box<dyn RecordSnapshot>, Arc<RecordSeal>)> {
        let mut snapshot = self.records.begin(writes)?;
        if let Some(seal) = self.sealed.seal_of(&mut *snapshot)? {
            return Ok((snapshot, seal));
        }
        let head = stored_head(&mut *snapshot)?.unwrap_or_default();
        drop(snapshot); // other processes must not wait for the source of the keys
        self.sealed.keys.renew_for(&head);
        let mut snapshot = self.records.begin(writes)?;
        let seal = self.sealed.seal_of(&mut *snapshot)?;
        Ok((snapshot, seal.unwrap_or_else(|| self.sealed.seal())))
    }
}

impl RecordStore for SealedRecords {
    fn place(&self) -> String {
        self.sealed.place.clone()
    }

    fn begin(&self, writes: bool) -> Result<Box<dyn RecordSnapshot>> {
        self.ready()?;
        let (snapshot, seal) = self.snapshot(writes)?;
        Ok(Box::new(SealedSnapshot { snapshot, seal, sealed: Arc::clone(&self.sealed) }))
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
