//! Reads by labels: series as other languages ask for them, with the samples of each tag set apart.

mod labels;
mod matcher;
mod postings;

mod query;

mod columns;

pub(crate) use columns::{FieldColumns, SampleColumn, SampleColumns};
pub(crate) use labels::label_texts;
pub use labels::{Labels, METRIC, label_bytes, labels_of, metric_of};
pub use matcher::{LabelMatcher, LabelTest};
pub(crate) use postings::LabelPostings;
pub(crate) use query::MatchedSeries;
pub use query::{LabelBounds, LabelQuery, LabelRefusal, LabelledSeries};
