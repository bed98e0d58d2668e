//! Tests with the servers that `make cluster` starts, whose addresses are in the environment.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod database;
mod proxy;

mod records;

mod changes;
mod cuts;
mod forks;
mod objects;
mod planes;
mod races;
mod reads;
mod sweep;
mod turns;
mod twin;
