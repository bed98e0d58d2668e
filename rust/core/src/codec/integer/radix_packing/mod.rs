//! Radix packing: several digits of one radix in a word.
//!
//! Example: a number below 41 takes 5.4 bits instead of 6.
//!
//! A word is the fraction `0.d1 d2 d3 …` in that radix, rounded up to its last bit. Multiplying the
//! word by the radix moves the first digit in front of the point, so a digit costs one
//! multiplication.
//!
//! Words of up to 32 bits are *narrow*. Groups of 256 narrow words lie side by side in eight lanes.

mod layout;
mod pack;
mod unpack;

#[cfg(test)]
mod tests;

pub(super) use layout::{RADIX_END, WordLayout};
