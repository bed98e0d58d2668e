//! Open planes of a process, one for each account.

mod files;

mod open_plane;

mod slot;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use fleetcast_core::model::error::{Error, Result};
use fleetcast_core::plane::{KeyFile, Plane};
use fleetcast_core::storage::seal::MasterKeys;
use fleetcast_core::storage::store::Planes;

pub use open_plane::OpenPlane;

use files::Folder;
use slot::{PlaneSlot, SlotTurn};

/// The planes that a process has open. A plane is opened on its first use, and closed when it is
/// unused.
///
/// A plane in use is never closed to make room. A plane is in use if code holds it, if a call is
/// under way, or if batches wait for a flush. Make this object after a fork, never before.
pub struct OpenPlanes {
    planes: Arc<dyn Planes>,
    /// `None` for planes in a database.
    folder: Option<PathBuf>,
    keys: MasterKeys,
    open_max: usize,
    idle: Duration,
    slots: RwLock<HashMap<Arc<str>, Arc<PlaneSlot>>>,
    /// Errors of flushes before planes were closed; [`Self::close_unused`] returns them.
    faults: Mutex<Vec<Error>>,
}

impl OpenPlanes {
    /// Makes planes in the folders of `folder`. At most `open_max` stay open: the planes used last.
    #[must_use]
    pub fn in_folder(
        planes: Arc<dyn Planes>,
        folder: &Path,
        master_key: impl Into<MasterKeys>,
        open_max: usize,
        idle: Duration,
    ) -> Self {
        let folder = Some(folder.to_owned());
        Self { folder, ..Self::in_database(planes, master_key, open_max, idle) }
    }

    /// Makes planes without files, like [`Self::in_folder`]. Each use of a plane asks the database
    /// if the plane exists.
    #[must_use]
    pub fn in_database(
        planes: Arc<dyn Planes>,
        master_key: impl Into<MasterKeys>,
        open_max: usize,
        idle: Duration,
    ) -> Self {
        Self {
            planes,
            folder: None,
            keys: master_key.into(),
            open_max,
            idle,
            slots: RwLock::default(),
            faults: Mutex::default(),
        }
    }

    /// Returns the open plane of an account, whose tenant has the slug `tenant_key`.
    ///
    /// Every call examines the files. Missing files are an error, and replaced files are opened
    /// again. A plane is thus available again as soon as its files are.
    ///
    /// # Errors
    /// Returns [`Error::Missing`], [`Error::Io`], and the errors of [`Plane::open`]. While the
    /// files are unchanged, damage is reported again without opening the plane.
    pub fn open(&self, account_id: &str, tenant_key: &str) -> Result<Arc<OpenPlane>> {
        if let Some(slot) = self.slot(account_id) {
            match slot.standing() {
                Ok(Some(plane)) => return Ok(plane),
                Ok(None) => {}
                Err(error) => {
                    self.note(self.release(account_id, None));
                    return Err(error);
                }
            }
        }
        let plane = self.open_in_turn(account_id, tenant_key)?;
        self.close_least_used();
        Ok(plane)
    }

    fn open_in_turn(&self, account_id: &str, tenant_key: &str) -> Result<Arc<OpenPlane>> {
        loop {
            let slot = self.slot_or_new(account_id);
            let mut turn = slot.turn();
            if !self.has(account_id, &slot) {
                continue; // the slot was removed while this thread waited
            }
            let opened = self.open_slot(&slot, &mut turn, account_id, tenant_key);
            self.forget_empty(account_id, &slot, &turn);
            return opened;
        }
    }

    fn open_slot(
        &self,
        slot: &PlaneSlot,
        turn: &mut SlotTurn<'_>,
        account_id: &str,
        tenant_key: &str,
    ) -> Result<Arc<OpenPlane>> {
        if let Some(plane) = slot.standing()? {
            return Ok(plane); // another thread has opened it in the meantime
        }
        if let Some(plane) = slot.rewrapped(Plane::takes_key_file)? {
            return Ok(plane);
        }
        self.note(turn.close());
        let open = |key: &[u8; 32]| {
            let plane = Plane::open(&*self.planes, account_id, key, tenant_key)?;
            let (planes, keys) = (Arc::clone(&self.planes), self.keys.clone());
            plane.follow_key_file(KeyFile::new(planes, account_id, keys));
            Ok(plane)
        };
        let key_file = || self.planes.wrapped_key(account_id);
        turn.open(self.keys.changes(), || self.keys.open(key_file, open))
    }

    /// Closes an account's plane, so that the next use opens it again. With `of`, a plane that was
    /// opened since stays open.
    ///
    /// Use it for a plane that failed: the next opening reports the fault, unless it is gone.
    ///
    /// # Errors
    /// Returns the errors of the flush that comes first. The plane is closed even then.
    pub fn release(&self, account_id: &str, of: Option<&Arc<OpenPlane>>) -> Result<()> {
        let Some(slot) = self.slot(account_id) else { return Ok(()) };
        let mut turn = slot.turn();
        let is_meant = of.is_none_or(|of| slot.opened().is_some_and(|it| Arc::ptr_eq(of, &it)));
        let flushed = if is_meant { turn.close() } else { Ok(()) };
        self.forget_empty(account_id, &slot, &turn);
        flushed
    }

