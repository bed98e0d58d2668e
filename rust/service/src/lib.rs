//! The service between sockets and the engine: accounts, admission, answers of the data path, and
//! the accounting of requests.
//!
//! Each module may use the modules listed above it.

mod refusal;

pub mod renewed;

pub mod accounting;
pub mod accounts;
pub mod clients;
pub mod planes;

pub mod admission;

pub mod forecasts;

pub mod answers;

mod long;

pub mod serving;

pub use long::LongAnswer;
pub use refusal::{ContextValue, DetailFault, Refusal};
