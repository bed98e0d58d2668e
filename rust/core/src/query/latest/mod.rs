//! The newest sample of every entity, in memory (G1 to G4, F6, N5). The memory grows with the
//! newest values only, however many fields and tag sets the older samples have.

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

mod choice;
mod page;
mod rest;

#[cfg(test)]
mod tests;

pub use choice::{EntityChoice, EntityOrder};
pub use measurements::Latest;
pub use page::LatestPage;
pub use rest::LatestRest;
pub use table::LatestTable;
pub use value::ValueRef;
pub use view::LatestView;
