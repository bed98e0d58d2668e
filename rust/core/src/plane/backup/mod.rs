//! Backups of a plane: sealed bytes as they are stored, in files that are never changed
//! (`docs/format.md`, "Backup").
//!
//! A backup adds the files that the previous backup lacks. The caller keeps the list of all files
//! with their hashes. A file that is on no list has no meaning.

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
pub use self::save::SaveReport;

pub(super) use self::restore::restore;
pub(super) use self::save::save;
