//! Patched frame of reference: numbers that lie in one range, in fractions of a bit, and exceptions.

mod read;
mod write;

pub(super) use read::PatchedReader;
pub(super) use write::{PatchedFrameOfReference, len_min};
