//! State of a worker that its loop and its threads share.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use crate::fair::Share;
use crate::limits::ConnectionLimits;
use crate::poll::{Poll, Waker};
use crate::settings::SettingsVersion;

/// Amounts that are shared out among owners.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Amount {
    /// Requests that wait for a thread, or are with one.
    Requests,
    /// Bytes of bodies that are being received, or wait for a thread.
    Bodies,
    /// Bytes of answers that clients have not taken, and of large answers under way.
    Unsent,
}

/// A thread's wish for a connection that it served.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ConnectionWish {
    /// A look at the input that arrived after the last request.
    Resume,
    Close,
}

/// The state of one worker that belongs to no single connection.
pub(crate) struct WorkerState {
    pub(crate) poll: Poll,
    pub(crate) waker: Waker,
    /// If true, every connection ends with its next answer.
    pub(crate) stopping: AtomicBool,
    /// Open connections.
    pub(crate) connections: AtomicUsize,
    limits: RwLock<Arc<ConnectionLimits>>,
    settings: Option<SettingsVersion>,
    shares: [Share; 3],
    /// Called when an owner no longer holds unsent bytes.
    room_made: OnceLock<Box<dyn Fn() + Send + Sync>>,
    wishes: Mutex<Vec<(u64, ConnectionWish)>>,
}

impl WorkerState {
    /// # Errors
    /// Returns the error of the system call.
    pub(crate) fn new(limits: ConnectionLimits, settings: Option<&OwnedFd>) -> io::Result<Self> {
        Ok(Self {
            poll: Poll::new()?,
            waker: Waker::new()?,
            stopping: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            limits: RwLock::new(Arc::new(limits)),
            settings: settings.map(SettingsVersion::map).transpose()?,
            shares: Default::default(),
            room_made: OnceLock::new(),
            wishes: Mutex::default(),
        })
    }

    /// Limits in force.
    pub(crate) fn limits(&self) -> Arc<ConnectionLimits> {
        Arc::clone(&self.limits.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn set_limits(&self, limits: ConnectionLimits) {
        *self.limits.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(limits);
    }

    /// Version of the settings in force; 0 if no settings are shared.
    pub(crate) fn settings_version(&self) -> u64 {
        self.settings.as_ref().map_or(0, SettingsVersion::now)
    }

    /// Returns true if the settings have changed since the last call.
    pub(crate) fn have_settings_changed(&self) -> bool {
        self.settings.as_ref().is_some_and(SettingsVersion::has_changed)
    }

    /// The owners of an amount.
    pub(crate) fn share(&self, amount: Amount) -> &Share {
        &self.shares[amount as usize]
    }

    /// Calls `work` whenever an owner has given back all of its unsent bytes. It must not be called
    /// under a lock that `work` takes.
    pub(crate) fn when_room_is_made(&self, work: Box<dyn Fn() + Send + Sync>) {
        let _ = self.room_made.set(work); // there is one queue, and it calls this once
    }

    pub(crate) fn room_is_made(&self) {
        if let Some(work) = self.room_made.get() {
            work();
        }
    }

    /// Gives a connection, by its token, back to the loop.
    pub(crate) fn wish(&self, token: u64, wish: ConnectionWish) {
        self.wishes.lock().unwrap_or_else(PoisonError::into_inner).push((token, wish));
        self.waker.wake();
    }

    /// Takes out the wishes of the threads.
    pub(crate) fn wishes(&self) -> Vec<(u64, ConnectionWish)> {
        std::mem::take(&mut *self.wishes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
