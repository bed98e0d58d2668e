//! The vocabulary of the engine: records as columns, names, faults, limits, time.
//!
//! Each module uses only modules listed above it.

pub mod error;
pub mod limits;
pub(crate) mod prefetch;
pub(crate) mod swar;
pub mod time;

pub mod clock;
pub mod fault;

pub mod json;

pub mod names;

mod arena;
mod id_table;
mod measurement_names;

pub mod raw_key;

pub mod new_series;
pub mod raw_keys;

pub mod batch;
pub mod column_name;

pub mod aggregate;
pub mod chunks;

pub mod fold;

pub mod catalog;
