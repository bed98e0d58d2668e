//! Checks, seals and commits the records of one store.

use super::head::RecordsHead;
use super::revision::{PreparedRevision, RevisionFile};
use super::seal::{HEAD, RecordSeal};
use crate::model::error::{Error, Result};
use crate::storage::records::interface::{Changes, RecordSnapshot};

/// Number of records read at a time.
const PAGE: usize = 1_024;

/// The seal of a store, its place, and its spaces.
pub(super) struct SealContext {
    pub(super) seal: RecordSeal,
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
    /// Returns the head of the store. A store without records gets a new head.
    pub(super) fn head(&self, snapshot: &mut dyn RecordSnapshot) -> Result<RecordsHead> {
        match stored_head(snapshot)? {
            Some(head) => self.seal.open_head(&head),
            None if self.is_empty(snapshot)? => RecordsHead::new(),
            None => Err(Self::unsealed()),
        }
    }

    pub(super) fn check(&self, snapshot: &mut dyn RecordSnapshot) -> Result<RecordsHead> {
        let head = self.head(snapshot)?;
        let mut found = RecordsHead { sum: [0; 16], ..head.clone() };
        for space in &self.spaces {
            each(snapshot, space, |key, sealed| {
                self.seal.open(space, &key, &sealed)?;
                found.toggle(self.seal.share(space, &key, &sealed)?);
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
        &self,
        head: &mut RecordsHead,
        changed: &Changes,
        changes: &mut Changes,
    ) -> Result<()> {
        for (space, changed) in changed {
            let sealed = changes.entry(space.clone()).or_default();
            for (key, value) in changed {
                let value = value.as_ref().map(|value| self.seal.seal(space, key, value));
                let value = value.transpose()?;
                if let Some(value) = &value {
                    head.toggle(self.seal.share(space, key, value)?);
                }
                sealed.insert(key.clone(), value);
            }
        }
        Ok(())
    }

    pub(super) fn put_head(&self, changes: &mut Changes, head: &RecordsHead) -> Result<()> {
        let sealed = self.seal.seal_head(head)?;
        changes.entry(HEAD.0.to_owned()).or_default().insert(HEAD.1.to_vec(), Some(sealed));
        Ok(())
    }

    pub(super) fn commit(
        &self,
        snapshot: Box<dyn RecordSnapshot>,
        mut changes: Changes,
        head: &RecordsHead,
        is_counted: bool,
    ) -> Result<()> {
        self.put_head(&mut changes, head)?;
        let counted = self.counted.as_ref().filter(|_| is_counted);
        // The file is prepared before the change, so that a file that cannot be written refuses the
        // change.
        let revision = counted.map(|counted| counted.file.prepare(&self.seal, head)).transpose()?;
        snapshot.commit(&changes)?;
        // The change is made. If publishing fails, the next change reports that the file is behind.
        drop(revision.map(PreparedRevision::publish));
        Ok(())
    }

    fn unsealed() -> Error {
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
