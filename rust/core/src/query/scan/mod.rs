//! Stored rows as columns of every type, batch by batch. This is the form in which a whole store is
//! exported.

mod arrays;
mod tags;

mod schema;
mod selection;

mod batch;

mod json_lines;

pub use arrays::{ScanColumn, ScanValues, Texts, extend_repeated};
pub use batch::{PendingRows, ScanBatch};
pub use json_lines::json_lines;
pub use schema::ScanSchema;
pub use selection::{ScanRequest, ScanSelection};
pub use tags::{TagMaps, TagRuns};
