//! Answers of the data path: at first the parameters of a request, read by the rules of the
//! contract and refused with every problem listed together.
//!
//! Each module may use those listed above it.

mod parameters;

mod latest;
mod lines;
mod series;

mod bodies;

#[cfg(test)]
mod tests;

pub use bodies::{ReadFailure, latest, series, write_answer};
pub use latest::LatestParameters;
pub(crate) use lines::lines_parameters;
pub use series::series_parameters;
