//! Records that come as columns, such as those of Arrow: they are checked by the rules of all
//! formats, row by row for times and series and column by column for values.

mod input;

mod fields;
mod tags;

mod rows;

pub use input::{InputField, InputRows, InputTags, InputValues, TagValues};
pub use rows::parse_rows;
