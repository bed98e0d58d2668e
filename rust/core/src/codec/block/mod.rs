//! Blocks: first all heads, then the columns of each table.

mod bools;
mod rows;
mod run_lengths;
mod texts;

mod head;

mod write;

mod read;

#[cfg(test)]
mod tests;

pub use head::{ColumnHead, TableHead, TimeBounds};
pub use read::{BlockReader, TableReader, decode_block};
pub use run_lengths::RunLengths;
pub use write::encode_block;
