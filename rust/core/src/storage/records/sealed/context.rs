//! The seal of a store, its head, and the file of its revision.

use std::sync::{Arc, PoisonError, RwLock};

use super::head::RecordsHead;
use super::revision::{PreparedRevision, RevisionFile};
use super::seal::{HEAD, RecordSeal};
use crate::model::error::{Error, Result};
use crate::storage::records::interface::{Changes, RecordSnapshot};
use crate::storage::seal::MasterKeys;

/// Number of records read at a time.
const PAGE: usize = 1_024;

pub(super) struct SealContext {
    pub(super) keys: MasterKeys,
    name: String,
    /// Seal of the head that was read last.
    current: RwLock<Arc<RecordSeal>>,
    pub(super) place: String,
    pub(super) spaces: Vec<String>,
    pub(super) counted: Option<CountedSpaces>,
}

/// Spaces whose changes are counted, and the file that keeps the count.
pub(super) struct CountedSpaces {
    pub(super) spaces: Vec<String>,
    pub(super) file: RevisionFile,
}

impl SealContext {
    pub(super) fn new(keys: MasterKeys, name: &str, place: String, spaces: Vec<String>) -> Self {
        let current = RwLock::new(Arc::new(RecordSeal::new(&keys.newest(), name)));
        Self { keys, name: name.to_owned(), current, place, spaces, counted: None }
    }

    /// Returns the seal under the newest master key.
    pub(super) fn newest(&self) -> RecordSeal {
        RecordSeal::new(&self.keys.newest(), &self.name)
    }

    /// Returns the seal of the head that was read last.
    pub(super) fn seal(&self) -> Arc<RecordSeal> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the seal of the records in a snapshot, or `None` if no known key made it.
    pub(super) fn seal_of(
        &self,
        snapshot: &mut dyn RecordSnapshot,
    ) -> Result<Option<Arc<RecordSeal>>> {
        let seal = self.seal();
        if !self.keys.can_turn() {
            return Ok(Some(seal));
        }
        let Some(head) = stored_head(snapshot)? else { return Ok(Some(seal)) };
        if seal.knows(&head) {
            return Ok(Some(seal));
        }
        let found = self.seals().find(|seal| seal.knows(&head)).map(Arc::new);
        if let Some(seal) = &found {
            *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(seal);
        }
        Ok(found)
    }

    /// Returns the content of the revision's file. The file may be of the key before, if a process
    /// ended while the master key turned.
    pub(super) fn open_revision(&self, sealed: &[u8]) -> Option<RecordsHead> {
        self.seal().open_revision(sealed).or_else(|| {
            self.keys.renew_for(sealed);
            self.seals().find_map(|seal| seal.open_revision(sealed))
        })
    }

    fn seals(&self) -> impl Iterator<Item = RecordSeal> {
        self.keys.all().into_iter().map(|key| RecordSeal::new(&key, &self.name))
    }

    /// Returns the head of the store. A store without records gets a new head.
    pub(super) fn head(
        &self,
        snapshot: &mut dyn RecordSnapshot,
        seal: &RecordSeal,
    ) -> Result<RecordsHead> {
        match stored_head(snapshot)? {
            Some(head) => seal.open_head(&head),
            None if self.is_empty(snapshot)? => RecordsHead::new(),
            None => Err(Self::unsealed()),
        }
    }

    pub(super) fn check(
        &self,
        snapshot: &mut dyn RecordSnapshot,
        seal: &RecordSeal,
    ) -> Result<RecordsHead> {
        let head = self.head(snapshot, seal)?;
        let mut found = RecordsHead { sum: [0; 16], ..head.clone() };
        for space in &self.spaces {
            each(snapshot, space, |key, sealed| {
                seal.open(space, &key, &sealed)?;
                found.toggle(seal.share(space, &key, &sealed)?);
                Ok(())
            })?;
        }
        if found != head {
            let fault = "a record is missing, or is an earlier one that was put back";
            return Err(Error::Foreign { what: format!("{fault}, without the master key") });
        }
        Ok(head)
    }

    fn is_empty(&self, snapshot: &mut dyn RecordSnapshot) -> Result<bool> {
        for space in &self.spaces {
            if snapshot.count(space)? > 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Seals `changed` into `changes`, and adds the new records to the sum.
    pub(super) fn seal_all(
        seal: &RecordSeal,
        head: &mut RecordsHead,
        changed: &Changes,
        changes: &mut Changes,
    ) -> Result<()> {
        for (space, changed) in changed {
            let sealed = changes.entry(space.clone()).or_default();
            for (key, value) in changed {
                let value = value.as_ref().map(|value| seal.seal(space, key, value));
                let value = value.transpose()?;
                if let Some(value) = &value {
                    head.toggle(seal.share(space, key, value)?);
                }
                sealed.insert(key.clone(), value);
            }
        }
        Ok(())
    }

    pub(super) fn put_head(
        seal: &RecordSeal,
        changes: &mut Changes,
        head: &RecordsHead,
    ) -> Result<()> {
        let sealed = seal.seal_head(head)?;
        changes.entry(HEAD.0.to_owned()).or_default().insert(HEAD.1.to_vec(), Some(sealed));
        Ok(())
    }

    pub(super) fn commit(
        &self,
        snapshot: Box<dyn RecordSnapshot>,
        seal: &RecordSeal,
        mut changes: Changes,
        head: &RecordsHead,
        is_counted: bool,
    ) -> Result<()> {
        Self::put_head(seal, &mut changes, head)?;
        let counted = self.counted.as_ref().filter(|_| is_counted);
        // The file is prepared before the change, so that a file that cannot be written refuses the
        // change.
        let revision = counted.map(|counted| counted.file.prepare(seal, head)).transpose()?;
        snapshot.commit(&changes)?;
        // The change is made. If publishing fails, the next change reports that the file is behind.
        drop(revision.map(PreparedRevision::publish));
        Ok(())
    }

    pub(super) fn unsealed() -> Error {
        Error::Foreign { what: "a record was put there without the master key".to_owned() }
    }
}

pub(super) fn stored_head(snapshot: &mut dyn RecordSnapshot) -> Result<Option<Vec<u8>>> {
    Ok(snapshot.get_all(HEAD.0, &[HEAD.1])?.pop().flatten())
}

/// Hands the stored records of a space to `visit`.
pub(super) fn each(
    snapshot: &mut dyn RecordSnapshot,
    space: &str,
    mut visit: impl FnMut(Vec<u8>, Vec<u8>) -> Result<()>,
) -> Result<()> {
    let mut first = Vec::new();
    loop {
        let page = snapshot.under(space, b"", &first, PAGE)?;
        let last = page.last().filter(|_| page.len() == PAGE).map(|(key, _)| key.clone());
        for (key, value) in page {
            visit(key, value)?;
        }
        let Some(last) = last else { return Ok(()) };
        first = [last.as_slice(), &[0]].concat();
    }
}
