//! The fleetcast engine takes in the bytes of a batch, keeps sealed columnar blocks on disk, and
//! returns windows and newest samples. No module here knows Python or HTTP. `docs/architecture.md`
//! draws the whole system.
//!
//! The modules are listed from the bottom layer up. A module may use the modules above it in this
//! list, never the modules below it.

pub mod model;

pub mod codec;

pub mod wire;

pub mod storage;

pub mod query;

pub mod plane;
