//! The checks of `GET /topology/series` in their order (H1), and the effective request.

use super::budget;
use super::limits::SeriesLimits;
use crate::model::aggregate::{Aggregation, Interval};
use crate::model::time::SECOND_NS;
use crate::storage::segment::DAY_NS;

/// Nanoseconds that a client may lose between reading its clock and being served.
const GRACE_NS: i64 = 60 * SECOND_NS;

/// The measurement names that the topology filter and the series read accept.
pub const MEASUREMENTS: [&str; 6] =
    ["link", "satellite", "ground_station", "weather", "attenuation", "telemetry"];

/// A series read as the client sent it, with well-formed parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesRequest {
    /// Entities, in order. They may repeat.
    pub entity_ids: Vec<String>,
    /// Inclusive start, in nanoseconds since 1970.
    pub start_ns: i64,
    /// Exclusive end, in nanoseconds since 1970; now if `None`.
    pub end_ns: Option<i64>,
    /// Measurement.
    pub measurement: String,
    /// Channels to return. If empty, all numeric channels.
    pub fields: Vec<String>,
    /// Aggregation window. If `None`, the read is raw.
    pub interval: Option<Interval>,
    /// Aggregation. If `None` and there is an interval, the mean.
    pub aggregation: Option<Aggregation>,
}

/// A series read that passed every check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesQuery {
    /// Entities in order of first occurrence, without repetition.
    pub entity_ids: Vec<String>,
    /// Inclusive start, in nanoseconds since 1970.
    pub start_ns: i64,
    /// Exclusive end, in nanoseconds since 1970.
    pub end_ns: i64,
    /// Measurement.
    pub measurement: String,
    /// Channels to return. If empty, all numeric channels.
    pub fields: Vec<String>,
    /// Window and aggregation. If `None`, the read is raw.
    pub windows: Option<(Interval, Aggregation)>,
}

/// The reason that a read is refused. The variants are in the order of the checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryRefusal {
    /// 400 `invalid_input`: forbidden characters, or a topology filter outside the six
    /// measurements.
    InvalidInput {
        /// The parameter.
        field: &'static str,
    },
    /// 422 `unknown_measurement`.
    UnknownMeasurement,
    /// 422 `agg_requires_interval`.
    AggRequiresInterval,
    /// 422 `invalid_range`.
    InvalidRange,
    /// 422 `history_horizon_exceeded`.
    HistoryHorizonExceeded {
        /// The horizon.
        horizon_days: u32,
    },
    /// 422 `interval_required`.
    IntervalRequired {
        /// Smallest interval that fits, if there is one.
        min_interval: Option<Interval>,
    },
    /// 422 `interval_too_fine`.
    IntervalTooFine {
        /// Smallest interval that fits, if there is one.
        min_interval: Option<Interval>,
    },
}

impl SeriesRequest {
    /// Returns the effective query. `read_ns` is the end if the request has none. The horizon
    /// reaches back from `clock_ns` (D15).
    ///
    /// # Errors
    /// Returns the refusal of the first check that fails. The checks are in the order of H1, from
    /// the character check on.
    pub fn check(
        self,
        limits: &SeriesLimits,
        read_ns: i64,
        clock_ns: i64,
    ) -> Result<SeriesQuery, QueryRefusal> {
        self.check_characters()?;
        if !limits.any_measurement && !MEASUREMENTS.contains(&self.measurement.as_str()) {
            return Err(QueryRefusal::UnknownMeasurement);
        }
        if self.aggregation.is_some() && self.interval.is_none() {
            return Err(QueryRefusal::AggRequiresInterval);
        }
        let end_given = self.end_ns.is_some();
        let query = self.into_query(read_ns);
        query.check_range(limits, clock_ns, end_given)?;
        Ok(query)
    }

