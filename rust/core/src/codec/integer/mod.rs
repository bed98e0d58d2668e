//! Columns of integers, each in the shortest of nine forms.
//!
//! Each module uses only modules listed before it.

mod step;

pub(super) mod bit_packing;

mod radix_packing;

pub(super) mod number;

mod profile;

mod frame_of_reference;

mod delta;

mod patched_frame_of_reference;

mod linear_prediction;

mod coded;

mod based;

mod form;

mod encode;

mod decode;

#[cfg(test)]
mod tests;

pub(crate) use decode::decode_long_run;
pub(super) use decode::{decode, decode_run};
pub(crate) use encode::encode_run;
pub(super) use encode::{encode, encode_times};
