//! The data path from socket to socket: writes, newest samples and series.
//!
//! A request that is anything else, or comes to anything but success, goes to the application with
//! the decision about it.

mod fields;
mod unpacking;

mod service;

mod batches;

mod asked;

mod reads;
mod writes;

mod front_requests;

pub use batches::Faulty;
pub use fields::CommonFields;
pub use front_requests::Serving;
pub use service::{BatchBounds, Service};
