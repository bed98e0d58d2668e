//! Verdicts that hold for a moment, so that what was decided need not be decided again.
//!
//! A verdict is found by the values that decided it, and by nothing else. It lives for some
//! seconds at most, and its owner looks at what it rests on before each use: the version of a store
//! ([`lmdb::LmdbFile`]) and the files of a plane ([`files::PlaneFiles`]) can be asked for without the
//! interpreter.

mod deciding;

pub mod files;
pub mod lmdb;

mod verdicts;

#[cfg(test)]
mod tests;

pub use deciding::Deciding;
pub use verdicts::Verdicts;
