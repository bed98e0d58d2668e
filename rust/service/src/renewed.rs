//! Something that is made of the settings, and made anew when these change.

use std::sync::{Arc, PoisonError, RwLock};

/// Makes it; `None` if that cannot be done.
pub type Renew<T> = Box<dyn Fn() -> Option<Arc<T>> + Send + Sync>;

/// A value for the settings in force.
pub struct Renewed<T> {
    renew: Renew<T>,
    /// The value, and the version of the settings that it is of.
    current: RwLock<Option<(u64, Arc<T>)>>,
}

impl<T> Renewed<T> {
    /// A value that `renew` makes.
    #[must_use]
    pub fn new(renew: Renew<T>) -> Self {
        Self { renew, current: RwLock::new(None) }
    }

    /// The value for the settings of that version; `None` if it cannot be made.
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