    /// Returns the effective query without the limits of the contract, for callers inside the
    /// machine.
    #[must_use]
    pub fn into_query(self, now_ns: i64) -> SeriesQuery {
        let mut entity_ids: Vec<String> = Vec::with_capacity(self.entity_ids.len());
        for id in self.entity_ids {
            if !entity_ids.contains(&id) {
                entity_ids.push(id);
            }
        }
        let aggregation = self.aggregation.unwrap_or(Aggregation::Mean);
        SeriesQuery {
            entity_ids,
            start_ns: self.start_ns,
            end_ns: self.end_ns.unwrap_or(now_ns),
            measurement: self.measurement,
            fields: self.fields,
            windows: self.interval.map(|interval| (interval, aggregation)),
        }
    }

    fn check_characters(&self) -> Result<(), QueryRefusal> {
        let refused = |texts: &[String]| texts.iter().any(|text| has_control_character(text));
        let field = if refused(&self.entity_ids) {
            "entity_id"
        } else if has_control_character(&self.measurement) {
            "measurement"
        } else if refused(&self.fields) {
            "fields"
        } else {
            return Ok(());
        };
        Err(QueryRefusal::InvalidInput { field })
    }
}

impl SeriesQuery {
    fn check_range(
        &self,
        limits: &SeriesLimits,
        clock_ns: i64,
        end_given: bool,
    ) -> Result<(), QueryRefusal> {
        let (start_ns, end_ns) = (self.start_ns, self.end_ns);
        if end_ns <= start_ns {
            return Err(QueryRefusal::InvalidRange);
        }
        let horizon_days = limits.horizon_days;
        let reach_ns = i64::from(horizon_days).saturating_mul(DAY_NS).saturating_add(GRACE_NS);
        if start_ns < clock_ns.saturating_sub(reach_ns) {
            return Err(QueryRefusal::HistoryHorizonExceeded { horizon_days });
        }
        let entities = self.entity_ids.len() as u64;
        let min_interval = || budget::min_interval(start_ns, end_ns, entities, limits.points_max);
        match self.windows {
            None => {
                let grace_ns = if end_given { 0 } else { GRACE_NS };
                let span_max_ns = i64::from(limits.raw_span_seconds) * SECOND_NS + grace_ns;
                if end_ns.saturating_sub(start_ns) > span_max_ns {
                    return Err(QueryRefusal::IntervalRequired { min_interval: min_interval() });
                }
            }
            Some((interval, _)) => {
                if !budget::fits(start_ns, end_ns, interval, entities, limits.points_max) {
                    return Err(QueryRefusal::IntervalTooFine { min_interval: min_interval() });
                }
            }
        }
        Ok(())
    }
}

