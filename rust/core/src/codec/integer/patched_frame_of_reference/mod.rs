//! Patched frame of reference: numbers in one range, each in a fractional number of bits, and
//! exceptions outside the range.

mod read;
mod write;

pub(super) use read::PatchedReader;
pub(super) use write::{PatchedFrameOfReference, len_min};
