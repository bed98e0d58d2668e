//! Exact division by a step that is known to divide without remainder.

/// A positive number that is known to divide others. Dividing by it is therefore a multiplication.
///
/// Example: in 8 bits the inverse of 5 is 205, because 5 * 205 = 1,025 = 4 * 256 + 1. So 35 / 5 is
/// 35 * 205 = 7,175 = 28 * 256 + 7, which is 7.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Divisor {
    pub(super) size: u64,
    /// Number of trailing zeros of `size`.
    pub(super) shift: u32,
    /// Inverse of the odd part of `size`, modulo 2^64.
    inverse: u64,
}

impl Divisor {
    pub(super) const fn new(size: u64) -> Self {
        let shift = size.trailing_zeros();
        let odd = size >> shift;
        // Newton's iteration: the lowest 3 bits are correct at first, and each round doubles their
        // number.
        let mut inverse = odd;
        let mut round = 0;
        while round < 5 {
            inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
            round += 1;
        }
        Self { size, shift, inverse }
    }

    /// Returns `distance / size`. There must be no remainder.
    #[inline]
    pub(super) const fn steps_of(self, distance: u64) -> u64 {
        (distance >> self.shift).wrapping_mul(self.inverse)
    }

    /// Returns `distance / size` if both fit 32 bits. There must be no remainder.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "modulo 2^32 it is an inverse as well")]
    pub(super) const fn narrow_steps(self, distance: u32) -> u32 {
        distance.wrapping_shr(self.shift).wrapping_mul(self.inverse as u32)
    }

    /// Returns `distance / size`. There must be no remainder. Distances below a reference are
    /// negative.
    #[inline]
    pub(super) const fn signed_steps(self, distance: i64) -> i64 {
        (distance >> self.shift).wrapping_mul(self.inverse.cast_signed())
    }
}
