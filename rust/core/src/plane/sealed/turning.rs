//! An open plane follows its key file.

use std::sync::{Arc, PoisonError, RwLockReadGuard};

use super::SealedStore;
use super::key_file::KeyFile;
use super::keys::held;
use crate::model::error::{Error, Result};
use crate::storage::seal::Sealer;
use crate::storage::store::{CompactionLock, KeyTurns};

impl SealedStore {
    /// Returns the sealer in force.
    pub(in crate::plane) fn sealer(&self) -> Arc<Sealer> {
        Arc::clone(&self.lent_sealer())
    }

    /// Lends the sealer in force. While the result lives, this process takes no other keys: hold it
    /// from the seal of bytes until the store has them, and open no sealed bytes before.
    pub(in crate::plane) fn sealing(&self) -> RwLockReadGuard<'_, Arc<Sealer>> {
        if self.store.key_turns().is_some_and(KeyTurns::may_have_turned)
            && let Some(file) = self.keys.file.get()
            // Other threads do not wait for a store that is away. It refuses bytes under a closed key.
            && file.wrapped().is_ok()
        {
            self.renew_keys(&self.sealer());
        }
        self.lent_sealer()
    }

    fn lent_sealer(&self) -> RwLockReadGuard<'_, Arc<Sealer>> {
        self.keys.sealer.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the plane the file from which its keys come.
    pub(in crate::plane) fn follow_key_file(&self, file: KeyFile) {
        // A plane has one key file, so a second call names the same file.
        let _ = self.keys.file.set(file);
    }

    /// Returns the key file. Returns an error if the keys of this plane do not turn.
    pub(in crate::plane) fn key_file(&self) -> Result<&KeyFile> {
        let message = || "the data key of this plane cannot be changed".to_owned();
        let file = self.keys.file.get().filter(|_| self.store.key_turns().is_some());
        file.ok_or_else(|| Error::Invalid { message: message() })
    }

    /// Returns the result of `open`. If the bytes do not open, the key file is read: another process
    /// may have turned the key.
    pub(in crate::plane) fn opened<R>(&self, open: impl Fn(&Sealer) -> Result<R>) -> Result<R> {
        let sealer = self.sealer();
        match open(&sealer) {
            Err(Error::Corrupt { .. }) if self.renew_keys(&sealer) => open(&self.sealer()),
            outcome => outcome,
        }
    }

    /// Takes the compaction lock and then the keys of the key file. Only the holder of the lock
    /// changes the keys, so they stay in force until it is dropped. Returns `None` if another
    /// process has the lock.
    pub(in crate::plane) fn lock_compaction(&self) -> Result<Option<Box<dyn CompactionLock>>> {
        let lock = self.store.lock_compaction()?;
        if let (Some(_), Some(file)) = (&lock, self.keys.file.get()) {
            // The master key may have turned, too.
            file.renew_master_keys()?;
            self.try_to_renew_keys(&self.sealer())?;
        }
        Ok(lock)
    }

    /// Acts as [`Self::try_to_renew_keys`], and returns false if the file cannot be read.
    pub(in crate::plane) fn renew_keys(&self, known: &Arc<Sealer>) -> bool {
        self.try_to_renew_keys(known).unwrap_or(false)
    }

    /// Takes the keys of the key file. Returns true if other keys than `known` are in force then.
    fn try_to_renew_keys(&self, known: &Arc<Sealer>) -> Result<bool> {
        let Some(file) = self.keys.file.get() else { return Ok(false) };
        // No bytes are sealed meanwhile, so none are stored under a key that is no longer held.
        let mut sealer = self.keys.sealer.write().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&sealer, known) {
            return Ok(true);
        }
        let held = held(&*self.store, file.wrapped()?, || file.wrapped(), |it| file.open(it))?;
        let next = held.put_in_force(&*self.store);
        let is_other = !next.is_same(&sealer);
        if is_other {
            *sealer = Arc::new(next);
        }
        Ok(is_other)
    }

    /// Takes the keys of the key file, if the file is of this plane. Returns false if it is not.
    pub(in crate::plane) fn takes_key_file(&self) -> bool {
        let Ok((plane_id, keys)) = self.key_file().and_then(KeyFile::renew_master_keys) else {
            return false;
        };
        let sealer = self.sealer();
        let is_own = Sealer::of(&keys, plane_id).name_hash(b"") == sealer.name_hash(b"");
        if is_own {
            self.renew_keys(&sealer);
        }
        is_own
    }
}
