//! Tests with the servers that `make cluster` starts, whose addresses are in the environment.

mod database;

mod records;
