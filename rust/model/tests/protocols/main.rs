//! The protocols of the stores as models. Each test visits every state that its model can reach
//! within stated bounds, and checks the promises of the documents in each state.
//!
//! A model is worth something only if it can fail. So each check of a protocol is left out in turn,
//! and the checker must find a state that breaks a promise.

#![expect(clippy::cast_possible_truncation, reason = "no number of a model is above eight")]

mod checking;

mod embedded;
mod failover;
mod plane;
mod turn;
