//! A [`Frame`](fleetcast_core::query::Frame) as an Arrow C stream of one batch (the Arrow project's
//! "C data interface" and "C stream interface"). Any Arrow library thus takes it without a copy,
//! and this crate needs no dependency.
//!
//! The interface defines ownership: each structure carries a `release` that frees the structure's
//! memory and then clears `release`, which marks the structure as released. The consumer may move
//! children out.
#![expect(unsafe_code, reason = "the C interface consists of raw pointers")]

mod interface;

mod array;
mod schema;

mod stream;

mod rows;

mod owned_schema;

mod flatbuffer;
mod ipc;

mod import;

pub use import::{ColumnMapping, MeasurementFrom, RowReader};
pub use interface::{ArrowArray, ArrowArrayStream, ArrowSchema};
pub use ipc::RowMessages;
pub use owned_schema::OwnedSchema;
