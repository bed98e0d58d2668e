//! The HTTP front: connections as state machines on one event loop, and threads that take turns at
//! whole requests.

mod calendar;

pub mod admission;
pub mod books;
pub mod fair;
pub mod head;
