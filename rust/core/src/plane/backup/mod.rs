//! Backups of a plane: sealed bytes as they lie, in files that are never changed
//! (`docs/format.md`, "Backup").
//!
//! A backup adds files that the one before lacks. Whoever asks for it keeps the list of all files
//! with their hashes; what is on no list means nothing.

mod files;
mod parallel;
mod state;

mod content;
mod segment_copy;

mod restore;
mod save;

#[cfg(test)]
mod tests;

pub use self::files::SavedFile;
pub use self::save::Saved;

pub(super) use self::restore::restore;
pub(super) use self::save::save;
