//! The newest forecast of an entity, as it is kept.

use std::collections::BTreeMap;

use fleetcast_core::model::error::Error;
use fleetcast_core::plane::Plane;
use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::sealed_json::{seal_json, unseal_json};

/// The newest forecast of an entity at all horizons, with its model and its right to compute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForecastValue {
    /// Instant of the computation, nanoseconds since 1970.
    pub predicted_at_ns: i64,
    /// Issue time, nanoseconds since 1970.
    pub issued_at_ns: i64,
    /// Quantiles by horizon in minutes. Answers have the digits of the record.
    pub quantiles: BTreeMap<u32, Vec<Number>>,
    /// Tags of a pool.
    pub tags: BTreeMap<String, String>,
    /// Version of the model.
    pub model_version: String,
    /// Id of the feature view.
    pub feature_view_id: String,
    /// Id of the release.
    pub release_id: String,
    /// Part of the release in the traffic.
    pub role: String,
    /// Id of the routing decision.
    pub assignment_id: String,
    /// Id of the right to compute.
    pub lease_id: String,
}

impl ForecastValue {
    /// Returns quantiles as they are kept, or `None` if one is not a finite number.
    #[must_use]
    pub fn numbers(quantiles: &BTreeMap<u32, Vec<f64>>) -> Option<BTreeMap<u32, Vec<Number>>> {
        let numbers = |(horizon, values): (&u32, &Vec<f64>)| {
            let values = values.iter().map(|value| Number::from_f64(*value));
            Some((*horizon, values.collect::<Option<_>>()?))
        };
        quantiles.iter().map(numbers).collect()
    }

    /// Seals the forecast under the tenant's key.
    ///
    /// # Errors
    /// Returns the errors of [`Plane::seal`].
    pub fn seal(&self, plane: &Plane) -> Result<Vec<u8>, Error> {
        seal_json(plane, self)
    }

    /// Opens a sealed forecast. Returns `None` if its data key was dropped.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] for other bytes.
    pub fn unseal(plane: &Plane, sealed: &[u8]) -> Result<Option<Self>, Error> {
        unseal_json(plane, sealed, "a kept forecast")
    }
}
