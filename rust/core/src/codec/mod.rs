//! Blocks of records as bytes: `docs/format.md`, "Block", is the layout this module follows.
//!
//! [`encode_block`] and [`decode_block`] are exact inverses. A query that wants a few series or
//! fields opens a [`BlockReader`] and decodes only those columns.
//!
//! Each module uses only those listed before it.

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
