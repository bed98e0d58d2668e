//! Columns of doubles.

mod decimal;
mod encode;

pub(crate) use decimal::decimal_sum;
pub(crate) use encode::bounds_of;
pub(crate) use encode::{decode, decode_bounds, encode, encode_bounds};
