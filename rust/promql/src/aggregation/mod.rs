//! Aggregation operators: series of one group become one series, or some of them stay.

mod groups;

mod folds;
mod heap;
mod values;

mod evaluated;

pub(crate) use evaluated::{AggregationParameter, Aggregator};
