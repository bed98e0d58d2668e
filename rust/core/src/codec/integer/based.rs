//! Numbers that are nearly all multiples of one base are stored as quotients and remainders.
//! Quotients and remainders each have their own form. Such numbers are bytes counted in pages, or
//! times of a clock that counts seconds in doubles.
//!
//! Example: over the base 4,096, the numbers 8,192 and 12,289 are the quotients 2 and 3, and the
//! remainders 0 and 1.

use super::number::SignedNumber;
use super::profile::{distance, gcd};
use crate::codec::EFFORT_COUNT_MIN;

/// A column that takes fewer bits per number than this gains no bytes from a base.
const BITS_MIN: usize = 12;

/// A base is accepted if it divides the distances at this many of the sampled places.
const PLACES: usize = 24;
const AGREED: usize = 6;

/// Tick of a clock that counts seconds in doubles, until 2038: 2^-22 of a second.
const TICK: Base = Base { size: 1_953_125, shift: 13 };

/// Distance of two multiples: `size / 2^shift`.
#[derive(Clone, Copy)]
pub(super) struct Base {
    pub(super) size: u64,
    pub(super) shift: u32,
}

impl Base {
    /// Returns `quotient` times the base, rounded down, modulo 2^64.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "modulo 2^64")]
    fn times(self, quotient: i64) -> i64 {
        (i128::from(quotient).wrapping_mul(self.size.into()) >> self.shift) as i64
    }

    /// Returns the quotient of the multiple nearest to `value`, and the difference from it to
    /// `value`.
    fn split(self, value: i64) -> (i64, i64) {
        let size = i128::from(self.size);
        let quotient = ((i128::from(value) << self.shift) + size / 2).div_euclid(size);
        let quotient = i64::try_from(quotient).unwrap_or(0);
        (quotient, value.wrapping_sub(self.times(quotient)))
    }
}

/// A base, and the parts of all numbers.
pub(super) struct BasedNumbers {
    pub(super) base: Base,
    pub(super) quotients: Vec<i64>,
    pub(super) remainders: Vec<i64>,
}

impl BasedNumbers {
    /// Splits the numbers if a sample shows a base. `len` is the bytes of the numbers without a
    /// base.
    pub(super) fn of<T: SignedNumber>(values: &[T], len: usize) -> Option<Self> {
        is_worth_it(values.len(), len)
            .then(|| find_base(values))
            .flatten()
            .map(|base| Self::by(base, values))
    }

    /// Splits instants as [`Self::of`] does, if they are times of a clock that counts in doubles.
    pub(super) fn of_times(values: &[i64], len: usize) -> Option<Self> {
        let is_tick = |place| TICK.split(values[values.len() * place / PLACES]).1.abs() <= 1;
        let is_found = is_worth_it(values.len(), len) && (0..PLACES).all(is_tick);
        is_found.then(|| Self::by(TICK, values))
    }

    fn by<T: SignedNumber>(base: Base, values: &[T]) -> Self {
        let (quotients, remainders) =
            values.iter().map(|value| base.split((*value).into())).unzip();
        Self { base, quotients, remainders }
    }
}

const fn is_worth_it(count: usize, len: usize) -> bool {
    count >= EFFORT_COUNT_MIN && len * 8 >= count * BITS_MIN
}

/// Returns the numbers with these parts, modulo 2^64.
pub(super) fn join(base: Base, quotients: &[i64], remainders: &[i64]) -> Vec<i64> {
    let parts = quotients.iter().zip(remainders);
    parts.map(|(quotient, remainder)| base.times(*quotient).wrapping_add(*remainder)).collect()
}

/// Finds the most frequent common divisor of the distances between three successive numbers.
fn find_base<T: SignedNumber>(values: &[T]) -> Option<Base> {
    let mut divisors = Vec::with_capacity(PLACES);
    for place in 0..PLACES {
        let at = (values.len() - 3) * place / PLACES;
        let [a, b, c] = [0, 1, 2].map(|next| values[at + next].into());
        let apart = |a: i64, b: i64| distance(a.max(b), a.min(b));
        let divisor = gcd(apart(a, b), apart(b, c));
        if divisor > 1 {
            divisors.push(divisor);
        }
    }
    divisors.sort_unstable();
    let agreed = divisors.chunk_by(|a, b| a == b).max_by_key(|equal| equal.len())?;
    (agreed.len() >= AGREED).then(|| Base { size: agreed[0], shift: 0 })
}