/// Returns true if `text` has a character that is refused: U+0000 to U+001F or U+007F.
fn has_control_character(text: &str) -> bool {
    text.bytes().any(|byte| byte < 0x20 || byte == 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_NS: i64 = 1_800_000_000 * SECOND_NS;
    const HOUR_NS: i64 = 3_600 * SECOND_NS;

    fn request() -> SeriesRequest {
        SeriesRequest {
            entity_ids: vec!["a".to_owned()],
            start_ns: NOW_NS - HOUR_NS,
            end_ns: Some(NOW_NS),
            measurement: "link".to_owned(),
            fields: Vec::new(),
            interval: None,
            aggregation: None,
        }
    }

    fn refusal(request: SeriesRequest) -> Option<QueryRefusal> {
        request.check(&SeriesLimits::default(), NOW_NS, NOW_NS).err()
    }

    #[test]
    fn h1_the_checks_come_in_the_order_of_the_error_table() {
        let mut wrong = SeriesRequest {
            entity_ids: (0..16).map(|n| format!("e{n}\n")).collect(),
            measurement: "pool_interval".to_owned(),
            start_ns: NOW_NS - 60 * DAY_NS,
            end_ns: Some(NOW_NS - 61 * DAY_NS),
            aggregation: Some(Aggregation::Min),
            ..request()
        };
        assert_eq!(refusal(wrong.clone()), Some(QueryRefusal::InvalidInput { field: "entity_id" }));
        wrong.entity_ids = (0..16).map(|n| format!("e{n}")).collect();
        assert_eq!(refusal(wrong.clone()), Some(QueryRefusal::UnknownMeasurement));
        wrong.measurement = "link".to_owned();
        assert_eq!(refusal(wrong.clone()), Some(QueryRefusal::AggRequiresInterval));
        wrong.interval = Some(Interval::FifteenSeconds);
        assert_eq!(refusal(wrong.clone()), Some(QueryRefusal::InvalidRange));
        wrong.end_ns = Some(NOW_NS);
        let exceeded = QueryRefusal::HistoryHorizonExceeded { horizon_days: 30 };
        assert_eq!(refusal(wrong.clone()), Some(exceeded));
        wrong.start_ns = NOW_NS - 30 * DAY_NS;
        let too_fine = QueryRefusal::IntervalTooFine { min_interval: None };
        assert_eq!(refusal(wrong), Some(too_fine));
    }

    #[test]
    fn h19_a_raw_read_spans_exactly_one_hour_with_grace_only_for_a_defaulted_end() {
        assert_eq!(refusal(request()), None);
        let longer = SeriesRequest { start_ns: NOW_NS - HOUR_NS - 1, ..request() };
        let required =
            QueryRefusal::IntervalRequired { min_interval: Some(Interval::FifteenSeconds) };
        assert_eq!(refusal(longer.clone()), Some(required.clone()));
        assert_eq!(refusal(SeriesRequest { end_ns: None, ..longer.clone() }), None);
        let start_ns = NOW_NS - HOUR_NS - 60 * SECOND_NS - 1;
        let late = SeriesRequest { end_ns: None, start_ns, ..longer };
        assert_eq!(refusal(late), Some(required));
    }

    #[test]
    fn h20_the_horizon_is_thirty_days_and_a_minute() {
        let aggregated = SeriesRequest {
            interval: Some(Interval::OneHour),
            start_ns: NOW_NS - 30 * DAY_NS - 60 * SECOND_NS,
            ..request()
        };
        assert_eq!(refusal(aggregated.clone()), None);
        let older = SeriesRequest { start_ns: aggregated.start_ns - 1, ..aggregated };
        let exceeded = QueryRefusal::HistoryHorizonExceeded { horizon_days: 30 };
        assert_eq!(refusal(older), Some(exceeded));
    }

    #[test]
    fn h21_h22_the_end_is_after_the_start_and_may_be_in_the_future() {
        let empty = SeriesRequest { end_ns: Some(NOW_NS - HOUR_NS), ..request() };
        assert_eq!(refusal(empty), Some(QueryRefusal::InvalidRange));
        let future =
            SeriesRequest { start_ns: NOW_NS, end_ns: Some(NOW_NS + HOUR_NS), ..request() };
        assert_eq!(refusal(future), None);
    }

    #[test]
    fn h7_only_control_characters_are_refused_each_under_its_parameter() {
        for (text, is_refused) in
            [("a\u{0}", true), ("\u{1f}", true), ("\u{7f}", true), ("a b", false), ("\"é,'", false)]
        {
            let texts = vec![text.to_owned()];
            for (field, request) in [
                ("entity_id", SeriesRequest { entity_ids: texts.clone(), ..request() }),
                ("fields", SeriesRequest { fields: texts.clone(), ..request() }),
            ] {
                let expected = is_refused.then_some(QueryRefusal::InvalidInput { field });
                assert_eq!(refusal(request), expected, "{text:?}");
            }
        }
        let measurement = "li\nk".to_owned();
        let wrong = SeriesRequest { measurement, ..request() };
        let expected = QueryRefusal::InvalidInput { field: "measurement" };
        assert_eq!(refusal(wrong), Some(expected));
    }

    #[test]
    fn h31_duplicates_collapse_to_their_first_occurrence() {
        let entity_ids = ["b", "a", "b"].map(str::to_owned).to_vec();
        let query = SeriesRequest { entity_ids, ..request() }.into_query(NOW_NS);
        assert_eq!(query.entity_ids, ["b", "a"]);
    }
}
