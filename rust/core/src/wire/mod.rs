//! Wire formats: bytes of a batch in, [`crate::batch::Batch`] or [`crate::fault::Refusal`] out.
//!
//! Every format finds a known series by the bytes that spell it, checks the rest of a record by
//! the same rules, and gives its accepted cells to `columns`. The order of what is refused
//! first is that of the pipeline (decisions §0, stages 9 to 13).

mod columns;
mod json;
mod keys;
mod prefix;
mod protobuf;
mod tags;

pub use json::{SPELLING_FORMAT as JSON_SPELLING_FORMAT, parse_json};
pub use protobuf::{SPELLING_FORMAT as PROTOBUF_SPELLING_FORMAT, parse_protobuf};
