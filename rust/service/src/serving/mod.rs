//! The data path from socket to socket: writes, newest samples and series.
//!
//! A request that is anything else, or comes to anything but success, goes to the application with
//! the decision about it.

mod fields;
mod lines;

mod service;

mod asked;

mod reads;
mod writes;

mod front_requests;

pub use fields::CommonFields;
pub use front_requests::Serving;
pub use lines::lines_protocol;
pub use service::{BatchBounds, Service};
