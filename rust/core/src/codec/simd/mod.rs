//! Loops as vector instructions of the machine they run on.

mod dispatch;
pub(crate) mod kernels;

#[cfg(test)]
pub(crate) use dispatch::tests::everywhere;
pub(crate) use dispatch::{Machine, mapped, vectorised};
