//! What is run on hostile bytes, and what must hold for each of them.

mod block;
mod json;
mod names;
mod protobuf;
mod sealed;
mod segment;
mod view;

/// One reader of bytes.
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// What to begin with: small inputs that reach far.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Bytes that mean something to the reader.
    pub words: &'static [&'static [u8]],
    /// Memory that no input may make it use: limits come before allocation.
    pub memory_bytes_max: usize,
    /// Panics where something does not hold.
    pub run: fn(&[u8]),
}

/// Every target.
pub const TARGETS: &[Target] = &[
    json::TARGET,
    protobuf::TARGET,
    block::TARGET,
    segment::TARGET,
    names::TARGET,
    sealed::BLOB,
    sealed::KEY_FILE,
];
