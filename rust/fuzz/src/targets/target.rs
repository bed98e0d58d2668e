//! A reader of bytes and how to fuzz it.

use crate::cost::Cost;

/// A reader of bytes.
pub struct Target {
    /// Name on the command line.
    pub name: &'static str,
    /// Inputs to begin with: small inputs that reach many branches.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Bytes that mean something to the reader.
    pub words: &'static [&'static [u8]],
    /// Greatest memory, in bytes, that an input may make the reader use: limits come before
    /// allocation.
    pub memory_bytes_max: usize,
    /// Cost of the input as a body that is written; `None` if the reader stores no data.
    pub cost: Option<fn(&[u8]) -> Cost>,
    /// Panics if a rule does not hold.
    pub run: fn(&[u8]),
}
