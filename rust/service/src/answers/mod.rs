//! Answers of the data path. The parameters of a request are read first, by the rules of the
//! contract. A refusal lists every problem.
//!
//! Each module may use the modules listed above it.

mod parameters;

mod latest;
mod lines;
mod series;

mod bodies;
mod predictions;
mod write_outcome;

#[cfg(test)]
mod tests;

pub use bodies::{ReadFailure, latest, series, write_answer};
pub use latest::LatestParameters;
pub(crate) use lines::lines_parameters;
pub use predictions::{ForecastRules, OtherValues};
pub use series::series_parameters;
pub use write_outcome::WriteOutcome;
