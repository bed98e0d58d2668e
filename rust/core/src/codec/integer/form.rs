//! Forms of a column of integers. The first byte of the column names its form.

/// All numbers are equal: the number is stored once.
pub(super) const CONSTANT: u8 = 0;
/// Frame of reference.
pub(super) const FRAME_OF_REFERENCE: u8 = 1;
/// First numbers of the runs, and differences, all in frames of reference.
pub(super) const DELTA: u8 = 2;
/// Patched frame of reference.
pub(super) const PATCHED: u8 = 3;
/// First numbers of the runs, and differences in a patched frame of reference.
pub(super) const DELTA_PATCHED: u8 = 4;
/// Residuals above one line through all numbers.
pub(super) const LINEAR: u8 = 5;
/// Residuals above lines, with a line for each run.
pub(super) const LINEAR_RUNS: u8 = 6;
/// Coded residuals: differences of some order.
pub(super) const CODED: u8 = 7;
/// Quotients by a base, and remainders.
pub(super) const BASED: u8 = 8;
