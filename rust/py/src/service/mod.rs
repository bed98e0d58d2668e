//! The service as Python sees it: who is let in, by which rules, and the requests that are served
//! without the interpreter.

mod context;

mod authenticator;

mod environ_request;

mod decision;

mod books;

mod rules;

mod serving;

pub(crate) use authenticator::Authenticator;
pub(crate) use books::{note_unreadable, write_served};
pub(crate) use decision::Decision;
pub(crate) use rules::{LimiterFile, Service, is_precision, routes};
pub(crate) use serving::Serving;
