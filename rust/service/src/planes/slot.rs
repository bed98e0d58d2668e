//! State that a process keeps about one account's plane. It is dropped when the plane is closed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use fleetcast_core::model::error::{Error, Result, catching};
use fleetcast_core::plane::Plane;

use super::files::{FileStamps, FileStates, Folder};
use super::open_plane::OpenPlane;

/// Time for which a damaged plane is not opened again, because opening reads much data.
const DAMAGE_RESTS: Duration = Duration::from_secs(10);

/// One account's plane.
pub(super) struct PlaneSlot {
    /// `None` for a plane in a database.
    folder: Option<Folder>,
    /// Never held while a thread waits for files or other threads.
    state: Mutex<SlotState>,
    /// Held by the thread that opens or closes the plane.
    turn: Mutex<Option<Damage>>,
}

pub(super) struct SlotState {
    opened: Option<OpenSlot>,
    pub(super) used_at: Instant,
}

/// An open plane, and the states of its files when they were last examined.
#[derive(Clone)]
struct OpenSlot {
    plane: Arc<OpenPlane>,
    files: Option<FileStates>,
}

/// A plane that could not be opened, and could not be opened if it were tried again.
pub(super) struct Damage {
    error: Error,
    pub(super) seen: PlaneState,
    /// Changes of the known master keys until then.
    key_changes: u64,
}

/// The state of a plane at one moment.
pub(super) enum PlaneState {
    /// The files of a plane in a folder.
    Files(FileStamps),
    /// The instant, for a plane in a database, which is not asked.
    At(Instant),
}

/// The right to open and to close the plane of a slot. One thread has it at a time.
pub(super) struct SlotTurn<'a> {
    slot: &'a PlaneSlot,
    pub(super) damage: MutexGuard<'a, Option<Damage>>,
}

impl PlaneSlot {
    pub(super) fn new(folder: Option<Folder>) -> Self {
        let state = SlotState { opened: None, used_at: Instant::now() };
        Self { folder, state: Mutex::new(state), turn: Mutex::new(None) }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns false if the plane was deleted, and `None` for a plane in a database, which is not
    /// asked.
    pub(super) fn has_key(&self) -> Option<bool> {
        self.folder.as_ref().map(Folder::has_key)
    }

    /// Returns the plane if it is open.
    pub(super) fn opened(&self) -> Option<Arc<OpenPlane>> {
        self.state().opened.as_ref().map(|opened| opened.plane.clone())
    }

    /// Returns the plane if it is open and its files are still the same.
    ///
    /// # Errors
    /// Returns [`Error::Missing`] or [`Error::Io`] if a file cannot be examined.
    pub(super) fn standing(&self) -> Result<Option<Arc<OpenPlane>>> {
        // Read before the files: other threads may learn of a greater length at any time.
        let seen = self.state().opened.clone();
        let files = self.folder.as_ref().map(Folder::files).transpose()?;
        let Some(seen) = seen else { return Ok(None) };
        if files.zip(seen.files).is_some_and(|(files, seen)| !files.carry(&seen)) {
            return Ok(None);
        }
        let mut state = self.state();
        state.used_at = Instant::now();
        if let Some(opened) = &mut state.opened
            && Arc::ptr_eq(&opened.plane, &seen.plane)
            && files.zip(opened.files).is_some_and(|(files, seen)| files.are_longer_than(&seen))
        {
            opened.files = files;
        }
        drop(state);
        Ok(Some(seen.plane))
    }

    /// Returns the plane if it is open and only its key file was replaced, by a file of the same
    /// plane: the master key or a data key has turned. `takes` compares the keys and takes them.
    ///
    /// # Errors
    /// Returns the errors of [`Self::standing`].
    pub(super) fn rewrapped(
        &self,
        takes: impl FnOnce(&Plane) -> bool,
    ) -> Result<Option<Arc<OpenPlane>>> {
        let Some(seen) = self.state().opened.clone() else { return Ok(None) };
        let files = self.folder.as_ref().map(Folder::files).transpose()?;
        let is_kept = files.zip(seen.files).is_some_and(|(files, seen)| files.keep_plane(&seen));
        if !is_kept || !seen.plane.for_a_call().is_ok_and(|plane| takes(&plane)) {
            return Ok(None);
        }
        if let Some(opened) = &mut self.state().opened
            && Arc::ptr_eq(&opened.plane, &seen.plane)
        {
            opened.files = files;
        }
        Ok(Some(seen.plane))
    }

    /// Takes the keys of a key file that was replaced, although no request comes. A failure shows
    /// with the next request.
    pub(super) fn follow_key_file(&self) {
        let Some(seen) = self.state().opened.clone() else { return };
        let files = self.folder.as_ref().map(Folder::files).and_then(Result::ok);
        if files.zip(seen.files).is_some_and(|(files, seen)| !files.carry(&seen)) {
            let _ = self.rewrapped(Plane::takes_key_file);
        }
    }

    /// Waits until no other thread opens or closes the plane.
    pub(super) fn turn(&self) -> SlotTurn<'_> {
        let damage = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        SlotTurn { slot: self, damage }
    }

