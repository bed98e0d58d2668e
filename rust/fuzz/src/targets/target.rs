//! One reader of bytes and how to fuzz it.

use crate::cost::Cost;

/// One reader of bytes.
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// Inputs to begin with: small ones that reach far.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Bytes that mean something to the reader.
    pub words: &'static [&'static [u8]],
    /// Bytes of memory that no input may make it use: limits come before allocation.
    pub memory_bytes_max: usize,
    /// Cost of the input as a body that is written; `None` where the reader stores nothing.
    pub cost: Option<fn(&[u8]) -> Cost>,
    /// Panics where something does not hold.
    pub run: fn(&[u8]),
}
