//! Readers that run on hostile bytes, and rules that must hold for each input.

mod target;
mod view;

mod arrow_data;

mod adapted;

mod arrow;
mod block;
mod heads;
mod json;
mod line;
mod names;
mod protobuf;
mod sealed;
mod segment;
mod texts;

mod calls;

mod frames;

pub use target::Target;

/// All targets.
pub const TARGETS: &[Target] = &[
    heads::TARGET,
    json::TARGET,
    protobuf::TARGET,
    line::TARGET,
    adapted::LINES,
    adapted::REMOTE_WRITE,
    adapted::OTLP,
    arrow::TARGET,
    texts::JSON,
    texts::CSV,
    block::TARGET,
    segment::TARGET,
    names::TARGET,
    sealed::BLOB,
    sealed::KEY_FILE,
    calls::TARGET,
    frames::TARGET,
];
