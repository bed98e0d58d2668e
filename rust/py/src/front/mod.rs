//! The HTTP front as Python sees it.

mod limits;

mod environ;

mod request;

mod server;

pub(crate) use request::Request;
pub(crate) use server::Front;
