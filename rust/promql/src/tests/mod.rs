//! Questions over samples in memory.

mod bounds;
mod chunks;
mod model;
mod reads;
mod samples;
mod table;
