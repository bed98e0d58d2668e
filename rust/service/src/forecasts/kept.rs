//! Kept forecasts, and the rule that says which of them still hold.

use std::sync::Arc;

use fleetcast_core::model::error::Error;
use fleetcast_core::model::time::MINUTE_NS;
use fleetcast_core::plane::Plane;
use fleetcast_core::storage::records::{RecordSnapshot, RecordStore};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::entity::{EntityDigest, assignment_id, forecast_key};
use super::question::ForecastQuestion;
use super::stamp::RecordStamp;
use super::value::ForecastValue;

/// The forecasts of one installation.
pub struct KeptForecasts {
    records: Arc<dyn RecordStore>,
}

/// An instant by the clock of telemetry and by the clock of records.
#[derive(Clone, Copy, Debug)]
pub struct ForecastInstant {
    /// Nanoseconds since 1970.
    pub wall_ns: i64,
    /// The instant in the run of the machine.
    pub stamp: RecordStamp,
}

/// Records that a question is about, all of one state of the store.
pub struct StoredForecasts {
    digests: Vec<EntityDigest>,
    rollout: Option<Vec<u8>>,
    records: Vec<Option<Vec<u8>>>,
}

/// The forecasts that still hold.
#[derive(Debug)]
pub struct RecentForecasts {
    /// The record of the rollout in force.
    pub rollout: Option<Vec<u8>>,
    /// By place of the entity in the question; `None` if the entity has no forecast that holds.
    pub values: Vec<Option<Arc<ForecastValue>>>,
    /// False if no model answers for the family. Missing forecasts are then not computed.
    pub has_primary: bool,
}

/// The part of a rollout's record that tells which forecasts are of this rollout.
#[derive(Deserialize)]
struct RolloutInForce {
    rollout_id: String,
    primary: Option<IgnoredAny>,
}

impl KeptForecasts {
    /// Makes the forecasts of a store.
    #[must_use]
    pub fn new(records: Arc<dyn RecordStore>) -> Self {
        Self { records }
    }

    /// Reads the records that a question is about.
    ///
    /// # Errors
    /// Returns the errors of [`RecordStore::begin`] and [`StoredForecasts::read`].
    pub fn stored(
        &self,
        plane: &Plane,
        account: &str,
        asked: &ForecastQuestion,
    ) -> Result<StoredForecasts, Error> {
        StoredForecasts::read(&mut *self.records.begin(false)?, plane, account, asked)
    }
}

impl StoredForecasts {
    /// Reads the records that a question is about.
    ///
    /// # Errors
    /// Returns the errors of [`RecordSnapshot::get_all`].
    pub fn read(
        snapshot: &mut dyn RecordSnapshot,
        plane: &Plane,
        account: &str,
        asked: &ForecastQuestion,
    ) -> Result<Self, Error> {
        let family = &*asked.family.name;
        let key = |id: &String| forecast_key(plane, account, family, id);
        let (digests, keys): (Vec<_>, Vec<_>) = asked.entity_ids.iter().map(key).unzip();
        let rollout = snapshot.get_all("rollouts", &[format!("{family}=").as_bytes()])?.pop();
        let borrowed: Vec<_> = keys.iter().map(Vec::as_slice).collect();
        let records = snapshot.get_all("values", &borrowed)?;
        Ok(Self { digests, rollout: rollout.flatten(), records })
    }

    /// Returns the forecasts that hold at `now`: younger than `fresh_ns`, of the rollout in force,
    /// and with every target in the future.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] for records that this tenant did not write.
    pub fn recent(
        self,
        plane: &Plane,
        asked: &ForecastQuestion,
        fresh_ns: i64,
        now: &ForecastInstant,
    ) -> Result<RecentForecasts, Error> {
        let first_minutes = asked.horizons_minutes().iter().min().copied().unwrap_or_default();
        let until_ns = now.wall_ns - i64::from(first_minutes) * MINUTE_NS;
        let rollout: Option<RolloutInForce> =
            self.rollout.as_deref().map(serde_json::from_slice).transpose().map_err(corrupt)?;
        let rollout = rollout.filter(|rollout| rollout.primary.is_some());
        let recent = |(digest, record): (&EntityDigest, &Option<Vec<u8>>)| {
            let (Some(rollout), Some(record)) = (&rollout, record) else { return Ok(None) };
            if now.stamp.age_ns(record) >= fresh_ns {
                return Ok(None);
            }
            let value = ForecastValue::unseal(plane, RecordStamp::content(record))?;
            let Some(value) = value.filter(|value| value.issued_at_ns > until_ns) else {
                return Ok(None);
            };
            let is_of_rollout = assignment_id(&rollout.rollout_id, digest)? == value.assignment_id;
            Ok(is_of_rollout.then(|| Arc::new(value)))
        };
        let values =
            self.digests.iter().zip(&self.records).map(recent).collect::<Result<_, _>>()?;
        Ok(RecentForecasts { values, has_primary: rollout.is_some(), rollout: self.rollout })
    }
}

impl RecentForecasts {
    /// Returns true if the answer needs no computation.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !self.has_primary || self.values.iter().all(Option::is_some)
    }
}

fn corrupt(_: serde_json::Error) -> Error {
    Error::Corrupt { what: "the record of a rollout" }
}
