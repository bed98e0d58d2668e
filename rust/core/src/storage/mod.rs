//! Durable bytes: everything sealed, in stores and in sorted immutable segments.

pub mod seal;
pub mod store;

pub mod records;

pub mod write_id;

pub mod segment;

pub mod tombstone;

pub mod manifest;
