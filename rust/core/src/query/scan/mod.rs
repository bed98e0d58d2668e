//! Stored rows as columns of every type, batch by batch: what leaves a store whole.

mod arrays;
mod tags;

mod schema;
mod selection;

mod batch;

mod json_lines;

pub use arrays::{ScanColumn, ScanValues, Texts};
pub use batch::{PendingRows, ScanBatch};
pub use json_lines::json_lines;
pub use schema::ScanSchema;
pub use selection::{ScanRequest, ScanSelection};
pub use tags::TagMaps;
