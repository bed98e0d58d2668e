//! Blocks of records as bytes. This module follows the layout of `docs/format.md`, "Block".
//!
//! [`encode_block`] and [`decode_block`] are exact inverses. A query that needs a few series or
//! fields opens a [`BlockReader`] and decodes only their columns.
//!
//! Each module uses only modules listed before it.

pub(crate) mod bytes;

mod simd;

mod effort;

pub(crate) mod integer;

mod float;

mod block;

pub use block::{
    BlockReader, ColumnHead, RunLengths, TableHead, TableReader, TimeBounds, decode_block,
    encode_block,
};
pub use effort::{EFFORT_COUNT_MIN, Effort};
pub(crate) use float::DecimalSums;
pub use float::FloatBounds;
