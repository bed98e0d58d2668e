//! Tokens of `InfluxDB`'s line protocol: names and tags with backslashes, values, ends of lines.

mod text;
mod value;

pub use text::Backslashes;
pub(crate) use text::{
    MEASUREMENT, NAME, is_end, line_ends, line_length, skip_spaces, tag, tags_length,
};
pub(crate) use value::{IntegerFault, boolean, integer, is_unquoted_end, string, unquoted};
