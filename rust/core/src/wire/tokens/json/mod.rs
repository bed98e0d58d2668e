//! Tokens of JSON (RFC 8259).

mod power;
mod scan;

mod number;
mod string;

pub(crate) use scan::{JsonResult, Scanner, Syntax};
