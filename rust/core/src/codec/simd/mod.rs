//! Loops that run as vector instructions of the processor.

mod dispatch;
pub(crate) mod kernels;

#[cfg(target_arch = "x86_64")]
pub(crate) use dispatch::SimdLevel;
#[cfg(test)]
pub(crate) use dispatch::tests::on_all_levels;
pub(crate) use dispatch::{mapped, multiversioned};