    /// Like [`Self::turn`], but returns `None` instead of waiting: a plane that is being opened is
    /// in use.
    pub(super) fn turn_now(&self) -> Option<SlotTurn<'_>> {
        let damage = match self.turn.try_lock() {
            Ok(damage) => damage,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(SlotTurn { slot: self, damage })
    }

    fn seen(&self) -> Result<PlaneState> {
        match &self.folder {
            Some(folder) => folder.touched().map(PlaneState::Files),
            None => Ok(PlaneState::At(Instant::now())),
        }
    }
}

impl PlaneState {
    /// Returns true if a plane that was damaged at this moment is also damaged at `now`, without
    /// opening it.
    fn lasts(&self, now: &Self) -> bool {
        match (self, now) {
            (Self::Files(before), Self::Files(now)) => before == now,
            (Self::At(before), Self::At(now)) => now.duration_since(*before) < DAMAGE_RESTS,
            _ => false,
        }
    }

    fn files(&self) -> Option<FileStates> {
        match self {
            Self::Files(touched) => Some(touched.files),
            Self::At(_) => None,
        }
    }
}

/// Returns a copy of the error if it is damage.
fn copy_of(error: &Error) -> Option<Error> {
    match error {
        Error::Corrupt { what } => Some(Error::Corrupt { what }),
        Error::Foreign { what } => Some(Error::Foreign { what: what.clone() }),
        _ => None,
    }
}

impl SlotTurn<'_> {
    /// Calls `open` to open the plane, unless the plane is known to be damaged. `key_changes` is
    /// the number of changes of the known master keys: other keys may open the plane.
    ///
    /// # Errors
    /// Returns the errors of `open`, and of examining the files.
    pub(super) fn open(
        &mut self,
        key_changes: u64,
        open: impl FnOnce() -> Result<Plane>,
    ) -> Result<Arc<OpenPlane>> {
        self.slot.state().used_at = Instant::now();
        let seen = self.slot.seen()?;
        if let Some(damage) = &*self.damage
            && damage.key_changes == key_changes
            && damage.seen.lasts(&seen)
            && let Some(error) = copy_of(&damage.error)
        {
            return Err(error);
        }
        *self.damage = None;
        match open() {
            Ok(plane) => {
                let plane = Arc::new(OpenPlane::from(plane));
                let opened = OpenSlot { plane: plane.clone(), files: seen.files() };
                self.slot.state().opened = Some(opened);
                Ok(plane)
            }
            Err(error) => {
                if let Some(error) = copy_of(&error) {
                    *self.damage = Some(Damage { error, seen: self.slot.seen()?, key_changes });
                }
                Err(error)
            }
        }
    }

    /// Closes the plane, even if other code holds it; calls under way end soon.
    ///
    /// # Errors
    /// Returns the errors of the flush before; the plane is closed all the same.
    pub(super) fn close(&mut self) -> Result<()> {
        let Some(opened) = self.slot.state().opened.take() else { return Ok(()) };
        let flushed = match opened.plane.for_a_call() {
            Ok(plane) => catching(|| plane.flush()),
            Err(_) => Ok(()),
        };
        opened.plane.close();
        flushed
    }

    /// Closes the plane unless it is in use or its batches wait for a flush. Returns true if the
    /// slot holds no plane afterwards.
    pub(super) fn close_unused(&mut self) -> bool {
        let mut state = self.slot.state();
        let held_here = |opened: &mut OpenSlot| Arc::strong_count(&opened.plane) == 1;
        let Some(opened) = state.opened.take_if(held_here) else { return state.opened.is_none() };
        drop(state);
        // Only weak handles can reach the plane now.
        if opened.plane.close_unused() {
            return true;
        }
        self.slot.state().opened = Some(opened);
        false
    }

    /// Returns true if the slot holds no state.
    pub(super) fn is_empty(&self) -> bool {
        self.damage.is_none() && self.slot.state().opened.is_none()
    }
}
