//! Questions over samples in memory.

mod bounds;
mod model;
mod reads;
mod samples;
mod table;
