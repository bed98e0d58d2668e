//! Coded residuals: differences of any order, each in as many bits as it is rare.
//!
//! A residual is a token, which range asymmetric numeral systems (rANS, Duda 2013) code by its
//! frequency among the residuals that followed like ones, and the low bits that the token leaves open.
//!
//! Each module uses only those listed before it.

mod bits;
mod token;

mod context;
mod frequencies;

mod rans;
mod residual;

mod estimate;

mod read;
mod write;

#[cfg(test)]
mod tests;

pub(super) use read::read;
pub(super) use write::encode;
