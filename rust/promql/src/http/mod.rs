//! Prometheus' HTTP API: parameters, and answers in its form.

mod parameters;

mod json;

mod names;
mod question;

pub(crate) mod messages;
pub(crate) mod xor_chunk;

pub(crate) mod frames;

pub(crate) mod remote_read;

mod answer;

pub use answer::{ApiAnswer, ApiRequest, QuestionBounds, answer, answer_read, error_body};
