//! Records that come as columns, as in Arrow. The rules of all formats check their tags series by
//! series, and their times and values column by column.

mod groups;
mod input;

mod accepted;
mod fields;
mod tags;

mod keys;

mod rows;

pub use groups::{GroupBy, Groups};
pub use input::{InputField, InputKey, InputRows, InputTag, InputValues};
pub use rows::parse_rows;

pub(super) use tags::{RAW_KEY_FORMAT, put_tag, tags_of};
