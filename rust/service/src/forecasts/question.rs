//! The forecasts that a request asks for.

use std::sync::Arc;

/// Names and constants of a family of forecasts.
#[derive(Debug, PartialEq, Eq)]
pub struct ForecastFamily {
    /// The name. Example: `snr`.
    pub name: String,
    /// The horizons.
    pub horizons_minutes: Vec<u32>,
    /// Names of the quantiles. Example: `snr_db_p10`.
    pub value_names: Vec<String>,
    /// Length of the window that a forecast of a pool is about; `None` for links.
    pub window_ns: Option<i64>,
}

/// The forecasts that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForecastQuestion {
    /// The family.
    pub family: Arc<ForecastFamily>,
    /// The entities, without duplicates.
    pub entity_ids: Vec<String>,
    /// One horizon of the family; `None` for all.
    pub horizon_minutes: Option<u32>,
}

impl ForecastQuestion {
    /// Returns the horizons of the answer.
    #[must_use]
    pub fn horizons_minutes(&self) -> &[u32] {
        self.horizon_minutes.as_ref().map_or(&self.family.horizons_minutes, std::slice::from_ref)
    }
}
