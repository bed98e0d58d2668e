//! Who may do what, and the answers of the data path: everything between a socket and the engine
//! that has no rule of HTTP and none of storage in it.
//!
//! Each module may use those listed above it.

mod refusal;

pub mod accounts;
pub mod books;
pub mod clients;
pub mod planes;

pub mod admission;

pub mod answers;

mod long;

pub mod serving;

pub use long::LongAnswer;
pub use refusal::{ParameterFault, Refusal, Value};
