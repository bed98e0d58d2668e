//! Parameters of `GET /predictions`, and its answer if all forecasts are kept and still hold.

use std::collections::HashSet;
use std::sync::Arc;

use fleetcast_core::model::chunks::AnswerBody;
use fleetcast_core::model::clock;
use fleetcast_core::model::error::Error;
use fleetcast_core::plane::Plane;
use fleetcast_limiter::boottime_ns;

use super::bodies::ReadFailure;
use super::parameters::{Bytes, Parameters};
use crate::forecasts::{
    ForecastFamily, ForecastInstant, ForecastQuestion, KeptForecasts, RecordStamp, forecasts_answer,
};
use crate::refusal::{ContextValue, Refusal};

const DEFAULT_FAMILY: &[u8] = b"snr";
const FAMILY: &str = "model_family";
const LINK_IDS: &str = "link_ids";
const HORIZON: &str = "horizon_minutes";

/// Values of a parameter that is not of `GET /predictions`, as they were sent.
pub type OtherValues = Vec<Vec<u8>>;

/// Rules of forecasts, by the settings in force.
pub struct ForecastRules {
    /// All families.
    pub families: Vec<Arc<ForecastFamily>>,
    /// Names of the families that are served.
    pub enabled: Vec<String>,
    /// Bound on the entities of a request.
    pub link_ids_max: usize,
    /// Age up to which a kept forecast holds.
    pub fresh_ns: i64,
    /// The kept forecasts, and the id of this run of the machine. `None` if another clock than this
    /// machine's tells the age of records.
    pub kept: Option<(Arc<KeptForecasts>, [u8; 16])>,
}

impl ForecastRules {
    /// Reads the parameters of a query string. `other` is one more parameter that the path takes.
    ///
    /// # Errors
    /// Returns the refusals of the contract, in its order.
    pub fn read(
        &self,
        query: &str,
        other: Option<&str>,
    ) -> Result<(ForecastQuestion, OtherValues), Refusal> {
        let mut given = Parameters::of(query);
        let (families, link_ids) = (given.take(FAMILY), given.take(LINK_IDS));
        let horizons = given.take(HORIZON);
        let others = other.map_or(Vec::new(), |other| given.take(other));
        let family = match &*families {
            [] => self.family(DEFAULT_FAMILY),
            [name] => self.family(name),
            _ => None,
        };
        // The first check: a service that predicts nothing gives no further hints.
        let is_served = |family: &Arc<ForecastFamily>| self.enabled.contains(&family.name);
        if self.enabled.is_empty() || family.is_some_and(|family| !is_served(family)) {
            return Err(Refusal::new("predictions_not_enabled"));
        }
        if let Some(name) = given.unread() {
            let shown = ContextValue::Text(String::from_utf8_lossy(name).into_owned());
            return Err(Refusal::new("unknown_query_parameter").with("parameter", shown));
        }
        let entity_ids = self.entity_ids(&link_ids)?;
        for (name, values) in [(FAMILY, &families), (HORIZON, &horizons)] {
            if values.len() > 1 || values.iter().any(|value| str::from_utf8(value).is_err()) {
                return Err(invalid(name));
            }
        }
        let horizon = horizons.first().and_then(|text| given.whole(HORIZON, text));
        given.finish()?;
        let family = Arc::clone(family.ok_or_else(|| invalid(FAMILY))?);
        let is_of_family = |minutes: &i64| {
            family.horizons_minutes.iter().copied().find(|each| i64::from(*each) == *minutes)
        };
        let horizon_minutes = horizon
            .map(|minutes| is_of_family(&minutes).ok_or_else(|| invalid(HORIZON)))
            .transpose()?;
        let others = others.into_iter().map(Bytes::into_owned).collect();
        Ok((ForecastQuestion { family, entity_ids, horizon_minutes }, others))
    }

    fn family(&self, name: &[u8]) -> Option<&Arc<ForecastFamily>> {
        self.families.iter().find(|family| family.name.as_bytes() == name)
    }

    /// Returns the entities without duplicates. Blank ids and duplicates count for the bound.
    fn entity_ids(&self, given: &[Bytes<'_>]) -> Result<Vec<String>, Refusal> {
        if given.iter().all(|id| id.is_empty()) {
            return Err(Refusal::new("missing_link_ids"));
        }
        if given.len() > self.link_ids_max {
            let max = ContextValue::Whole(self.link_ids_max as u64);
            return Err(Refusal::new("too_many_link_ids").with("max", max));
        }
        let texts = given.iter().map(|id| str::from_utf8(id).map_err(|_| invalid(LINK_IDS)));
        let texts: Vec<&str> = texts.collect::<Result<_, _>>()?;
        let mut seen = HashSet::new();
        let distinct = texts.into_iter().filter(|id| !id.is_empty() && seen.insert(*id));
        Ok(distinct.map(str::to_owned).collect())
    }

    /// Returns the answer for an account's plane. Returns `None` if a forecast has to be computed,
    /// or the store cannot be read here.
    ///
    /// # Errors
    /// Returns a [`ReadFailure`] if the parameters are faulty, or a record is not the tenant's.
    pub fn answer(
        &self,
        plane: &Plane,
        account: &str,
        query: &str,
    ) -> Result<Option<AnswerBody>, ReadFailure> {
        let (asked, _) = self.read(query, None)?;
        let Some((kept, boot)) = &self.kept else { return Ok(None) };
        let wall_ns = clock::wall_ns();
        // If the store fails, the application tells why.
        let Ok(stored) = kept.stored(plane, account, &asked) else { return Ok(None) };
        let elapsed_ns = boottime_ns().ok().and_then(|ns| i64::try_from(ns).ok());
        let Some(elapsed_ns) = elapsed_ns else { return Ok(None) };
        let now = ForecastInstant { wall_ns, stamp: RecordStamp { boot: *boot, elapsed_ns } };
        let recent = stored.recent(plane, &asked, self.fresh_ns, &now).map_err(failed)?;
        Ok(recent.is_whole().then(|| {
            AnswerBody::Whole(vec![forecasts_answer(&asked, wall_ns, &recent.values, &[])])
        }))
    }
}

fn failed(error: Error) -> ReadFailure {
    ReadFailure::Failed(error)
}

fn invalid(parameter: &str) -> Refusal {
    let parameter = ContextValue::Text(parameter.to_owned());
    Refusal::new("invalid_query_parameter").with("parameter", parameter)
}
