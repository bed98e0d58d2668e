//! The service as Python sees it: authentication, its rules, and the requests that are served
//! without the interpreter.

mod accounting;
mod authenticator;

mod decision;
mod environ_request;

mod rules;

mod serving;

pub(crate) use accounting::{
    name_process, note_unreadable, open_accounting, refusal_is_logged, tell_left_out, write_served,
};
pub(crate) use authenticator::Authenticator;
pub(crate) use decision::Decision;
pub(crate) use rules::{Service, key_fields, routes};
pub(crate) use serving::Serving;
