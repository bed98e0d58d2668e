//! Forecasts that were computed earlier and still hold, and the answers that show forecasts.
//!
//! The front answers from here if all forecasts of a request still hold. The application asks the
//! same functions, and computes the forecasts that are missing.
//!
//! Each module may use the modules listed above it.

mod question;
mod sealed_json;
mod stamp;

mod entity;
mod scores;
mod value;

mod answer;
mod kept;

#[cfg(test)]
mod tests;

pub use answer::{EntityError, forecasts_answer};
pub use entity::{EntityDigest, assignment_id, forecast_key};
pub use kept::{ForecastInstant, KeptForecasts, RecentForecasts, StoredForecasts};
pub use question::{ForecastFamily, ForecastQuestion};
pub use scores::OpenScores;
pub use stamp::RecordStamp;
pub use value::ForecastValue;
