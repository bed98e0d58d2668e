//! Coded residuals: differences of any order, in fewer bits the more frequent they are.
//!
//! A residual is a token and the low bits that the token leaves open. Range asymmetric numeral
//! systems (rANS, Duda 2013) code the token by its frequency among the residuals with a similar
//! predecessor.
//!
//! Each module uses only modules listed before it.

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
