//! Facts that a process has about one account's plane. They go when the plane is closed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use fleetcast_core::model::error::{Error, Result, catching};
use fleetcast_core::plane::Plane;

use super::files::{Files, Folder, Touched};
use super::open_plane::OpenPlane;

/// Opening reads much; a damaged plane must not cost that with each request.
const DAMAGE_RESTS: Duration = Duration::from_secs(10);

/// One account's plane.
pub(super) struct Slot {
    /// `None` for a plane in a database.
    folder: Option<Folder>,
    /// Never held while anything is waited for.
    state: Mutex<State>,
    /// Held by whoever opens or closes the plane.
    turn: Mutex<Option<Damage>>,
}

pub(super) struct State {
    opened: Option<Opened>,
    pub(super) used_at: Instant,
}

/// An open plane, and the files that it was last seen on.
#[derive(Clone)]
struct Opened {
    plane: Arc<OpenPlane>,
    files: Option<Files>,
}

/// A plane that could not be opened, and would not be if it were tried again.
pub(super) struct Damage {
    error: Error,
    pub(super) seen: Seen,
}

/// The plane at one moment.
pub(super) enum Seen {
    /// In a folder.
    Files(Touched),
    /// In a database, which is not asked.
    At(Instant),
}

/// The right to open and to close the plane of a slot, which one thread has at a time.
pub(super) struct Turn<'a> {
    slot: &'a Slot,
    pub(super) damage: MutexGuard<'a, Option<Damage>>,
}

impl Slot {
    pub(super) fn new(folder: Option<Folder>) -> Self {
        let state = State { opened: None, used_at: Instant::now() };
        Self { folder, state: Mutex::new(state), turn: Mutex::new(None) }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False for a plane that was deleted; `None` for one in a database, which is not asked.
    pub(super) fn has_key(&self) -> Option<bool> {
        self.folder.as_ref().map(Folder::has_key)
    }

    /// The plane, if it is open.
    pub(super) fn opened(&self) -> Option<Arc<OpenPlane>> {
        self.state().opened.as_ref().map(|opened| opened.plane.clone())
    }

    /// The plane, if it is open and still stands on its files.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Io`].
    pub(super) fn standing(&self) -> Result<Option<Arc<OpenPlane>>> {
        // Before the files: others may learn of a greater length at any time.
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

    /// Waits until nobody opens or closes the plane.
    pub(super) fn turn(&self) -> Turn<'_> {
        let damage = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        Turn { slot: self, damage }
    }

    /// As [`Self::turn`], but `None` where that would wait: the plane is being opened, thus in use.
    pub(super) fn turn_now(&self) -> Option<Turn<'_>> {
        let damage = match self.turn.try_lock() {
            Ok(damage) => damage,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(Turn { slot: self, damage })
    }

    fn seen(&self) -> Result<Seen> {
        match &self.folder {
            Some(folder) => folder.touched().map(Seen::Files),
            None => Ok(Seen::At(Instant::now())),
        }
    }
}

impl Seen {
    /// True if a plane that was damaged at this moment need not be opened to know that it is `now`.
    fn lasts(&self, now: &Self) -> bool {
        match (self, now) {
            (Self::Files(before), Self::Files(now)) => before == now,
            (Self::At(before), Self::At(now)) => now.duration_since(*before) < DAMAGE_RESTS,
            _ => false,
        }
    }

    fn files(&self) -> Option<Files> {
        match self {
            Self::Files(touched) => Some(touched.files),
            Self::At(_) => None,
        }
    }
}

/// The same once more, if it is damage.
fn copy_of(error: &Error) -> Option<Error> {
    match error {
        Error::Corrupt { what } => Some(Error::Corrupt { what }),
        Error::Foreign { what } => Some(Error::Foreign { what: what.clone() }),
        _ => None,
    }
}

impl Turn<'_> {
    /// Has the plane opened by `open`, unless it is known to be damaged.
    ///
    /// # Errors
    /// Those of `open`, and of a look at the files.
    pub(super) fn open(&mut self, open: impl FnOnce() -> Result<Plane>) -> Result<Arc<OpenPlane>> {
        self.slot.state().used_at = Instant::now();
        let seen = self.slot.seen()?;
        if let Some(damage) = &*self.damage
            && damage.seen.lasts(&seen)
            && let Some(error) = copy_of(&damage.error)
        {
            return Err(error);
        }
        *self.damage = None;
        match open() {
            Ok(plane) => {
                let plane = Arc::new(OpenPlane::from(plane));
                let opened = Opened { plane: plane.clone(), files: seen.files() };
                self.slot.state().opened = Some(opened);
                Ok(plane)
            }
            Err(error) => {
                if let Some(error) = copy_of(&error) {
                    *self.damage = Some(Damage { error, seen: self.slot.seen()? });
                }
                Err(error)
            }
        }
    }

    /// Closes the plane under all who hold it; their calls under way end soon.
    ///
    /// # Errors
    /// Those of the flush before; it is closed all the same.
    pub(super) fn close(&mut self) -> Result<()> {
        let Some(opened) = self.slot.state().opened.take() else { return Ok(()) };
        let flushed = match opened.plane.for_a_call() {
            Ok(plane) => catching(|| plane.flush()),
            Err(_) => Ok(()),
        };
        opened.plane.close();
        flushed
    }

    /// Closes the plane unless somebody uses it, or batches of it wait for a flush. True if nothing
    /// of it is left.
    pub(super) fn close_unused(&mut self) -> bool {
        let mut state = self.slot.state();
        let held_here = |opened: &mut Opened| Arc::strong_count(&opened.plane) == 1;
        let Some(opened) = state.opened.take_if(held_here) else { return state.opened.is_none() };
        drop(state);
        // Nobody can get at it any more, but for those who hold it weakly.
        if opened.plane.close_unused() {
            return true;
        }
        self.slot.state().opened = Some(opened);
        false
    }

    /// True if nothing is known of the plane.
    pub(super) fn is_empty(&self) -> bool {
        self.damage.is_none() && self.slot.state().opened.is_none()
    }
}
