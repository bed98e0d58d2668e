//! Columns of doubles. Decimals and ratios are scaled to integers, other doubles are stored as
//! their bits. If few values are distinct, each distinct value is stored once.
//!
//! Each module uses only modules listed before it.

mod decimal;

mod exponent;

mod sum;

mod bounds;

mod ratio;

mod repeated;

mod encode;

mod decode;

#[cfg(test)]
mod tests;

pub use bounds::FloatBounds;
pub(super) use decode::decode;
pub(super) use encode::encode;
pub(crate) use sum::DecimalSums;
