//! Numbers of 32 bits if all numbers of a column fit, else of 64 bits. A vector holds twice as many
//! numbers of 32 bits.

use super::step::Divisor;
use crate::codec::simd::{mapped, multiversioned};

/// A signed number.
pub(crate) trait SignedNumber: Copy + Ord + Into<i64> {
    /// Converts a number that must fit.
    fn of(number: i64) -> Self;

    /// Returns the wrapping difference.
    fn minus(self, other: Self) -> Self;

    /// Returns the number of steps above `low`, modulo 2^32. `low` is smaller or equal.
    fn steps_above(self, low: Self, step: Divisor) -> u32;
}

impl SignedNumber for i32 {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "it fits")]
    fn of(number: i64) -> Self {
        number as Self
    }

    #[inline]
    fn minus(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }

    #[inline]
    fn steps_above(self, low: Self, step: Divisor) -> u32 {
        step.narrow_steps(self.wrapping_sub(low).cast_unsigned())
    }
}

impl SignedNumber for i64 {
    #[inline]
    fn of(number: i64) -> Self {
        number
    }

    #[inline]
    fn minus(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "modulo 2^32")]
    fn steps_above(self, low: Self, step: Divisor) -> u32 {
        step.signed_steps(self.wrapping_sub(low)) as u32
    }
}

/// Signed numbers, of 32 bits if all numbers are known to fit.
#[derive(Debug)]
pub(crate) enum SignedNumbers {
    Narrow(Vec<i32>),
    Wide(Vec<i64>),
}

impl SignedNumbers {
    /// Returns the numbers in 64 bits.
    pub(crate) fn widen(self) -> Vec<i64> {
        match self {
            Self::Narrow(numbers) => widen(&numbers),
            Self::Wide(numbers) => numbers,
        }
    }

    /// Returns the numbers if each is from 0 to below `end`.
    pub(crate) fn below(self, end: u32) -> Option<Vec<u32>> {
        match self {
            Self::Narrow(numbers) => {
                let (min, max) = range(&numbers);
                let are_below = min >= 0 && max.cast_unsigned() < end;
                are_below.then(|| numbers.into_iter().map(i32::cast_unsigned).collect())
            }
            Self::Wide(numbers) => {
                let fit = |number| u32::try_from(number).ok().filter(|number| *number < end);
                numbers.into_iter().map(fit).collect()
            }
        }
    }
}

multiversioned! {
    fn widen(numbers: &[i32]) -> Vec<i64> {
        mapped(numbers, i64::from)
    }
}

multiversioned! {
    /// Returns the smallest and the largest number, or zeros if there are no numbers.
    pub(crate) fn range(numbers: &[i32]) -> (i32, i32) {
        let first = numbers.first().copied().unwrap_or(0);
        let (mut min, mut max) = (first, first);
        for number in numbers {
            min = min.min(*number);
            max = max.max(*number);
        }
        (min, max)
    }
}
