//! Prometheus' HTTP API: parameters, and answers in its form.

mod parameters;

mod json;

mod names;
mod question;

mod answer;

pub use answer::{Answer, Bounds, Request, answer, error_body};
