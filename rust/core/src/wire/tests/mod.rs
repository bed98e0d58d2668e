//! Tests of what all formats do alike, and what several tests need.

pub(crate) mod messages;
mod tag_template;
mod template;
