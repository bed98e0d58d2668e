//! Parameters of `GET /topology`.

use std::ops::RangeInclusive;

use super::parameters::{Parameters, checked};
use crate::Refusal;

const FRESHNESS_SECONDS: f64 = 300.0;
const FRESHNESS_SECONDS_BOUNDS: RangeInclusive<f64> = 1.0..=604_800.0;

/// A read of the newest samples as asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatestParameters {
    /// Instant of the answer; now if absent.
    pub as_of_ns: Option<i64>,
    /// Length of the window that ends there.
    pub freshness_ns: i64,
    /// Measurement; all if absent.
    pub measurement: Option<String>,
}

impl LatestParameters {
    /// Those of a query string.
    ///
    /// # Errors
    /// `schema_faults` with every fault; `invalid_input` for characters that no name has.
    pub fn read(query: &str) -> Result<Self, Refusal> {
        let mut given = Parameters::of(query);
        let as_of_ns = given.time("as_of_utc");
        let measurement = given.text("measurement");
        let freshness = given.number("freshness_seconds", &FRESHNESS_SECONDS_BOUNDS);
        given.finish()?;
        let measurement = measurement.map(|text| checked("measurement", &text)).transpose()?;
        let freshness_ns = nanoseconds(freshness.unwrap_or(FRESHNESS_SECONDS));
        Ok(Self { as_of_ns, freshness_ns, measurement })
    }
}

/// The nearest whole number, the even one of two.
#[expect(clippy::cast_possible_truncation, reason = "a week has 6e14 nanoseconds")]
fn nanoseconds(seconds: f64) -> i64 {
    (seconds * 1e9).round_ties_even() as i64
}
