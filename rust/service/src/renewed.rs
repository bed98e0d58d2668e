//! A value that is made from the settings, and made again when the settings change.

use std::sync::{Arc, PoisonError, RwLock};

/// Makes the value; returns `None` if that is impossible.
pub type RenewFn<T> = Box<dyn Fn() -> Option<Arc<T>> + Send + Sync>;

/// A value for the settings in force.
pub struct RenewedValue<T> {
    renew: RenewFn<T>,
    /// The value, and the version of the settings that it was made from.
    current: RwLock<Option<(u64, Arc<T>)>>,
}

impl<T> RenewedValue<T> {
    /// Makes a holder of a value that `renew` makes on first use.
    #[must_use]
    pub fn new(renew: RenewFn<T>) -> Self {
        Self { renew, current: RwLock::new(None) }
    }

    /// Returns the value for that version of the settings, or `None` if it cannot be made.
    pub fn get(&self, version: u64) -> Option<Arc<T>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, value)) = &*current
            && *known == version
        {
            return Some(Arc::clone(value));
        }
        drop(current);
        let value = (self.renew)()?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = Some((version, Arc::clone(&value)));
        Some(value)
    }
}
