//! The data path from socket to socket: writes, newest samples, series, kept forecasts, and
//! questions in the language of Prometheus.
//!
//! Every other request, and every request that does not succeed, goes to the application together
//! with the decision about it. Only a question is also refused here.

mod error_rows;
mod fields;
mod unpacking;

mod service;

mod batches;

mod asked;

mod questions;
mod reads;
mod refusals;
mod writes;

mod front_requests;

pub use batches::FaultPolicy;
pub use error_rows::{ErrorRow, ErrorRows};
pub use fields::CommonFields;
pub use front_requests::RequestServer;
pub use service::{BatchBounds, Service};
