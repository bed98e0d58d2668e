//! Columns of doubles: decimals and ratios are scaled to integers, others are stored as their bits;
//! where few are distinct, these are stored once.
//!
//! Each module uses only those listed before it.

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
