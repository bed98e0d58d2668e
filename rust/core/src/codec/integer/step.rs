//! Exact division by a step that is known to divide.

/// A positive number that others are known to be multiples of, so that dividing by it is multiplying.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(super) size: u64,
    /// Number of trailing zeros of `size`.
    pub(super) shift: u32,
    /// Inverse of the odd part of `size`, modulo 2^64.
    inverse: u64,
}

impl Step {
    pub(super) const fn new(size: u64) -> Self {
        let shift = size.trailing_zeros();
        let odd = size >> shift;
        // Newton's iteration: right in its lowest 3 bits at first, in twice as many each time.
        let mut inverse = odd;
        let mut round = 0;
        while round < 5 {
            inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
            round += 1;
        }
        Self { size, shift, inverse }
    }

    /// `distance / size`, which leaves no remainder.
    #[inline]
    pub(super) const fn steps_of(self, distance: u64) -> u64 {
        (distance >> self.shift).wrapping_mul(self.inverse)
    }

    /// `distance / size`, which leaves no remainder, where both fit 32 bits.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "modulo 2^32 it is an inverse as well")]
    pub(super) const fn narrow_steps(self, distance: u32) -> u32 {
        distance.wrapping_shr(self.shift).wrapping_mul(self.inverse as u32)
    }

    /// `distance / size`, which leaves no remainder; negative for distances below a reference.
    #[inline]
    pub(super) const fn signed_steps(self, distance: i64) -> i64 {
        (distance >> self.shift).wrapping_mul(self.inverse.cast_signed())
    }
}
