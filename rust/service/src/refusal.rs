//! Refusals: the code of an answer, and the values that accompany it.

use std::borrow::Cow;

use fleetcast_core::model::aggregate::Interval;
use fleetcast_core::model::fault::{self, Step};
use fleetcast_core::query::{MEASUREMENTS, QueryRefusal};

/// A value that accompanies a code.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// A text.
    Text(String),
    /// Words to choose from.
    Words(&'static [&'static str]),
    /// A whole number.
    Whole(u64),
    /// Faults of a head, of parameters or of a body.
    Faults(Vec<Fault>),
}

/// A fault, an item of a `detail` list.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Type of the fault, as the contract names it.
    pub kind: &'static str,
    /// The place of the fault, such as `["query", "start"]`.
    pub place: Vec<Step>,
    /// A sentence for people.
    pub message: Cow<'static, str>,
}

/// A refusal by the rules of the contract. The surface of the request makes the answer from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The error code.
    pub code: &'static str,
    /// Names and values that accompany the code.
    pub context: Vec<(&'static str, Value)>,
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
    pub fn with(mut self, name: &'static str, value: Value) -> Self {
        self.context.push((name, value));
        self
    }

    /// Makes `schema_faults` from a list of faults.
    #[must_use]
    pub fn of_faults(faults: Vec<Fault>) -> Self {
        Self::new("schema_faults").with("detail", Value::Faults(faults))
    }
}

impl Fault {
    /// Makes a fault at the place of these keys.
    pub fn new(kind: &'static str, place: &[&str], message: impl Into<Cow<'static, str>>) -> Self {
        let place = place.iter().map(|key| Step::Key((*key).to_owned())).collect();
        Self { kind, place, message: message.into() }
    }
}

impl From<fault::Fault> for Fault {
    fn from(fault: fault::Fault) -> Self {
        let mut found = Self::new(fault.code.as_str(), &["body"], fault.code.message());
        found.place.extend(fault.loc);
        found
    }
}

impl From<fault::Refusal> for Refusal {
    fn from(refusal: fault::Refusal) -> Self {
        let mut found = Self::new(refusal.code());
        if let Some(field) = refusal.field() {
            found = found.with("field", Value::Text(field.to_owned()));
        }
        match refusal {
            fault::Refusal::Faults(faults) | fault::Refusal::Dropped(faults) => {
                Self::of_faults(faults.into_iter().map(Fault::from).collect())
            }
            fault::Refusal::TooManyRecords { received, max } => found
                .with("max", Value::Whole(max as u64))
                .with("received", Value::Whole(received as u64)),
            fault::Refusal::TenantFull { bound } => Self { bound: Some(bound), ..found },
            fault::Refusal::InvalidInput { .. }
            | fault::Refusal::TypeConflict { .. }
            | fault::Refusal::BufferFull => found,
        }
    }
}

impl From<QueryRefusal> for Refusal {
    fn from(refusal: QueryRefusal) -> Self {
        let word = |found: Option<Interval>| {
            found.map_or(Value::Null, |interval| Value::Text(interval.as_str().to_owned()))
        };
        match refusal {
            QueryRefusal::InvalidInput { field } => {
                Self::new("invalid_input").with("field", Value::Text(field.to_owned()))
            }
            QueryRefusal::UnknownMeasurement => {
                Self::new("unknown_measurement").with("allowed", Value::Words(&MEASUREMENTS))
            }
            QueryRefusal::AggRequiresInterval => Self::new("agg_requires_interval"),
            QueryRefusal::InvalidRange => Self::new("invalid_range"),
            QueryRefusal::HistoryHorizonExceeded { horizon_days } => {
                let days = Value::Whole(horizon_days.into());
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
        let loc = vec![Step::Index(3), Step::Key("time".to_owned())];
        let refusal = fault::Refusal::Faults(vec![fault::Fault { code: FaultCode::Missing, loc }]);
        let mut missing = Fault::new("missing", &["body"], "Field required");
        missing.place.extend([Step::Index(3), Step::Key("time".to_owned())]);
        assert_eq!(Refusal::from(refusal), Refusal::of_faults(vec![missing]));

        let many = Refusal::new("batch_too_large").with("max", Value::Whole(2));
        let many = many.with("received", Value::Whole(3));
        assert_eq!(Refusal::from(fault::Refusal::TooManyRecords { received: 3, max: 2 }), many);

        let full = Refusal::from(fault::Refusal::TenantFull { bound: "tenant_fields_max" });
        let field = Value::Text("fields".to_owned());
        assert_eq!((full.code, full.bound), ("invalid_input", Some("tenant_fields_max")));
        assert_eq!(full.context, [("field", field)]);
    }

    #[test]
    fn a_refused_read_says_what_would_do() {
        let refusal = |min_interval| Refusal::from(QueryRefusal::IntervalTooFine { min_interval });
        let hour = Value::Text("1h".to_owned());
        assert_eq!(refusal(Some(Interval::OneHour)).context, [("min_interval", hour)]);
        assert_eq!(refusal(None).context, [("min_interval", Value::Null)]);
        let unknown = Refusal::from(QueryRefusal::UnknownMeasurement);
        assert_eq!(unknown.code, "unknown_measurement");
        assert_eq!(unknown.context, [("allowed", Value::Words(&MEASUREMENTS))]);
    }
}
