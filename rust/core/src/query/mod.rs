//! What the read endpoints ask, when the contract refuses it, and how it is answered.

pub mod answer;
mod budget;
mod by_field;
pub mod collector;
mod cut;
mod frame;
pub mod latest;
mod raw;
pub mod request;
pub mod select;
mod windows;

pub use cut::cut;
pub use frame::{Frame, FrameColumn};
pub use raw::RawRows;
pub use windows::WindowRows;

/// The measurement names that the topology filter and the series read accept.
pub const MEASUREMENTS: [&str; 6] =
    ["link", "satellite", "ground_station", "weather", "attenuation", "telemetry"];
