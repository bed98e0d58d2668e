//! The turn of the master key: all records of a store are sealed again, and secrets stay.

use super::SealedRecords;
use super::context::{SealContext, each, stored_head};
use super::head::RecordsHead;
use super::seal::{FACTS, secret_key};
use crate::model::error::{Error, Result};
use crate::storage::records::interface::{Changes, RecordStore};
use crate::storage::seal::MasterKey;

impl SealedRecords {
    /// Returns a secret that does not change when the master key turns. Before the first turn it is
    /// derived from the master key and `label`; then the store keeps it.
    ///
    /// # Errors
    /// Returns the errors of [`RecordStore::begin`].
    pub fn secret(&self, label: &str) -> Result<MasterKey> {
        self.ready()?;
        let (mut snapshot, seal) = self.snapshot(false)?;
        let key = secret_key(label);
        let Some(sealed) = snapshot.get_all(FACTS, &[&key])?.pop().flatten() else {
            return Ok(MasterKey::new(seal.derived(label)));
        };
        let secret = seal.open(FACTS, &key, &sealed)?;
        let secret = secret.try_into().map_err(|_| Error::Corrupt { what: "a kept secret" })?;
        Ok(MasterKey::new(secret))
    }

    /// Keeps `secret` as the secret with this label.
    ///
    /// # Errors
    /// Returns the errors of [`RecordStore::begin`] and of a commit.
    pub fn keep_secret(&self, label: &str, secret: &[u8; 32]) -> Result<()> {
        let fact = (secret_key(label), Some(secret.to_vec()));
        let changes = Changes::from([(FACTS.to_owned(), [fact].into())]);
        self.begin(true)?.commit(&changes)
    }

    /// Seals all records under the newest master key, in one transaction, and keeps the secrets
    /// with these labels. Returns false if that was done before.
    ///
    /// # Errors
    /// Returns [`Error::Foreign`] if a record is not as it was written, and
    /// the errors of [`RecordStore::begin`] and of a commit. The store is unchanged then.
    pub fn turn(&self, secrets: &[&str]) -> Result<bool> {
        self.sealed.keys.renew();
        self.ready()?;
        let (mut snapshot, old) = self.snapshot(true)?;
        let new = self.sealed.newest();
        let stored = stored_head(&mut *snapshot)?;
        if stored.is_none_or(|head| new.knows(&head)) {
            drop(snapshot);
            self.note()?;
            return Ok(false);
        }
        let head = self.sealed.check(&mut *snapshot, &old)?;
        // If a crash comes before the file of the revision is replaced, the file is one behind.
        let mut head = RecordsHead { revision: head.revision + 1, sum: [0; 16], ..head };
        let mut changes = Changes::new();
        // A database ends a transaction without statements, so records are sealed between reads.
        for space in &self.sealed.spaces {
            let records = changes.entry(space.clone()).or_default();
            each(&mut *snapshot, space, |key, sealed| {
                let sealed = new.seal(space, &key, &old.open(space, &key, &sealed)?)?;
                head.toggle(new.share(space, &key, &sealed)?);
                records.insert(key, Some(sealed));
                Ok(())
            })?;
        }
        let facts = &changes[FACTS];
        let missing = secrets.iter().map(|label| (secret_key(label), old.derived(label)));
        let missing = missing.filter(|(key, _)| !facts.contains_key(key));
        let missing = missing.map(|(key, secret)| (key, Some(secret.to_vec()))).collect();
        let missing = Changes::from([(FACTS.to_owned(), missing)]);
        SealContext::seal_all(&new, &mut head, &missing, &mut changes)?;
        self.sealed.commit(snapshot, &new, changes, &head, true)?;
        self.note()?; // the commit does not tell if the file could not be replaced
        Ok(true)
    }
}
