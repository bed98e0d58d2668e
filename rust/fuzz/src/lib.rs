//! Runs hostile bytes against all readers of bytes.
//!
//! A stable compiler has no `cargo fuzz`, but it can count the branches that ran. `make fuzz`
//! builds with LLVM's coverage counters ([`coverage`]). Inputs that reach a new branch are kept and
//! changed further ([`engine`]). Without the counters, as in `cargo test`, only the seeds are
//! changed.

pub mod allocations;
pub mod cost;
pub mod coverage;
mod house;
pub mod messages;
mod mutate;
mod producer;

pub mod targets;

pub mod engine;
