//! Parameters of `GET /topology`.

use std::ops::RangeInclusive;

use super::parameters::{Parameters, checked};
use crate::Refusal;

const FRESHNESS_SECONDS: f64 = 300.0;
const FRESHNESS_SECONDS_BOUNDS: RangeInclusive<f64> = 1.0..=604_800.0;

/// Parameters of a read of the newest samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatestParameters {
    /// Instant of the answer; `None` means now.
    pub as_of_ns: Option<i64>,
    /// Length of the window that ends at this instant.
    pub freshness_ns: i64,
    /// Measurement; `None` means all measurements.
    pub measurement: Option<String>,
}

impl LatestParameters {
    /// Reads the parameters of a query string.
    ///
    /// # Errors
    /// Returns `schema_faults` with every fault, or `invalid_input` for characters that names
    /// cannot have.
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

/// Returns the nearest count of nanoseconds; halves go to the even number. Example: 2.5e-9 s gives
/// 2.
#[expect(clippy::cast_possible_truncation, reason = "a week has 6e14 nanoseconds")]
fn nanoseconds(seconds: f64) -> i64 {
    (seconds * 1e9).round_ties_even() as i64
}
