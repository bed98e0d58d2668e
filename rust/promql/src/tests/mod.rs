//! Questions over samples in memory.

mod model;
mod samples;
mod table;
