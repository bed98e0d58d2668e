//! The fleetcast engine: bytes of a batch in, sealed columnar blocks on disk, windows and newest
//! samples out. Nothing here knows Python or HTTP; `docs/architecture.md` draws the whole.
//!
//! The storeys, from the ground up; each may use those listed above it, never those below.

pub mod model;

pub mod codec;

pub mod wire;

pub mod storage;

pub mod query;

pub mod plane;
