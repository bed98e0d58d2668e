//! The newest sample of every entity, in memory (G1 to G4, F6, N5). It takes what the
//! values take that are the newest, however many fields and tag sets others have.

mod sorted_slots;
mod value;

mod merged_sample;
mod row_view;

mod samples;

mod table;

mod measurements;

mod checkpoint_rows;
mod view;

mod keys;

mod entity;

mod json;
mod page;
mod rest;

#[cfg(test)]
mod tests;

pub use measurements::Latest;
pub use page::LatestPage;
pub use rest::LatestRest;
pub use table::LatestTable;
pub use value::ValueRef;
pub use view::LatestView;
