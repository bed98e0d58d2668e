//! Questions over samples in memory.

mod model;
mod reads;
mod samples;
mod table;
