//! Prometheus' HTTP API: parameters, and answers in its form.

mod parameters;

mod json;

mod names;
mod question;

mod answer;

pub use answer::{ApiAnswer, ApiRequest, QuestionBounds, answer, error_body};
