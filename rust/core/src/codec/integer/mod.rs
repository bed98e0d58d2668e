//! Columns of integers.

pub(crate) mod bit_packing;
mod encode;
mod frame_of_reference;
mod linear_prediction;
pub(crate) mod number;
mod patched_frame_of_reference;
mod profile;
mod radix_packing;
mod step;

pub(crate) use encode::{decode, decode_run, encode, encode_times};
pub(crate) use encode::{decode_long_run, encode_run};
