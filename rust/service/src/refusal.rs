//! Refusals: the code of an answer, and the values that accompany it.

use std::borrow::Cow;

use fleetcast_core::model::aggregate::Interval;
use fleetcast_core::model::fault::{self, LocationStep};
use fleetcast_core::query::{MEASUREMENTS, QueryRefusal};

/// A value that accompanies a code.
#[derive(Clone, Debug, PartialEq)]
pub enum ContextValue {
    /// No value.
    Null,
    /// A text.
    Text(String),
    /// Words to choose from.
    Words(&'static [&'static str]),
    /// A whole number.
    Whole(u64),
    /// Faults of a head, of parameters or of a body.
    Faults(Vec<DetailFault>),
}

/// A fault, an item of a `detail` list.
#[derive(Clone, Debug, PartialEq)]
pub struct DetailFault {
    /// Type of the fault, as the contract names it.
    pub kind: &'static str,
    /// The place of the fault, such as `["query", "start"]`.
    pub place: Vec<LocationStep>,
    /// A sentence for people.
    pub message: Cow<'static, str>,
}

/// A refusal by the rules of the contract. The surface of the request makes the answer from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The error code.
    pub code: &'static str,
    /// Names and values that accompany the code.
    pub context: Vec<(&'static str, ContextValue)>,
    /// The setting that the tenant's names would exceed, if that is the reason.
    pub bound: Option<&'static str>,
}

impl Refusal {
    /// Makes a refusal with a code and no values.
    #[must_use]
    pub fn new(code: &'static str) -> Self {
        Self { code, context: Vec::new(), bound: None }
    }

    /// Adds a value under `name`.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: ContextValue) -> Self {
        self.context.push((name, value));
        self
    }

    /// Makes `schema_faults` from a list of faults.
    #[must_use]
    pub fn of_faults(faults: Vec<DetailFault>) -> Self {
        Self::new("schema_faults").with("detail", ContextValue::Faults(faults))
    }
}

impl DetailFault {
    /// Makes a fault at the place of these keys.
    pub fn new(kind: &'static str, place: &[&str], message: impl Into<Cow<'static, str>>) -> Self {
        let place = place.iter().map(|key| LocationStep::Key((*key).to_owned())).collect();
        Self { kind, place, message: message.into() }
    }
}

impl From<fault::Fault> for DetailFault {
    fn from(fault: fault::Fault) -> Self {
        let mut found = Self::new(fault.code.as_str(), &["body"], fault.code.message());
        found.place.extend(fault.loc);
        found
    }
}

impl From<fault::BatchRefusal> for Refusal {
    fn from(refusal: fault::BatchRefusal) -> Self {
        let mut found = Self::new(refusal.code());
        if let Some(field) = refusal.field() {
            found = found.with("field", ContextValue::Text(field.to_owned()));
        }
        match refusal {
            fault::BatchRefusal::Faults(faults) | fault::BatchRefusal::Dropped(faults) => {
                Self::of_faults(faults.into_iter().map(DetailFault::from).collect())
            }
            fault::BatchRefusal::TooManyRecords { received, max } => found
                .with("max", ContextValue::Whole(max as u64))
                .with("received", ContextValue::Whole(received as u64)),
            fault::BatchRefusal::TenantFull { bound } => Self { bound: Some(bound), ..found },
            fault::BatchRefusal::InvalidInput { .. }
            | fault::BatchRefusal::TypeConflict { .. }
            | fault::BatchRefusal::BufferFull => found,
        }
    }
}

impl From<QueryRefusal> for Refusal {
    fn from(refusal: QueryRefusal) -> Self {
        let word = |found: Option<Interval>| {
            found.map_or(ContextValue::Null, |interval| {
                ContextValue::Text(interval.as_str().to_owned())
            })
        };
        match refusal {
            QueryRefusal::InvalidInput { field } => {
                Self::new("invalid_input").with("field", ContextValue::Text(field.to_owned()))
            }
            QueryRefusal::UnknownMeasurement => {
                Self::new("unknown_measurement").with("allowed", ContextValue::Words(&MEASUREMENTS))
            }
            QueryRefusal::AggRequiresInterval => Self::new("agg_requires_interval"),
            QueryRefusal::InvalidRange => Self::new("invalid_range"),
            QueryRefusal::HistoryHorizonExceeded { horizon_days } => {
                let days = ContextValue::Whole(horizon_days.into());
                Self::new("history_horizon_exceeded").with("horizon_days", days)
            }
            QueryRefusal::IntervalRequired { min_interval } => {
                Self::new("interval_required").with("min_interval", word(min_interval))
            }
            QueryRefusal::IntervalTooFine { min_interval } => {
                Self::new("interval_too_fine").with("min_interval", word(min_interval))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use fleetcast_core::model::fault::FaultCode;

    use super::*;

    #[test]
    fn a_refused_batch_says_its_faults_its_numbers_or_its_field() {
        let loc = vec![LocationStep::Index(3), LocationStep::Key("time".to_owned())];
        let refusal =
            fault::BatchRefusal::Faults(vec![fault::Fault { code: FaultCode::Missing, loc }]);
        let mut missing = DetailFault::new("missing", &["body"], "Field required");
        missing.place.extend([LocationStep::Index(3), LocationStep::Key("time".to_owned())]);
        assert_eq!(Refusal::from(refusal), Refusal::of_faults(vec![missing]));

        let many = Refusal::new("batch_too_large").with("max", ContextValue::Whole(2));
        let many = many.with("received", ContextValue::Whole(3));
        assert_eq!(
            Refusal::from(fault::BatchRefusal::TooManyRecords { received: 3, max: 2 }),
            many
        );

        let full = Refusal::from(fault::BatchRefusal::TenantFull { bound: "tenant_fields_max" });
        let field = ContextValue::Text("fields".to_owned());
        assert_eq!((full.code, full.bound), ("invalid_input", Some("tenant_fields_max")));
        assert_eq!(full.context, [("field", field)]);
    }

    #[test]
    fn a_refused_read_says_what_would_do() {
        let refusal = |min_interval| Refusal::from(QueryRefusal::IntervalTooFine { min_interval });
        let hour = ContextValue::Text("1h".to_owned());
        assert_eq!(refusal(Some(Interval::OneHour)).context, [("min_interval", hour)]);
        assert_eq!(refusal(None).context, [("min_interval", ContextValue::Null)]);
        let unknown = Refusal::from(QueryRefusal::UnknownMeasurement);
        assert_eq!(unknown.code, "unknown_measurement");
        assert_eq!(unknown.context, [("allowed", ContextValue::Words(&MEASUREMENTS))]);
    }
}
