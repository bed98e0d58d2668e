//! The calls by which this program changes files, taken over from the C library.
//!
//! The linker prefers a program's own functions to those of a shared library, so whatever this test
//! program does to files, the standard library and LMDB included, comes through here. Calls for files
//! below a directory that is recorded are written down, whichever thread makes them, and may be made
//! to fail; all others pass. Real syncs are left out: only the simulated disk knows what they are
//! worth.
#![expect(unsafe_code, reason = "these are functions of the C library")]
#![expect(clippy::cast_possible_truncation, reason = "what a system call returns fits")]

mod fault;
mod recording;

mod active;
mod interposed;

pub(crate) use self::active::{Handle, handle, position, record, stop};
pub(crate) use self::fault::{DIED, FAILED, Fault, Others};
pub(crate) use self::recording::Tape;
