//! Segments: immutable files of rows sorted by entity and time (`docs/format.md`, "Segment").
//!
//! [`SegmentWriter`] writes a segment from sorted tables. [`merge`] writes a segment from several
//! segments. [`Segment`] finds the blocks that a read needs.

mod days;
mod layout;
mod representatives;

mod block_size;
mod index;
mod span;

mod gather;
mod slices;

mod seams;

mod runs;

mod subset;

mod places;

mod moved;

mod scatter;

mod sort;

mod partition;

pub mod statistics;

mod reader;
mod writer;

mod merge;

#[cfg(test)]
mod tests;

pub use days::{DAY_NS, HOUR_NS, day_of, hour_of};
pub use index::BlockEntry;
pub use layout::SegmentPart;
pub use merge::{Merge, SortedTables, merge};
pub(crate) use partition::{ByRank, partitioned, sorted_by_rank};
pub use reader::Segment;
pub use representatives::Representatives;
pub use sort::{grouped, sorted};
pub use span::RowSpan;
pub use subset::{filtered, newest, split_by_day};
pub use writer::{SegmentSummary, SegmentWriter};
