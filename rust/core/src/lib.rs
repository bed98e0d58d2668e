//! The fleetcast engine: bytes of a batch in, sealed columnar blocks on disk, windows and newest
//! samples out. Nothing here knows Python or HTTP; `docs/architecture.md` draws the whole.
//!
//! Modules may use those listed above them, never those below.

pub mod error;
pub mod limits;
mod swar;
pub mod time;

pub mod limiter;

pub mod fault;

pub mod names;

pub mod batch;
pub mod spelling;
pub mod wire;

pub mod column;
pub mod seal;
pub mod store;

pub mod write_id;

pub mod aggregate;
pub mod budget;

pub mod json;

pub mod catalog;

pub mod arrange;

pub mod segment;

pub mod manifest;

pub mod query;

pub mod plane;

pub mod frame;

pub mod arrow;
