//! A [`Frame`](fleetcast_core::query::Frame) as an Arrow C stream of one batch (the Arrow project's
//! "C data interface" and "C stream interface"), so that any Arrow library takes it without a copy
//! by us or a dependency.
//!
//! Ownership is the interface's: each structure carries a `release` that frees what it points to
//! and then marks itself released by clearing `release`; the consumer may move children out.
#![expect(unsafe_code, reason = "the C interface consists of raw pointers")]

mod interface;

mod array;
mod schema;

mod stream;

mod rows;

mod import;

pub use import::{Mapping, MeasurementFrom, RowReader};
pub use interface::{ArrowArray, ArrowArrayStream, ArrowSchema};
