//! Tests of behaviour that all formats share, and helpers of several tests.

pub(crate) mod messages;
mod tag_template;
mod template;
