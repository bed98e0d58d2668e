//! Prometheus' query language over the engine: its parser is `promql-parser`, and its evaluator
//! works on columns, all steps of a series at once. `docs/prometheus.md` has the language.
//!
//! The modules are listed from the bottom layer up. A module may use the modules above it in this
//! list, never the modules below it.

mod refusal;

mod expression;
mod labels;

mod budget;
mod column;
mod steps;

mod source;

mod selector;
mod window;

mod functions;
mod operators;

mod aggregation;

mod evaluator;

mod language;

mod http;

#[cfg(test)]
mod tests;

pub use http::{ApiAnswer, ApiRequest, QuestionBounds, answer, answer_read, error_body};
