//! Blocks: heads, and the columns of their tables.

mod bools;
mod head;
mod read;
mod rows;
mod run_lengths;
mod texts;
mod write;

#[cfg(test)]
mod tests;

pub use head::{ColumnHead, FloatBounds, TableHead, TimeBounds};
pub use read::{BlockReader, TableReader, decode_block};
pub use run_lengths::Runs;
pub use write::encode_block;
