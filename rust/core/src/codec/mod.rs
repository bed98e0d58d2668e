//! Blocks of records as bytes: `docs/format.md`, "Block", is the layout this module follows.
//!
//! [`encode_block`] and [`decode_block`] are exact inverses. A query that wants a few series or
//! fields opens a [`BlockReader`] and decodes only those columns.

mod bitpack;
mod block;
mod bools;
pub(crate) mod bytes;
mod decimals;
mod floats;
mod head;
pub(crate) mod integers;
mod lanes;
mod lines;
mod numbers;
mod packed;
mod radix;
mod ranged;
mod reader;
mod rows;
mod runs;
mod survey;
mod texts;
mod vector;

#[cfg(test)]
mod tests;

pub use block::encode_block;
pub(crate) use decimals::decimal_sum;
pub(crate) use floats::bounds_of as float_bounds;
pub use head::{ColumnHead, FloatBounds, TableHead, TimeBounds};
pub use reader::{BlockReader, TableReader, decode_block};
pub use runs::Runs;
