//! Requests of the read endpoints, their checks, and their answers.

mod budget;
mod field_map;
mod limits;
mod rows;
mod search;
mod series_index;

mod collector;
mod request;
mod truncate;

mod hours;
mod raw;
mod selection;
mod windows;

mod collection;

mod answer;
mod arrays;
pub mod latest;
mod long_answer;

mod frame;

pub mod labelled;

pub mod scan;

pub use answer::SeriesAnswer;
pub use arrays::SeriesArrays;
pub use collector::Collector;
pub use frame::{Frame, FrameColumn};
pub use limits::{AnswerBounds, SeriesLimits};
pub use long_answer::LongSeries;
pub use raw::RawRows;
pub use request::{MEASUREMENTS, QueryRefusal, SeriesQuery, SeriesRequest};
pub use rows::{Channel, EntityRows};
pub use selection::Selection;
pub use series_index::SeriesIndex;
pub use truncate::truncate;
pub use windows::{EntityFolds, FieldHours, WindowRows};