    /// Closes planes that were idle for a while, planes that were deleted, and planes above the
    /// bound. Returns the errors of flushes before planes were closed, here or in [`Self::open`].
    ///
    /// A plane that stays open takes the keys of a key file that was replaced.
    ///
    /// An old master key leaves memory here, once only the new key is in force. A tenant's deletion
    /// destroys its key. Every process that has the plane open closes it here, which frees the key
    /// in memory and the space of the files. For planes in a database, `known` returns the existing
    /// accounts. If it returns `None`, no plane counts as deleted.
    pub fn close_unused(&self, known: impl FnOnce() -> Option<HashSet<String>>) -> Vec<Error> {
        self.keys.forget_old();
        let all = self.all();
        // Read after the planes, so that the account of a plane that was just opened is known.
        let known = if self.folder.is_none() { known() } else { None };
        for (account_id, slot) in all {
            let is_known = || known.as_ref().is_none_or(|known| known.contains(&*account_id));
            if !slot.has_key().unwrap_or_else(is_known) {
                self.note(self.release(&account_id, None));
                self.rest(&account_id, &slot);
            } else if slot.state().used_at.elapsed() >= self.idle {
                self.rest(&account_id, &slot);
            } else {
                slot.follow_key_file();
            }
        }
        self.close_least_used();
        self.take_faults()
    }

    /// Planes with acknowledged batches that are not durable yet, and the sealed bytes that wait.
    pub fn waiting(&self) -> Vec<(String, Arc<OpenPlane>, usize)> {
        let waiting = |(account_id, slot): (Arc<str>, Arc<PlaneSlot>)| {
            let open = slot.opened()?;
            let bytes = open.for_a_call().ok()?.buffered_bytes();
            (bytes > 0).then(|| (account_id.to_string(), open, bytes))
        };
        self.all().into_iter().filter_map(waiting).collect()
    }

    /// Makes the waiting batches of a plane durable; [`Self::waiting`] returned the plane.
    ///
    /// # Errors
    /// Returns the errors of [`Plane::flush`]. A plane that fails is released. A plane without
    /// room, or without a reachable engine, keeps its batches for the next flush.
    pub fn flush(&self, account_id: &str, plane: &Arc<OpenPlane>) -> Result<()> {
        let flushed = plane.for_a_call().and_then(|plane| plane.flush());
        match &flushed {
            Ok(()) | Err(Error::DiskFull | Error::Unavailable { .. } | Error::Unknown { .. }) => {}
            Err(_) => self.note(self.release(account_id, Some(plane))),
        }
        flushed
    }

    /// Closes every plane after its waiting batches were flushed. Returns the errors of these
    /// flushes, and the errors that [`Self::close_unused`] would return.
    pub fn close(&self) -> Vec<Error> {
        for (account_id, _) in self.all() {
            self.note(self.release(&account_id, None));
        }
        self.take_faults()
    }

    fn close_least_used(&self) {
        let count = self.slots.read().unwrap_or_else(PoisonError::into_inner).len();
        let excess = count.saturating_sub(self.open_max);
        if excess == 0 {
            return;
        }
        let mut all = self.all();
        all.sort_by_cached_key(|(_, slot)| slot.state().used_at);
        for (account_id, slot) in all.into_iter().take(excess) {
            self.rest(&account_id, &slot);
        }
    }

    fn rest(&self, account_id: &str, slot: &Arc<PlaneSlot>) {
        if let Some(mut turn) = slot.turn_now()
            && turn.close_unused()
        {
            self.forget(account_id, slot);
        }
    }

    fn forget_empty(&self, account_id: &str, slot: &Arc<PlaneSlot>, turn: &SlotTurn<'_>) {
        if turn.is_empty() {
            self.forget(account_id, slot);
        }
    }

    fn forget(&self, account_id: &str, slot: &Arc<PlaneSlot>) {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        if slots.get(account_id).is_some_and(|it| Arc::ptr_eq(it, slot)) {
            slots.remove(account_id);
        }
    }

    fn has(&self, account_id: &str, slot: &Arc<PlaneSlot>) -> bool {
        self.slot(account_id).is_some_and(|it| Arc::ptr_eq(&it, slot))
    }

    fn slot(&self, account_id: &str) -> Option<Arc<PlaneSlot>> {
        self.slots.read().unwrap_or_else(PoisonError::into_inner).get(account_id).cloned()
    }

    fn slot_or_new(&self, account_id: &str) -> Arc<PlaneSlot> {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let folder = || self.folder.as_ref().map(|folder| Folder::new(&folder.join(account_id)));
        slots.entry(account_id.into()).or_insert_with(|| Arc::new(PlaneSlot::new(folder()))).clone()
    }

    fn all(&self) -> Vec<(Arc<str>, Arc<PlaneSlot>)> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.iter().map(|(account_id, slot)| (account_id.clone(), slot.clone())).collect()
    }

    fn note(&self, flushed: Result<()>) {
        if let Err(error) = flushed {
            self.faults.lock().unwrap_or_else(PoisonError::into_inner).push(error);
        }
    }

    fn take_faults(&self) -> Vec<Error> {
        std::mem::take(&mut *self.faults.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
