//! Forecasts whose truth is yet to come.

use std::collections::HashMap;

use fleetcast_core::model::error::Error;
use fleetcast_core::plane::Plane;
use serde::{Deserialize, Serialize};

use super::sealed_json::{seal_json, unseal_json};

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
        let count = u32::try_from(self.quantiles.len());
        let count = count.map_err(|error| Error::Invalid { message: error.to_string() })?;
        Ok([&count.to_be_bytes()[..], &seal_json(plane, self)?].concat())
    }

    /// Opens a record. Returns `None` if its data key was dropped.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] for other bytes.
    pub fn unseal(plane: &Plane, record: &[u8]) -> Result<Option<Self>, Error> {
        let sealed = record.get(COUNT_BYTES..).unwrap_or_default();
        unseal_json(plane, sealed, "open scores")
    }

    /// Returns the number of forecasts in a record, without its key. A record that is too short has
    /// none.
    #[must_use]
    #[expect(clippy::big_endian_bytes, reason = "the format of the records")]
    pub fn count(record: &[u8]) -> u32 {
        record.first_chunk().map_or(0, |count| u32::from_be_bytes(*count))
    }
}
