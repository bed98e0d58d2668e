//! The calls by which this program changes files, in place of the C library's functions.
//!
//! The linker prefers a program's functions to the functions of a shared library. So every change
//! of a file by this test program comes through here, also from the standard library and LMDB.
//! Calls of any thread for files below a recorded directory are written down, and may be made to
//! fail. Other calls pass. Real syncs are left out: only the simulated disk knows their effect.
#![expect(unsafe_code, reason = "these are functions of the C library")]
#![expect(clippy::cast_possible_truncation, reason = "what a system call returns fits")]

mod fault;
mod recording;

mod active;
mod interposed;

pub(crate) use self::active::{Handle, handle, position, record, stop};
pub(crate) use self::fault::{DIED, FAILED, Fault, Others};
pub(crate) use self::recording::Tape;
