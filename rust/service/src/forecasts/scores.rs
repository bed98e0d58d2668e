//! Forecasts whose truth is yet to come.

use std::collections::HashMap;

use fleetcast_core::model::error::Error;
use fleetcast_core::plane::Plane;
use serde::{Deserialize, Serialize};

const COUNT_BYTES: usize = size_of::<u32>();

/// Forecasts of one batch and model at one horizon, which are scored together.
///
/// A record is their number, four bytes big endian, and JSON under the tenant's key.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenScores {
    /// Issue time, nanoseconds since 1970.
    pub issued_at_ns: i64,
    /// The horizon.
    pub horizon_minutes: u32,
    /// Version of the model.
    pub model_version: String,
    /// Part of the model's release in the traffic.
    pub role: String,
    /// Quantiles by entity.
    pub quantiles: HashMap<String, Vec<f64>>,
}

impl OpenScores {
    /// Returns the record of the scores.
    ///
    /// # Errors
    /// Returns the errors of [`Plane::seal`].
    #[expect(clippy::big_endian_bytes, reason = "the format of the records")]
    pub fn seal(&self, plane: &Plane) -> Result<Vec<u8>, Error> {
        let invalid = |message: String| Error::Invalid { message };
        let count = u32::try_from(self.quantiles.len());
        let count = count.map_err(|error| invalid(error.to_string()))?;
        let plain = serde_json::to_vec(self).map_err(|error| invalid(error.to_string()))?;
        Ok([&count.to_be_bytes()[..], &plane.seal(&plain)?].concat())
    }

    /// Opens a record. Returns `None` if its data key was dropped.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] for other bytes.
    pub fn unseal(plane: &Plane, record: &[u8]) -> Result<Option<Self>, Error> {
        let sealed = record.get(COUNT_BYTES..).unwrap_or_default();
        let Some(plain) = plane.unseal(sealed)? else { return Ok(None) };
        let corrupt = |_| Error::Corrupt { what: "open scores" };
        serde_json::from_slice(&plain).map(Some).map_err(corrupt)
    }

    /// Returns the number of forecasts in a record, without its key. A record that is too short has
    /// none.
    #[must_use]
    #[expect(clippy::big_endian_bytes, reason = "the format of the records")]
    pub fn count(record: &[u8]) -> u32 {
        record.first_chunk().map_or(0, |count| u32::from_be_bytes(*count))
    }
}
