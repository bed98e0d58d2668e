//! Records that come as columns, such as those of Arrow: they are checked by the rules of all
//! formats, series by series, and column by column for times and values.

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
